// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/evidence/text/words.hpp>
#include <vlmest/diagnose/inversion/multiple.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE std::string multiple_words(const Multiple& m) {
  std::string r = std::to_string(m.pictures) + (m.pictures == 1 ? " picture" : " pictures");
  if (m.tiles > 1) r += " of " + std::to_string(m.tiles) + " tiles";
  r += ", the largest that the processor makes: " + m.tensor.name + " of " +
       (m.tensor.scope.empty() ? "the model" : m.tensor.scope) + ", " + to_string(m.tensor.shape) + " in " +
       m.tensor.dtype + " = " + in_words(m.tensor.bytes) + " each";
  if (m.ranks > 1) r += ", divided over " + std::to_string(m.ranks) + " GPUs";
  return r;
}

}  // namespace vlmest::diagnose
