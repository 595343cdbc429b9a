// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <vlmest/diagnose/evidence/byte_source.hpp>
#include <vlmest/diagnose/evidence/snapshot/builder.hpp>
#include <vlmest/diagnose/evidence/snapshot/pickle.hpp>
#include <vlmest/diagnose/evidence/snapshot/recorded.hpp>

namespace vlmest::diagnose {

namespace snapshot_parts {

using plain::Kind;
using plain::Malformed;
using plain::Shape;
using plain::Value;

/// Calls f(key, value) for each pair of a plain dict.
template <class F>
void each(const SnapshotShapes& s, Value dict, const char* what, F f) {
  if (dict.kind() != Kind::object) throw Malformed{std::string(what) + " is not a dict"};
  const auto o = s.in.heap.objects[dict.number()];
  if (o.is() == Shape::empty_dict) return;
  if (o.is() != Shape::dict) throw Malformed{std::string(what) + " is not a dict"};
  const std::span<const Value> items = s.in.heap.lists[o.index];
  for (std::size_t i = 0; i + 1 < items.size(); i += 2)
    if (items[i].kind() == Kind::text) f(items[i].number(), items[i + 1]);
}

void segments(SnapshotShapes& s, Value list, RecordedSnapshot& out);

void traces(SnapshotShapes& s, Value list, RecordedSnapshot& out);

void annotations(SnapshotShapes& s, Value list, RecordedSnapshot& out);

void settings(const SnapshotShapes& s, Value dict, RecordedSnapshot& out);

}  // namespace snapshot_parts

/// What a builder has put together. Throws plain::Malformed where it is no snapshot.
RecordedSnapshot finish_snapshot(SnapshotBuilder&& builder);

/// A pickle that torch.cuda.memory._dump_snapshot(), or pickle.dump of _snapshot(), wrote. `where` names it in errors.
/// Throws Error for what is not such a file; nothing of it is run. Source: torch/csrc/cuda/Module.cpp.
RecordedSnapshot read_recorded_snapshot(ByteSource& source, const std::string& where);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/snapshot/impl/read.hpp>
#endif
