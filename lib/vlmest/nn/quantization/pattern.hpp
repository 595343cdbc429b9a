// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vlmest/unit/error.hpp>

namespace vlmest {

/// A regular expression as checkpoints write them for module names, matched from the beginning of a name as Python's
/// re.match does: literals, `.`, classes, \d \w \s, groups, alternatives, * + ? {m,n} (and their lazy forms), ^, $,
/// lookahead. What it does not know (backreferences, lookbehind, flags) is an Error when it is made, and so is a match
/// that backtracks without end: patterns come from files.
class Pattern {
 public:
  /// `where` is what errors name.
  Pattern(std::string_view text, const std::string& where) : text_(text), where_(where) {
    if (text.size() > longest) fail("longer than " + std::to_string(longest) + " characters");
    root_ = alternatives(0);
    if (at_ < text_.size()) fail("a ')' too many");
  }

  bool matches(std::string_view name) const {
    std::size_t steps = 0;
    return run(root_, name, 0, steps, [](std::size_t) { return true; });
  }

 private:
  static constexpr std::size_t longest = 512, most_steps = 200'000;
  static constexpr int deepest = 32, most_repeats = 256;

  using Place = std::int32_t;
  struct Item {
    enum class Kind : std::uint8_t { any, one, set, group, begin, end, ahead, not_ahead } kind = Kind::any;
    char character = 0;
    bool negated = false;
    std::vector<std::pair<char, char>> ranges;
    Place inner = -1;  ///< of a group or lookahead
    int least = 1, most = 1;
  };
  using Sequence = std::vector<Item>;
  struct Alternatives {
    std::vector<Sequence> of;
  };

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(where_, "'" + text_.substr(0, 64) + "' is no pattern: " + what, "write the module's name");
  }
  bool more() const { return at_ < text_.size(); }
  char next() {
    if (!more()) fail("it ends too early");
    return text_[at_++];
  }
  bool take(std::string_view s) {
    if (std::string_view(text_).substr(at_, s.size()) != s) return false;
    at_ += s.size();
    return true;
  }

  Place alternatives(int depth) {
    if (depth > deepest) fail("groups nest too deeply");
    Alternatives a;
    a.of.emplace_back();
    while (more() && text_[at_] != ')') {
      if (take("|")) {
        a.of.emplace_back();
        continue;
      }
      Item i = item(depth);
      repeat(i);
      a.of.back().push_back(std::move(i));
    }
    pool_.push_back(std::move(a));
    return static_cast<Place>(pool_.size() - 1);
  }

  static void escape(Item& i, char c) {
    const auto add = [&](char from, char to) { i.ranges.emplace_back(from, to); };
    if (c == 'd' || c == 'w') add('0', '9');
    if (c == 'w') {
      add('a', 'z');
      add('A', 'Z');
      add('_', '_');
    }
    if (c == 's') {
      add(' ', ' ');
      add('\t', '\r');
    }
  }
  static bool is_class(char c) { return c == 'd' || c == 'w' || c == 's'; }
  static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

  Item item(int depth) {
    Item i;
    const char c = next();
    switch (c) {
      case '.': return i;
      case '^': i.kind = Item::Kind::begin; return i;
      case '$': i.kind = Item::Kind::end; return i;
      case '(':
        i.kind = Item::Kind::group;
        if (take("?="))
          i.kind = Item::Kind::ahead;
        else if (take("?!"))
          i.kind = Item::Kind::not_ahead;
        else if (!take("?:") && take("?"))
          fail("a kind of group that is not known");
        i.inner = alternatives(depth + 1);
        if (!take(")")) fail("a ')' is missing");
        return i;
      case '[': set(i); return i;
      case '*':
      case '+':
      case '?': fail("nothing to repeat");
      case '\\': {
        const char e = next();
        if (is_class(e)) {
          i.kind = Item::Kind::set;
          escape(i, e);
          return i;
        }
        if (is_letter(e)) fail(std::string("\\") + e + " is not known");
        i.kind = Item::Kind::one;
        i.character = e;
        return i;
      }
      default:
        i.kind = Item::Kind::one;
        i.character = c;
        return i;
    }
  }

