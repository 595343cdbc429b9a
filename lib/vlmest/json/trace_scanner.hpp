// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <vlmest/unit/error.hpp>

namespace vlmest::json {

/// Cuts a Chrome trace (Trace Event Format: an object with a list traceEvents, or the bare list) into the texts of its
/// events, one at a time: a trace of several GB never lies in memory.
///
/// `Source` is a callable that gives the next piece of the text as a std::string_view, an empty one at the end.
///
/// torch.profiler has written names without escaping the quotes in them (pytorch issue 146900). Such an event may seem
/// to go on through those that follow it; it is given up where one of these begins. Kineto starts each event with its
/// "ph" (libkineto/src/output_json.cpp), and nothing inside an event does.
template <class Source>
class TraceScanner {
 public:
  /// Longest event, and longest member beside the events, that is kept.
  static constexpr std::size_t longest_event = std::size_t{16} << 20, longest_member = std::size_t{1} << 20;

  TraceScanner(Source source, std::string where) : source_(std::move(source)), where_(std::move(where)) {}

  /// The next event's text, an object, in `event`; false at the end. `member(key, text)` gets what stands beside the
  /// list. Throws Error for a text that is no trace.
  template <class Member>
  bool next(std::string& event, Member&& member) {
    for (;;) switch (state_) {
        case State::start: start(); break;
        case State::members: read_member(event, member); break;
        case State::events:
          if (find_event(event)) return true;
          break;
        case State::done: return false;
      }
  }

  bool truncated() const { return truncated_; }    ///< the text ended before its list did
  std::int64_t broken() const { return broken_; }  ///< events that were given up

 private:
  enum class State { start, members, events, done };
  static constexpr int end_of_text = -1;

  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(where_, what, "give the file that torch.profiler's export_chrome_trace wrote");
  }

