// SPDX-License-Identifier: Apache-2.0
#include "evidence/text_evidence.hpp"

#include <algorithm>
#include <future>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include <vlmest/diagnose/evidence/oom/ranks.hpp>
#include <vlmest/diagnose/evidence/oom/reader.hpp>
#include <vlmest/diagnose/evidence/stack/cut_stack.hpp>
#include <vlmest/diagnose/evidence/stack/run_mode.hpp>
#include <vlmest/diagnose/evidence/text/gpu_processes.hpp>
#include <vlmest/diagnose/evidence/text/memory_log.hpp>
#include <vlmest/diagnose/evidence/text/one_memory.hpp>
#include <vlmest/diagnose/evidence/text/other_failures.hpp>
#include <vlmest/diagnose/evidence/text/words.hpp>
#include <vlmest/diagnose/verdict/elsewhere.hpp>
#include <vlmest/diagnose/verdict/judge_length_growth.hpp>
#include <vlmest/diagnose/verdict/judge_signs.hpp>
#include <vlmest/diagnose/verdict/judge_story.hpp>

#include "evidence/numeric_evidence.hpp"
#include "evidence/series_evidence.hpp"
#include "evidence/sign_evidence.hpp"

namespace vlmest::tool {
namespace {

using namespace diagnose;
using Json = nlohmann::ordered_json;

void add(Json& facts, const char* key, const std::optional<PrintedSize>& size) {
  if (size) facts[key] = size->value.value();
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

/// The first message with figures: what follows an error in a log are its echoes on other ranks. But a title that
/// repeats the error stands before it: of the same request the one that tells more.
const OomMessage& telling(const std::vector<OomMessage>& messages) {
  const auto first = std::find_if(messages.begin(), messages.end(), [](const OomMessage& m) { return m.has_numbers; });
  if (first == messages.end()) return messages.front();
  if (!first->requested || tells_more_than_figures(*first)) return *first;
  const PrintedSize asked = *first->requested;  // titles give round figures
  const auto more = std::find_if(first, messages.end(), [&](const OomMessage& m) {
    return m.requested && m.requested->low <= asked.high && asked.low <= m.requested->high &&
           tells_more_than_figures(m);
  });
  return more == messages.end() ? *first : *more;
}

/// What other ranks of the run say.
void add_ranks(Evidence& e, const std::vector<OomMessage>& messages) {
  const std::vector<RankFailure> ranks = failed_ranks(messages);
  if (ranks.empty()) return;
  Json all = Json::array();
  for (const RankFailure& r : ranks) {
    Json x = {{"line", r.line}};
    if (r.rank) x["rank"] = *r.rank;
    if (r.gpu) x["gpu"] = *r.gpu;
    add(x, "requested_bytes", r.requested);
    add(x, "allocated_bytes", r.allocated);
    add(x, "free_bytes", r.free);
    all.push_back(std::move(x));
  }
  e.facts["ranks"] = std::move(all);
  e.lines.push_back(in_words(ranks));
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
  e.other_failure = !f.may_be_memory;
  if (e.verdict || e.failure) return;
  e.verdict = Verdict{
      .why = fmt::format("{}{} at line {}; {}.", f.may_be_memory ? "" : "not memory but: ", f.what, f.line, f.hint)};
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
  // The longest of the passes over a long log, beside the others.
  const auto apart = text.size() > (std::size_t{4} << 20) ? std::launch::async : std::launch::deferred;
  auto reading = std::async(apart, [text] { return read_memory_log(text); });
  const auto messages = find_oom_messages(text);
  const auto tables = find_memory_summaries(text);
  e.signs = find_run_signs(text);
  const auto signs = e.signs;
  const bool says = says_out_of_memory(text);
  Story story = read_story(text);
  const bool with_engine = trains_with_engine(text);
  auto run = read_run(text);
  const auto numbers = numeric_messages(text);
  const MemorySeries series = reading.get();
  if (!messages.empty()) {
    const OomMessage& m = telling(messages);
    e.kind = "oom_message";
    e.facts = message_facts(m);
    if (messages.size() > 1) e.facts["messages"] = messages.size();
    e.verdict = judge_elsewhere(m, series.facts);
    if (e.verdict) name_admitted_pictures(*e.verdict, m, run.settings);
    e.out_of_memory = !e.verdict;
    e.failure = e.verdict ? failure_elsewhere(m) : failure_of(m);
    if (e.failure && !e.failure->told) e.failure->told = told_mode(series);
    if (e.failure && m.backend == MemoryBackend::jax) e.failure->compiled = find_xla_program(text);
    if (e.failure) take_printed_shape(*e.failure, m, find_printed_shapes(text));
    if (e.failure)
      e.failure->stack_elsewhere = e.failure->frames.empty() && text.find("  File \"") != std::string_view::npos;
    e.lines.push_back(m.text);
    add_ranks(e, messages);
    e.log_facts = series.facts;
    add_profile_run(e);
    if (!m.has_numbers && e.out_of_memory) add_bare_message(e, text);
    if (const auto other = find_other_failure(text); other && other->in_memory_message && !m.has_numbers) {
      e.failure.reset();
      e.verdict.reset();
      e.out_of_memory = false;
      add_other_failure(e, *other);
    }
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
  e.story = std::move(story);
  if (e.failure) e.failure->vocabulary = e.story.vocabulary;
  e.with_engine = with_engine;
  e.run = std::move(run);
  if (!signs.empty()) e.facts["signs"] = signs_json(signs);
  const bool failed_sign =
      std::any_of(signs.begin(), signs.end(), [](const FoundSign& f) { return tells_failure(f.sign); });
  if (messages.empty() && failed_sign && !e.verdict) e.verdict = judge_signs(signs, series.facts, says, with_engine);
  // Metal's limit is on all that is wired: of what went beyond it, who speaks of pictures tells more.
  const bool metal =
      std::any_of(signs.begin(), signs.end(), [](const FoundSign& f) { return f.sign == RunSign::metal_commands; });
  if (metal && e.verdict && e.verdict->cause == Cause::engine_budget && e.story.has(Topic::pictures))
    e.verdict->confidence = 0;
  if (messages.empty() && !e.verdict && !e.failure)
    if (const auto growth = find_length_growth(text, series.rows)) e.verdict = judge_length_growth(*growth);
  add_series(e, series);
  add_numerics(e, series, numbers);
  if (e.facts.empty() && nlohmann::json::accept(text))
    throw Error(where, "JSON that is no trace, no memory snapshot and no memory_stats()",
                "give what export_chrome_trace() of torch.profiler or torch.cuda.memory._dump_snapshot() wrote");
  if (messages.empty()) {
    add_processes(e, text);
    const auto stack = find_cut_stack(text);
    const auto other = find_other_failure(text);
    if (!other && !e.verdict && !e.failure && !signs.empty())
      e.verdict = judge_signs(signs, series.facts, says, with_engine);
    if (!other && !e.verdict && !e.failure && stack) add_cut_stack(e, *stack);
    if (other) add_other_failure(e, *other);
    if (!says) add_reserved_ahead(e, series, text);
    if (!says) add_nothing_found(e, series);
    if (says) e.facts["says_out_of_memory"] = true;
    if (!e.run.settings.empty()) e.facts["settings"] = e.run.settings.size();
    if (!e.verdict && !e.failure && (says || !e.run.empty()))
      e.verdict = Verdict{
          .why =
              says ? "the text says that memory ran out, but holds no message of it: give the log with its last lines."
                   : "no failure is in this text, only settings of a run."};
  }
  const bool killed =
      std::any_of(signs.begin(), signs.end(), [](const auto& f) { return f.sign == RunSign::killed; }) ||
      std::any_of(messages.begin(), messages.end(), [](const auto& m) { return m.reason == OomReason::killed; });
  if (const auto machine = machine_of_one_memory(text);
      killed && !machine.empty() && e.verdict && e.verdict->cause == Cause::host_memory) {
    e.verdict->confidence = std::min(e.verdict->confidence, confidence(Basis::killed_of_one_memory));
    e.verdict->why += fmt::format(
        " But the GPU of this machine (\"{}\") has no memory of its own: weights, caches and activations are in the "
        "host's, and may be what filled it.",
        machine);
  }
  if (e.facts.empty() && !e.verdict && judge_story(e.story, {.mode = {}, .says_memory = says}))
    e.verdict = Verdict{.why = "no failure is in this text, only what somebody tells of one."};
  if (e.facts.empty() && !e.verdict)
    throw Error(where, "holds no out-of-memory message, no memory per step and no memory_summary()",
                "give the whole log, with its last lines");
  return e;
}

}  // namespace vlmest::tool
