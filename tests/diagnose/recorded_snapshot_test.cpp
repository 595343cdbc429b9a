// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/allocator/reproduce.hpp>
#include <vlmest/diagnose/evidence/snapshot/replayable.hpp>
#include <vlmest/diagnose/evidence/trace/trace_plot.hpp>
#include <vlmest/json/memory_snapshot.hpp>
#include <vlmest/json/parse.hpp>
#include <vlmest/json/recorded_snapshot.hpp>

#include "snapshots.hpp"

namespace vlmest::recorded_snapshot_test {
namespace {
using namespace diagnose;
using allocator::BlockState;
using allocator::Pool;
using allocator::TraceAction;
using namespace std::string_literals;

std::vector<Frame> frames(const RecordedSnapshot& s, StackTable::Stack stack) {
  std::vector<Frame> out;
  for (const auto f : s.stacks.stack(stack)) out.push_back(s.stacks.frame(f));
  return out;
}

void expect_equal(const RecordedSnapshot& a, const RecordedSnapshot& b) {
  ASSERT_EQ(a.traces.size(), b.traces.size());
  for (std::size_t d = 0; d < a.traces.size(); ++d) {
    ASSERT_EQ(a.traces[d].size(), b.traces[d].size());
    for (std::size_t i = 0; i < a.traces[d].size(); ++i) {
      auto x = a.traces[d][i], y = b.traces[d][i];
      EXPECT_EQ(frames(a, x.stack), frames(b, y.stack)) << i;
      x.stack = y.stack = 0;
      EXPECT_EQ(x, y) << i;
    }
  }
  ASSERT_EQ(a.segments.size(), b.segments.size());
  for (std::size_t i = 0; i < a.segments.size(); ++i) {
    EXPECT_EQ(a.segments[i].address, b.segments[i].address);
    EXPECT_EQ(a.segments[i].size, b.segments[i].size);
    ASSERT_EQ(a.segments[i].blocks.size(), b.segments[i].blocks.size());
    for (std::size_t k = 0; k < a.segments[i].blocks.size(); ++k) {
      auto x = a.segments[i].blocks[k], y = b.segments[i].blocks[k];
      EXPECT_EQ(frames(a, x.stack), frames(b, y.stack));
      x.stack = y.stack = 0;
      EXPECT_EQ(x, y);
    }
  }
  EXPECT_EQ(a.settings.has_value(), b.settings.has_value());
}

TEST(RecordedSnapshot, HoldsWhatWasRecorded) {
  const auto s = snapshot("training_protocol4.pickle");
  ASSERT_EQ(s.traces.size(), 2u);
  EXPECT_TRUE(s.traces[1].empty()) << "the second device was not used";
  const auto& trace = s.traces[0];
  ASSERT_EQ(trace.size(), 181u);
  EXPECT_EQ(trace[0].action, TraceAction::segment_alloc);
  EXPECT_EQ(trace[1].action, TraceAction::alloc);
  EXPECT_EQ(trace[1].address, 0x7F2000000000u);
  EXPECT_EQ(trace[1].size, Bytes(12 << 20));
  EXPECT_EQ(trace[1].time_us, 1'700'000'000'000'014);
  EXPECT_EQ(frames(s, trace[1].stack)[0].function, "_load_pretrained_model");
  EXPECT_EQ(frames(s, trace[1].stack)[0].line, 4800);
  EXPECT_EQ(trace[180].action, TraceAction::oom);
  EXPECT_EQ(trace[180].address, 12u << 20) << "bytes free on the device";
  EXPECT_EQ(trace[180].size, Bytes((190 << 20) + 1536)) << "rounded to 512";
  EXPECT_EQ(frames(s, trace[180].stack)[0].function, "eager_attention_forward");
  ASSERT_EQ(s.segments.size(), 11u);
  const auto& first = s.segments[0];
  EXPECT_EQ(first.pool, Pool::large);
  EXPECT_EQ(first.blocks[0].state, BlockState::allocated);
  EXPECT_EQ(first.blocks[0].requested, Bytes(12 << 20));
  EXPECT_EQ(s.settings->max_split_size, -1);
  EXPECT_EQ(s.settings->text, "");
  EXPECT_EQ(s.settings->roundup_power2_divisions.size(), 16u);
  EXPECT_LT(s.stacks.stack_count(), 12u) << "each stack once";
}

TEST(RecordedSnapshot, IsTheSameOutOfEveryProtocolAndJson) {
  const auto s = snapshot("training_protocol4.pickle");
  for (const auto* protocol : {"2", "3", "5"}) expect_equal(s, snapshot("training_protocol"s + protocol + ".pickle"));
  expect_equal(s, vlmest::json::read_recorded_snapshot(snapshot_file("training.json"), "file"));
}

TEST(RecordedSnapshot, IsReplayedAsTheJsonIs) {
  const auto s = snapshot("training_protocol4.pickle");
  const auto m = replayable(s, 0);
  const auto expected = vlmest::json::read_memory_snapshot(vlmest::json::parse(snapshot_file("training.json"), "file"));
  EXPECT_EQ(m.segments, expected.segments);
  EXPECT_EQ(m.config, expected.config);
  ASSERT_EQ(m.events.size(), expected.events.size());
  for (std::size_t i = 0; i < m.events.size(); ++i) EXPECT_EQ(m.events[i], expected.events[i]) << i;
  const auto unused = replayable(s, 1);
  EXPECT_TRUE(unused.segments.empty() && unused.events.empty());
  EXPECT_THROW(replayable(s, 2), Error);
  auto graph = s;
  graph.segments[0].pool_id = {0, 1};
  EXPECT_THROW(replayable(graph, 0), Error) << "a private pool";
  auto hole = s;
  hole.segments[0].blocks.back().size = Bytes(512);
  EXPECT_THROW(replayable(hole, 0), Error);
  auto unknown = s;
  unknown.unknown_actions = 1;
  EXPECT_THROW(replayable(unknown, 0), Error);
}

TEST(RecordedSnapshot, TheAllocatorReproducesThem) {
  for (const auto* file : {"leak.pickle", "fragmented.pickle", "training_protocol5.pickle"}) {
    allocator::AllocatorConfig device;
    device.capacity = Bytes(file == "fragmented.pickle"s ? 300 << 20
                            : file == "leak.pickle"s     ? 3700ll << 20
                                                         : 600 << 20);
    const auto r = allocator::reproduce(replayable(snapshot(file), 0, device));
    EXPECT_TRUE(r.exact) << file << ": " << r.difference;
  }
}

TEST(RecordedSnapshot, OfTorch1IsAListOfSegments) {
  const auto s = snapshot("torch_1_12.pickle");
  const auto now = snapshot("training_protocol4.pickle");
  ASSERT_EQ(s.segments.size(), now.segments.size());
  EXPECT_TRUE(s.traces.empty());
  EXPECT_FALSE(s.settings.has_value());
  for (std::size_t i = 0; i < s.segments.size(); ++i)
    for (std::size_t k = 0; k < s.segments[i].blocks.size(); ++k) {
      const auto &b = s.segments[i].blocks[k], &expected = now.segments[i].blocks[k];
      EXPECT_EQ(b.address, expected.address) << "blocks follow each other";
      EXPECT_EQ(b.state, expected.state);
      if (b.state == BlockState::cached) continue;
      EXPECT_EQ(b.requested, expected.requested) << "real_size of its history";
      EXPECT_EQ(frames(s, b.stack), frames(now, expected.stack));
    }
}

RecordedSnapshot of_json(const std::string& text) { return vlmest::json::read_recorded_snapshot(text, "file"); }
std::string json_refusal(const std::string& text) {
  try {
    of_json(text);
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

TEST(RecordedSnapshot, KeysMayBeMissingOrUnknown) {
  const auto s = of_json(R"({"version": [1, 2], "device_traces": [[
    {"action": "alloc", "addr": 1024, "size": 700, "forward_frames": ["x"]},
    {"action": "teleport", "addr": 1, "size": 1},
    {"action": "oom", "size": 1024, "device_free": 18446744073709551615, "frames": null}], []]})");
  ASSERT_EQ(s.traces[0].size(), 2u);
  EXPECT_EQ(s.traces[0][0], (TraceEntry{1024, Bytes(700), 0, 0, 0, TraceAction::alloc}));
  EXPECT_EQ(s.traces[0][1].address, UINT64_MAX);
  EXPECT_EQ(s.unknown_actions, 1u);
  EXPECT_EQ(s.unknown_action, "teleport");
  const auto t = of_json(R"([{"address": 4096, "total_size": 2048, "segment_pool_id": [0, 3], "blocks": [
    {"size": 512, "state": "active_pending_free"}, {"size": 1536, "state": "inactive"}]}])");
  EXPECT_EQ(t.segments[0].pool_id, (PoolId{0, 3}));
  EXPECT_EQ(t.segments[0].blocks[0].state, BlockState::awaiting);
  EXPECT_EQ(t.segments[0].blocks[1].address, 4608u);
  EXPECT_EQ(of_json(R"({"segments": [], "device_traces": []})").segments.size(), 0u);
}

