// SPDX-License-Identifier: Apache-2.0
#include "evidence/text_evidence.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include <vlmest/diagnose/oom/elsewhere.hpp>
#include <vlmest/diagnose/oom/oom_reader.hpp>
#include <vlmest/diagnose/oom/run_mode.hpp>
#include <vlmest/diagnose/oom/sign_verdict.hpp>
#include <vlmest/diagnose/text/cut_stack.hpp>
#include <vlmest/diagnose/text/gpu_processes.hpp>
#include <vlmest/diagnose/text/memory_log.hpp>
#include <vlmest/diagnose/text/numerics.hpp>
#include <vlmest/diagnose/text/other_failures.hpp>
#include <vlmest/diagnose/text/words.hpp>

#include "evidence/series_evidence.hpp"

namespace vlmest::tool {
namespace {

using namespace diagnose;
using Json = nlohmann::ordered_json;

void add(Json& facts, const char* key, const std::optional<PrintedSize>& size) {
  if (size) facts[key] = size->value.value();
}

Json frames_json(const std::vector<Frame>& frames) {
  Json r = Json::array();
  for (const Frame& f : frames) {
    Json x = {{"file", f.file}, {"line", f.line}, {"function", f.function}};
    if (!f.code.empty()) x["code"] = f.code;
    r.push_back(std::move(x));
  }
  return r;
}

Json message_facts(const OomMessage& m) {
  Json j = {{"backend", name(m.backend)}, {"line", m.line}, {"times", m.times}};
  if (m.reason != OomReason::none) j["reason"] = name(m.reason);
  if (m.gpu) j["gpu"] = *m.gpu;
  if (m.rank) j["rank"] = *m.rank;
  add(j, "requested_bytes", m.requested);
  if (const auto t = tensor_sizes(m)) j["tensor_bytes"] = {t->low.value(), t->high.value()};
  add(j, "total_bytes", m.total);
  add(j, "free_bytes", m.free);
  add(j, "allowed_bytes", m.allowed);
  add(j, "allocated_bytes", allocated(m));
  add(j, "reserved_bytes", reserved(m));
  add(j, "unallocated_bytes", unallocated(m));
  add(j, "private_pools_bytes", m.private_pools);
  add(j, "this_process_bytes", m.own_process);
  add(j, "non_torch_bytes", non_torch(m));
  Json processes = Json::array();
  for (const ProcessMemory& p : m.processes) processes.push_back({{"pid", p.pid}, {"bytes", p.in_use.value.value()}});
  if (!processes.empty()) j["other_processes"] = std::move(processes);
  j["phase"] = name(m.phase);
  j["site"] = name(m.site);
  if (!m.traceback.frames.empty()) j["traceback"] = frames_json(m.traceback.frames);
  return j;
}

const char* advice(NumericTrouble t) {
  switch (t) {
    case NumericTrouble::exploding_gradient:
    case NumericTrouble::loss_spike:
      return "lower the learning rate or clip gradients (max_grad_norm=1.0), and look at the batch of that step";
    case NumericTrouble::skipped_step:
    case NumericTrouble::scale_at_minimum:
      return "fp16 overflows: train in bf16 (bf16=True), whose range is that of fp32";
    default:
      return "in fp16 use bf16 (bf16=True); find the op with torch.autograd.set_detect_anomaly(True); an unscaled FFT "
             "of N points multiplies its input by up to N, so that in fp16 mean |x| must stay below 65504 / N "
             "(norm=\"ortho\": below 65504 / sqrt(N))";
  }
}

/// Losses, norms and scales that tell of numbers gone wrong.
void add_numerics(Evidence& e, const MemorySeries& series, std::string_view text) {
  auto found = numeric_findings(series);
  for (NumericFinding& f : numeric_messages(text)) {
    const bool known =
        std::any_of(found.begin(), found.end(), [&](const NumericFinding& x) { return x.trouble == f.trouble; });
    if (!known) found.push_back(std::move(f));
  }
  if (found.empty()) return;
  Json all = Json::array();
  for (const NumericFinding& f : found) {
    Json x = {{"trouble", name(f.trouble)}, {"line", f.line}, {"times", f.times}, {"value", number_json(f.value)}};
    if (f.step) x["step"] = *f.step;
    if (f.usual > 0) x["usual"] = number_json(f.usual);
    if (!f.text.empty()) x["text"] = f.text;
    all.push_back(std::move(x));
    e.lines.push_back(fmt::format("{} at line {}{}: {}", name(f.trouble), f.line,
                                  f.step ? fmt::format(", step {}", *f.step) : "", advice(f.trouble)));
  }
  e.facts["numerics"] = std::move(all);
  if (e.failure || e.verdict) return;
  const NumericFinding& first = found.front();
  e.verdict =
      Verdict{.confidence = 0.9,
              .why = fmt::format("not memory but numbers: {} at line {}{}; {}.", name(first.trouble), first.line,
                                 first.step ? fmt::format(" (step {})", *first.step) : "", advice(first.trouble))};
}

void add_processes(Evidence& e, std::string_view text) {
  const auto processes = find_gpu_processes(text);
  if (processes.empty()) return;
  Json all = Json::array();
  Bytes sum{};
  for (const GpuProcess& p : processes) {
    Json x = {{"pid", p.pid}, {"bytes", p.used.value()}};
    if (p.gpu) x["gpu"] = *p.gpu;
    all.push_back(std::move(x));
    sum += p.used;
  }
  e.facts["gpu_processes"] = std::move(all);
  e.lines.push_back(fmt::format("{} processes on GPUs hold {}", processes.size(), in_words(sum)));
}

/// A failure of another kind, which is said where nothing else is found.
void add_other_failure(Evidence& e, const OtherFailure& f) {
  e.facts["other_failure"] = {{"what", f.what}, {"line", f.line}};
  e.lines.push_back(fmt::format("line {}: {}", f.line, f.what));
  if (e.verdict || e.failure) return;
  e.verdict = Verdict{
      .why = fmt::format("{}{} at line {}; {}.", f.may_be_memory ? "" : "not memory but: ", f.what, f.line, f.hint)};
}

/// The least that a server has left for its KV cache, with what takes the rest.
std::string server_words(const MemorySeries& log) {
  std::optional<Bytes> least;
  for (const LogFact& f : log.facts)
    if (f.name == "kv_cache" && f.size && (!least || f.size->value < *least)) least = f.size->value;
  if (!least) return {};
  std::string r = fmt::format("no failure is in this text; the server has {} left for its KV cache", in_words(*least));
  for (const auto& [name, words] : {std::pair<std::string_view, const char*>{"weights", "the weights take"},
                                    {"activation_peak", "the peak of the activations"},
                                    {"non_torch", "what is not torch's"}})
    if (const auto bytes = elsewhere::fact(log.facts, name)) r += fmt::format(", {} {}", words, in_words(*bytes));
  return r + ".";
}

/// Where nothing failed, that is said.
void add_nothing_found(Evidence& e, const MemorySeries& log) {
  if (e.verdict || e.failure || e.lines.empty()) return;
  if (std::string words = server_words(log); !words.empty()) {
    e.verdict = Verdict{.why = std::move(words)};
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

Json signs_json(const std::vector<FoundSign>& signs) {
  Json all = Json::array();
  for (const FoundSign& f : signs)
    all.push_back({{"cause", name(cause_of(f.sign))}, {"line", f.line}, {"text", f.text}});
  return all;
}

/// A message without figures whose stack stands elsewhere, or whose engine says more than it does.
void add_bare_message(Evidence& e, std::string_view text) {
  const bool said = std::any_of(e.signs.begin(), e.signs.end(), [](const FoundSign& f) {
    return f.sign >= RunSign::pinned_memory && f.sign <= RunSign::engine_weights;
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

/// A stack without its message.
void add_cut_stack(Evidence& e, const CutStack& s) {
  if (!s.ended_by.empty()) {
    e.facts["exception"] = {{"what", s.ended_by}, {"line", s.line}};
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

/// What programs take whatever they need, so that what is in use tells nothing of a failure. Sources: JAX's
/// documentation ("GPU memory allocation"), vllm/config/cache.py (gpu_memory_utilization), sglang/srt/server_args.py
/// (mem_fraction_static).
std::string reserved_ahead(std::string_view text) {
  const auto has = [&](std::string_view w) { return text.find(w) != std::string_view::npos; };
  if (has("jax._src") || has("XLA_PYTHON_CLIENT"))
    return "no failure is in this text. JAX takes 75 % of the device's memory when it starts, whatever the model "
           "needs: "
           "XLA_PYTHON_CLIENT_PREALLOCATE=false shows what it needs, XLA_PYTHON_CLIENT_MEM_FRACTION=.9 lets it have "
           "more.";
  if (has("vllm serve") || has("from vllm import") || has("vllm.entrypoints"))
    return "no failure is in this text. vLLM takes the share of each device that gpu_memory_utilization names (0.9 if "
           "not "
           "given), whatever the model needs: what its weights and its profile run leave of it becomes KV cache. A "
           "lower "
           "share, or --kv-cache-memory-bytes, takes less.";
  if (has("sglang.launch_server") || has("SGLANG_"))
    return "no failure is in this text. SGLang takes the share of each device that --mem-fraction-static names for "
           "weights "
           "and KV cache, whatever the model needs; its picture processor runs on the GPU beside it unless "
           "--disable-fast-image-processor is given.";
  return {};
}

Json summary_facts(const MemorySummary& m) {
  Json j = {{"device", m.device}, {"ooms", m.ooms}, {"retries", m.retries}};
  const auto row = [&](const char* key, const PoolRows<UsageRow>& r) {
    if (r.all) j[key] = {{"current_bytes", r.all->current.value.value()}, {"peak_bytes", r.all->peak.value.value()}};
  };
  row("allocated", m.allocated);
  row("active", m.active);
  row("requested", m.requested);
  row("reserved", m.reserved);
  row("non_releasable", m.non_releasable);
  return j;
}

/// What a table says of the moment that it was printed at: as of a failed request of unknown size.
std::optional<Failure> summary_failure(const MemorySummary& m) {
  if (!m.allocated.all || !m.reserved.all) return std::nullopt;
  Failure f;
  const UsageRow &a = *m.allocated.all, &r = *m.reserved.all;
  // After an error the program has let go of much; the peak is what failed.
  f.allocated = m.ooms > 0 ? a.peak : a.current;
  f.unallocated = (m.ooms > 0 ? r.peak : r.current) - *f.allocated;
  if (m.non_releasable.all) f.split = m.non_releasable.all->current;
  return f;
}

}  // namespace

Evidence summary_evidence(const std::vector<MemorySummary>& tables) {
  Evidence e;
  e.kind = "memory_summary";
  const MemorySummary* worst = &tables.front();
  for (const MemorySummary& m : tables)
    if (m.ooms > worst->ooms) worst = &m;
  e.facts = summary_facts(*worst);
  if (tables.size() > 1) e.facts["tables"] = tables.size();
  e.failure = summary_failure(*worst);
  e.out_of_memory = worst->ooms > 0;
  if (e.failure)
    e.lines.push_back(fmt::format("allocated at most {}, reserved at most {}, {} OOMs, {} retries of cudaMalloc",
                                  in_words(worst->allocated.all->peak.value), in_words(worst->reserved.all->peak.value),
                                  worst->ooms, worst->retries));
  return e;
}

Evidence text_evidence(std::string_view text, const std::string& where) {
  Evidence e;
  const auto messages = find_oom_messages(text);
  const auto tables = find_memory_summaries(text);
  const MemorySeries series = read_memory_log(text);
  e.signs = find_run_signs(text);
  const auto signs = e.signs;
  const bool says = says_out_of_memory(text);
  if (!messages.empty()) {
    // The first with figures: what follows an error in a log are its echoes on other ranks.
    const auto first =
        std::find_if(messages.begin(), messages.end(), [](const OomMessage& m) { return m.has_numbers; });
    const OomMessage& m = first == messages.end() ? messages.front() : *first;
    e.kind = "oom_message";
    e.facts = message_facts(m);
    if (messages.size() > 1) e.facts["messages"] = messages.size();
    e.verdict = judge_elsewhere(m, series.facts);
    e.out_of_memory = !e.verdict;
    e.failure = e.verdict ? failure_elsewhere(m) : failure_of(m);
    if (e.failure && !e.failure->told) e.failure->told = told_mode(series);
    if (e.failure)
      e.failure->stack_elsewhere = e.failure->frames.empty() && text.find("  File \"") != std::string_view::npos;
    e.lines.push_back(m.text);
    e.log_facts = series.facts;
    // A log says of its server what a stack cut short does not.
    const bool profile =
        std::any_of(signs.begin(), signs.end(), [](const FoundSign& f) { return f.sign == RunSign::server_profile; });
    if (profile && e.failure && !e.failure->told && e.failure->site != AllocationSite::kv_cache &&
        e.failure->site != AllocationSite::weights && e.failure->phase != RunPhase::load_weights)
      e.failure->phase = RunPhase::server_profile;
    else if (profile && e.failure && e.failure->told && e.failure->told->mode == Mode::inference &&
             e.failure->site != AllocationSite::kv_cache && e.failure->site != AllocationSite::weights)
      e.failure->phase = RunPhase::server_profile;
    if (!m.has_numbers && e.out_of_memory) add_bare_message(e, text);
    if (e.verdict && e.verdict->cause == Cause::host_memory && !signs.empty() && !signs.front().numbers.empty())
      if (const auto v = judge_signs(signs, series.facts, true, false); v && v->cause == Cause::host_memory)
        e.verdict->why += " By the log " + v->why;
  } else if (!tables.empty()) {
    e = summary_evidence(tables);
  } else {
    e.kind = "training_log";
  }
  e.log_facts = series.facts;
  e.signs = signs;
  e.says_memory = says;
  e.run = read_run(text);
  if (!signs.empty()) e.facts["signs"] = signs_json(signs);
  const bool failed_sign =
      std::any_of(signs.begin(), signs.end(), [](const FoundSign& f) { return tells_failure(f.sign); });
  if (messages.empty() && failed_sign && !e.verdict)
    e.verdict = judge_signs(signs, series.facts, says, trains_with_engine(text));
  add_series(e, series);
  add_numerics(e, series, text);
  if (e.facts.empty() && nlohmann::json::accept(text))
    throw Error(where, "JSON that is no trace, no memory snapshot and no memory_stats()",
                "give what export_chrome_trace() of torch.profiler or torch.cuda.memory._dump_snapshot() wrote");
  if (messages.empty()) {
    add_processes(e, text);
    const auto stack = find_cut_stack(text);
    const auto other = find_other_failure(text);
    if (!other && !e.verdict && !e.failure && !signs.empty())
      e.verdict = judge_signs(signs, series.facts, says, trains_with_engine(text));
    if (!other && !e.verdict && !e.failure && stack) add_cut_stack(e, *stack);
    if (other) {
      if (e.facts.empty() && !other->may_be_memory)
        throw Error(where, fmt::format("no lack of memory: {}, at line {}", other->what, other->line),
                    std::string(other->hint));
      add_other_failure(e, *other);
    }
    if (!e.verdict && !e.failure && !says)
      if (std::string words = reserved_ahead(text); !words.empty() && server_words(series).empty()) {
        e.facts["reserves_ahead"] = true;
        e.verdict = Verdict{.why = std::move(words)};
      }
    if (!says) add_nothing_found(e, series);
    if (says) e.facts["says_out_of_memory"] = true;
    if (!e.run.settings.empty()) e.facts["settings"] = e.run.settings.size();
    if (!e.verdict && !e.failure && (says || !e.run.empty()))
      e.verdict = Verdict{
          .why =
              says ? "the text says that memory ran out, but holds no message of it: give the log with its last lines."
                   : "no failure is in this text, only settings of a run."};
  }
  if (e.facts.empty() && !e.verdict)
    throw Error(where, "holds no out-of-memory message, no memory per step and no memory_summary()",
                "give the whole log, with its last lines");
  return e;
}

}  // namespace vlmest::tool
