// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "json_spans.hpp"

namespace vlmest::fuzz {

/// Turns inputs into faulty ones. A JSON document stays mostly one that a parser accepts, so that the reader behind it
/// is reached: numbers become 0, negative, huge or fractions, values change their type, keys vanish, appear and move,
/// parts come from other documents, lists grow, values nest; and now and then the text itself is cut or torn. Anything
/// else (pickles, archives, databases, logs) is changed by bytes, lines and pieces of other inputs. Works on the text:
/// a document as values takes several times as long as the reader under test.
class Mutator {
 public:
  using Random = std::mt19937_64;

  /// `corpus`: inputs that keys, words and parts are taken from.
  explicit Mutator(const std::vector<std::string>& corpus) {
    for (const auto& text : corpus) add(text);
  }

  void add(std::string_view input) {
    if (is_json(input)) {
      std::vector<Span> spans;
      find_spans(input, spans);
      for (const Span& s : spans) {
        parts_.emplace_back(input.substr(s.begin, std::min<std::size_t>(s.end - s.begin, largest_part)));
        if (s.kind == '"') words_.push_back(parts_.back());
        if (s.key != Span::none) keys_.emplace_back(input.substr(s.key, input.find('"', s.key + 1) + 1 - s.key));
      }
    }
    inputs_.emplace_back(input);
  }

  std::string operator()(std::string_view seed, Random& random) const {
    std::string text(seed);
    const bool json = is_json(seed);
    if (json) {
      std::vector<Span> spans;
      for (std::uint64_t n = 1 + below(random, 4); n > 0 && text.size() < largest; --n) {
        find_spans(text, spans);
        if (!spans.empty()) change(text, spans, random);
      }
    }
    if (!json)
      for (std::uint64_t n = 1 + below(random, 4); n > 0; --n) tear(text, random);
    else if (below(random, 16) == 0)
      tear(text, random);
    return text;
  }

 private:
  static constexpr std::size_t largest = 1 << 17;  ///< documents beyond it grow no further
  static constexpr std::size_t largest_part = 1 << 13;

  static std::uint64_t below(Random& random, std::uint64_t n) { return random() % n; }
  template <class T>
  static const T& pick(const std::vector<T>& from, Random& random) {
    return from[below(random, from.size())];
  }
  static bool is_json(std::string_view text) {
    const auto at = text.find_first_not_of(" \t\r\n");
    return at != std::string_view::npos && (text[at] == '{' || text[at] == '[');
  }
  static void replace(std::string& text, const Span& s, std::string_view by) {
    text.replace(s.begin, s.end - s.begin, by);
  }
  static std::string_view of(std::string_view text, const Span& s) { return text.substr(s.begin, s.end - s.begin); }

  std::string word(Random& random) const { return words_.empty() ? "\"gelu\"" : pick(words_, random); }
  std::string key(Random& random) const { return keys_.empty() ? "\"hidden_size\"" : pick(keys_, random); }
  std::string part(Random& random) const { return parts_.empty() ? "1" : pick(parts_, random); }

  static std::string number(std::string_view old, Random& random) {
    static constexpr std::array<std::string_view, 30> odd{"0",
                                                          "-1",
                                                          "1",
                                                          "2",
                                                          "3",
                                                          "5",
                                                          "7",
                                                          "255",
                                                          "1023",
                                                          "1024",
                                                          "1025",
                                                          "65535",
                                                          "65536",
                                                          "65537",
                                                          "0.5",
                                                          "-0.0",
                                                          "1e308",
                                                          "-1e-308",
                                                          "1e19",
                                                          "1e400",
                                                          "2147483647",
                                                          "2147483648",
                                                          "4294967296",
                                                          "9223372036854775807",
                                                          "-9223372036854775808",
                                                          "9223372036854775808",
                                                          "18446744073709551615",
                                                          "18446744073709551616",
                                                          "-2147483649",
                                                          "1.5e3"};
    switch (below(random, 6)) {
      case 0: return old.size() > 1 ? std::string(old.substr(0, old.size() / 2)) : std::string("1");
      case 1: return std::to_string(std::int64_t{1} << below(random, 63));
      case 2:
        return std::to_string((std::int64_t{1} << below(random, 62)) + static_cast<std::int64_t>(below(random, 3)) - 1);
      case 3: return std::to_string(below(random, 200));
      default: return std::string(odd[below(random, odd.size())]);
    }
  }
  std::string value(std::string_view old, Random& random) const {
    switch (below(random, 9)) {
      case 0: return "null";
      case 1: return below(random, 2) == 0 ? "true" : "false";
      case 2: return word(random);
      case 3: return "[]";
      case 4: return "{}";
      case 5: return "[" + std::string(old) + "," + std::string(old) + "]";
      case 6: return "{" + key(random) + ":" + std::string(old) + "}";
      case 7: return "\"" + std::string(below(random, 40), 'x') + "\"";
      default: return number(old, random);
    }
  }

