// SPDX-License-Identifier: Apache-2.0
// What kernels that are split over the blocks of a device allocate, on devices with other multiprocessors than an
// H200's. Expected bytes are worked out here by hand from torch's and CUB's rules.
#include <fstream>
#include <tuple>

#include <gtest/gtest.h>

#include <vlmest/family/idefics3/rule.hpp>
#include <vlmest/json/device.hpp>
#include <vlmest/json/model.hpp>
#include <vlmest/nn/inference.hpp>
#include <vlmest/nn/stack/registry.hpp>

namespace vlmest::multiprocessor_scratch_test {
namespace {

constexpr Gpu h200{90, 132}, a100{80, 108}, l4{89, 58}, t4{75, 40};

Bytes sum_of(std::int64_t inputs, Gpu g) {
  const eager::ReductionScratch s = eager::full_reduction_scratch(inputs, 8, g);
  return s.partial + s.semaphores;
}

// aten/src/ATen/native/cuda/Reduce.cuh, setReduceConfig: one output, blocks of 512 threads, so that each thread adds
// 12582912 / 512 = 24576 values. As many blocks as run at a time, one for every 256 values of a thread at least; 8
// bytes for each, 4 for the counter.
TEST(MultiprocessorScratch, SumToOneValue) {
  constexpr std::int64_t n = 3 * 4194304;
  EXPECT_EQ(sum_of(n, h200), Bytes(8 * (132 * (2048 / 512)) + 4));
  EXPECT_EQ(sum_of(n, a100), Bytes(8 * (108 * (2048 / 512)) + 4));
  EXPECT_EQ(sum_of(n, l4), Bytes(8 * (58 * (1536 / 512)) + 4));
  EXPECT_EQ(sum_of(n, t4), Bytes(8 * (24576 / 256) + 4));  // 40 * (1024 / 512) blocks are fewer
}

// cub::DeviceReduce: 256 threads a block, int32 partial sums of five waves at a multiple of 256 bytes, 255 bytes of
// alignment; torch's own count takes 4.
TEST(MultiprocessorScratch, CountingForNonzero) {
  const auto counting = [](Gpu g) { return eager::nonzero_counting(100000, g); };
  EXPECT_EQ(counting(h200), Bytes(21248 + 255 + 4));  // 132 * 8 * 5 * 4 = 21120
  EXPECT_EQ(counting(a100), Bytes(17408 + 255 + 4));  // 108 * 8 * 5 * 4 = 17280
  EXPECT_EQ(counting(l4), Bytes(7168 + 255 + 4));     // 58 * 6 * 5 * 4 = 6960
  EXPECT_EQ(counting(t4), Bytes(3328 + 255 + 4));     // 40 * 4 * 5 * 4 = 3200
}

/// Scratch of the first sum over pictures in the prefill of SmolVLM: which of them are empty.
Bytes sum_over_pictures(Gpu g, int batch) {
  std::ifstream file(VLMEST_SOURCE_DIR "/tests/data/configs/smolvlm-2.2b.json");
  Vlm vlm = json::read_model(nlohmann::json::parse(file), "smolvlm-2.2b");
  get<image_processor::Idefics3>(vlm.image_processor).tiling = image_processor::Tiling::never;
  Builder b;
  b.gpu = g;
  Plan plan;
  plan.images = 1;
  plan.batch = batch;
  Context c{b, plan, stack_of(plan)};
  build_inference(c, vlm, make_sequences(vlm, plan), 0);
  for (const Node& n : b.graph.nodes) {
    if (std::string_view(n.name) != "sum.dim_IntList") continue;
    Bytes scratch{};
    for (const Bytes s : b.graph.scratch_of(n)) scratch += s;
    return scratch;
  }
  return {};
}

// One picture of 3 x 384 x 384 booleans, 442368, becomes int64 first. Blocks of 512 threads that load four at a time:
// 442368 / 512 = 864 values a thread, so that 54 blocks of 16 values would do, and all of these devices run as many.
// Sums over sixteen pictures split less where fewer blocks run at a time: 16 outputs leave 80 / 16 = 5 blocks each on a
// T4, 432 / 16 = 27 on an A100, 528 / 16 = 33 on an H200.
TEST(MultiprocessorScratch, TheBuildTakesTheBuildersGpu) {
  constexpr std::int64_t elements = 3 * 384 * 384, partial = 8;
  for (const auto& [gpu, one, sixteen] : {std::tuple{h200, 54, 33}, std::tuple{a100, 54, 27}, std::tuple{t4, 54, 5}}) {
    EXPECT_EQ(sum_over_pictures(gpu, 1), Bytes(elements * 8 + partial * one + 4)) << gpu.multiprocessors;
    EXPECT_EQ(sum_over_pictures(gpu, 16), Bytes(16 * elements * 8 + 16 * (partial * sixteen + 4)))
        << gpu.multiprocessors;
  }
}

}  // namespace
}  // namespace vlmest::multiprocessor_scratch_test