TEST(RecordedSnapshot, AnnotationsAreRead) {
  const auto s = snapshot("leak.pickle");
  ASSERT_EQ(s.annotations.size(), 16u);
  EXPECT_EQ(s.stacks.strings[s.annotations[0].name], "ProfilerStep#0");
  EXPECT_TRUE(s.annotations[0].starts);
  EXPECT_FALSE(s.annotations[1].starts);
  EXPECT_LT(s.annotations[0].time_us, s.annotations[1].time_us);
}

TEST(RecordedSnapshot, OtherDataIsRefused) {
  EXPECT_EQ(json_refusal("17"), "file: is not a memory snapshot: the whole is not a dict");
  EXPECT_EQ(json_refusal("{}"), "file: is not a memory snapshot: has neither 'segments' nor 'device_traces'");
  EXPECT_EQ(json_refusal("{\"a\": "), "file: not JSON at byte 7");
  EXPECT_NE(json_refusal("{\"segments\": [1]}"), "accepted");
  EXPECT_NE(json_refusal("{\"segments\": 1}"), "accepted");
  EXPECT_NE(json_refusal("{\"device_traces\": [[1, 2, 3]]}"), "accepted");
  EXPECT_NE(json_refusal("{\"device_traces\": [1, 2, 3]}"), "accepted");
  const auto entry = [](const std::string& e) { return json_refusal("{\"device_traces\": [[" + e + "]]}"); };
  EXPECT_EQ(entry(R"({"action": "alloc", "addr": 1, "size": "x"})"),
            "file: is not a memory snapshot: 'size' is not an integer");
  EXPECT_NE(entry(R"({"action": "alloc", "addr": 1, "size": -1})"), "accepted");
  EXPECT_NE(entry(R"({"action": 3, "addr": 1, "size": 1})"), "accepted");
  EXPECT_NE(entry(R"({"action": "alloc", "addr": 1.5, "size": 1})"), "accepted");
  EXPECT_NE(entry(R"({"action": "alloc", "addr": 1, "size": 1, "frames": 3})"), "accepted");
  EXPECT_EQ(json_refusal(std::string(100, '[')), "file: is not a memory snapshot: nests more than 64 levels deep");
  const auto block = [](const std::string& b) {
    return json_refusal(R"({"segments": [{"address": 1, "blocks": [)" + b + "]}]}");
  };
  EXPECT_EQ(block(R"({"size": 512, "state": "inactive"})"), "accepted");
  EXPECT_NE(block(R"({"size": 512, "state": "gone"})"), "accepted");
  EXPECT_NE(block(R"({"size": 512})"), "accepted");
}