  static void remove(std::string& text, const Span& s) {
    std::size_t begin = s.member(), end = s.end;
    while (end < text.size() && text[end] == ' ') ++end;
    if (end < text.size() && text[end] == ',') {
      ++end;
    } else {  // the last of its object or list: the comma before it goes
      while (begin > 0 && text[begin - 1] == ' ') --begin;
      if (begin > 0 && text[begin - 1] == ',') --begin;
    }
    text.erase(begin, end - begin);
  }
  void put(std::string& text, const Span& s, std::string v, Random& random) const {
    if (s.kind != '{' && s.kind != '[') return replace(text, s, v);
    if (s.kind == '{') v = key(random) + ":" + v;
    if (s.end - s.begin > 2) v += ",";
    text.insert(s.begin + 1, v);
  }

  void change(std::string& text, const std::vector<Span>& spans, Random& random) const {
    const Span& at = pick(spans, random);
    const std::string old(of(text, at));
    switch (below(random, 10)) {
      case 0: remove(text, at); break;
      case 1: replace(text, at, value(old, random)); break;
      case 2: put(text, at, value(old, random), random); break;
      case 3: put(text, at, part(random), random); break;
      case 4: replace(text, at, part(random)); break;
      case 5: replace(text, at, std::string(of(text, pick(spans, random)))); break;
      case 6: {  // again and again
        const std::string member = text.substr(at.member(), at.end - at.member());
        std::string more;
        for (std::uint64_t n = below(random, 64); n > 0 && more.size() < largest_part; --n) more += "," + member;
        text.insert(at.end, more);
        break;
      }
      case 7:
        if (const std::uint64_t n = below(random, 8) == 0 ? below(random, 100) : 1; n > 0)
          replace(text, at, std::string(n, '[') + old + std::string(n, ']'));
        break;
      default: {  // numbers are what dimensions are made of
        std::vector<Span> numbers;
        for (const Span& s : spans)
          if (s.kind == '0') numbers.push_back(s);
        if (!numbers.empty()) {
          const Span& n = pick(numbers, random);
          replace(text, n, number(of(text, n), random));
        }
      }
    }
  }

  void tear(std::string& text, Random& random) const {
    if (text.empty()) text = "{}";
    const auto at = below(random, text.size());
    switch (below(random, 12)) {
      case 0: text.resize(at); break;
      case 1: text[at] = static_cast<char>(below(random, 256)); break;
      case 2: text[at] = static_cast<char>(text[at] ^ (1 << below(random, 8))); break;
      case 3: text.insert(at, key(random) + ":"); break;
      case 4: text.insert(at, text.substr(at, below(random, 200))); break;  // a key twice, among other things
      case 5: text.insert(at, std::string(below(random, 5000), below(random, 2) == 0 ? '[' : '{')); break;
      case 6: {  // a length, a count, an offset: little-endian, as pickles have them, or big-endian, as SQLite
        const std::uint64_t odd[] = {0,      1,      0x7f,       0x80,       0xff,
                                     0x7fff, 0xffff, 0x7fffffff, 0xffffffff, below(random, 65536)};
        const std::uint64_t v = odd[below(random, std::size(odd))];
        const std::size_t width = std::size_t{1} << below(random, 4);
        const bool little = below(random, 2) == 0;
        for (std::size_t i = 0; i < width && at + i < text.size(); ++i) {
          const std::size_t byte = little ? i : width - 1 - i;
          text[at + i] = byte < 8 ? static_cast<char>(v >> (8 * byte)) : '\0';
        }
        break;
      }
      case 7: {  // a piece of another input
        const std::string& other = inputs_.empty() ? text : pick(inputs_, random);
        if (other.empty()) break;
        const std::string piece = other.substr(below(random, other.size()), below(random, 300));
        if (below(random, 2) == 0)
          text.insert(at, piece);
        else
          text.replace(at, piece.size(), piece);
        break;
      }
      case 8: {  // a line somewhere else
        const auto begin = text.rfind('\n', at), end = text.find('\n', at);
        if (begin == std::string::npos || end == std::string::npos || end <= begin) break;
        const std::string line = text.substr(begin, end - begin);
        if (below(random, 2) == 0) text.erase(begin, line.size());
        if (text.size() > 0) text.insert(below(random, text.size()), line);
        break;
      }
      case 9: {  // another number in its place
        auto begin = text.find_first_of("0123456789", at);
        if (begin == std::string::npos) break;
        auto end = text.find_first_not_of("0123456789", begin);
        if (end == std::string::npos) end = text.size();
        text.replace(begin, end - begin, number(std::string_view(text).substr(begin, end - begin), random));
        break;
      }
      default: text.erase(at, 1 + below(random, 8)); break;
    }
  }

  std::vector<std::string> inputs_, parts_, keys_, words_;
};

}  // namespace vlmest::fuzz
