// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/evidence/snapshot/read.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace snapshot_parts {

VLMEST_INLINE void segments(SnapshotShapes& s, Value list, RecordedSnapshot& out) {
  for (const auto v : s.in.values(list, word::segments)) {
    if (v.kind() != Kind::object || s.in.heap.at(v).is() != Shape::segment)
      throw Malformed{"'segments' holds something else than segments, or one of them twice"};
    out.segments.push_back(std::move(s.segments[s.in.heap.at(v).index]));
    s.in.heap.at(v) = {Shape::spent, 0};
  }
}

VLMEST_INLINE void traces(SnapshotShapes& s, Value list, RecordedSnapshot& out) {
  const auto devices = s.in.values(list, word::device_traces);
  for (const auto device : devices) {
    auto& trace = out.traces.emplace_back();
    const auto entries = s.in.values(device, word::device_traces);
    trace.reserve(entries.size());
    for (const auto v : entries) {
      const auto o = v.kind() == Kind::object ? s.in.heap.at(v) : plain::Object{Shape::list, 0};
      if (o.is() == Shape::entry)
        trace.push_back(s.entries[o.index]);
      else if (o.is() != Shape::spent)
        throw Malformed{"'device_traces' holds something else than entries of a trace"};
    }
    s.in.spend(device);
  }
}

VLMEST_INLINE void annotations(SnapshotShapes& s, Value list, RecordedSnapshot& out) {
  for (const auto v : s.in.values(list, word::external_annotations)) {
    MemoryAnnotation a;
    a.name = s.in.stacks.strings.add("");
    each(s, v, "an external annotation", [&](std::uint32_t key, Value x) {
      if (key == word::name && x.kind() == Kind::text) a.name = x.number();
      if (key == word::stage && x.kind() == Kind::text) a.starts = s.in.stacks.strings[x.number()] != "END";
      if (key == word::device) a.device = s.in.integer(x, word::device);
      if (key == word::time_us) a.time_us = s.in.integer(x, word::time_us);
    });
    out.annotations.push_back(a);
  }
}

VLMEST_INLINE void settings(const SnapshotShapes& s, Value dict, RecordedSnapshot& out) {
  auto& c = out.settings.emplace();
  each(s, dict, "'allocator_settings'", [&](std::uint32_t key, Value v) {
    const auto string = [&] {
      return v.kind() == Kind::text ? std::string(s.in.stacks.strings[v.number()]) : std::string();
    };
    // torch gives both names; the newer one counts.
    if (key == word::alloc_conf || (key == word::cuda_alloc_conf && !c.text)) {
      c.text = string();
      for (const char letter : *c.text)
        if (letter < ' ' || letter > '~') throw Malformed{"the text of the allocator's settings holds odd characters"};
    }
    if (key == word::max_split_size) c.max_split_size = s.in.heap.as_integer(v);
    if (key == word::garbage_collection_threshold) c.garbage_collection_threshold = s.in.heap.as_real(v);
    if (key == word::expandable_segments && v.kind() == Kind::boolean) c.expandable_segments = v.payload() != 0;
    if (key == word::roundup_power2_divisions)
      each(s, v, "'roundup_power2_divisions'", [&](std::uint32_t size, Value n) {
        const auto digits = s.in.stacks.strings[size];
        if (const auto divisions = s.in.heap.as_integer(n); divisions && digits.size() < 12)
          c.roundup_power2_divisions.emplace_back(digits, *divisions);
      });
  });
}

}  // namespace snapshot_parts

VLMEST_INLINE RecordedSnapshot finish_snapshot(SnapshotBuilder&& builder) {
  using namespace snapshot_parts;
  SnapshotShapes& s = builder.shapes;
  RecordedSnapshot out;
  const Value top = builder.result;
  const auto shape = top.kind() == Kind::object ? s.in.heap.at(top).is() : Shape::frame;
  if (shape == Shape::list || shape == Shape::empty_list) {
    segments(s, top, out);  // torch 1.12 and 1.13
  } else {
    bool any = false;
    each(s, top, "the whole", [&](std::uint32_t key, Value v) {
      any |= key == word::segments || key == word::device_traces;
      if (key == word::segments) segments(s, v, out);
      if (key == word::device_traces) traces(s, v, out);
      if (key == word::external_annotations && v.kind() != Kind::none) annotations(s, v, out);
      if (key == word::allocator_settings) settings(s, v, out);
    });
    if (!any) throw Malformed{"has neither 'segments' nor 'device_traces'"};
  }
  out.unknown_actions = s.unknown_actions;
  out.unknown_action = std::move(s.unknown_action);
  out.stacks = std::move(s.in.stacks);
  return out;
}

VLMEST_INLINE RecordedSnapshot read_recorded_snapshot(ByteSource& source, const std::string& where) {
  SnapshotBuilder builder;
  read_pickle(source, where, builder);
  try {
    return finish_snapshot(std::move(builder));
  } catch (const plain::Malformed& e) {
    throw Error(where, "is not a memory snapshot: " + e.what, "write it with torch.cuda.memory._dump_snapshot()");
  }
}

}  // namespace vlmest::diagnose
