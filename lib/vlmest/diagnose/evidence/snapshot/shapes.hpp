// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <vlmest/diagnose/evidence/snapshot/plain_value.hpp>
#include <vlmest/diagnose/evidence/snapshot/recorded.hpp>
#include <vlmest/diagnose/evidence/snapshot/values.hpp>
#include <vlmest/diagnose/evidence/snapshot/words.hpp>

namespace vlmest::diagnose {

/// Turns dicts and lists into what they mean in a snapshot, each as soon as it is complete, by its keys alone: the data
/// may come from a pickle or from JSON.
struct SnapshotShapes {
  using Value = plain::Value;
  using Shape = plain::Shape;

  SnapshotValues in;
  std::vector<TraceEntry> entries;
  std::vector<RecordedBlock> blocks;
  std::vector<RecordedSegment> segments;
  std::uint64_t unknown_actions = 0;
  std::string unknown_action;

  /// What a dict of these keys and values is: a plain dict where it is nothing better known.
  plain::Object dict(std::span<const Value> items) {
    std::uint32_t has = 0;
    for (std::size_t i = 0; i < items.size(); i += 2)
      if (items[i].kind() == plain::Kind::text && items[i].number() < word::keys) has |= 1u << items[i].number();
    const auto holds = [&](std::initializer_list<word::Word> all) {
      for (const auto w : all)
        if ((has >> w & 1) == 0) return false;
      return true;
    };
    if (holds({word::filename, word::line}) || holds({word::filename, word::name}))
      return {Shape::frame, in.frame(items)};
    if (holds({word::action, word::size}) || holds({word::action, word::addr})) return entry(items);
    if (holds({word::blocks, word::address})) return {Shape::segment, segment(items)};
    if (holds({word::state, word::size})) return {Shape::block, block(items)};
    in.heap.spend(items.size());
    in.heap.lists.emplace_back(items.begin(), items.end());
    return {Shape::dict, in.heap.lists.size() - 1};
  }

 private:
  plain::Object entry(std::span<const Value> items) {
    TraceEntry e;
    std::uint32_t action = word::count;
    SnapshotValues::each(items, [&](word::Word key, Value v) {
      switch (key) {
        case word::action: action = in.text(v, key); break;
        case word::addr:
        case word::device_free: e.address = in.address(v, key); break;
        case word::size: e.size = in.bytes(v, key); break;
        case word::stream: e.stream = in.integer(v, key); break;
        case word::time_us: e.time_us = in.integer(v, key); break;
        case word::frames: e.stack = in.stack_of(v); break;
        default: break;
      }
    });
    const auto known = action - word::first_action;
    if (action < word::first_action || known >= allocator::trace_actions.size()) {
      if (unknown_actions++ == 0) unknown_action = plain::printable(in.stacks.strings[action]);
      return {Shape::spent, 0};
    }
    e.action = static_cast<allocator::TraceAction>(known);
    entries.push_back(e);
    return {Shape::entry, SnapshotValues::checked(entries.size())};
  }

  static allocator::BlockState state(std::uint32_t w) {
    switch (w) {
      case word::active_allocated: return allocator::BlockState::allocated;
      case word::active_pending_free:
      case word::active_awaiting_free: return allocator::BlockState::awaiting;
      case word::inactive: return allocator::BlockState::cached;
      default: throw plain::Malformed{"'state' is no state of a block"};
    }
  }
  std::size_t block(std::span<const Value> items) {
    RecordedBlock b;
    std::optional<Bytes> requested;
    SnapshotValues::each(items, [&](word::Word key, Value v) {
      switch (key) {
        case word::address: b.address = in.address(v, key); break;
        case word::size: b.size = in.bytes(v, key); break;
        case word::requested_size: requested = in.bytes(v, key); break;
        case word::state: b.state = state(in.text(v, key)); break;
        case word::frames: b.stack = in.stack_of(v); break;
        case word::history: last_owner(v, b, requested); break;
        default: break;
      }
    });
    b.requested = requested.value_or(b.size);
    blocks.push_back(b);
    return SnapshotValues::checked(blocks.size());
  }
  /// The first entry of a block's history is its last owner's (torch/cuda/_memory_viz.py, _block_extra_legacy).
  void last_owner(Value v, RecordedBlock& b, std::optional<Bytes>& requested) {
    const auto list = in.values(v, word::history);
    if (list.empty()) return;
    if (list[0].kind() != plain::Kind::object || in.heap.at(list[0]).is() != Shape::dict)
      throw plain::Malformed{"'history' is not a list of dicts"};
    SnapshotValues::each(in.heap.lists[in.heap.at(list[0]).index], [&](word::Word key, Value x) {
      if (key == word::real_size) requested = in.bytes(x, key);
      if (key == word::frames) b.stack = in.stack_of(x);
    });
  }

  std::size_t segment(std::span<const Value> items) {
    RecordedSegment s;
    Value list;
    SnapshotValues::each(items, [&](word::Word key, Value v) {
      switch (key) {
        case word::device: s.device = in.integer(v, key); break;
        case word::address: s.address = in.address(v, key); break;
        case word::total_size: s.size = in.bytes(v, key); break;
        case word::stream: s.stream = in.integer(v, key); break;
        case word::segment_type:
          if (const auto t = in.text(v, key); t != word::small && t != word::large)
            throw plain::Malformed{"'segment_type' is neither small nor large"};
          else
            s.pool = t == word::small ? allocator::Pool::small : allocator::Pool::large;
          break;
        case word::segment_pool_id:
          if (v.kind() != plain::Kind::object || in.heap.at(v).is() != Shape::pair)
            throw plain::Malformed{"'segment_pool_id' is not a pair of integers"};
          s.pool_id = in.pools[in.heap.at(v).index];
          break;
        case word::is_expandable:
          if (v.kind() != plain::Kind::boolean) throw plain::Malformed{"'is_expandable' is neither true nor false"};
          s.expandable = v.payload() != 0;
          break;
        case word::frames: s.stack = in.stack_of(v); break;
        case word::blocks: list = v; break;
        default: break;
      }
    });
    auto end = s.address;  // where blocks carry no address, they follow each other
    for (const auto v : in.values(list, word::blocks)) {
      if (v.kind() != plain::Kind::object || in.heap.at(v).is() != Shape::block)
        throw plain::Malformed{"'blocks' holds something else than blocks"};
      s.blocks.push_back(blocks[in.heap.at(v).index]);
      auto& b = s.blocks.back();
      if (b.address == 0) b.address = end;
      end = b.address + static_cast<std::uint64_t>(b.size.value());
    }
    in.spend(list);
    segments.push_back(std::move(s));
    return SnapshotValues::checked(segments.size());
  }
};

}  // namespace vlmest::diagnose
