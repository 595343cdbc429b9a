// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <vlmest/json/reader.hpp>
#include <vlmest/unit/nearest.hpp>
#include <vlmest/unit/words.hpp>

namespace vlmest::json {

/// "did you mean X? known: a, b, c".
inline std::string known_words(std::string_view word, std::span<const std::string_view> known) {
  std::string all;
  for (const auto k : known) all += (all.empty() ? "" : ", ") + std::string(k);
  const std::string_view near = nearest(word, known);
  return (near.empty() ? "" : "did you mean '" + std::string(near) + "'? ") + "known: " + (all.empty() ? "none" : all);
}

/// Throws Error naming the first key of r that is none of the known ones.
inline void only_keys(const Reader& r, std::span<const std::string_view> known) {
  for (const auto& [key, value] : r.value().items()) {
    bool found = false;
    for (const auto k : known) found = found || k == key;
    if (!found) r.fail(key.substr(0, 64).c_str(), "unknown key", known_words(key, known));
  }
}
inline void only_keys(const Reader& r, std::initializer_list<std::string_view> known) {
  only_keys(r, std::span<const std::string_view>(known.begin(), known.size()));
}

/// The place of a word in a list; throws Error for another one.
inline std::size_t one_of(const Reader& r, const char* key, const std::string& word,
                          std::span<const std::string_view> known) {
  for (std::size_t i = 0; i < known.size(); ++i)
    if (known[i] == word) return i;
  r.fail(key, word.empty() ? "missing" : "unknown '" + word.substr(0, 64) + "'", known_words(word, known));
}

/// The value of an enum that a word names.
template <HasWords E>
E one_of(const Reader& r, const char* key, const std::string& word) {
  return static_cast<E>(one_of(r, key, word, words_of<E>));
}

/// [rows, cols] under a key that must be there.
std::pair<std::int64_t, std::int64_t> pair_required(const Reader& r, const char* key, std::int64_t high);

}  // namespace vlmest::json

#ifndef VLMEST_COMPILED
#include <vlmest/json/impl/known_keys.hpp>
#endif
