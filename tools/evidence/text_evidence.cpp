// SPDX-License-Identifier: Apache-2.0
#include "evidence/text_evidence.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include <vlmest/diagnose/leak.hpp>
#include <vlmest/diagnose/oom/elsewhere.hpp>
#include <vlmest/diagnose/oom/oom_reader.hpp>
#include <vlmest/diagnose/text/gpu_processes.hpp>
#include <vlmest/diagnose/text/memory_log.hpp>
#include <vlmest/diagnose/text/numerics.hpp>
#include <vlmest/diagnose/text/other_failures.hpp>
#include <vlmest/diagnose/text/words.hpp>

#include "units.hpp"

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

/// Which memory of the rows says most of a leak: what tensors take, else what is reserved, else what the device shows.
struct ChosenMemory {
  Points points;
  const char* of = "";
};

ChosenMemory memory_points(const MemorySeries& s) {
  ChosenMemory best;
  const auto consider = [&](const char* of, auto get) {
    Points p = points(s, get);
    if (p.size() > best.points.size() && (best.points.empty() || p.size() > 2 * best.points.size()))
      best = {std::move(p), of};
  };
  consider("allocated", [](const MemoryRow& r) { return r.allocated; });
  consider("used", [](const MemoryRow& r) { return r.used; });
  consider("reserved", [](const MemoryRow& r) { return r.reserved; });
  consider("peak_allocated", [](const MemoryRow& r) { return r.peak_allocated; });
  consider("peak_reserved", [](const MemoryRow& r) { return r.peak_reserved; });
  return best;
}

Bytes capacity(const MemorySeries& s) {
  Bytes most{};
  for (const MemoryRow& r : s.rows)
    if (r.total) most = std::max(most, *r.total);
  return most;
}

/// A series for each rank or GPU that the rows name, at most 64: lines of several are not one run's memory. Rows that
/// name none are one more.
std::vector<MemorySeries> by_rank(const MemorySeries& s) {
  std::vector<std::pair<std::optional<std::int64_t>, MemorySeries>> of;
  for (const MemoryRow& r : s.rows) {
    if (!r.has_memory()) continue;
    auto found = std::find_if(of.begin(), of.end(), [&](const auto& x) { return x.first == r.rank; });
    if (found == of.end()) {
      if (of.size() == 64) continue;
      of.push_back({r.rank, {.style = s.style, .rows = {}, .facts = {}, .stride = s.stride}});
      found = std::prev(of.end());
    }
    found->second.rows.push_back(r);
  }
  std::vector<MemorySeries> out;
  for (auto& x : of) out.push_back(std::move(x.second));
  return out;
}

Json number(double v) {
  return std::isfinite(v) ? Json(significant(v)) : Json(std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
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
    Json x = {{"trouble", name(f.trouble)}, {"line", f.line}, {"times", f.times}, {"value", number(f.value)}};
    if (f.step) x["step"] = *f.step;
    if (f.usual > 0) x["usual"] = number(f.usual);
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

void add_facts(Evidence& e, const MemorySeries& s) {
  Json facts = Json::array();
  for (const LogFact& f : s.facts) {
    Json x = {{"name", f.name}, {"line", f.line}};
    if (f.size)
      x["bytes"] = f.size->value.value();
    else
      x["number"] = number(f.number);
    facts.push_back(std::move(x));
    if (f.size) e.lines.push_back(fmt::format("{}: {}", f.name, in_words(f.size->value)));
  }
  if (!facts.empty()) e.facts["serving"] = std::move(facts);
}

Bytes whole_bytes(double v) { return Bytes(static_cast<std::int64_t>(v)); }

Json growth_json(const MemorySeries& s, const ChosenMemory& m, const LeakReport& leak) {
  Json j = {{"rows", s.rows.size()},
            {"points", m.points.size()},
            {"of", m.of},
            {"first_bytes", whole_bytes(m.points.front().second).value()},
            {"last_bytes", whole_bytes(m.points.back().second).value()},
            {"growth", name(leak.growth)},
            {"bytes_per_step", number(leak.bytes_per_step)},
            {"last_step", number(leak.last_step)}};
  if (const Bytes all = capacity(s); all > Bytes{}) j["total_bytes"] = all.value();
  if (leak.end_step) j["end_step"] = number(*leak.end_step);
  return j;
}

/// Memory over the rows, of the rank whose memory grows, else of the first.
void add_series(Evidence& e, const MemorySeries& all) {
  add_facts(e, all);
  std::optional<std::pair<ChosenMemory, LeakReport>> chosen;
  MemorySeries series;
  const auto ranks = by_rank(all);
  for (const MemorySeries& s : ranks) {
    ChosenMemory m = memory_points(s);
    // An out-of-memory message itself looks like a row.
    if (m.points.empty() || (m.points.size() < 3 && e.kind != "training_log")) continue;
    const LeakReport leak = find_leak(m.points, capacity(s));
    const auto rank = s.rows.front().rank;
    if (e.lines.size() < 16)
      e.lines.push_back(fmt::format("{}{} rows with memory, from {} to {}: {}", rank ? fmt::format("{}: ", *rank) : "",
                                    m.points.size(), in_words(whole_bytes(m.points.front().second)),
                                    in_words(whole_bytes(m.points.back().second)), name(leak.growth)));
    if (chosen && (chosen->second.is_leak() || !leak.is_leak())) continue;
    chosen = {std::move(m), leak};
    series = s;
  }
  if (!chosen) return;
  const auto& [m, leak] = *chosen;
  e.facts["memory"] = growth_json(series, m, leak);
  if (series.rows.front().rank) e.facts["memory"]["rank"] = *series.rows.front().rank;
  if (!leak.is_leak()) return;
  const SteadyGrowth grown{leak.bytes_per_step,
                           static_cast<std::int64_t>(leak.points),
                           whole_bytes(m.points.front().second),
                           whole_bytes(m.points.back().second),
                           {}};
  if (e.failure) {
    e.failure->growth = grown;
    return;
  }
  if (e.verdict) return;
  e.verdict = Verdict{
      .cause = Cause::leak,
      .confidence = 0.9,
      .why = fmt::format("memory grows by {} a step and goes on growing, from {} to {} at step {:.0f}{}. What grows is "
                         "kept from step to step: losses or outputs in a list with their graphs (use .item() or "
                         ".detach()), a cache without a bound, metrics on the GPU.",
                         in_words(whole_bytes(leak.bytes_per_step)), in_words(grown.first), in_words(grown.last),
                         leak.last_step,
                         leak.end_step ? fmt::format("; the device is full at step {:.0f}", *leak.end_step) : "")};
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

/// Where nothing failed, that is said.
void add_nothing_found(Evidence& e) {
  if (e.verdict || e.failure || e.lines.empty()) return;
  e.verdict = Verdict{.why = "nothing failed here: " + e.lines.back() + "."};
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
    e.lines.push_back(m.text);
  } else if (!tables.empty()) {
    e = summary_evidence(tables);
  } else {
    e.kind = "training_log";
  }
  add_series(e, series);
  add_numerics(e, series, text);
  if (messages.empty()) {
    add_processes(e, text);
    if (const auto other = find_other_failure(text)) {
      if (e.facts.empty() && !other->may_be_memory)
        throw Error(where, fmt::format("no lack of memory: {}, at line {}", other->what, other->line),
                    std::string(other->hint));
      add_other_failure(e, *other);
    }
    add_nothing_found(e);
  }
  if (e.facts.empty())
    throw Error(where, "holds no out-of-memory message, no memory per step and no memory_summary()",
                "give the whole log, with its last lines");
  return e;
}

}  // namespace vlmest::tool
