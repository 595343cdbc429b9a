// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include <vlmest/diagnose/text/run_signs.hpp>
#include <vlmest/diagnose/text/words.hpp>

namespace vlmest::diagnose::sign_verdict {

inline std::string whole(double v) { return std::to_string(static_cast<std::int64_t>(std::llround(v))); }
inline std::string size(double v) { return in_words(Bytes(static_cast<std::int64_t>(v))); }
inline std::string seconds(double v) {
  std::string s = whole(10 * v);
  if (s.size() < 2) s.insert(0, "0");
  return s.insert(s.size() - 1, ".") + " s";
}

/// How sure a sign is of its cause, by what else prints such a line. Where the text was read by a person the figures
/// are theirs to weigh: none of them is fitted.
double confidence(RunSign s);

/// What a sign says, with its figures.
std::string words_of(const FoundSign& f);

}  // namespace vlmest::diagnose::sign_verdict

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/oom/impl/sign_words.hpp>
#endif
