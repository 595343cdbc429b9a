// SPDX-License-Identifier: Apache-2.0
#include "estimate_report.hpp"

#include <fmt/core.h>

#include "table.hpp"
#include "units.hpp"

namespace vlmest::tool {
namespace {

std::string nothing_or(Bytes b) { return b == Bytes{} ? "-" : show(b); }
std::string nothing_or(Seconds s) { return s.value == 0 ? "-" : show(s); }
std::string nothing_or(Flops f) { return f == Flops{} ? "-" : show_count(f.value()); }

std::string plural(std::int64_t n, const char* what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); }

/// "fits: peak 14.8 GiB in prefill, 124 GiB of 139 GiB left on h200-sxm"
std::string verdict(const Reported& r) {
  const InferenceEstimate& e = r.estimate.inference;
  const Bytes usable = r.device.usable_bytes;
  const std::string where = fmt::format("peak {} in {}", show(e.peak), e.decode_is_peak ? "decode" : "prefill");
  if (e.fits)
    return fmt::format("fits: {}, {} of {} left on {}", where, show(usable - e.peak), show(usable), r.device.name);
  if (e.peak <= usable)
    return fmt::format(
        "does not fit: {} is within the {} of {}, but the allocator cannot place it: {} would be reserved, gaps "
        "included",
        where, show(usable), r.device.name, show(e.decode.memory.reserved));
  return fmt::format("does not fit: {}, {} more than the {} of {}", where, show(e.peak - usable), show(usable),
                     r.device.name);
}

std::string inputs(const Reported& r) {
  const Sequences& s = r.estimate.sequences;
  std::string line = fmt::format("{}: {} of {} tokens", r.vlm.name, plural(s.batch, "sequence"), grouped(s.seq));
  if (r.plan.images > 0) {
    line += fmt::format(" ({} text, {} from {} of {}x{}", grouped(s.text), grouped(s.image_tokens),
                        plural(r.plan.images, "image"), s.image.height, s.image.width);
    if (!s.images.empty() && s.images.front().tiles > 1) line += fmt::format(", {} tiles each", s.images.front().tiles);
    line += ")";
  }
  return line + ", " + std::string(name(r.plan.dtype));
}

Table phases(const Reported& r) {
  const InferenceEstimate& e = r.estimate.inference;
  Table t{.head = {"phase", "peak", "reserved", "FLOPs", "kernels", "GPU time", "wall time", "bound"}, .rows = {}};
  const auto row = [&](const std::string& what, const PhaseEstimate& p) {
    t.rows.push_back({what, show(p.memory.peak), show(p.memory.reserved), show_count(p.work.flops.value()),
                      grouped(p.work.kernels), show(p.gpu), show(p.wall), std::string(name(p.bound))});
  };
  row("prefill", e.prefill);
  row(fmt::format("decode at {}", grouped(e.decode.kv_len)), e.decode);
  return t;
}

struct PartSum {
  Elements params{};
  Bytes weights{}, kv{}, activations{}, attention{}, fft{};
  Work work;
};

PartSum sum(const std::vector<LayerRow>& rows, Part part) {
  PartSum s;
  for (const auto& r : rows) {
    if (r.part != part) continue;
    s.params += r.params;
    s.weights += r.weights;
    s.kv += r.kv;
    s.activations = std::max(s.activations, r.activations);
    s.attention = std::max(s.attention, r.attention);
    s.fft = std::max(s.fft, r.fft);
    s.work += r.prefill;
  }
  return s;
}

const std::vector<std::string> columns{"params", "weights", "KV cache",     "activations", "attention",
                                       "FFT",    "FLOPs",   "prefill time", "bound"};

template <class Row>
std::vector<std::string> cells(const std::string& first, const Row& r, const Work& w) {
  return {first,
          r.params == Elements{} ? "-" : show_count(r.params.value()),
          nothing_or(r.weights),
          nothing_or(r.kv),
          nothing_or(r.activations),
          nothing_or(r.attention),
          nothing_or(r.fft),
          nothing_or(w.flops),
          nothing_or(w.time),
          w.time.value == 0 ? "-" : std::string(name(bound(w)))};
}

Table headed(const char* first) {
  Table t{.head = {first}, .rows = {}};
  t.head.insert(t.head.end(), columns.begin(), columns.end());
  return t;
}

Table components(const Reported& r) {
  Table t = headed("component");
  for (Part p : {Part::vision, Part::projector, Part::language, Part::model}) {
    const PartSum s = sum(r.estimate.layers, p);
    if (s.params == Elements{} && s.work.kernels == 0) continue;
    t.rows.push_back(cells(p == Part::model ? "joining" : std::string(name(p)), s, s.work));
  }
  return t;
}

bool alike(const LayerRow& a, const LayerRow& b) {
  return a.params == b.params && a.kv == b.kv && a.activations == b.activations && a.attention == b.attention &&
         a.fft == b.fft && a.prefill.flops == b.prefill.flops && a.prefill.kernels == b.prefill.kernels;
}

/// One line per layer, or, where `fold`, one line for a run of equal layers with the values of each.
Table layers(const Reported& r, bool fold) {
  Table t = headed(fold ? "layer (values of each)" : "layer");
  const auto& rows = r.estimate.layers;
  const Graph& g = r.graph;
  for (std::size_t i = 0; i < rows.size();) {
    if (rows[i].params == Elements{} && rows[i].prefill.kernels == 0) {
      ++i;
      continue;
    }
    std::size_t n = 1;
    const auto numbered = [&](std::size_t k) {
      return g.scopes[static_cast<std::size_t>(rows[k].scope)].index != none;
    };
    while (fold && numbered(i) && i + n < rows.size() && numbered(i + n) && alike(rows[i], rows[i + n])) ++n;
    std::string label = path(g, rows[i].scope);
    if (label.empty()) label = "(model)";
    if (n > 1) label += fmt::format("-{}", g.scopes[static_cast<std::size_t>(rows[i + n - 1].scope)].index);
    t.rows.push_back(cells(label, rows[i], rows[i].prefill));
    i += n;
  }
  return t;
}

Table tensors(const Reported& r, std::size_t top) {
  Table t{.head = {"tensor", "role", "shape", "dtype", "bytes"}, .rows = {}, .left = 4};
  for (const auto& x : largest(r.graph, r.estimate.inference.tensors, top)) {
    const std::string label = x.scope.empty() ? x.name : x.scope + " " + x.name;
    const bool other = x.name == "other" && x.dtype.empty();
    t.rows.push_back(
        {label, other ? "" : std::string(name(x.role)), other ? "" : to_string(x.shape), x.dtype, show(x.bytes)});
  }
  return t;
}

Table training(const Reported& r) {
  const TrainingStates& s = r.estimate.training;
  return {.head = {"training states", "bytes"},
          .rows = {{"weights", show(s.weights)},
                   {fmt::format("gradients of {} parameters", show_count(s.trainable.value())), show(s.gradients)},
                   {"optimizer", show(s.optimizer)}}};
}

std::string painted(const std::string& s, bool good, bool color) {
  return color ? (good ? "\033[32m" : "\033[31m") + s + "\033[0m" : s;
}

}  // namespace

