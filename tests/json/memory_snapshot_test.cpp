// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vlmest/allocator/reproduce.hpp>
#include <vlmest/json/memory_snapshot.hpp>

namespace vlmest::memory_snapshot_test {
namespace {
using namespace allocator;
using nlohmann::json;

// x = torch.empty(1000), y = torch.empty(300000), del x, z = torch.empty(128), all fp32 on the default stream, in a
// process that recorded from the start: 4,000 bytes occupy 4,096, the third tensor takes the first one's place.
const char* const recorded = R"({
  "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "max_non_split_rounding_mb:32", "max_split_size": -1,
    "garbage_collection_threshold": 0.0, "expandable_segments": false, "roundup_power2_divisions": {"1": 0, "2": 4}},
  "segments": [
    {"device": 0, "address": 140000020971520, "total_size": 20971520, "allocated_size": 1200128, "active_size": 1200128,
     "requested_size": 1200000, "stream": 0, "segment_type": "large", "segment_pool_id": [0, 0], "is_expandable": false,
     "frames": [], "blocks": [
       {"address": 140000020971520, "size": 1200128, "requested_size": 1200000, "state": "active_allocated"},
       {"address": 140000022171648, "size": 19771392, "requested_size": 0, "state": "inactive"}]},
    {"device": 1, "address": 140000020971520, "total_size": 512, "stream": 0, "segment_type": "small", "blocks": []},
    {"device": 0, "address": 140000000000000, "total_size": 2097152, "allocated_size": 512, "active_size": 512,
     "requested_size": 512, "stream": 0, "segment_type": "small", "segment_pool_id": [0, 0], "is_expandable": false,
     "blocks": [
       {"address": 140000000000000, "size": 512, "requested_size": 512, "state": "active_allocated"},
       {"address": 140000000000512, "size": 2096640, "requested_size": 4000, "state": "inactive"}]}],
  "device_traces": [[
    {"action": "segment_alloc", "addr": 140000000000000, "size": 2097152, "stream": 0, "time_us": 1, "frames": []},
    {"action": "alloc", "addr": 140000000000000, "size": 4000, "stream": 0, "time_us": 1, "frames": []},
    {"action": "segment_alloc", "addr": 140000020971520, "size": 20971520, "stream": 0, "time_us": 2, "frames": []},
    {"action": "alloc", "addr": 140000020971520, "size": 1200000, "stream": 0, "time_us": 2, "frames": []},
    {"action": "free_requested", "addr": 140000000000000, "size": 4000, "stream": 0, "time_us": 3, "frames": []},
    {"action": "free_completed", "addr": 140000000000000, "size": 4000, "stream": 0, "time_us": 3, "frames": []},
    {"action": "snapshot", "addr": 0, "size": 1200128, "stream": 0, "time_us": 4, "frames": []},
    {"action": "alloc", "addr": 140000000000000, "size": 512, "stream": 0, "time_us": 5, "frames": []}], []],
  "external_annotations": []
})";

TEST(MemorySnapshotJson, IsReadAndReproduced) {
  const auto m = json::parse(recorded);
  const auto s = vlmest::json::read_memory_snapshot(m);
  ASSERT_EQ(s.segments.size(), 2u);
  EXPECT_EQ(s.segments[0].address, 140000000000000) << "in order of address";
  EXPECT_EQ(s.segments[0].pool, Pool::small);
  EXPECT_EQ(s.segments[0].blocks[1].requested, Bytes(4000));
  EXPECT_EQ(allocated_size(s.segments[1]), Bytes(1200128));
  EXPECT_EQ(requested_size(s.segments[1]), Bytes(1200000));
  ASSERT_EQ(s.events.size(), 8u);
  EXPECT_EQ(s.events[3], (TraceEvent{TraceAction::alloc, 140000020971520, Bytes(1200000), 0}));
  EXPECT_EQ(s.config.max_split_size, Bytes(no_limit));
  EXPECT_EQ(s.config.max_non_split_rounding, Bytes(32 << 20)) << "only the text knows it";
  EXPECT_EQ(s.config.roundup_power2_divisions[1], 4);
  const auto r = reproduce(s);
  EXPECT_TRUE(r.exact) << r.difference;
  EXPECT_EQ(r.replay.peak_allocated, Bytes(4096 + 1200128));
  EXPECT_EQ(r.replay.peak_event, 3u);
  EXPECT_EQ(r.replay.at_peak.reserved, Bytes((2 << 20) + (20 << 20)));
}

