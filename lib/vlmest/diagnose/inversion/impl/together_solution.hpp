// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/evidence/text/words.hpp>
#include <vlmest/diagnose/inversion/score_matrix.hpp>
#include <vlmest/diagnose/inversion/together_solution.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE std::string together_words(const TogetherSolution& s) {
  using score_matrix::number;
  std::string r = s.batch ? "batch " + number(*s.batch) : "any batch";
  if (s.seq) r += " with " + number(*s.seq) + " tokens a sequence";
  if (s.images && *s.images > 0)
    r += std::string(s.seq ? ", " : " with ") + number(*s.images) + (*s.images == 1 ? " picture" : " pictures") +
         " a sequence of " + std::to_string(s.height) + "x" + std::to_string(s.width) + " pixels";
  return r + ": " + s.tensor.name + (s.tensor.scope.empty() ? "" : " of " + s.tensor.scope) + ", " +
         to_string(s.tensor.shape) + " in " + s.tensor.dtype + " = " + in_words(s.tensor.bytes);
}

}  // namespace vlmest::diagnose