std::string text_report(const Reported& r, const ReportOptions& o) {
  std::string out = painted(verdict(r), r.estimate.inference.fits, o.color) + "\n" + inputs(r) + "\n";
  out += "\n" + text(components(r));
  if (o.inference) out += "\n" + text(phases(r));
  if (o.training) out += "\n" + text(training(r));
  out += "\n" + text(layers(r, !o.per_layer));
  if (o.inference)
    out += fmt::format("\npeak of {}\n", r.estimate.inference.decode_is_peak ? "decode" : "prefill") +
           text(tensors(r, o.top));
  return out;
}

std::string markdown_report(const Reported& r, const ReportOptions& o) {
  std::string out = "# " + r.vlm.name + "\n\n**" + verdict(r) + "**\n\n" + inputs(r) + "\n";
  out += "\n## Components\n\n" + markdown(components(r));
  if (o.inference) out += "\n## Phases\n\n" + markdown(phases(r));
  if (o.training) out += "\n## Training states\n\n" + markdown(training(r));
  out += "\n## Layers\n\n" + markdown(layers(r, !o.per_layer));
  if (o.inference) out += "\n## Tensors at the peak\n\n" + markdown(tensors(r, o.top));
  return out;
}

std::string csv_report(const Reported& r) {
  Table t{.head = {"scope", "part", "params", "weights_bytes", "kv_bytes", "activation_bytes", "attention_bytes",
                   "fft_bytes", "flops_forward", "forward_us", "intensity", "bound"},
          .rows = {}};
  for (const auto& x : r.estimate.layers)
    t.rows.push_back({path(r.graph, x.scope), std::string(name(x.part)), std::to_string(x.params.value()),
                      std::to_string(x.weights.value()), std::to_string(x.kv.value()),
                      std::to_string(x.activations.value()), std::to_string(x.attention.value()),
                      std::to_string(x.fft.value()), std::to_string(x.prefill.flops.value()),
                      fmt::format("{:.3f}", x.prefill.time.us()), fmt::format("{:.3f}", intensity(x.prefill)),
                      std::string(name(bound(x.prefill)))});
  return csv(t);
}

}  // namespace vlmest::tool
