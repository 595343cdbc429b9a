// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>

#include <vlmest/diagnose/evidence/stack/frame_meaning.hpp>
#include <vlmest/diagnose/evidence/stack/module_words.hpp>
#include <vlmest/diagnose/evidence/stack/program_words.hpp>
#include <vlmest/diagnose/evidence/stack/step_words.hpp>

/// The vocabulary that reads stack frames: names of functions and files and pieces of source lines, of torch,
/// transformers, accelerate, DeepSpeed, PEFT, bitsandbytes, vLLM, SGLang, Lightning and common remote code; no model is
/// known by name. Of each column the first word that a frame has decides, of kernels the last, and traits add up. A
/// word stands twice where its place among the words of one column is not that among another's.
namespace vlmest::diagnose::frame_words {

inline constexpr auto all = [] {
  std::array<FrameWord, step_words.size() + module_words.size() + program_words.size()> r{};
  auto at = std::copy(step_words.begin(), step_words.end(), r.begin());
  at = std::copy(module_words.begin(), module_words.end(), at);
  std::copy(program_words.begin(), program_words.end(), at);
  return r;
}();

/// The first word of a frame for which `counts(meaning)` holds; nullptr where none does.
template <class Counts>
const FrameMeaning* first(const LowFrame& f, Counts&& counts) {
  for (const FrameWord& w : all)
    if (counts(w.means) && matches(w, f)) return &w.means;
  return nullptr;
}

}  // namespace vlmest::diagnose::frame_words