  void set(Item& i) {
    i.kind = Item::Kind::set;
    i.negated = take("^");
    bool first = true;
    for (;;) {
      char c = next();
      if (c == ']' && !first) return;
      first = false;
      if (c == '\\') {
        c = next();
        if (is_class(c)) {
          escape(i, c);
          continue;
        }
        if (is_letter(c)) fail(std::string("\\") + c + " is not known");
      }
      char to = c;
      if (more() && text_[at_] == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        to = next();
        if (to == '\\') to = next();
        if (to < c) fail("a range that runs backwards");
      }
      i.ranges.emplace_back(c, to);
    }
  }

  void repeat(Item& i) {
    if (take("*"))
      i.least = 0, i.most = most_repeats;
    else if (take("+"))
      i.most = most_repeats;
    else if (take("?"))
      i.least = 0;
    else if (more() && text_[at_] == '{') {
      ++at_;
      i.least = number();
      i.most = i.least;
      if (take(",")) i.most = more() && text_[at_] == '}' ? most_repeats : number();
      if (!take("}")) fail("a '}' is missing");
      if (i.most < i.least) fail("a range that runs backwards");
    } else {
      return;
    }
    take("?");  // a lazy form matches the same names
  }
  int number() {
    int n = 0;
    const std::size_t from = at_;
    while (more() && text_[at_] >= '0' && text_[at_] <= '9' && n <= most_repeats) n = 10 * n + (text_[at_++] - '0');
    if (at_ == from || n > most_repeats) fail("a count between 0 and " + std::to_string(most_repeats) + " is expected");
    return n;
  }

  using Then = std::function<bool(std::size_t)>;

  bool run(Place p, std::string_view s, std::size_t at, std::size_t& steps, const Then& then) const {
    for (const Sequence& q : pool_[static_cast<std::size_t>(p)].of)
      if (run(q, 0, s, at, steps, then)) return true;
    return false;
  }
  bool run(const Sequence& q, std::size_t i, std::string_view s, std::size_t at, std::size_t& steps,
           const Then& then) const {
    return i == q.size() ? then(at) : times(q, i, 0, s, at, steps, then);
  }
  /// Item i of a sequence, of which `done` repetitions are behind; then the rest. Greedy.
  bool times(const Sequence& q, std::size_t i, int done, std::string_view s, std::size_t at, std::size_t& steps,
             const Then& then) const {
    if (++steps > most_steps) fail("matching '" + std::string(s.substr(0, 64)) + "' takes too long");
    const Item& x = q[i];
    const auto again = [&](std::size_t to) {
      // What is empty once is empty as often as it must be repeated.
      return to == at ? run(q, i + 1, s, to, steps, then) : times(q, i, done + 1, s, to, steps, then);
    };
    if (done < x.most && once(x, s, at, steps, again)) return true;
    return done >= x.least && run(q, i + 1, s, at, steps, then);
  }
  bool once(const Item& x, std::string_view s, std::size_t at, std::size_t& steps, const Then& then) const {
    const auto ahead = [&] { return run(x.inner, s, at, steps, [](std::size_t) { return true; }); };
    switch (x.kind) {
      case Item::Kind::begin: return at == 0 && then(at);
      case Item::Kind::end: return at == s.size() && then(at);
      case Item::Kind::ahead: return ahead() && then(at);
      case Item::Kind::not_ahead: return !ahead() && then(at);
      case Item::Kind::group: return run(x.inner, s, at, steps, then);
      default: return at < s.size() && fits(x, s[at]) && then(at + 1);
    }
  }
  static bool fits(const Item& x, char c) {
    if (x.kind == Item::Kind::any) return true;
    if (x.kind == Item::Kind::one) return x.character == c;
    for (const auto& [from, to] : x.ranges)
      if (from <= c && c <= to) return !x.negated;
    return x.negated;
  }

  std::string text_, where_;
  std::size_t at_ = 0;
  std::vector<Alternatives> pool_;
  Place root_ = -1;
};

}  // namespace vlmest
