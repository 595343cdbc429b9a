// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <string>
#include <string_view>

#include <vlmest/diagnose/evidence/trace/profile_trace.hpp>

/// Figures and names of a trace, as a verdict's line says them.
namespace vlmest::diagnose::slow_run_detail {

inline std::string percent(double share) { return std::to_string(std::lround(share * 100)) + " %"; }
inline std::string milliseconds(double ns) {
  const auto hundredths = std::llround(ns / 1e4);
  const auto rest = std::to_string(hundredths % 100);
  return std::to_string(hundredths / 100) + "." + std::string(2 - rest.size(), '0') + rest + " ms";
}
inline std::string microseconds(Ns ns) { return std::to_string((ns + 500) / 1000) + " us"; }

/// A name out of a trace, as part of a line.
inline std::string word(std::string_view name) {
  std::string s(name.substr(0, 80));
  for (char& c : s)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return s;
}

}  // namespace vlmest::diagnose::slow_run_detail
