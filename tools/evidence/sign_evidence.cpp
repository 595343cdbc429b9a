// SPDX-License-Identifier: Apache-2.0
#include "evidence/sign_evidence.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include <vlmest/diagnose/evidence/stack/allocation_site.hpp>
#include <vlmest/diagnose/evidence/stack/run_mode.hpp>
#include <vlmest/diagnose/evidence/text/words.hpp>
#include <vlmest/diagnose/verdict/elsewhere.hpp>
#include <vlmest/diagnose/verdict/judge_budget.hpp>
#include <vlmest/diagnose/verdict/judge_signs.hpp>

namespace vlmest::tool {

using namespace diagnose;
using Json = nlohmann::ordered_json;

namespace {

/// What programs take whatever they need, so that what is in use tells nothing of a failure. Sources: JAX's
/// documentation ("GPU memory allocation"), vllm/config/cache.py (gpu_memory_utilization), sglang/srt/server_args.py
/// (mem_fraction_static).
std::string reserved_ahead(std::string_view text) {
  const auto has = [&](std::string_view w) { return text.find(w) != std::string_view::npos; };
  if (has("jax._src") || has("XLA_PYTHON_CLIENT"))
    return "no failure is in this text. JAX takes 75 % of the device's memory when it starts, whatever the model "
           "needs: XLA_PYTHON_CLIENT_PREALLOCATE=false shows what it needs, XLA_PYTHON_CLIENT_MEM_FRACTION=.9 lets it "
           "have more.";
  if (has("vllm serve") || has("from vllm import") || has("vllm.entrypoints") || has("gpu_memory_utilization") ||
      has("gpu-memory-utilization"))
    return "no failure is in this text. vLLM takes the share of each device that gpu_memory_utilization names (0.9 if "
           "not given), whatever the model needs: what its weights and its profile run leave of it becomes KV cache. A "
           "lower share, or --kv-cache-memory-bytes, takes less.";
  if (has("sglang.launch_server") || has("SGLANG_"))
    return "no failure is in this text. SGLang takes the share of each device that --mem-fraction-static names for "
           "weights and KV cache, whatever the model needs; its picture processor runs on the GPU beside it unless "
           "--disable-fast-image-processor is given.";
  return {};
}

}  // namespace

Json frames_json(const std::vector<Frame>& frames) {
  Json r = Json::array();
  for (const Frame& f : frames) {
    Json x = {{"file", f.file}, {"line", f.line}, {"function", f.function}};
    if (!f.code.empty()) x["code"] = f.code;
    r.push_back(std::move(x));
  }
  return r;
}

Json signs_json(const std::vector<FoundSign>& signs) {
  Json all = Json::array();
  for (const FoundSign& f : signs)
    all.push_back({{"cause", name(cause_of(f.sign))}, {"line", f.line}, {"text", f.text}});
  return all;
}

void add_bare_message(Evidence& e, std::string_view text) {
  const bool said = std::any_of(e.signs.begin(), e.signs.end(), [](const FoundSign& f) {
    // Memory that torch's allocator has no figures of: pinned, an engine's pool, or what an engine was making.
    return f.sign == RunSign::pinned_memory || cause_of(f.sign) == Cause::engine_budget ||
           f.sign == RunSign::compute_pool || traits(f.sign).tells == SignTells::place;
  });
  const bool of_host = std::any_of(e.signs.begin(), e.signs.end(), [](const FoundSign& f) {
    return tells_failure(f.sign) && cause_of(f.sign) == Cause::host_memory;
  });
  if ((said || of_host) && e.failure && e.failure->site == AllocationSite::unknown) {
    auto v = judge_signs(e.signs, e.log_facts, true, trains_with_engine(text));
    if (v && (v->cause != Cause::profile_run || e.failure->frames.empty())) {
      e.verdict = std::move(v);
      e.out_of_memory = false;
      return;
    }
  }
  if (!e.failure || !e.failure->frames.empty() || e.failure->site != AllocationSite::unknown) return;
  if (const auto stack = find_cut_stack(text); stack && stack->ended_by.empty()) {
    e.failure->frames = stack->frames;
    e.failure->phase = run_phase(stack->frames);
    e.failure->site = allocation_site_of(stack->frames);
    if (!e.failure->told) e.failure->told = told_mode(stack->frames, e.failure->phase);
  }
}

void add_profile_run(Evidence& e) {
  if (!e.failure || std::none_of(e.signs.begin(), e.signs.end(),
                                 [](const FoundSign& f) { return f.sign == RunSign::server_profile; }))
    return;
  // A log says of its server what a stack cut short does not.
  Failure& f = *e.failure;
  const bool loads = f.site == AllocationSite::weights || (!f.told && f.phase == RunPhase::load_weights);
  const bool trains = f.told && f.told->mode != Mode::inference;
  if (!loads && !trains && f.site != AllocationSite::kv_cache) f.phase = RunPhase::server_profile;
}

void add_cut_stack(Evidence& e, const CutStack& s) {
  if (!s.ended_by.empty()) {
    e.facts["exception"] = {{"what", s.ended_by}, {"line", s.line}};
    e.other_failure = true;
    e.verdict = Verdict{.why = fmt::format("not memory but: the stack ends in {} (line {}).", s.ended_by, s.line)};
    return;
  }
  Failure f;
  f.frames = s.frames;
  f.phase = run_phase(s.frames);
  f.site = allocation_site_of(s.frames);
  f.told = told_mode(s.frames, f.phase);
  f.telling = false;
  e.facts["stack"] = {
      {"line", s.line}, {"phase", name(f.phase)}, {"site", name(f.site)}, {"traceback", frames_json(s.frames)}};
  e.lines.push_back(fmt::format("line {}: a stack without its error", s.line));
  e.kind = "oom_message";
  e.failure = std::move(f);
  e.out_of_memory = e.cut_short = true;
}

void add_nothing_found(Evidence& e, const MemorySeries& log) {
  if (e.verdict || e.failure || e.lines.empty()) return;
  if (auto v = judge_engine_budget(log.facts)) {
    e.verdict = std::move(v);
    e.of_budget = true;
    return;
  }
  std::size_t rows = 0;
  for (const MemoryRow& r : log.rows) rows += r.has_memory() ? 1 : 0;
  if (rows < 3) {
    if (log.rows.empty() || rows == 0) return;
    e.verdict =
        Verdict{.why = fmt::format("no failure is in this text, and its {} with a figure of memory {} no growth.",
                                   rows == 1 ? "one line" : "two lines", rows == 1 ? "shows" : "show")};
    return;
  }
  e.verdict = Verdict{.why = "nothing failed here: " + e.lines.back() + "."};
}

void add_reserved_ahead(Evidence& e, const MemorySeries& log, std::string_view text) {
  if (e.verdict || e.failure || judge_engine_budget(log.facts)) return;
  std::string words = reserved_ahead(text);
  if (words.empty()) return;
  e.facts["reserves_ahead"] = true;
  e.verdict = Verdict{.why = std::move(words)};
}

}  // namespace vlmest::tool
