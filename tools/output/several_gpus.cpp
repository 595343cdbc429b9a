// SPDX-License-Identifier: Apache-2.0
#include "several_gpus.hpp"

#include <fmt/core.h>

#include "lines.hpp"
#include "table.hpp"
#include "units.hpp"

namespace vlmest::tool {
namespace {

using Json = nlohmann::ordered_json;
using parallel::CommunicationRow;
using parallel::ParallelEstimate;
using parallel::RankEstimate;

std::string rank_names(const RankEstimate& r) {
  return r.ranks == 1 ? std::to_string(r.rank) : fmt::format("{}-{}", r.rank, r.rank + r.ranks - 1);
}

Table ranks_table(const ParallelEstimate& p) {
  Table t{.head = {"ranks", "weights", "gradients", "optimizer", "forward", "backward", "step", "peak", "reserved"},
          .rows = {}};
  for (const RankEstimate& r : p.ranks)
    t.rows.push_back({rank_names(r), show(r.weights), show(r.gradients), show(r.optimizer), show(r.forward),
                      show(r.backward), show(r.step), show(r.peak), show(r.reserved)});
  return t;
}

Table communication_table(const ParallelEstimate& p) {
  Table t{.head = {"collective", "phase", "group", "count", "bytes", "time", "exposed"}, .rows = {}, .left = 3};
  for (const CommunicationRow& c : p.communication)
    t.rows.push_back({std::string(name(c.kind)), std::string(name(c.phase)), c.group, grouped(c.count), show(c.bytes),
                      show(c.time), show(c.exposed)});
  return t;
}

/// "2 GPUs over nvlink4, dp 2, fsdp2: a step of 350 ms, …"
std::string several_gpus_line(const ParallelEstimate& p, bool training) {
  const parallel::Layout& l = p.layout;
  std::string mesh;
  for (const auto& [size, size_name] : {std::pair{l.dp, "dp"}, {l.tp, "tp"}, {l.pp, "pp"}, {l.cp, "cp"}, {l.ep, "ep"}})
    if (size > 1) mesh += fmt::format(", {} {}", size_name, size);
  std::string shard = l.shard == parallel::Shard::none ? "" : ", " + std::string(name(l.shard));
  if (l.param_dtype) shard += fmt::format(" gathered in {}", name(*l.param_dtype));
  std::string out = fmt::format("{} GPUs over {}{}{}: {} of {}", l.gpus(), p.network, mesh, shard,
                                training ? "a step" : "a prefill", show(p.step));
  if (!p.communication.empty())
    out += fmt::format(", collectives {} of which {} exposed", show(p.communicated()), show(p.exposed()));
  if (p.bubble_share > 0) out += fmt::format(", bubble {:.0f} %", p.bubble_share * 100);
  return out + fmt::format(", {:.0f} {}tokens/s, MFU {:.0f} %; {} a GPU lie outside of the allocator (context, NCCL)",
                           p.tokens_per_second, training ? "" : "new ", p.mfu * 100, show(p.outside));
}

bool has_training_ranks(const Reported& r) { return r.several->training.storages().size() > 0; }

/// What a step leaves out: DeepSpeed's hooks, which Python runs for each parameter, and in stage 3 for each module.
constexpr const char* hooks_note =
    "DeepSpeed's hooks on the host are not in the step: measured steps took 1.2 to 3 times as long";

/// What DistributedDataParallel would end with.
std::string unused_parameters(const Reported& r) {
  const parallel::Layout& l = r.several->layout;
  if (!has_training_ranks(r) || holders(l) == 1 || l.shard != parallel::Shard::none) return {};
  const std::int64_t n = parallel::parameters_without_gradient(r.estimator.training_graph(), r.plan);
  if (n == 0) return {};
  return fmt::format(
      "{} trained parameter{} get{} no gradient: DistributedDataParallel needs find_unused_parameters=True", grouped(n),
      n == 1 ? "" : "s", n == 1 ? "s" : "");
}

/// torchrun's command line, and where all is asked for the other ways too, each below its tool's name.
std::string launch_text(const ParallelEstimate& p, bool all) {
  std::string out;
  for (const parallel::Launch& l : p.launch) {
    if (!all) return fmt::format("launch (--verbose has script and configurations): {}\n", l.text);
    out += fmt::format("launch with {}:\n", l.tool);
    for (std::size_t from = 0; from <= l.text.size();) {
      const std::size_t to = std::min(l.text.find('\n', from), l.text.size());
      out += "  " + l.text.substr(from, to - from) + "\n";
      from = to + 1;
    }
  }
  return out;
}

std::string launch_markdown(const ParallelEstimate& p) {
  std::string out;
  for (const parallel::Launch& l : p.launch) out += fmt::format("\n{}:\n\n```text\n{}\n```\n", l.tool, l.text);
  return out;
}

}  // namespace

std::string several_gpus_text(const Reported& r, const ReportOptions& options) {
  if (!r.several) return {};
  std::string out = "\n" + wrapped(several_gpus_line(*r.several, has_training_ranks(r)), 2) + "\n";
  if (has_training_ranks(r)) out += text(ranks_table(*r.several));
  if (!r.several->communication.empty()) out += text(communication_table(*r.several));
  if (has_training_ranks(r) && is_zero(r.several->layout.shard)) out += std::string(hooks_note) + "\n";
  if (const std::string unused = unused_parameters(r); !unused.empty()) out += unused + "\n";
  out += launch_text(*r.several, options.verbose);
  return out;
}

std::string several_gpus_markdown(const Reported& r) {
  if (!r.several) return {};
  std::string out = "\n## Several GPUs\n\n" + several_gpus_line(*r.several, has_training_ranks(r)) + "\n";
  if (has_training_ranks(r)) out += "\n" + markdown(ranks_table(*r.several));
  if (!r.several->communication.empty()) out += "\n" + markdown(communication_table(*r.several));
  if (has_training_ranks(r) && is_zero(r.several->layout.shard)) out += "\n" + std::string(hooks_note) + "\n";
  if (const std::string unused = unused_parameters(r); !unused.empty()) out += "\n" + unused + "\n";
  out += launch_markdown(*r.several);
  return out;
}

nlohmann::ordered_json several_gpus_json(const ParallelEstimate& p, const ReportOptions& options) {
  const parallel::Layout& l = p.layout;
  Json r = {{"gpus", l.gpus()},
            {"dp", l.dp},
            {"tp", l.tp},
            {"pp", l.pp},
            {"cp", l.cp},
            {"ep", l.ep},
            {"shard", std::string(name(l.shard))},
            {"network", p.network},
            {"ranks", Json::array()}};
  if (l.param_dtype) r["param_dtype"] = std::string(name(*l.param_dtype));
  if (l.reduce_dtype) r["reduce_dtype"] = std::string(name(*l.reduce_dtype));
  for (const RankEstimate& x : p.ranks) {
    Json row = {{"rank", x.rank}, {"ranks", x.ranks}, {"stage", x.stage}, {"weights_bytes", x.weights.value()}};
    if (options.training) {
      row["gradients_bytes"] = x.gradients.value();
      row["optimizer_bytes"] = x.optimizer.value();
    }
    if (options.inference) {
      row["prefill"] = {{"peak_bytes", x.prefill.value()}};
      row["decode"] = {{"peak_bytes", x.decode.value()}};
      row["kv_cache_bytes"] = x.kv_cache.value();
    }
    if (options.training) {
      row["forward"] = {{"peak_bytes", x.forward.value()}};
      row["backward"] = {{"peak_bytes", x.backward.value()}};
      row["step"] = {{"peak_bytes", x.step.value()}};
    }
    row["peak_bytes"] = x.peak.value();
    row["reserved_bytes"] = x.reserved.value();
    if (x.reserved_in_loop > Bytes{}) row["reserved_in_loop_bytes"] = x.reserved_in_loop.value();
    row["fits"] = x.fits;
    r["ranks"].push_back(std::move(row));
  }
  r["communication"] = Json::array();
  for (const CommunicationRow& c : p.communication)
    r["communication"].push_back({{"op", std::string(name(c.kind))},
                                  {"group", c.group},
                                  {"phase", std::string(name(c.phase))},
                                  {"count", c.count},
                                  {"bytes", c.bytes.value()},
                                  {"ms", significant(c.time.ms())},
                                  {"exposed_ms", significant(c.exposed.ms())}});
  r["outside_bytes"] = p.outside.value();
  r["step_ms"] = significant(p.step.ms());
  if (options.training && is_zero(p.layout.shard)) r["step_is_lower_bound"] = true;
  r["nccl_ms"] = significant(p.communicated().ms());
  r["exposed_ms"] = significant(p.exposed().ms());
  r["bubble_share"] = significant(p.bubble_share);
  r["tokens_per_s"] = significant(p.tokens_per_second);
  r["mfu"] = significant(p.mfu);
  r["launch"] = Json::array();
  for (const parallel::Launch& x : p.launch) r["launch"].push_back({{"tool", std::string(x.tool)}, {"text", x.text}});
  return r;
}

}  // namespace vlmest::tool
