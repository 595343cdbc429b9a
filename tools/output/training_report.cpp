// SPDX-License-Identifier: Apache-2.0
#include "training_report.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "timeline.hpp"
#include "units.hpp"

namespace vlmest::tool {
std::string training_inputs(const Reported& r) {
  const Plan& p = r.plan;
  std::string line = "training: " + std::string(name(p.optimizer));
  if (p.checkpointing != Checkpointing::off)
    line += p.checkpointing == Checkpointing::full ? ", full checkpointing" : ", selective checkpointing";
  if (p.checkpointing != Checkpointing::off && p.checkpointed.layers)
    line += fmt::format(" of {} layers", *p.checkpointed.layers);
  if (p.lora.rank > 0) {
    line += fmt::format(", rank-{} adapters on", p.lora.rank);
    for (const auto& t : p.lora.targets) line += (&t == &p.lora.targets.front() ? " " : ", ") + t;
    if (p.lora.vision) line += " (vision too)";
  }
  for (const auto& [trained, part] :
       {std::pair(p.trainable.vision, "vision"), std::pair(p.trainable.audio, "audio"),
        std::pair(p.trainable.projector, "projector"), std::pair(p.trainable.language, "language")})
    if (!trained && p.lora.rank == 0) line += fmt::format(", {} frozen", part);
  if (p.loss != Loss::unfused) line += p.loss == Loss::fused ? ", fused loss" : ", chunked loss";
  if (p.amp) line += ", bf16 autocast";
  if (p.gradient_accumulation > 1) line += fmt::format(", {} micro-batches", p.gradient_accumulation);
  return line + fmt::format("; {} of {} parameters train", show_count(r.estimate.trainable.value()),
                            show_count(r.estimate.params.total().value()));
}

Table training_phases(const Reported& r) {
  const TrainingEstimate& e = r.estimate.training;
  Table t{.head = {"phase", "peak", "at its end", "reserved", "FLOPs", "kernels", "GPU time", "CUDA graph", "wall time",
                   "bound"},
          .rows = {}};
  const auto row = [&](const std::string& what, const allocator::PhaseMemory& m, const Work& w) {
    t.rows.push_back({what, show(m.peak), show(m.after), "", nothing_or(w.flops), grouped(w.kernels), show(w.time), "",
                      "", std::string(name(bound(w)))});
  };
  row("forward", e.forward, e.forward_work);
  row("backward", e.backward, e.backward_work);
  row("step", e.step, e.step_work);
  t.rows.push_back({e.micro_batches > 1 ? fmt::format("all, {} micro-batches", e.micro_batches) : "all three",
                    show(e.peak), "", show(e.reserved), show_count(e.work.flops.value()), grouped(e.work.kernels),
                    show(e.gpu), show(e.graph), show(e.wall), std::string(name(e.bound))});
  return t;
}

Table training_states(const Reported& r) {
  const TrainingEstimate& e = r.estimate.training;
  return {.head = {"what training holds", "bytes"},
          .rows = {{"weights", show(e.weights)},
                   {fmt::format("gradients of {} parameters", show_count(e.trainable.value())), show(e.gradients)},
                   {fmt::format("states of {}", name(r.plan.optimizer)), show(e.optimizer)},
                   {"activations saved for the backward", show(e.saved_activations)}}};
}

Table training_peaks(const Reported& r, const MemoryCurve& curve) {
  const Graph& g = r.estimator.training_graph();
  Table t{.head = {"at the peak of", "during"}, .rows = {}, .left = 2};
  static constexpr std::array<Role, 7> shown{Role::weight,    Role::gradient, Role::optimizer_state, Role::activation,
                                             Role::workspace, Role::input,    Role::buffer};
  for (const Role role : shown) t.head.emplace_back(name(role));
  for (auto p = curve.phases.end() - 3; p != curve.phases.end(); ++p) {
    const auto first = curve.samples.begin() + static_cast<std::ptrdiff_t>(p->first),
               last = curve.samples.begin() + static_cast<std::ptrdiff_t>(p->last);
    const auto top = std::max_element(
        first, last, [](const MemorySample& a, const MemorySample& b) { return a.allocated < b.allocated; });
    if (top == last) continue;
    const Node& n = g.node(top->node);
    const std::string scope = path(g, n.scope);
    std::vector<std::string> row{std::string(name(p->kind)), scope.empty() ? n.name : scope + " " + n.name};
    for (const Role role : shown) {
      const Bytes held = top->by_role[static_cast<std::size_t>(role)];
      row.push_back(held == Bytes{} ? "-" : show(held));
    }
    t.rows.push_back(std::move(row));
  }
  return t;
}

std::string reserved_text(const TrainingEstimate& e) {
  const allocator::Fragmentation& f = e.highest().at_peak;
  return fmt::format(
      "reserved at the peak: {}, of it {} in gaps between live blocks and {} cached; largest free block {}; reserved "
      "in a loop that never empties the cache: {}",
      show(f.reserved), show(f.split), show(f.releasable), show(f.largest_free), show(e.reserved_in_loop));
}

std::string curve_text(const MemoryCurve& curve, bool unicode) {
  if (curve.samples.empty()) return {};
  const auto [least, most] =
      std::minmax_element(curve.samples.begin(), curve.samples.end(),
                          [](const MemorySample& a, const MemorySample& b) { return a.allocated < b.allocated; });
  return fmt::format("allocated over the step, {} to {}\n", show(least->allocated), show(most->allocated)) +
         sparkline(curve, 76, unicode);
}

}  // namespace vlmest::tool
