// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <vlmest/diagnose/evidence/snapshot/read.hpp>

namespace vlmest::diagnose {

/// A file of tests/data/snapshots; make.py there wrote them.
inline std::string snapshot_file(const std::string& name) {
  std::ifstream in(std::string(VLMEST_SOURCE_DIR) + "/tests/data/snapshots/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}
inline RecordedSnapshot snapshot_of(std::string_view pickle) {
  ByteSource source(pickle);
  return read_recorded_snapshot(source, "file");
}
inline RecordedSnapshot snapshot(const std::string& name) { return snapshot_of(snapshot_file(name)); }

/// Why a pickle is refused, or "accepted".
inline std::string refusal(std::string_view pickle) {
  try {
    snapshot_of(pickle);
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

}  // namespace vlmest::diagnose
