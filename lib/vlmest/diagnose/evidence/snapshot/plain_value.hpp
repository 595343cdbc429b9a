// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Numbers, strings and containers as pickle and JSON know them, in a few bytes each: a snapshot has hundreds of
/// millions of them. Nothing here recurses, however deep the data nests.
namespace vlmest::diagnose::plain {

/// Data that does not hold together. Whoever reads the file turns it into an Error with file and place.
struct Malformed {
  std::string what;
};

/// Text of a file as it may be shown: at most 80 letters, none that moves a cursor.
inline std::string printable(std::string_view s) {
  std::string out;
  for (const char c : s.substr(0, 80)) out += c >= ' ' && c <= '~' ? c : '?';
  return out;
}

enum class Kind : std::uint8_t { none, boolean, integer, wide, real, text, object };

/// Eight bytes: the kind below, the value itself or its number in a table above.
class Value {
 public:
  constexpr Value() = default;
  constexpr Value(Kind k, std::uint64_t payload) : bits_(payload << 4 | static_cast<std::uint64_t>(k)) {}
  constexpr Kind kind() const { return static_cast<Kind>(bits_ & 15); }
  constexpr std::uint64_t payload() const { return bits_ >> 4; }
  constexpr std::int64_t integer() const { return static_cast<std::int64_t>(bits_) >> 4; }
  constexpr std::uint32_t number() const { return static_cast<std::uint32_t>(payload()); }
  static constexpr bool fits(std::int64_t n) { return n >= -(std::int64_t{1} << 59) && n < std::int64_t{1} << 59; }

 private:
  std::uint64_t bits_ = 0;
};
static_assert(sizeof(Value) == 8);

/// What a container has become. A dict with the keys of a stack frame is nothing but that frame from then on, and so
/// are lists of frames, entries of a trace, blocks and segments: its values are not kept.
enum class Shape : std::uint8_t {
  empty_list,
  empty_dict,
  list,
  dict,  ///< a list in which keys and values take turns
  tuple,
  pair,  ///< of two integers
  frame,
  stack,
  entry,
  block,
  segment,
  spent  ///< its contents were handed on
};

struct Object {
  std::uint32_t shape : 4, index : 28;
  constexpr Object(Shape s, std::size_t i)
      : shape(static_cast<std::uint32_t>(s) & 15), index(static_cast<std::uint32_t>(i) & ((1u << 28) - 1)) {}
  constexpr Shape is() const { return static_cast<Shape>(shape); }
};
static_assert(sizeof(Object) == 4);

/// Objects and the values in them; an index of an Object must stay below 2^28.
inline constexpr std::size_t most_nodes = 200'000'000;

/// What a pickle refers back to, 4 bytes each.
class Memo {
 public:
  void put(std::size_t index, Value v) {
    if (index >= entries_.size()) entries_.resize(index + 1, unset);
    entries_[index] = packed(v);
  }
  void append(Value v) { entries_.push_back(packed(v)); }
  Value get(std::size_t index) const {
    if (index >= entries_.size() || entries_[index] == unset)
      throw Malformed{"refers to item " + std::to_string(index) + " of the memo, which is not set"};
    const auto e = entries_[index];
    const auto number = e & (other - 1);
    if ((e & other) != 0) return others_[e & (text - 1)];
    return (e & text) != 0 ? Value(Kind::text, number & (text - 1)) : Value(Kind::object, number);
  }

 private:
  static constexpr std::uint32_t other = 1u << 31, text = 1u << 30, unset = UINT32_MAX;
  std::uint32_t packed(Value v) {
    if (v.kind() == Kind::text || v.kind() == Kind::object) {
      if (v.payload() >= text) throw Malformed{"has too many items"};
      return v.kind() == Kind::text ? text | v.number() : v.number();
    }
    others_.push_back(v);
    if (others_.size() >= text) throw Malformed{"has too many items"};
    return other | static_cast<std::uint32_t>(others_.size() - 1);
  }
  std::vector<std::uint32_t> entries_;
  std::vector<Value> others_;
};

/// The containers, and the numbers that do not fit into a Value.
struct Heap {
  std::vector<Object> objects;
  std::vector<std::vector<Value>> lists;  ///< of lists, dicts and tuples without a shape of their own
  std::vector<std::int64_t> wide;         ///< integers beyond 60 bits; those above 2^63 wrap
  std::vector<double> reals;
  std::size_t nodes = 0;

  void spend(std::size_t n) {
    nodes += n;
    if (nodes > most_nodes) throw Malformed{"has more than " + std::to_string(most_nodes) + " items"};
  }
  Value integer(std::int64_t n) {
    if (Value::fits(n)) return {Kind::integer, static_cast<std::uint64_t>(n)};
    spend(1);
    wide.push_back(n);
    return {Kind::wide, wide.size() - 1};
  }
  Value real(double x) {
    spend(1);
    reals.push_back(x);
    return {Kind::real, reals.size() - 1};
  }
  Value object(Object o) {
    spend(1);
    objects.push_back(o);
    return {Kind::object, objects.size() - 1};
  }
  Object& at(Value v) { return objects[v.number()]; }

  std::optional<std::int64_t> as_integer(Value v) const {
    if (v.kind() == Kind::integer) return v.integer();
    if (v.kind() == Kind::wide) return wide[v.payload()];
    return std::nullopt;
  }
  std::optional<double> as_real(Value v) const {
    if (v.kind() == Kind::real) return reals[v.payload()];
    if (const auto n = as_integer(v)) return static_cast<double>(*n);
    return std::nullopt;
  }
};

}  // namespace vlmest::diagnose::plain