TEST(MemorySnapshotJson, ADifferenceIsNamed) {
  auto m = json::parse(recorded);
  m["segments"][0]["blocks"][0]["requested_size"] = 1199999;
  const auto r = reproduce(vlmest::json::read_memory_snapshot(m));
  EXPECT_FALSE(r.exact);
  EXPECT_EQ(r.difference, "segment at 140000020971520: block 0 of 1200128 bytes for 1200000, not 1200128 for 1199999");
}

std::string refused(const json& m, std::int64_t device = 0) {
  try {
    reproduce(vlmest::json::read_memory_snapshot(m, device));
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

TEST(MemorySnapshotJson, AContradictionNamesItsEvent) {
  auto wrong_size = json::parse(recorded);
  wrong_size["device_traces"][0][0]["size"] = 4194304;
  EXPECT_NE(refused(wrong_size).find("event 0: a segment_alloc of 4194304 bytes"), std::string::npos);
  auto wrong_place = json::parse(recorded);
  wrong_place["device_traces"][0][7]["addr"] = 140000000000512;
  wrong_place["segments"][2]["blocks"][0]["state"] = "inactive";
  EXPECT_EQ(refused(wrong_place),
            "event 7: 512 bytes lie at 140000000000512, the allocator puts them at 140000000000000");
  auto room = json::parse(recorded);
  room["device_traces"][0].push_back({{"action", "oom"}, {"size", 512}, {"device_free", 0}, {"stream", 0}});
  EXPECT_EQ(refused(room), "event 8: 512 bytes found no room, the allocator puts them at 140000000000512");
  auto superfluous = json::parse(recorded);
  superfluous["device_traces"][0].push_back(
      {{"action", "segment_free"}, {"addr", 140000000000000}, {"size", 2097152}, {"stream", 0}});
  EXPECT_NE(refused(superfluous), "accepted");
}

TEST(MemorySnapshotJson, MalformedEntriesAreNamed) {
  const auto changed = [](const char* pointer, json value) {
    auto m = json::parse(recorded);
    m[json::json_pointer(pointer)] = std::move(value);
    return refused(m);
  };
  EXPECT_EQ(refused(json::array()), "snapshot: is not an object");
  EXPECT_EQ(refused(json::object()), "snapshot: has no segments");
  EXPECT_EQ(refused(json::parse(recorded), 7), "device_traces: has no device 7");
  EXPECT_EQ(changed("/segments/0/segment_type", "tiny"), "segments[0].segment_type: is neither small nor large");
  EXPECT_EQ(changed("/segments/0/segment_pool_id", {0, 1}), "segments[0]: belongs to a private pool (CUDA graphs)");
  EXPECT_EQ(changed("/segments/0/blocks/1/state", "gone"),
            "segments[0].blocks[1].state: 'gone' is no state of a block");
  EXPECT_EQ(changed("/segments/0/blocks/0/size", -1), "segments[0].blocks[0].size: is not a size in bytes");
  EXPECT_EQ(changed("/segments/0/is_expandable", 1), "segments[0].is_expandable: is neither true nor false");
  EXPECT_EQ(changed("/segments/0/address", "x"), "segments[0].address: is not an integer");
  EXPECT_EQ(changed("/segments/0", 3), "segments[0]: is not an object");
  EXPECT_EQ(changed("/device_traces/0/1/action", "allocate"), "device_traces[0][1].action: 'allocate' is not known");
  EXPECT_EQ(changed("/device_traces/0/1/addr", nullptr), "device_traces[0][1].addr: is not an integer");
  EXPECT_EQ(changed("/device_traces/0", 1), "device_traces[0]: is not a list");
  EXPECT_NE(changed("/allocator_settings/max_split_size", 1), "accepted");
  EXPECT_EQ(changed("/segments/2/blocks/0/size", 1024),
            "segments[2].blocks[1].address: is not where the block before it ends");
  EXPECT_EQ(changed("/segments/2/blocks/1/size", 1024), "segments[2].blocks: do not fill the segment");
}
}  // namespace
}  // namespace vlmest::memory_snapshot_test
