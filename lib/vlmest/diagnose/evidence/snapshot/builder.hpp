// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vlmest/diagnose/evidence/snapshot/plain_value.hpp>
#include <vlmest/diagnose/evidence/snapshot/shapes.hpp>

namespace vlmest::diagnose {

/// The stack machine that puts a snapshot together, with the operations of pickle (Lib/pickle.py, class _Unpickler).
/// Throws plain::Malformed.
class SnapshotBuilder {
 public:
  using Value = plain::Value;
  using Shape = plain::Shape;
  static constexpr std::size_t deepest = 64;  ///< containers open at once

  void none() { stack_.emplace_back(); }
  void boolean(bool b) { stack_.emplace_back(plain::Kind::boolean, b ? 1 : 0); }
  void integer(std::int64_t n) { stack_.push_back(shapes.in.heap.integer(n)); }
  /// Of 64 bits: addresses, and 2^64 - 1 for no limit, which becomes -1.
  void natural(std::uint64_t n) { integer(static_cast<std::int64_t>(n)); }
  void real(double x) { stack_.push_back(shapes.in.heap.real(x)); }
  void text(std::string_view s) { stack_.emplace_back(plain::Kind::text, shapes.in.stacks.strings.add(s)); }
  void new_list() { stack_.push_back(shapes.in.heap.object({Shape::empty_list, 0})); }
  void new_dict() { stack_.push_back(shapes.in.heap.object({Shape::empty_dict, 0})); }

  void mark() {
    if (marks_.size() >= deepest) throw plain::Malformed{"nests more than " + std::to_string(deepest) + " levels deep"};
    marks_.push_back(stack_.size());
  }
  void append_items() { append(above_mark()); }
  void append_item() { append(last(1)); }
  void set_items() { set(above_mark()); }
  void set_item() { set(last(2)); }
  void tuple_items() { tuple_of(above_mark()); }
  void tuple(std::size_t n) { tuple_of(last(n)); }

  void memoize() { memo_.append(top()); }
  void put(std::size_t index) { memo_.put(index, top()); }
  void get(std::size_t index) { stack_.push_back(memo_.get(index)); }

  void stop() {
    if (stack_.size() != 1 || !marks_.empty()) throw plain::Malformed{"ends inside of a list or dict"};
    result = stack_.back();
  }
  /// The last two strings, for what is said of a refused name.
  std::pair<std::string_view, std::string_view> top_texts() const {
    const auto get = [&](std::size_t below) -> std::string_view {
      if (stack_.size() < below || stack_[stack_.size() - below].kind() != plain::Kind::text) return "?";
      return shapes.in.stacks.strings[stack_[stack_.size() - below].number()];
    };
    return {get(2), get(1)};
  }

  SnapshotShapes shapes;
  Value result;

 private:
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  Value top() const {
    if (stack_.size() <= floor()) throw plain::Malformed{"takes a value where there is none"};
    return stack_.back();
  }
  /// Where the last n values begin.
  std::size_t last(std::size_t n) const {
    if (stack_.size() < floor() + n) throw plain::Malformed{"takes a value where there is none"};
    return stack_.size() - n;
  }
  std::size_t above_mark() {
    if (marks_.empty()) throw plain::Malformed{"closes a list or dict that was not opened"};
    const auto begin = marks_.back();
    marks_.pop_back();
    return begin;
  }
  /// The container below `begin`.
  std::uint32_t target(std::size_t begin) const {
    if (begin <= floor() || stack_[begin - 1].kind() != plain::Kind::object)
      throw plain::Malformed{"adds to something that is neither list nor dict"};
    return stack_[begin - 1].number();
  }

  void append(std::size_t begin) {
    const auto o = target(begin);
    const std::span<const Value> items(stack_.data() + begin, stack_.size() - begin);
    if (!items.empty()) {
      const auto before = shapes.in.heap.objects[o];
      if (before.is() == Shape::empty_list)
        shapes.in.heap.objects[o] = shapes.in.list(items, Shape::list);
      else
        append_to(shapes.in.plain_list(o), items);
    }
    stack_.resize(begin);
  }
  void append_to(std::vector<Value>& list, std::span<const Value> items) {
    shapes.in.heap.spend(items.size());
    shapes.in.listed += items.size();
    list.insert(list.end(), items.begin(), items.end());
  }
  void set(std::size_t begin) {
    const auto o = target(begin);
    const std::span<const Value> items(stack_.data() + begin, stack_.size() - begin);
    if (items.size() % 2 != 0) throw plain::Malformed{"gives a key without a value"};
    if (!items.empty()) {
      const auto before = shapes.in.heap.objects[o];
      if (before.is() == Shape::empty_dict)
        shapes.in.heap.objects[o] = shapes.dict(items);
      else if (before.is() == Shape::dict)
        append_to(shapes.in.heap.lists[before.index], items);
      else
        throw plain::Malformed{"adds to an entry that was complete"};
    }
    stack_.resize(begin);
  }
  void tuple_of(std::size_t begin) {
    const std::span<const Value> items(stack_.data() + begin, stack_.size() - begin);
    const auto o = shapes.in.list(items, Shape::tuple);
    stack_.resize(begin);
    stack_.push_back(shapes.in.heap.object(o));
  }

  std::vector<Value> stack_;
  std::vector<std::size_t> marks_;
  plain::Memo memo_;
};

}  // namespace vlmest::diagnose
