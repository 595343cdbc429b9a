// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <vlmest/json/parse.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::json {

/// Python's json writes, and takes, three numbers that JSON has no words for; files of Mamba-2 models hold one. They
/// become strings of as many characters: places in the text stay, and whoever reads one as a number refuses it.
inline std::string with_python_numbers_as_strings(std::string_view text) {
  using Word = std::pair<std::string_view, std::string_view>;
  constexpr std::array<Word, 3> words{Word{"-Infinity", R"("-Infini")"}, Word{"Infinity", R"("Infini")"},
                                      Word{"NaN", R"("N")"}};
  std::string r(text);
  bool in_string = false;
  for (std::size_t i = 0; i < r.size(); ++i) {
    if (r[i] == '"') in_string = !in_string;
    if (in_string && r[i] == '\\') ++i;
    if (in_string) continue;
    for (const auto& [word, instead] : words)
      if (text.substr(i).starts_with(word)) {
        r.replace(i, word.size(), instead);
        i += word.size() - 1;
        break;
      }
  }
  return r;
}

VLMEST_INLINE nlohmann::json parse(std::string_view text, const std::string& where) {
  int open = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++open > deepest)
        throw Error(where, "nested more than " + std::to_string(deepest) + " levels deep",
                    "a model description is shallow");
    } else if (c == '}' || c == ']') {
      --open;
    }
  }
  try {
    nlohmann::json r = nlohmann::json::parse(text, nullptr, false);
    return r.is_discarded() ? nlohmann::json::parse(with_python_numbers_as_strings(text)) : r;
  } catch (const nlohmann::json::parse_error& e) {
    std::size_t line = 1, column = 1;
    for (std::size_t i = 0; i + 1 < e.byte && i < text.size(); ++i) {
      ++column;
      if (text[i] == '\n') {
        ++line;
        column = 1;
      }
    }
    const bool empty = text.find_first_not_of(" \t\r\n") == std::string_view::npos;
    throw Error(
        where,
        empty ? "the file is empty" : "not JSON at line " + std::to_string(line) + ", column " + std::to_string(column),
        "a model is described by a config.json or a description; check that the file is complete");
  } catch (const nlohmann::json::exception&) {
    throw Error(where, "not JSON", "check that the file is complete");
  }
}

}  // namespace vlmest::json
