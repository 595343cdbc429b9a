// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace vlmest::diagnose {

/// Whether a text is of a training or of inference, by its words; 0 where neither tells.
struct TrainingWords {
  int says = 0;  ///< 1: trains, -1: answers prompts
  std::string from;
};
TrainingWords training_words(std::string_view text);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/text/impl/training_words.hpp>
#endif
