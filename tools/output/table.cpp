// SPDX-License-Identifier: Apache-2.0
#include "table.hpp"

#include <algorithm>

#include <fmt/core.h>

namespace vlmest::tool {
namespace {

std::string csv_field(const std::string& s) {
  if (s.find_first_of(",\"\n") == std::string::npos) return s;
  std::string r = "\"";
  for (char c : s) r += c == '"' ? "\"\"" : std::string(1, c);
  return r + "\"";
}

}  // namespace

std::string text(const Table& t) {
  std::vector<std::size_t> width(t.head.size());
  for (std::size_t i = 0; i < t.head.size(); ++i) {
    width[i] = t.head[i].size();
    for (const auto& r : t.rows) width[i] = std::max(width[i], r[i].size());
  }
  std::string out;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string s = "  ";
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) s += "  ";
      s += i < t.left ? fmt::format("{:<{}}", cells[i], width[i]) : fmt::format("{:>{}}", cells[i], width[i]);
    }
    s.erase(s.find_last_not_of(' ') + 1);
    out += s + "\n";
  };
  line(t.head);
  for (const auto& r : t.rows) line(r);
  return out;
}

std::string markdown(const Table& t) {
  const auto line = [](const std::vector<std::string>& cells) {
    std::string s = "|";
    for (const auto& c : cells) s += " " + c + " |";
    return s + "\n";
  };
  std::string out = line(t.head) + "|";
  for (std::size_t i = 0; i < t.head.size(); ++i) out += i < t.left ? "---|" : "---:|";
  out += "\n";
  for (const auto& r : t.rows) out += line(r);
  return out;
}

std::string csv(const Table& t) {
  std::string out;
  const auto line = [&](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) out += (i ? "," : "") + csv_field(cells[i]);
    out += "\n";
  };
  line(t.head);
  for (const auto& r : t.rows) line(r);
  return out;
}

}  // namespace vlmest::tool
