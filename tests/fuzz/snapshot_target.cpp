// SPDX-License-Identifier: Apache-2.0
// A memory snapshot, and its replay.
#include <vlmest/allocator/reproduce.hpp>
#include <vlmest/json/memory_snapshot.hpp>
#include <vlmest/json/parse.hpp>

#include "target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vlmest;
  using namespace vlmest::allocator;
  using fuzz::require;
  try {
    const auto m = json::read_memory_snapshot(json::parse(fuzz::text(data, size), "input"));
    const auto r = reproduce(m);
    require(r.exact == r.difference.empty(), "a difference without a name");
    Bytes reserved{}, active{};
    for (const auto& s : r.replay.segments) {
      reserved += s.size;
      active += active_size(s);
    }
    require(reserved == r.replay.reserved && active == r.replay.active, "sums over the segments");
    require(r.replay.allocated <= r.replay.active && r.replay.active <= r.replay.reserved, "more than is reserved");
    const auto& f = r.replay.at_peak;
    require(f.releasable >= Bytes{} && f.split >= Bytes{} && f.largest_free <= f.reserved, "fragmentation");
  } catch (const Error& e) {
    fuzz::require_readable(e);
  }
  return 0;
}
