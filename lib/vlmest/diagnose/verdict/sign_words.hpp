// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include <vlmest/diagnose/evidence/text/run_sign.hpp>
#include <vlmest/diagnose/evidence/text/words.hpp>

namespace vlmest::diagnose::sign_verdict {

inline std::string whole(double v) { return std::to_string(static_cast<std::int64_t>(std::llround(v))); }
inline std::string size(double v) { return in_words(Bytes(static_cast<std::int64_t>(v))); }
/// "1.5"
inline std::string tenths(double v) {
  const auto n = std::llround(10 * v);
  return std::to_string(n / 10) + "." + std::to_string(n % 10);
}

/// "0.006"
inline std::string thousandths(double v) {
  const auto n = std::llround(1000 * v);
  const std::string part = std::to_string(1000 + n % 1000);
  return std::to_string(n / 1000) + "." + part.substr(1);
}

/// What a sign says, with its figures.
std::string words_of(const FoundSign& f);

}  // namespace vlmest::diagnose::sign_verdict

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/verdict/impl/sign_words.hpp>
#endif
