// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include <vlmest/diagnose/evidence/cut_offs.hpp>
#include <vlmest/diagnose/evidence/text/length_growth.hpp>
#include <vlmest/diagnose/evidence/text/words.hpp>
#include <vlmest/diagnose/verdict/confidence.hpp>
#include <vlmest/diagnose/verdict/verdict.hpp>

namespace vlmest::diagnose {

/// What memory is that grows with the square of a length: of all that a step of a transformer keeps, scores and masks
/// alone do.
inline std::optional<Verdict> judge_length_growth(const LengthGrowth& g) {
  if (!cut_off::square.reached(g.ratio)) return std::nullopt;
  Verdict v{.cause = Cause::attention_scores, .confidence = confidence(Basis::square_growth)};
  v.why = "memory grows with the square of the length: ";
  for (std::size_t i = 0; i < g.at.size(); ++i)
    v.why += (i > 0 ? ", " : "") + in_words(g.at[i].memory) + " at " + std::to_string(g.at[i].length);
  v.why +=
      ". Each doubling adds nearly four times what the one before it added, where what grows with the length alone "
      "would add twice. Scores and masks of attention are what grows so: fused attention does without them.";
  return v;
}

}  // namespace vlmest::diagnose
