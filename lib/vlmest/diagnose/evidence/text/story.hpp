// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <vlmest/diagnose/evidence/text/topic.hpp>

/// What somebody tells of a failure beside its lines: the sentences of a post, and names in its source lines.
namespace vlmest::diagnose {

/// The topics of a text, each with the words that it was told by.
struct Story {
  struct Told {
    std::string words;
    std::int64_t line = 0;
    friend bool operator==(const Told&, const Told&) = default;
  };
  std::array<std::optional<Told>, topics> told{};
  double largest = 0;           ///< bytes of the largest allocation that a sentence speaks of
  double parameters = 0;        ///< of the largest model that is named by them: 7e9 of "Qwen2.5-VL-7B", at most 1e12
  double named = 0;             ///< the same of models that are known by their names (public_models.hpp)
  double device = 0;            ///< bytes of a GPU's memory, as told or by its name; 0: not told
  std::int64_t vocabulary = 0;  ///< 151,936 of "vocab=151936" or "vocab_size": 151936; 0: not told
  int gpus = 0;                 ///< how many somebody speaks of: 8 of "8*A100", "8 x H100", "8卡"; 0: not told

  const std::optional<Told>& operator[](Topic t) const { return told[static_cast<std::size_t>(t)]; }
  bool has(Topic t) const { return (*this)[t].has_value(); }
  template <class... More>
  bool has(Topic t, More... more) const {
    return has(t) || has(more...);
  }
  bool empty() const;
};

/// Reads a text's first and last 256 KiB. Sentences are lines of three words or more, or of four characters of Chinese;
/// messages of torch, which advise on fragmentation whatever failed, are none.
Story read_story(std::string_view text);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/text/impl/story.hpp>
#endif