  int peek() {
    while (at_ == piece_.size()) {
      piece_ = source_();
      at_ = 0;
      if (piece_.empty()) return end_of_text;
    }
    return static_cast<unsigned char>(piece_[at_]);
  }
  int get() {
    const int c = peek();
    if (c != end_of_text) ++at_;
    return c;
  }
  static bool blank(int c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
  int next_after_blanks(bool commas) {
    while (blank(peek()) || (commas && peek() == ',')) ++at_;
    return peek();
  }

  void start() {
    if (peek() == 0xEF) {  // a byte order mark
      for (const int c : {0xEF, 0xBB, 0xBF})
        if (get() != c) refuse("is no JSON");
    }
    const int c = next_after_blanks(false);
    if (c == end_of_text) refuse("is empty");
    if (c != '{' && c != '[') refuse("is no JSON trace");
    ++at_;
    bare_ = c == '[';
    if (bare_) found_ = true;
    state_ = bare_ ? State::events : State::members;
  }

  template <class Member>
  void read_member(std::string& text, Member&& member) {
    const int c = next_after_blanks(true);
    if (c == end_of_text || c == '}') return find_list();
    std::string key;
    if (c != '"' || !read_string(key) || next_after_blanks(false) != ':') return find_list();
    ++at_;
    const int first = next_after_blanks(false);
    if (key == "traceEvents" && first == '[') return enter_list();
    switch (read_value(text)) {
      case Value::whole: return member(std::string_view(key), std::string_view(text));
      case Value::too_long: return;
      case Value::broken: return find_list();
      case Value::at_list: return enter_list();
    }
  }

  void enter_list() {
    ++at_;
    found_ = true;
    state_ = State::events;
  }

  /// After the last member, or one that is no JSON: goes on at the list of events, where one follows.
  void find_list() {
    constexpr std::string_view key = "traceEvents\"";
    std::size_t matched = 0;
    if (found_) {
      state_ = State::done;
      return;
    }
    for (int c = get(); c != end_of_text; c = get()) {
      matched = c == key[matched] ? matched + 1 : c == key[0] ? 1 : 0;
      if (matched < key.size()) continue;
      matched = 0;
      if (next_after_blanks(false) != ':') continue;
      ++at_;
      if (next_after_blanks(false) == '[') return enter_list();
    }
    refuse("has no traceEvents");
  }

  /// A string at the place, without its quotes and with its escapes as they are.
  bool read_string(std::string& s) {
    ++at_;
    for (int c = get(); c != end_of_text; c = get()) {
      if (c == '"') return true;
      if (s.size() < longest_member) s.push_back(static_cast<char>(c));
      if (c == '\\' && peek() != end_of_text) {
        const int escaped = get();
        if (s.size() < longest_member) s.push_back(static_cast<char>(escaped));
      }
    }
    return false;
  }

  enum class Value { whole, too_long, broken, at_list };

  /// A value at the place. It is broken where a string is no string's end; within one that is broken the list of events
  /// may begin, which is known by its name.
  Value read_value(std::string& text) {
    text.clear();
    int depth = 0;
    bool in_string = false, too_long = false, ended = false;
    for (int c = peek(); c != end_of_text; c = peek()) {
      if (!in_string && depth == 0 && (c == ',' || c == '}' || c == ']')) break;
      if (!in_string && ended && !blank(c)) return Value::broken;
      if (c == '"' && std::string_view(text).ends_with("\"traceEvents")) {
        ++at_;
        if (next_after_blanks(false) != ':') return Value::broken;
        ++at_;
        return next_after_blanks(false) == '[' ? Value::at_list : Value::broken;
      }
      ++at_;
      if (text.size() >= longest_member) {
        too_long = true;
        text.erase(0, text.size() - 16);
      }
      text.push_back(static_cast<char>(c));
      if (in_string && c == '\\') {
        if (peek() != end_of_text) text.push_back(static_cast<char>(get()));
      } else if (c == '"') {
        in_string = !in_string;
        ended = depth == 0 && !in_string;
      } else if (!in_string && (c == '{' || c == '[')) {
        ++depth;
      } else if (!in_string && (c == '}' || c == ']')) {
        ended = --depth == 0;
      }
    }
    return too_long ? Value::too_long : Value::whole;
  }

  bool find_event(std::string& event) {
    const int c = next_after_blanks(true);
    if (c == end_of_text) {
      truncated_ = true;
      state_ = State::done;
      return false;
    }
    if (c == ']') {
      ++at_;
      state_ = bare_ ? State::done : State::members;
      return false;
    }
    ++at_;
    event.assign(1, static_cast<char>(c));
    if (c != '{') {
      ++broken_;
      return resume(event) && collect(event);
    }
    return collect(event);
  }

  /// Leaves `event` with the beginning of the next event that can be recognised.
  bool resume(std::string& event) {
    constexpr std::string_view key = "\"ph\"";
    std::size_t matched = 0;
    bool open = false;
    for (int c = get(); c != end_of_text; c = get()) {
      if (open && c == key[matched]) {
        if (++matched < key.size()) continue;
        event = "{\"ph\"";
        return true;
      }
      if (open && matched == 0 && blank(c)) continue;
      open = c == '{';
      matched = 0;
    }
    truncated_ = true;
    state_ = State::done;
    return false;
  }

  /// The rest of an event whose beginning is in `event`.
  bool collect(std::string& event) {
    int depth = 1;
    bool in_string = false;
    while (depth > 0) {
      const int c = get();
      if (c == end_of_text) {
        truncated_ = true;
        state_ = State::done;
        return false;
      }
      if (c == '"' && event.size() > 4 && std::string_view(event).substr(event.size() - 3) == "\"ph") {
        if (const auto begin = event.find_last_not_of(" \n\t\r", event.size() - 4);
            begin != std::string::npos && begin > 0 && event[begin] == '{') {
          ++broken_;
          event = "{\"ph\"";
          depth = 1;
          in_string = false;
          continue;
        }
      }
      event.push_back(static_cast<char>(c));
      if (in_string) {
        if (c == '\\' && peek() != end_of_text)
          event.push_back(static_cast<char>(get()));
        else if (c == '"')
          in_string = false;
      } else if (c == '"') {
        in_string = true;
      } else if (c == '{') {
        ++depth;
      } else if (c == '}') {
        --depth;
      }
      if (event.size() > longest_event) {
        ++broken_;
        if (!resume(event)) return false;
        depth = 1;
        in_string = false;
      }
    }
    return true;
  }

  Source source_;
  std::string where_;
  std::string_view piece_;
  std::size_t at_ = 0;
  State state_ = State::start;
  bool bare_ = false, found_ = false, truncated_ = false;
  std::int64_t broken_ = 0;
};

}  // namespace vlmest::json