TEST(RecordedSnapshot, NoPartStandsForManyByReference) {
  // segments: [s, s] with one dict; a block list and a trace that are used twice.
  const auto head = "\x80\x02}(X\x08\x00\x00\x00segments"s;
  const auto segment =
      "}q\x01(X\x07\x00\x00\x00"
      "addressK\x01X\x06\x00\x00\x00"
      "blocks]q\x02}(X\x04\x00\x00\x00"
      "sizeM\x00\x02"s +
      "X\x05\x00\x00\x00stateX\x08\x00\x00\x00inactiveuau"s;
  EXPECT_EQ(refusal(head + "](" + segment + "eu."), "accepted");
  EXPECT_NE(refusal(head + "](" + segment +
                    "h\x01"
                    "eu."s),
            "accepted");
  EXPECT_NE(refusal(head + "](" + segment +
                    "}(X\x07\x00\x00\x00"
                    "addressK\x01X\x06\x00\x00\x00"
                    "blocksh\x02ueu."s),
            "accepted");
  const auto trace =
      "]q\x03}(X\x06\x00\x00\x00"
      "actionX\x05\x00\x00\x00"
      "allocX\x04\x00\x00\x00sizeK\x01ua"s;
  const auto traces =
      "\x80\x02}(X\x0d\x00\x00\x00"
      "device_traces]("s;
  EXPECT_EQ(refusal(traces + trace + "eu."), "accepted");
  EXPECT_NE(refusal(traces + trace +
                    "h\x03"
                    "eu."s),
            "accepted");
}

