// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <string>
#include <vector>

#include <vlmest/allocator/config_text.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/nearest.hpp>

namespace vlmest::allocator {

/// "a:1,b:[2:3,>:4]" cut at , : [ ], blanks dropped (ConfigTokenizer), and what is read from it one after the other.
class AllocatorConfigText {
 public:
  explicit AllocatorConfigText(std::string_view text) {
    std::string word;
    for (const char ch : text) {
      const bool mark = ch == ',' || ch == ':' || ch == '[' || ch == ']';
      if (!mark && std::isspace(static_cast<unsigned char>(ch)) == 0) word += ch;
      if (!mark) continue;
      if (!word.empty()) tokens_.push_back(std::move(word));
      word.clear();
      tokens_.emplace_back(1, ch);
    }
    if (!word.empty()) tokens_.push_back(std::move(word));
  }

  bool done() const { return at_ == tokens_.size(); }
  bool next_is(std::string_view word) const { return !done() && tokens_[at_] == word; }
  bool take(std::string_view word) { return next_is(word) && (++at_, true); }
  void expect(std::string_view key, std::string_view word) {
    if (!take(word)) fail(key, "lacks a '" + std::string(word) + "'", "write KEY:VALUE,KEY:VALUE");
  }
  std::string word(std::string_view key) {
    if (done() || tokens_[at_].find_first_of(",:[]") == 0) fail(key, "lacks a value", "write KEY:VALUE,KEY:VALUE");
    return tokens_[at_++];
  }
  std::int64_t number(std::string_view key) {
    const auto text = word(key);
    std::int64_t n = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (error != std::errc() || end != text.data() + text.size() || n < 0)
      fail(key, "'" + text + "' is not a whole number", "use 0, 1, 2, ...");
    return n;
  }
  double fraction(std::string_view key) {
    const auto text = word(key);
    char* end = nullptr;
    const double x = std::strtod(text.c_str(), &end);
    if (end != text.c_str() + text.size() || !(x >= 0 && x <= 1))
      fail(key, "'" + text + "' is not a number from 0 to 1", "use a number such as 0.8");
    return x;
  }
  bool flag(std::string_view key) {
    const auto text = word(key);
    if (text != "True" && text != "False") fail(key, "'" + text + "' is neither True nor False", "mind the capital");
    return text == "True";
  }
  /// A value that is not looked at: a word or a list.
  void skip(std::string_view key) {
    if (!take("[")) {
      word(key);
      return;
    }
    while (!done() && !next_is("]")) ++at_;
    expect(key, "]");
  }
  [[noreturn]] static void fail(std::string_view key, const std::string& what, const std::string& hint) {
    throw Error(key.empty() ? "allocator settings" : "allocator settings." + std::string(key), what, hint);
  }

 private:
  std::vector<std::string> tokens_;
  std::size_t at_ = 0;
};

namespace config_text {

/// Mebibytes as bytes; what no machine has is as good as no limit.
inline Bytes mebibytes(std::int64_t n) { return Bytes(n > (no_limit >> 20) ? no_limit : n << 20); }

inline std::int32_t divisions(AllocatorConfigText& text, std::string_view key, bool zero) {
  const auto n = text.number(key);
  if (!(zero && n == 0) && (n > (1 << 30) || !std::has_single_bit(static_cast<std::uint64_t>(n))))
    text.fail(key, std::to_string(n) + " divisions are not a power of two", "use 1, 2, 4, 8, ...");
  return static_cast<std::int32_t>(n);
}

/// One number for all sizes, or [256:1,512:2,>:4]: sizes of 2^8 MiB take 1, of 2^9 MiB 2, larger ones 4. The first
/// entry also holds for all smaller sizes; what lies between two entries and is not named takes 0.
/// parseRoundUpPower2Divisions.
inline void roundup(AllocatorConfigText& text, std::string_view key, AllocatorConfig& c) {
  auto& table = c.roundup_power2_divisions;
  if (!text.take("[")) {
    table.fill(divisions(text, key, false));
    return;
  }
  std::size_t last = 0;
  for (bool first = true; !text.next_is("]");) {
    const bool beyond = text.take(">");
    const auto boundary = beyond ? 1 : text.number(key);
    if (!std::has_single_bit(static_cast<std::uint64_t>(boundary)))
      text.fail(key, std::to_string(boundary) + " MiB are not a power of two", "use 1, 2, 4, ... 32768 and >");
    text.expect(key, ":");
    const auto value = divisions(text, key, true);
    if (beyond) {
      std::fill(table.begin() + static_cast<std::ptrdiff_t>(last) + 1, table.end(), value);
    } else {
      last = std::min(static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(boundary))) - 1,
                      table.size() - 1);
      if (first) std::fill_n(table.begin(), last, value);
      table[last] = value;
      first = false;
    }
    if (!text.next_is("]")) text.expect(key, ",");
  }
  text.expect(key, "]");
}

}  // namespace config_text

VLMEST_INLINE AllocatorConfig parse_allocator_config(std::string_view settings, const AllocatorConfig& base) {
  AllocatorConfig c = base;
  AllocatorConfigText text(settings);
  bool rounding = false;
  while (!text.done()) {
    const auto key = text.word("");
    text.expect(key, ":");
    if (key == "max_split_size_mb") {
      c.max_split_size = config_text::mebibytes(text.number(key));
    } else if (key == "max_non_split_rounding_mb") {
      c.max_non_split_rounding = config_text::mebibytes(text.number(key));
      rounding = true;
    } else if (key == "large_segment_size_mb") {
      c.large_segment_size = config_text::mebibytes(text.number(key));
      // Where it is not given, it follows the segments: parseArgs.
    } else if (key == "roundup_power2_divisions") {
      config_text::roundup(text, key, c);
    } else if (key == "garbage_collection_threshold") {
      c.garbage_collection_threshold = text.fraction(key);
      if (c.garbage_collection_threshold <= 0 || c.garbage_collection_threshold >= 1)
        text.fail(key, "is not between 0 and 1", "leave it away to turn it off");
    } else if (key == "per_process_memory_fraction") {
      c.memory_fraction = text.fraction(key);
    } else if (key == "expandable_segments") {
      c.expandable_segments = text.flag(key);
    } else if (key == "backend") {
      if (const auto name = text.word(key); name == "cudaMallocAsync")
        text.fail(key, "cudaMallocAsync leaves placement to the driver's pool, which is not modelled", "use native");
      else if (name != "native")
        text.fail(key, "'" + name + "' is no backend", "use native");
    } else if (std::find(allocator_keys.begin(), allocator_keys.end(), key) != allocator_keys.end()) {
      text.skip(key);
    } else {
      const auto near = nearest(key, allocator_keys);
      text.fail(
          key, "is not a setting of torch's allocator",
          near.empty() ? "see PYTORCH_ALLOC_CONF in torch's notes on CUDA" : "did you mean " + std::string(near) + "?");
    }
    if (!text.done()) text.expect(key, ",");
  }
  if (!rounding && c.large_segment_size != base.large_segment_size) c.max_non_split_rounding = c.large_segment_size;
  check(c);
  return c;
}

}  // namespace vlmest::allocator
