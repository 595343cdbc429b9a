// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/device/device.hpp>
#include <vlmest/diagnose/evidence/trace/profile_trace.hpp>

namespace vlmest::diagnose {

/// True where a description is that of the GPU of a trace: the same multiprocessors, the same compute capability where
/// the trace tells it, and a memory that differs by less than a fiftieth, as drivers keep more or less of it. Names are
/// not compared: drivers and vendors spell them differently. A trace that gives neither fits none.
inline bool describes(const Device& d, const TracedDevice& t) {
  if (t.multiprocessors <= 0 || t.memory <= Bytes{}) return false;
  const std::int64_t apart =
      t.memory > d.memory_bytes ? (t.memory - d.memory_bytes).value() : (d.memory_bytes - t.memory).value();
  return d.multiprocessors == t.multiprocessors && (t.sm == 0 || t.sm == d.sm) && apart < d.memory_bytes.value() / 50;
}

}  // namespace vlmest::diagnose
