// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <vlmest/diagnose/evidence/snapshot/plain_value.hpp>
#include <vlmest/diagnose/evidence/snapshot/recorded.hpp>
#include <vlmest/diagnose/evidence/snapshot/words.hpp>

namespace vlmest::diagnose {

/// The values of a snapshot while it is read, and the smallest things that they form: stack frames, stacks, pairs.
struct SnapshotValues {
  using Value = plain::Value;
  using Shape = plain::Shape;

  plain::Heap heap;
  StackTable stacks;
  std::vector<PoolId> pools;
  std::size_t listed = 0;  ///< values that were put into lists

  SnapshotValues() { word::add_to(stacks.strings); }

  /// Calls f(key, value) for each pair with a key that is known.
  template <class F>
  static void each(std::span<const Value> items, F f) {
    for (std::size_t i = 0; i + 1 < items.size(); i += 2)
      if (items[i].kind() == plain::Kind::text && items[i].number() < word::keys)
        f(static_cast<word::Word>(items[i].number()), items[i + 1]);
  }
  static std::size_t checked(std::size_t count) {
    if (count > plain::most_nodes) throw plain::Malformed{"has too many items"};
    return count - 1;
  }

  /// What a list (or tuple) of these values is.
  plain::Object list(std::span<const Value> items, Shape otherwise) {
    listed += items.size();
    if (is_stack(items)) return {Shape::stack, stack(items)};
    if (items.size() == 2) {
      const auto a = heap.as_integer(items[0]), b = heap.as_integer(items[1]);
      if (a && b) return {Shape::pair, pair({*a, *b})};
    }
    heap.spend(items.size());
    heap.lists.emplace_back(items.begin(), items.end());
    return {otherwise, heap.lists.size() - 1};
  }

  /// The values of a list that grows on: what had a shape of its own becomes a plain list again.
  std::vector<Value>& plain_list(std::uint32_t object) {
    auto& o = heap.objects[object];
    if (o.is() == Shape::stack) {
      std::vector<Value> frames;
      for (const auto f : stacks.stack(o.index)) frames.push_back(frame_object(f));
      heap.lists.push_back(std::move(frames));
    } else if (o.is() == Shape::pair) {
      const auto p = pools[o.index];
      heap.lists.push_back({heap.integer(p.first), heap.integer(p.second)});
    } else if (o.is() != Shape::list) {
      throw plain::Malformed{"adds to something that is no list"};
    }
    auto& grown = heap.objects[object];  // heap.objects may have moved
    if (grown.is() != Shape::list) grown = {Shape::list, checked(heap.lists.size())};
    return heap.lists[grown.index];
  }

  std::int64_t integer(Value v, word::Word key) const {
    const auto n = heap.as_integer(v);
    if (!n) throw plain::Malformed{"'" + std::string(word::words[key]) + "' is not an integer"};
    return *n;
  }
  /// At most what the allocator itself would hand out, so that sums stay in range.
  Bytes bytes(Value v, word::Word key) const {
    const auto n = integer(v, key);
    if (n < 0 || n >= allocator::max_request)
      throw plain::Malformed{"'" + std::string(word::words[key]) + "' is not a size in bytes"};
    return Bytes(n);
  }
  std::uint64_t address(Value v, word::Word key) const { return static_cast<std::uint64_t>(integer(v, key)); }
  std::uint32_t text(Value v, word::Word key) const {
    if (v.kind() != plain::Kind::text)
      throw plain::Malformed{"'" + std::string(word::words[key]) + "' is not a string"};
    return v.number();
  }
  /// The values of a list or tuple that has no shape of its own.
  std::span<const Value> values(Value v, word::Word key) const {
    if (v.kind() == plain::Kind::object) {
      const auto o = heap.objects[v.number()];
      if (o.is() == Shape::list || o.is() == Shape::tuple) return heap.lists[o.index];
      if (o.is() == Shape::empty_list) return {};
      if (o.is() == Shape::spent)
        throw plain::Malformed{"holds the same '" + std::string(word::words[key]) + "' twice"};
    }
    throw plain::Malformed{"'" + std::string(word::words[key]) + "' is not a list"};
  }
  /// A list that was read and must not be read again: a short file could otherwise stand for endless data.
  void spend(Value v) {
    auto& o = heap.at(v);
    if (o.is() != Shape::list && o.is() != Shape::tuple) return;
    heap.lists[o.index] = {};
    o = {Shape::spent, 0};
  }
  std::uint32_t frame(std::span<const Value> items) {
    StackTable::FrameWords f;
    f.function = f.file = stacks.strings.add("");
    each(items, [&](word::Word key, Value v) {
      if (key == word::filename) f.file = text(v, key);
      if (key == word::name) f.function = text(v, key);
      if (key == word::line) f.line = v.kind() == plain::Kind::none ? 0 : integer(v, key);
    });
    return stacks.add_frame(f);
  }
  /// A list of frames; those of over-long lists, or of lists put together piece by piece, are still plain.
  StackTable::Stack stack_of(Value v) {
    if (v.kind() == plain::Kind::none) return 0;
    if (v.kind() == plain::Kind::object) {
      auto& o = heap.at(v);
      if (o.is() == Shape::stack) return o.index;
      if (o.is() == Shape::empty_list) return 0;
      if (o.is() == Shape::list || o.is() == Shape::tuple) {
        const auto s = stack(heap.lists[o.index]);
        if (o.is() == Shape::list) {
          heap.lists[o.index] = {};
          o = {Shape::stack, s};
        }
        return s;
      }
    }
    throw plain::Malformed{"'frames' is not a list of stack frames"};
  }

 private:
  /// An object that is this frame; each frame needs no more than one.
  Value frame_object(std::uint32_t f) {
    if (f >= frame_objects_.size()) frame_objects_.resize(f + 1);
    if (frame_objects_[f].kind() != plain::Kind::object) frame_objects_[f] = heap.object({Shape::frame, f});
    return frame_objects_[f];
  }

  bool is_stack(std::span<const Value> items) const {
    for (const auto v : items)
      if (v.kind() != plain::Kind::object || heap.objects[v.number()].is() != Shape::frame) return false;
    return !items.empty() && items.size() <= StackTable::deepest;
  }
  StackTable::Stack stack(std::span<const Value> items) {
    std::uint32_t numbers[StackTable::deepest];
    std::size_t n = 0;
    for (const auto v : items) {
      if (n == StackTable::deepest) break;
      if (v.kind() == plain::Kind::object && heap.objects[v.number()].is() == Shape::frame)
        numbers[n++] = heap.objects[v.number()].index;
    }
    const auto s = stacks.add_stack({numbers, n});
    // A list that grows by one frame after each use would make a stack of every length out of a few bytes.
    if (stacks.frames_in_stacks() > listed + 1'000'000)
      throw plain::Malformed{"changes lists of frames after their use"};
    return s;
  }

  std::size_t pair(PoolId p) {
    // There are a handful of pools, and whatever else comes in twos.
    for (std::size_t i = pools.size(); i > 0 && i + 8 > pools.size(); --i)
      if (pools[i - 1] == p) return i - 1;
    pools.push_back(p);
    return checked(pools.size());
  }

  std::vector<Value> frame_objects_;
};

}  // namespace vlmest::diagnose
