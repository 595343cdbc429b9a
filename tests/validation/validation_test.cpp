// SPDX-License-Identifier: Apache-2.0
// The estimates against measured runs of whole models. `vlmest validate tests/validation/rows/*.json --models
// tests/data/configs` lists what is held here.
#include <cmath>
#include <cstdio>

#include <gtest/gtest.h>

#include "measured.hpp"

namespace vlmest::validation_test {
namespace {

const std::vector<Comparison>& comparisons() {
  static const std::vector<Comparison> all = validation::compare(
      VLMEST_SOURCE_DIR, {"h200-inference-fresh.json", "h200-inference.json", "h200-training.json", "h200-times.json"});
  return all;
}

struct Bar {
  const char* quantity;
  double median, worst;  ///< percent; 0 is exact
  std::size_t rows;      ///< at least so many must be there
};

void PrintTo(const Bar& b, std::ostream* out) { *out << b.quantity; }

class Validation : public testing::TestWithParam<Bar> {};

TEST_P(Validation, IsWithinItsBar) {
  const Bar bar = GetParam();
  for (const auto& c : comparisons())
    if (c.quantity == bar.quantity)
      std::printf("  %-72s %16.0f %16.0f %+9.3f %%\n", c.row.c_str(), c.predicted, c.measured, c.error());
  const ErrorSummary s = summary(comparisons(), bar.quantity);
  std::printf("%s: %zu rows, median %.4f %%, worst %.4f %%\n", bar.quantity, s.rows, s.median, s.worst);
  EXPECT_GE(s.rows, bar.rows);
  EXPECT_LE(s.median, bar.median);
  EXPECT_LE(s.worst, bar.worst);
}

/// Single operations: random shapes that no efficiency was fitted to, and large ones with DRAM counters.
const std::vector<Comparison>& operations() {
  static const std::vector<Comparison> all =
      validation::compare(VLMEST_SOURCE_DIR, {"h200-ops.json", "h200-products.json", "h200-traffic.json"});
  return all;
}

struct OpBar {
  const char* quantity;
  double mean, median;  ///< percent
  std::size_t rows;
};

void PrintTo(const OpBar& b, std::ostream* out) { *out << b.quantity; }

class OpValidation : public testing::TestWithParam<OpBar> {};

TEST_P(OpValidation, IsWithinItsBar) {
  const OpBar bar = GetParam();
  const ErrorSummary s = summary(operations(), bar.quantity);
  std::printf("%s: %zu operations, mean %.2f %%, median %.2f %%, worst %.1f %%\n", bar.quantity, s.rows, s.mean,
              s.median, s.worst);
  EXPECT_GE(s.rows, bar.rows);
  EXPECT_LE(s.mean, bar.mean);
  EXPECT_LE(s.median, bar.median);
}

const auto quantity_name = [](const auto& i) { return std::string(i.param.quantity); };

// What the library reaches, with little room: a wrong rule shows. The recorder gave each decoded sequence a position of
// its own, which generate() leaves to the model, so rotary angles count a few FLOPs more there. The requested peak
// lacks 4 bytes that every fresh process holds (one block of 512), and 1 MiB in fp32; their sources are unknown. What
// remains of the allocated peak is the allocator's history: which freed block of the calls before the measured one a
// tensor falls into. The growth of one decode step is small and of that kind where keys and values take a little more
// than 1 MiB a layer (GLM-4.1V); the peak itself is not.
INSTANTIATE_TEST_SUITE_P(H200, Validation,
                         testing::Values(Bar{"params", 0, 0, 80}, Bar{"image_tokens", 0, 0, 80}, Bar{"seq", 0, 0, 80},
                                         Bar{"input_bytes", 0, 0, 53}, Bar{"kv_bytes", 0, 0, 53},
                                         Bar{"alloc_weights", 0.0001, 0.01, 27}, Bar{"prefill_flops", 0, 0, 47},
                                         Bar{"decode_flops", 0.00001, 0.00001, 23},
                                         Bar{"alloc_before_prefill", 0.0001, 0.01, 27},
                                         Bar{"prefill_requested_peak", 0.000001, 0.005, 24},
                                         Bar{"prefill_peak", 0.01, 0.1, 53}, Bar{"prefill_above_weights", 0.1, 2, 53},
                                         Bar{"prefill_full_logits_peak", 0.01, 0.1, 43},
                                         Bar{"prefill_reserved", 0.5, 5, 27}, Bar{"prefill_kernels", 0, 1.5, 24},
                                         Bar{"decode_peak", 0.01, 0.2, 24}, Bar{"decode_peak_delta", 1.5, 100, 48}),
                         quantity_name);

// The second step of full fine-tuning, frozen towers, adapters, checkpointing, autocast and five optimizers. Counts are
// exact. What remains of the bytes is history: the measured steps ran after other models, whose segments they reuse.
// One of the steps ran out of memory. One (PaliGemma with a frozen tower) reserved 12 % more than the replay; why is
// not known.
INSTANTIATE_TEST_SUITE_P(H200Training, Validation,
                         testing::Values(Bar{"trainable", 0, 0, 27}, Bar{"optimizer_bytes", 0, 0, 26},
                                         Bar{"train_flops", 0, 0, 26}, Bar{"alloc_start", 0.05, 0.3, 26},
                                         Bar{"forward_peak", 0.05, 0.3, 26}, Bar{"alloc_after_forward", 0.05, 0.3, 26},
                                         Bar{"backward_peak", 0.05, 0.3, 26}, Bar{"step_peak", 0.05, 0.35, 26},
                                         Bar{"reserved_peak", 0.5, 13, 43}, Bar{"fits", 0, 0, 80}),
                         quantity_name);

// Times on the device. No row is one that an efficiency was fitted to: those come from single kernels and ops. What a
// host takes varies from machine to machine and is held by its median.
INSTANTIATE_TEST_SUITE_P(H200Times, Validation,
                         testing::Values(Bar{"prefill_gpu_ms", 5, 15, 28}, Bar{"decode_gpu_ms", 6, 20, 28},
                                         Bar{"step_gpu_ms", 5, 15, 17}, Bar{"forward_gpu_ms", 5, 15, 17},
                                         Bar{"backward_gpu_ms", 8, 15, 17}, Bar{"decode_graph_ms", 12, 35, 26},
                                         Bar{"decode_ms", 10, 50, 28}),
                         quantity_name);

// What the library reaches, with little room.
INSTANTIATE_TEST_SUITE_P(H200Ops, OpValidation,
                         testing::Values(OpBar{"linear_time", 5.3, 3.2, 2380}, OpBar{"sdpa_time", 4, 4, 138},
                                         OpBar{"decode_time", 6.5, 4.5, 69}, OpBar{"fft_time", 10.5, 8, 200},
                                         OpBar{"memory_time", 5, 2, 136}, OpBar{"memory_time_small", 7, 5.5, 75},
                                         OpBar{"linear_dram_bytes", 9, 5.5, 380},
                                         OpBar{"linear_kernel_dram_bytes", 3, 1, 380},
                                         OpBar{"sdpa_dram_bytes", 1, 1, 4}, OpBar{"decode_dram_bytes", 1, 1, 3},
                                         OpBar{"fft_dram_bytes", 1, 1, 6}, OpBar{"memory_dram_bytes", 1, 1, 11}),
                         quantity_name);

TEST(TrainingValidation, OneStepRanOutOfMemory) {
  int seen = 0;
  for (const auto& c : comparisons()) seen += c.quantity == "fits" && c.measured == 0;
  EXPECT_EQ(seen, 1);
}

}  // namespace
}  // namespace vlmest::validation_test
