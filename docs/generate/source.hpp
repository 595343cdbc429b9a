// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

/// What generated pages take out of the sources.
namespace reference {

inline std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path + "; run this in the root of the sources");
  std::vector<std::string> r;
  for (std::string line; std::getline(in, line);) r.push_back(line);
  return r;
}

/// The comment that stands above the line that holds `declaration`, as one paragraph.
inline std::string comment(const std::string& path, const std::string& declaration) {
  const auto lines = lines_of(path);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find(declaration) == std::string::npos) continue;
    std::size_t first = i;
    while (first > 0 && lines[first - 1].starts_with("/// ")) --first;
    std::string text;
    for (; first < i; ++first) text += (text.empty() ? "" : " ") + lines[first].substr(4);
    return text;
  }
  throw std::runtime_error(path + " does not declare '" + declaration + "'");
}

/// "137,438,953,472"
inline std::string grouped(std::int64_t n) {
  std::string s = std::to_string(n);
  for (int i = static_cast<int>(s.size()) - 3; i > 0; i -= 3) s.insert(static_cast<std::size_t>(i), ",");
  return s;
}

}  // namespace reference
