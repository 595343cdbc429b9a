// SPDX-License-Identifier: Apache-2.0
#include "evidence/series_evidence.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <vlmest/diagnose/evidence/leak.hpp>
#include <vlmest/diagnose/evidence/text/words.hpp>
#include <vlmest/diagnose/verdict/confidence.hpp>

#include "units.hpp"

namespace vlmest::tool {
namespace {

using namespace diagnose;

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

void add_server_facts(Evidence& e, const MemorySeries& s) {
  nlohmann::ordered_json facts = nlohmann::ordered_json::array();
  for (const LogFact& f : s.facts) {
    nlohmann::ordered_json x = {{"name", f.name}, {"line", f.line}};
    if (f.size)
      x["bytes"] = f.size->value.value();
    else
      x["number"] = number_json(f.number);
    facts.push_back(std::move(x));
    if (f.size) e.lines.push_back(fmt::format("{}: {}", f.name, in_words(f.size->value)));
  }
  if (!facts.empty()) e.facts["serving"] = std::move(facts);
}

Bytes whole_bytes(double v) { return Bytes(static_cast<std::int64_t>(v)); }

nlohmann::ordered_json growth_json(const MemorySeries& s, const ChosenMemory& m, const LeakReport& leak) {
  nlohmann::ordered_json j = {{"rows", s.rows.size()},
                              {"points", m.points.size()},
                              {"of", m.of},
                              {"first_bytes", whole_bytes(m.points.front().second).value()},
                              {"last_bytes", whole_bytes(m.points.back().second).value()},
                              {"growth", name(leak.growth)},
                              {"bytes_per_step", number_json(leak.bytes_per_step)},
                              {"last_step", number_json(leak.last_step)}};
  if (const Bytes all = capacity(s); all > Bytes{}) j["total_bytes"] = all.value();
  if (leak.end_step) j["end_step"] = number_json(*leak.end_step);
  return j;
}

}  // namespace

nlohmann::ordered_json number_json(double v) {
  return std::isfinite(v) ? nlohmann::ordered_json(significant(v))
                          : nlohmann::ordered_json(std::isnan(v) ? "nan"
                                                   : v > 0       ? "inf"
                                                                 : "-inf");
}

void add_series(Evidence& e, const MemorySeries& all) {
  add_server_facts(e, all);
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
      e.lines.push_back(fmt::format("{}{} rows with memory, from {} to {}: {}",
                                    rank && ranks.size() > 1 ? fmt::format("rank or GPU {}: ", *rank) : "",
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
      .confidence = confidence(Basis::growing_log),
      .why = fmt::format("memory grows by {} a step and goes on growing, from {} to {} at step {:.0f}{}. What grows is "
                         "kept from step to step: losses or outputs in a list with their graphs (use .item() or "
                         ".detach()), a cache without a bound, metrics on the GPU.",
                         in_words(whole_bytes(leak.bytes_per_step)), in_words(grown.first), in_words(grown.last),
                         leak.last_step,
                         leak.end_step ? fmt::format("; the device is full at step {:.0f}", *leak.end_step) : "")};
}

}  // namespace vlmest::tool
