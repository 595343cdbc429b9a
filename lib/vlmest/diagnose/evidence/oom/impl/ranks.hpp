// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/diagnose/evidence/oom/figures.hpp>
#include <vlmest/diagnose/evidence/oom/ranks.hpp>
#include <vlmest/diagnose/evidence/text/words.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace failed_on {

inline std::string name_of(const RankFailure& r) {
  return r.rank ? "rank " + std::to_string(*r.rank) : "GPU " + std::to_string(*r.gpu);
}

/// "rank 3 asked for 6.75 GiB over 70.11 GiB"
inline std::string told(const RankFailure& r) {
  std::string s = name_of(r) + " asked for " + in_words(r.requested->value);
  if (r.allocated) s += " over " + in_words(r.allocated->value);
  return s;
}

/// Those that hold most and least of all that say what they hold.
struct Spread {
  const RankFailure *most = nullptr, *least = nullptr;
};
inline Spread spread(std::span<const RankFailure> ranks) {
  Spread s;
  for (const RankFailure& r : ranks) {
    if (!r.allocated) continue;
    if (s.most == nullptr || r.allocated->value > s.most->allocated->value) s.most = &r;
    if (s.least == nullptr || r.allocated->value < s.least->allocated->value) s.least = &r;
  }
  return s;
}

}  // namespace failed_on

VLMEST_INLINE std::vector<RankFailure> failed_ranks(std::span<const OomMessage> messages) {
  std::vector<RankFailure> r;
  for (const OomMessage& m : messages) {
    if (!m.requested || (!m.rank && !m.gpu)) continue;
    const bool known = std::any_of(r.begin(), r.end(), [&](const RankFailure& x) {
      return m.rank && x.rank ? *m.rank == *x.rank : m.gpu && x.gpu && *m.gpu == *x.gpu;
    });
    if (!known) r.push_back({m.rank, m.gpu, m.requested, allocated(m), m.free, m.line});
  }
  if (r.size() < 2) r.clear();
  return r;
}

VLMEST_INLINE std::string in_words(std::span<const RankFailure> ranks) {
  constexpr std::size_t most_named = 4;
  std::string s = std::to_string(ranks.size()) + " ranks ran out of memory: first " + failed_on::told(ranks.front());
  for (std::size_t i = 1; i < std::min(ranks.size(), most_named); ++i) s += ", " + failed_on::told(ranks[i]);
  if (ranks.size() > most_named) s += ", " + std::to_string(ranks.size() - most_named) + " more";
  const failed_on::Spread held = failed_on::spread(ranks);
  if (held.most == held.least) return s + ".";
  const Bytes apart = held.most->allocated->value - held.least->allocated->value;
  // Ranks that run the same hold the same but for what the allocator rounds.
  if (apart * 100 <= held.most->allocated->value)
    return s + ". All hold the same within 1 %: what every rank keeps is too large, not one rank's batch.";
  return s + ". Of them " + failed_on::name_of(*held.most) + " held " + in_words(apart) + " more than " +
         failed_on::name_of(*held.least) +
         ": replicas and shards of one size differ by their batch alone (more images, longer text), stages of a "
         "pipeline by their layers.";
}

}  // namespace vlmest::diagnose
