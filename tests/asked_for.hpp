// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

/// Whether --gtest_filter can leave a test of `suite`, by its full name ("Traces/Conformance"). GoogleTest lists the
/// parameters of every suite before it filters, and CTest starts the program once for each suite, with the patterns
/// X.*, X/*, */X.* and */X/* (tests/CMakeLists.txt). Any other pattern may ask for it.
inline bool asked_for(std::string_view suite) {
  const std::string filter = GTEST_FLAG_GET(filter);
  const std::string whole = "/" + std::string(suite);
  std::string_view left = filter;
  while (!left.empty()) {
    std::string_view pattern = left.substr(0, left.find(':'));
    left.remove_prefix(std::min(left.size(), pattern.size() + 1));
    const bool inner = pattern.starts_with("*/");
    if (inner) pattern.remove_prefix(2);
    const bool of_suite = pattern.ends_with(".*"), of_instance = pattern.ends_with("/*");
    if (!of_suite && !of_instance) return true;
    pattern.remove_suffix(2);
    if (pattern.find_first_of("*?.-") != std::string_view::npos) return true;
    const std::string named = "/" + std::string(pattern);
    if (of_suite ? (inner ? whole.ends_with(named) : whole == named) : whole.find(named + "/") != std::string::npos)
      return true;
  }
  return false;
}

/// What list() gives, or nothing where nobody asks for the suite.
template <class List>
auto parameters_of(std::string_view suite, const List& list) -> decltype(list()) {
  return asked_for(suite) ? list() : decltype(list()){};
}
