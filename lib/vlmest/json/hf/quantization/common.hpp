// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/json/reader.hpp>
#include <vlmest/nn/quantization/quantization.hpp>

/// What the readers of quantization_config share.
namespace vlmest::json::hf {

using Keys = std::initializer_list<std::string_view>;

/// Notes every key of r that is neither read nor known to change nothing in memory.
inline void note_unknown(Quantization& q, const Reader& r, Keys read, Keys harmless) {
  const auto in = [](Keys keys, const std::string& k) { return std::find(keys.begin(), keys.end(), k) != keys.end(); };
  for (const auto& [key, value] : r.value().items())
    if (!value.is_null() && !in(read, key) && !in(harmless, key) && key != "quant_method" && !key.starts_with("_"))
      q.notes.push_back(r.path() + "." + key.substr(0, 64) + " is not known and changes nothing here");
}

/// The names in a list under a key.
inline std::vector<std::string> names(const Reader& r, const char* key) {
  std::vector<std::string> s;
  if (!r.given(key)) return s;
  const auto& v = r.value()[key];
  if (v.is_string()) return {v.get<std::string>()};
  if (!v.is_array()) r.fail(key, "expected a list of names");
  if (v.size() > 65536) r.fail(key, "the list is longer than any model's");
  for (const auto& e : v) {
    if (!e.is_string()) r.fail(key, "expected a list of names");
    s.push_back(e.get<std::string>());
  }
  return s;
}
/// The same as rules: names, which may be patterns.
inline void add_rules(std::vector<ModuleRule>& rules, const Reader& r, const char* key) {
  for (const auto& n : names(r, key)) rules.emplace_back(n, ModuleRule::Kind::name, r.path() + "." + key);
}

/// Modules that transformers does not convert.
inline void add_skips(std::vector<ModuleRule>& rules, const Reader& r, const char* key,
                      ModuleRule::Kind kind = ModuleRule::Kind::skip) {
  for (const auto& n : names(r, key)) rules.emplace_back(n, kind, r.path() + "." + key);
}

/// A group of inputs: -1 is all of them, which is 0 here.
inline std::int64_t group_size(const Reader& r, const char* key, std::int64_t absent) {
  const std::int64_t n = r.integer(key, absent, -1, 1 << 24);
  if (n == 0) r.fail(key, "a group of 0 inputs", "give a positive number, or -1 for all inputs");
  return n == -1 ? 0 : n;
}

/// Bits of a value: one of `known`.
inline int bits(const Reader& r, const char* key, std::int64_t absent, std::initializer_list<int> known) {
  const std::int64_t n = r.integer(key, absent, 1, 64);
  if (std::find(known.begin(), known.end(), n) == known.end()) {
    std::string all;
    for (const int k : known) all += (all.empty() ? "" : ", ") + std::to_string(k);
    r.fail(key, std::to_string(n) + " bits are not known", "known: " + all);
  }
  return static_cast<int>(n);
}

/// " in groups of 128", or nothing.
inline std::string in_groups(std::int64_t group) { return group == 0 ? "" : " in groups of " + std::to_string(group); }

/// Everything in one storage.
inline Quantization one_storage(std::string method, std::string summary, WeightStorage storage) {
  Quantization q{.method = std::move(method), .summary = std::move(summary)};
  q.groups.push_back({.storage = storage, .targets = {}});
  return q;
}

}  // namespace vlmest::json::hf
