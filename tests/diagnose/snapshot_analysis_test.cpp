// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/allocator/reproduce.hpp>
#include <vlmest/diagnose/evidence/snapshot/analysis.hpp>
#include <vlmest/diagnose/failure/from_snapshot.hpp>

#include "snapshots.hpp"

namespace vlmest::snapshot_analysis_test {
namespace {
using namespace diagnose;
using allocator::TraceAction;
using literals::operator""_MiB;

std::string function(const RecordedSnapshot& s, std::uint32_t frame) {
  return frame == CallStackTraits::no_frame ? "" : std::string(s.stacks.function(frame));
}

TEST(SnapshotAnalysis, NamesTheTensorsThatAreAliveAtTheOom) {
  const auto s = snapshot("training_protocol4.pickle");
  EXPECT_EQ(device_of_interest(s), 0);
  const auto a = analyse(s, 0);
  ASSERT_TRUE(a.oom.has_value());
  EXPECT_EQ(a.oom->event, 180u);
  EXPECT_EQ(a.oom->size, 190_MiB + Bytes(1536));
  EXPECT_EQ(a.oom->segment, 192_MiB) << "what the message says: Tried to allocate 192.00 MiB";
  EXPECT_EQ(a.oom->device_free, 12_MiB);
  EXPECT_EQ(a.oom_site.part, CodePart::attention);
  EXPECT_EQ(a.oom_site.stage, Stage::forward);
  EXPECT_EQ(function(s, a.oom_site.program), "eager_attention_forward");
  EXPECT_EQ(function(s, a.oom_site.user), "train");
  EXPECT_EQ(a.moment, 180u);

  // What softmax gave in layer 0 and gets in layer 1, eight moments, four weights, one output of an MLP, one batch.
  ASSERT_EQ(a.groups.size(), 5u);
  EXPECT_EQ(a.groups[0].role, MemoryRole::activation);
  EXPECT_EQ(a.groups[0].site.part, CodePart::attention);
  EXPECT_EQ(a.groups[0].count, 2u);
  EXPECT_EQ(a.groups[0].requested, Bytes(2 * ((190 << 20) + 1234)));
  EXPECT_EQ(a.groups[0].bytes, Bytes(2 * ((190 << 20) + 1536)));
  EXPECT_EQ(a.groups[1].role, MemoryRole::optimizer_state);
  EXPECT_EQ(a.groups[1].count, 8u);
  EXPECT_EQ(a.groups[2].role, MemoryRole::weight);
  EXPECT_EQ(a.groups[2].count, 4u);
  EXPECT_EQ(a.groups[3].role, MemoryRole::activation);
  EXPECT_EQ(a.groups[3].site.part, CodePart::linear);
  EXPECT_EQ(a.groups[4].role, MemoryRole::input);
  Bytes groups{}, roles{};
  for (const auto& g : a.groups) groups += g.bytes;
  for (const auto& r : a.by_role) roles += r.bytes;
  EXPECT_EQ(groups, a.live);
  EXPECT_EQ(roles, a.live);
  EXPECT_EQ(a.live.value(), a.timeline.active[a.moment]);
}

TEST(SnapshotAnalysis, LifetimesTellGradientsFromTemporaries) {
  const auto s = snapshot("training_protocol4.pickle");
  const auto a = analyse(s, 0);
  std::array<std::size_t, memory_roles.size()> count{};
  for (const auto r : a.roles) ++count[static_cast<std::size_t>(r)];
  const auto of = [&](MemoryRole r) { return count[static_cast<std::size_t>(r)]; };
  EXPECT_EQ(of(MemoryRole::weight), 4u);
  EXPECT_EQ(of(MemoryRole::gradient), 8u) << "four in each of two backwards";
  EXPECT_EQ(of(MemoryRole::optimizer_state), 8u);
  EXPECT_EQ(of(MemoryRole::input), 3u);
  EXPECT_EQ(of(MemoryRole::activation), 2u * 8 + 3) << "what softmax and the MLPs gave, kept for the backward";
  EXPECT_EQ(of(MemoryRole::temporary), 8u + 1 + 2 + 8 + 2)
      << "scores before softmax and logits, what flows back, the optimizer's own";
  EXPECT_EQ(of(MemoryRole::unknown), 0u);
}

TEST(SnapshotAnalysis, TheTimelineIsTheReplays) {
  const std::pair<const char*, Bytes> devices[] = {
      {"training_protocol4.pickle", 600_MiB}, {"leak.pickle", 3700_MiB}, {"fragmented.pickle", 300_MiB}};
  for (const auto& [file, memory] : devices) {
    const auto s = snapshot(file);
    allocator::AllocatorConfig device;
    device.capacity = memory;
    const auto m = replayable(s, 0, device);
    const auto r = allocator::reproduce(m);
    EXPECT_TRUE(r.exact) << file << ": " << r.difference;
    const auto t = timeline(s, 0, {});
    EXPECT_EQ(t.unmatched, 0u) << file;
    // Every second image got a block of 9 MiB for its 8, since a rest of 1 MiB is not split off. All are freed before
    // the end, so only a replay knows.
    const auto larger = file == std::string("fragmented.pickle") ? 12_MiB : Bytes();
    EXPECT_EQ(t.peak_allocated + larger, r.replay.peak_allocated) << file;
    EXPECT_EQ(t.peak, t.peak_allocated) << "one stream: nothing awaits its free";
    Bytes active{}, reserved{};
    for (const auto& g : m.segments) {
      active += allocator::active_size(g);
      reserved += g.size;
    }
    EXPECT_EQ(t.active.back(), active.value()) << file;
    EXPECT_EQ(t.reserved.back(), reserved.value());
    EXPECT_EQ(t.active.front(), 0) << "recorded from the start";
    EXPECT_EQ(t.reserved.front(), 0);
  }
}

TEST(SnapshotAnalysis, ARingBufferThatLostItsBeginningGivesTheSameEnd) {
  const auto whole = snapshot("training_protocol4.pickle");
  const auto full = analyse(whole, 0);
  for (const std::size_t lost : {1, 20, 60, 100, 140, 179}) {
    auto s = whole;
    s.traces[0].erase(s.traces[0].begin(), s.traces[0].begin() + static_cast<std::ptrdiff_t>(lost));
    const auto a = analyse(s, 0);
    EXPECT_EQ(a.live, full.live) << lost;
    for (std::size_t i = 0; i < a.timeline.active.size(); ++i) {
      EXPECT_EQ(a.timeline.active[i], full.timeline.active[i + lost]) << lost << " lost, event " << i;
      EXPECT_EQ(a.timeline.reserved[i], full.timeline.reserved[i + lost]);
    }
    EXPECT_EQ(a.groups[0].bytes, full.groups[0].bytes);
    EXPECT_EQ(a.groups[0].role, MemoryRole::activation);
    EXPECT_EQ(a.reserved.split, full.reserved.split);
  }
}

TEST(SnapshotAnalysis, WithoutATraceTheBlocksSpeak) {
  const auto a = analyse(snapshot("torch_1_12.pickle"), 0);
  const auto full = analyse(snapshot("training_protocol4.pickle"), 0);
  EXPECT_FALSE(a.oom.has_value());
  EXPECT_EQ(a.live, full.live);
  EXPECT_EQ(a.by_role[static_cast<std::size_t>(MemoryRole::optimizer_state)].bytes,
            full.by_role[static_cast<std::size_t>(MemoryRole::optimizer_state)].bytes);
}

TEST(SnapshotAnalysis, FragmentationIsProvedByItsFigures) {
  const auto a = analyse(snapshot("fragmented.pickle"), 0);
  ASSERT_TRUE(a.oom.has_value());
  const auto& r = a.reserved;
  EXPECT_EQ(r.reserved, 252_MiB);
  EXPECT_EQ(r.active, 48_MiB);
  EXPECT_EQ(r.split, 204_MiB) << "twelve times 8 and 9 MiB";
  EXPECT_EQ(r.whole, Bytes());
  EXPECT_EQ(r.largest_free, 9_MiB);
  EXPECT_EQ(r.usable, 204_MiB);
  EXPECT_EQ(r.pieces, 24u);
  EXPECT_EQ(r.missing, Bytes());
  EXPECT_TRUE(r.in_pieces);
  EXPECT_TRUE(r.in_pieces_with_device);
  EXPECT_EQ(a.oom_site.part, CodePart::loss);

  const auto full = analyse(snapshot("training_protocol4.pickle"), 0).reserved;
  EXPECT_FALSE(full.in_pieces) << "50 MiB of gaps and 12 of the device are no 190";
  EXPECT_FALSE(full.in_pieces_with_device);
  EXPECT_EQ(full.missing, 190_MiB + Bytes(1536) - full.usable - 12_MiB);
  EXPECT_EQ(full.reserved, full.active + full.whole + full.split);
}

TEST(SnapshotAnalysis, GrowthIsMeasuredFromStepToStep) {
  const auto s = snapshot("leak.pickle");
  const auto g = analyse(s, 0).growth;
  EXPECT_EQ(g.cut, StepGrowth::Cut::annotations);
  EXPECT_EQ(g.steps.size(), 7u) << "eight, without the first";
  EXPECT_DOUBLE_EQ(g.bytes_per_step, 3 << 20);
  EXPECT_DOUBLE_EQ(g.rising, 1);
  ASSERT_EQ(g.stacks.size(), 1u);
  EXPECT_DOUBLE_EQ(g.stacks[0].bytes_per_step, 3 << 20);
  EXPECT_DOUBLE_EQ(g.stacks[0].tensors_per_step, 1);
  EXPECT_EQ(g.stacks[0].at_first, 6_MiB);
  EXPECT_EQ(g.stacks[0].at_last, 24_MiB);

  auto inputs = s;
  inputs.annotations.clear();
  const auto without = analyse(inputs, 0).growth;
  EXPECT_EQ(without.cut, StepGrowth::Cut::input);
  EXPECT_DOUBLE_EQ(without.bytes_per_step, 3 << 20);
}

TEST(SnapshotAnalysis, OneOutlierDoesNotTurnASlope) {
  const std::vector<std::int64_t> flat{5, 5, 5, 900, 5, 5, 5, 5}, line{10, 20, 30, 40, 1000, 60, 70};
  EXPECT_DOUBLE_EQ(growing::median_slope(flat), 0);
  EXPECT_DOUBLE_EQ(growing::median_slope(line), 10);
  EXPECT_DOUBLE_EQ(growing::median_slope({}), 0);
  std::vector<std::int64_t> many;
  for (int i = 0; i < 5000; ++i) many.push_back(7 * i);
  double rising = 0;
  EXPECT_DOUBLE_EQ(growing::median_slope(many, &rising), 7);
  EXPECT_DOUBLE_EQ(rising, 1);
}

/// A trace by hand.
struct Recorder {
  RecordedSnapshot s;
  Recorder() { s.traces.resize(1); }
  StackTable::Stack stack(const std::vector<std::pair<std::string, std::string>>& frames) {
    std::vector<std::uint32_t> numbers;
    for (const auto& [file, name] : frames)
      numbers.push_back(s.stacks.add_frame({s.stacks.strings.add(file), s.stacks.strings.add(name), 1}));
    return s.stacks.add_stack(numbers);
  }
  std::size_t note(TraceAction action, std::uint64_t address, std::int64_t size, StackTable::Stack at = 0) {
    s.traces[0].push_back({address, Bytes(size), 0, 0, at, action});
    return s.traces[0].size() - 1;
  }
  void free(std::uint64_t address, std::int64_t size, StackTable::Stack at = 0) {
    note(TraceAction::free_requested, address, size, at);
    note(TraceAction::free_completed, address, size, at);
  }
  MemoryRole role(std::uint64_t address) const {
    const auto a = analyse(s, 0);
    for (std::size_t i = 0; i < a.roles.size(); ++i)
      if (a.timeline.allocations[i].address == address) return a.roles[i];
    return MemoryRole::unknown;
  }
};

const std::string site = "/opt/venv/lib/python3.11/site-packages/";

TEST(SnapshotRoles, FollowTheFrames) {
  Recorder r;
  const auto call = std::pair{site + "torch/nn/modules/module.py", std::string("_call_impl")};
  const auto main = std::pair{std::string("/home/me/run.py"), std::string("main")};
  std::uint64_t at = 1 << 20;
  const auto alloc = [&](std::vector<std::pair<std::string, std::string>> frames, std::int64_t size = 1 << 20) {
    frames.push_back(main);
    at += 64 << 20;
    r.note(TraceAction::alloc, at, size, r.stack(frames));
    return at;
  };
  const auto moved =
      alloc({{site + "torch/nn/modules/module.py", "convert"}, {site + "torch/nn/modules/module.py", "_apply"}});
  const auto made = alloc({{site + "torch/nn/modules/linear.py", "__init__"}});
  const auto batch = alloc({{site + "accelerate/utils/operations.py", "send_to_device"}});
  const auto cache = alloc({{site + "transformers/cache_utils.py", "update"}, call});
  const auto blocks = alloc({{"/srv/vllm/worker/gpu_model_runner.py", "_allocate_kv_cache_tensors"}});
  const auto hidden = alloc({{site + "torch/nn/modules/linear.py", "forward"}, call});
  const auto scratch = alloc({{site + "torch/nn/modules/linear.py", "forward"}, call}, 8'519'680);
  const auto native = alloc({{"CUDABlas.cpp", "at::cuda::getNewWorkspace()"}, call});
  const auto leaf = alloc({{"engine.cpp", "torch::autograd::AccumulateGrad::apply"}});
  const auto state = alloc({{site + "bitsandbytes/optim/optimizer.py", "get_state_buffer"},
                            {site + "bitsandbytes/optim/optimizer.py", "step"}});
  const auto sharded = alloc({{site + "torch/distributed/fsdp/_flat_param.py", "_alloc_storage"}, call});
  const auto other = alloc({});
  EXPECT_EQ(r.role(moved), MemoryRole::weight);
  EXPECT_EQ(r.role(made), MemoryRole::weight);
  EXPECT_EQ(r.role(batch), MemoryRole::input);
  EXPECT_EQ(r.role(cache), MemoryRole::kv_cache);
  EXPECT_EQ(r.role(blocks), MemoryRole::kv_cache);
  EXPECT_EQ(r.role(hidden), MemoryRole::activation);
  EXPECT_EQ(r.role(scratch), MemoryRole::workspace) << "taken in the middle of a call, of cuBLAS's size, kept";
  EXPECT_EQ(r.role(native), MemoryRole::workspace);
  EXPECT_EQ(r.role(leaf), MemoryRole::gradient);
  EXPECT_EQ(r.role(state), MemoryRole::optimizer_state);
  EXPECT_EQ(r.role(sharded), MemoryRole::weight);
  EXPECT_EQ(r.role(other), MemoryRole::unknown);
}

TEST(SnapshotRoles, AClosureIsNoOptimizer) {
  // Lightning's step: the optimizer calls a closure, which runs forward and backward.
  Recorder r;
  using Frames = std::vector<std::pair<std::string, std::string>>;
  const auto in_step = [&](Frames inner) {
    for (const auto& f : Frames{{site + "lightning/pytorch/loops/optimization/closure.py", "closure"},
                                {site + "torch/optim/adamw.py", "step"},
                                {site + "torch/optim/optimizer.py", "wrapper"},
                                {"/home/me/train.py", "<module>"}})
      inner.push_back(f);
    return r.stack(inner);
  };
  const auto forward = in_step({{"/home/me/net.py", "forward"}, {site + "torch/nn/modules/module.py", "_call_impl"}});
  const auto backward = in_step({{site + "torch/autograd/graph.py", "_engine_run_backward"}});
  const auto state = r.stack({{site + "torch/optim/adamw.py", "_init_group"}, {site + "torch/optim/adamw.py", "step"}});
  r.note(TraceAction::alloc, 1 << 20, 4096, forward);
  r.note(TraceAction::alloc, 2 << 20, 4096, backward);
  r.free(1 << 20, 4096, backward);
  r.note(TraceAction::alloc, 3 << 20, 4096, state);
  r.note(TraceAction::alloc, 4 << 20, 4096, forward);
  EXPECT_EQ(r.role(1 << 20), MemoryRole::activation);
  EXPECT_EQ(r.role(2 << 20), MemoryRole::gradient);
  EXPECT_EQ(r.role(3 << 20), MemoryRole::optimizer_state);
}

TEST(SnapshotRoles, MomentsFromBeforeTheRecording) {
  Recorder r;
  const auto step = r.stack({{"/home/me/optimizer.py", "step"}});
  r.note(TraceAction::alloc, 1 << 20, 4096, step);
  r.free(2 << 20, 4096, step);  // the old moment that the new one takes the place of
  r.free(3 << 20, 4096, r.stack({{"/home/me/train.py", "main"}}));
  EXPECT_EQ(r.role(2 << 20), MemoryRole::optimizer_state);
  EXPECT_EQ(r.role(3 << 20), MemoryRole::unknown);
}

TEST(SnapshotRoles, WithoutHistoryAndStacksNothingTells) {
  Recorder r;
  RecordedSegment g;
  g.address = 1 << 20;
  g.size = 2_MiB;
  g.blocks = {{1 << 20, 2_MiB, 2_MiB, 0, allocator::BlockState::allocated}};
  r.s.segments.push_back(g);
  EXPECT_EQ(r.role(1 << 20), MemoryRole::unknown);
  const Failure f = failure_of(r.s, analyse(r.s, 0));
  ASSERT_EQ(f.live.size(), 1u);
  EXPECT_EQ(f.live[0].cause, Cause::unknown);
}

TEST(SnapshotRoles, EventsWithoutAnyStackAreNoBackward) {
  // context="state": the blocks have stacks, the events have none.
  Recorder r;
  const auto backward = r.stack({{site + "torch/autograd/graph.py", "_engine_run_backward"}});
  RecordedSegment g;
  g.address = 1 << 20;
  g.size = 2_MiB;
  g.blocks = {{1 << 20, 2_MiB, 2_MiB, backward, allocator::BlockState::allocated}};
  r.s.segments.push_back(g);
  r.note(TraceAction::alloc, 1 << 20, 2 << 20);
  r.note(TraceAction::oom, 0, 1 << 30);
  const auto a = analyse(r.s, 0);
  EXPECT_FALSE(a.stages.training);
  EXPECT_EQ(a.oom_site.stage, Stage::other);
}

TEST(SnapshotScores, ShowBySoftmax) {
  // A module that writes its attention out in forward, as many repositories do: a product, a mask, softmax, dropout.
  Recorder r;
  const auto call = std::pair{site + "torch/nn/modules/module.py", std::string("_call_impl")};
  const auto line = [&](std::int64_t n, std::vector<std::pair<std::string, std::string>> inner) {
    std::vector<std::uint32_t> numbers;
    for (const auto& [file, name] : inner)
      numbers.push_back(r.s.stacks.add_frame({r.s.stacks.strings.add(file), r.s.stacks.strings.add(name), 9}));
    numbers.push_back(
        r.s.stacks.add_frame({r.s.stacks.strings.add("/home/me/model.py"), r.s.stacks.strings.add("forward"), n}));
    numbers.push_back(
        r.s.stacks.add_frame({r.s.stacks.strings.add(call.first), r.s.stacks.strings.add(call.second), 1}));
    return r.s.stacks.add_stack(numbers);
  };
  const auto projection = line(50, {{site + "torch/nn/modules/linear.py", "forward"}});
  const auto product = line(51, {}), mask = line(52, {}), output = line(54, {});
  const auto softmax = line(53, {{site + "torch/nn/functional.py", "softmax"}});
  constexpr std::int64_t scores = 48 << 20, hidden = 2 << 20;
  std::uint64_t at = 0;
  const auto alloc = [&](StackTable::Stack stack, std::int64_t size) {
    r.note(TraceAction::alloc, at += 1 << 28, size, stack);
  };
  for (int layer = 0; layer < 3; ++layer) {
    alloc(projection, scores);  // as large by chance
    alloc(product, scores);
    alloc(mask, scores);
    alloc(softmax, 2 * scores);  // in fp32
    alloc(output, hidden);
  }
  r.note(TraceAction::oom, 0, scores, product);
  const auto a = analyse(r.s, 0);
  const auto is_score = [&](StackTable::Stack stack) {
    for (const auto& g : a.groups)
      if (g.stack == stack) return g.site.scores;
    return false;
  };
  EXPECT_TRUE(is_score(product));
  EXPECT_TRUE(is_score(mask));
  EXPECT_TRUE(is_score(softmax));
  EXPECT_FALSE(is_score(projection));
  EXPECT_FALSE(is_score(output));
  const Failure f = failure_of(r.s, a);
  EXPECT_EQ(f.site, AllocationSite::score_matrix);
  EXPECT_EQ(f.live.front().cause, Cause::attention_scores);
  EXPECT_EQ(f.live.front().bytes, Bytes(3 * 4 * scores));
}

TEST(SnapshotGrowth, LossesThatAreKeptKeepTheirGraphs) {
  // Nothing marks the steps: no backward, no batch from a loader.
  const auto run = [](bool between) {
    Recorder r;
    const auto call = std::pair{site + "torch/nn/modules/module.py", std::string("_call_impl")};
    const auto hidden = r.stack({{"/home/me/model.py", "forward"}, call});
    const auto loss =
        r.stack({{site + "torch/nn/functional.py", "cross_entropy"}, {"/home/me/model.py", "forward"}, call});
    std::uint64_t at = 0;
    const auto layers = [&](int n) {
      for (int i = 0; i < n; ++i) r.note(TraceAction::alloc, at += 1 << 28, 30 << 20, hidden);
    };
    if (!between) layers(24);  // one pass with six losses, as detectors have one for each layer
    for (int step = 0; step < 6; ++step) {
      if (between) layers(4);
      r.note(TraceAction::alloc, at += 1 << 28, 512, loss);
    }
    r.note(TraceAction::oom, 0, 30 << 20, hidden);
    return failure_of(r.s, analyse(r.s, 0));
  };
  const Failure kept = run(true), once = run(false);
  ASSERT_TRUE(kept.growth.has_value());
  EXPECT_EQ(kept.growth->steps, 6);
  EXPECT_EQ(kept.growth->last - kept.growth->first, Bytes(6 * (4 * (30 << 20) + 512)));
  EXPECT_FALSE(once.growth.has_value());
}

TEST(SnapshotRoles, AnOomInsideOfABackwardKeepsGradientsApart) {
  Recorder r;
  const auto step = r.stack({{site + "torch/optim/sgd.py", "step"}});
  const auto forward = r.stack({{"modeling_x.py", "forward"}});
  r.note(TraceAction::alloc, 1 << 20, 4096, step);
  r.note(TraceAction::alloc, 2 << 20, 4096, forward);
  for (std::uint64_t i = 0; i < 40; ++i) {
    r.note(TraceAction::alloc, (100 + i) << 20, 4096);  // a gradient
    r.note(TraceAction::alloc, 3 << 20, 4096);          // what flows back
    r.free(3 << 20, 4096);
  }
  r.note(TraceAction::alloc, 4 << 20, 4096);
  r.note(TraceAction::oom, 0, 1 << 30);
  EXPECT_EQ(r.role(100 << 20), MemoryRole::gradient);
  EXPECT_EQ(r.role(120 << 20), MemoryRole::gradient);
  EXPECT_EQ(r.role(3 << 20), MemoryRole::temporary);
  EXPECT_EQ(r.role(4 << 20), MemoryRole::temporary) << "too young to tell from what flows back";
  EXPECT_EQ(r.role(1 << 20), MemoryRole::optimizer_state);
}

TEST(SnapshotRoles, WhatWasThereBeforeTheRecordingIsTheModel) {
  Recorder r;
  RecordedSegment g;
  g.address = 1 << 20;
  g.size = 20_MiB;
  g.blocks = {{1 << 20, 12_MiB, 12_MiB, 0, allocator::BlockState::allocated},
              {13 << 20, 8_MiB, 8_MiB, 0, allocator::BlockState::cached}};
  r.s.segments.push_back(g);
  r.note(TraceAction::alloc, 40 << 20, 512, r.stack({{"modeling_x.py", "forward"}}));
  EXPECT_EQ(r.role(1 << 20), MemoryRole::weight);
  const auto a = analyse(r.s, 0);
  EXPECT_EQ(a.timeline.active[0], (12_MiB).value());
  EXPECT_EQ(a.timeline.unmatched, 1u) << "the block of the trace is in no segment";
}

TEST(SnapshotTimeline, AFreeThatWaitsForAStreamCountsUntilItIsComplete) {
  Recorder r;
  r.note(TraceAction::alloc, 1 << 20, 1000);
  r.note(TraceAction::free_requested, 1 << 20, 1000);
  r.note(TraceAction::alloc, 2 << 20, 1000);
  r.note(TraceAction::free_completed, 1 << 20, 1000);
  const auto t = timeline(r.s, 0, {});
  EXPECT_EQ(t.active, (std::vector<std::int64_t>{0, 1024, 1024, 2048, 1024}));
  EXPECT_EQ(t.peak, Bytes(2048));
  EXPECT_EQ(t.peak_at, 3u);
  EXPECT_EQ(t.peak_allocated, Bytes(1024)) << "torch's allocated_bytes ends at the request";
}

TEST(SnapshotTimeline, AFreedStrangerWasThereBefore) {
  Recorder r;
  r.free(1 << 20, 700);
  r.note(TraceAction::free_completed, 2 << 20, 512);
  r.note(TraceAction::alloc, 1 << 20, 2000);
  r.note(TraceAction::alloc, 1 << 20, 100);  // the free before was lost
  const auto t = timeline(r.s, 0, {});
  EXPECT_EQ(t.active, (std::vector<std::int64_t>{1536, 1536, 512, 0, 2048, 512}));
}

TEST(SnapshotFragmentation, OtherStreamsAndPoolsAreNoHelp) {
  Recorder r;
  const auto segment = [&](std::uint64_t address, std::int64_t stream, allocator::Pool pool, PoolId id) {
    RecordedSegment g;
    g.address = address;
    g.size = 20_MiB;
    g.stream = stream;
    g.pool = pool;
    g.pool_id = id;
    g.blocks = {{address, 20_MiB, Bytes(), 0, allocator::BlockState::cached}};
    r.s.segments.push_back(g);
  };
  segment(1 << 20, 0, allocator::Pool::large, {});
  segment(101 << 20, 7, allocator::Pool::large, {});
  segment(201 << 20, 0, allocator::Pool::small, {});
  segment(301 << 20, 0, allocator::Pool::large, {0, 1});
  r.note(TraceAction::oom, 1 << 20, 30 << 20);
  const auto m = analyse(r.s, 0).reserved;
  EXPECT_EQ(m.reserved, 80_MiB);
  EXPECT_EQ(m.whole, 80_MiB);
  EXPECT_EQ(m.usable, 20_MiB);
  EXPECT_EQ(m.private_pools, 20_MiB);
  EXPECT_EQ(m.missing, 9_MiB);
  EXPECT_FALSE(m.in_pieces);
}

TEST(SnapshotFragmentation, SegmentsThatCameAfterTheOomAreNotCounted) {
  Recorder r;
  RecordedSegment g;
  g.address = 1 << 20;
  g.size = 20_MiB;
  g.expandable = true;
  g.blocks = {{1 << 20, 20_MiB, Bytes(), 0, allocator::BlockState::cached}};
  r.s.segments.push_back(g);
  r.note(TraceAction::oom, 0, 64 << 20);
  r.note(TraceAction::segment_unmap, 21 << 20, 40 << 20);
  r.note(TraceAction::segment_map, 11 << 20, 10 << 20);
  const auto m = analyse(r.s, 0).reserved;
  EXPECT_EQ(m.reserved, 50_MiB) << "10 MiB that stay and 40 that were given back";
  EXPECT_EQ(m.largest_free, 40_MiB) << "the 10 MiB between the two were not mapped yet";
}

}  // namespace
}  // namespace vlmest::snapshot_analysis_test
