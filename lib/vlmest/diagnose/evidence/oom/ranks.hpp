// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <vlmest/diagnose/evidence/oom/message.hpp>

/// What the ranks of one run say, where more than one of them ran out of memory in a log.
namespace vlmest::diagnose {

/// The first failure of a rank, or of a GPU where lines have no rank.
struct RankFailure {
  std::optional<std::int64_t> rank, gpu;
  std::optional<PrintedSize> requested, allocated, free;
  std::int64_t line = 0;
};

/// One for each rank that says how much it asked for, in the order of the text; empty where fewer than two do.
std::vector<RankFailure> failed_ranks(std::span<const OomMessage> messages);

/// Which failed first, what each held, and by what ranks that differ may differ: "2 ranks ran out of memory: …".
std::string in_words(std::span<const RankFailure> ranks);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/oom/impl/ranks.hpp>
#endif