TEST(RecordedSnapshot, ListsThatGrowAfterTheirUseStayWithinBounds) {
  // A list of frames that gets another frame before each entry, as no writer does it.
  const auto word = [](const std::string& w) {
    return "X" + std::string(1, static_cast<char>(w.size())) + "\0\0\0"s + w;
  };
  std::string p = "\x80\x02}(" + word("device_traces") + "](](}(" + word("action") + word("alloc") + word("size") +
                  "K\x01" + word("frames") + "]q\x01}(" + word("filename") + word("f") + word("line") +
                  "K\x07uq\x02"
                  "au";
  for (int i = 1; i < 600; ++i)
    p += "}(" + word("x") +
         "h\x01h\x02"
         "a" +
         word("action") + word("alloc") + word("size") + "K\x01" + word("frames") + "h\x01u";
  const auto s = snapshot_of(p + "eeu.");
  ASSERT_EQ(s.traces[0].size(), 600u);
  for (std::size_t i = 0; i < 600; ++i)
    EXPECT_EQ(s.stacks.stack(s.traces[0][i].stack).size(), std::min(i + 1, StackTable::deepest));
}

TEST(RecordedSnapshot, IsFoundInThePageOfTheViewer) {
  // base64 of a pickle of {"segments": [], "device_traces": []}, padded with a NUL.
  const std::string page =
      "<html><script>add_local_files([{\"name\": \"snapshot.pickle\", \"base64\": "
      "\"gASVJAAAAAAAAAB9lCiMCHNlZ21lbnRzlF2UjA1kZXZpY2VfdHJhY2VzlF2UdS4A\"}], \"Active Memory Timeline\")";
  auto source = trace_plot_pickle(page);
  ASSERT_TRUE(source.has_value());
  const auto s = read_recorded_snapshot(*source, "file");
  EXPECT_TRUE(s.segments.empty() && s.traces.empty());
  EXPECT_FALSE(trace_plot_pickle("<html></html>").has_value());

  const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  auto file = snapshot_file("training_protocol4.pickle");
  file += std::string(200'001 - file.size(), '\0');  // several pieces, a multiple of three
  std::string base64;
  for (std::size_t i = 0; i < file.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k) bits = bits << 8 | static_cast<unsigned char>(file[i + k]);
    for (int shift = 18; shift >= 0; shift -= 6) base64 += letters[bits >> shift & 63];
  }
  const auto large = "[{\"base64\": \"" + base64 + "\"}]";
  auto whole = trace_plot_pickle(large);
  std::string decoded;
  for (auto next = whole->take(1000); !next.empty(); next = whole->take(1000)) decoded += next;
  EXPECT_EQ(decoded, file);
}

}  // namespace
}  // namespace vlmest::recorded_snapshot_test
