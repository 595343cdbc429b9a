// SPDX-License-Identifier: Apache-2.0
#include <bench/harness/counters.hpp>
#include <gtest/gtest.h>

namespace vlmest::bench::counters_test {
namespace {

/// A second pass would mean to run every op twice.
TEST(Counters, OnePassIsEnoughOnHopper) {
  for (const DType t : {DType::bf16, DType::fp16, DType::tf32, DType::fp8}) {
    const CounterConfig config("GH100", counter_names({.engine = Engine::tensor_core, .dtype = t}));
    EXPECT_GT(config.names().size(), CounterNames::always.size()) << name(t);
    EXPECT_EQ(config.passes(), 1u) << name(t);
  }
  EXPECT_EQ(CounterConfig("GH100", counter_names({.dtype = DType::bf16})).passes(), 1u);
}

TEST(Counters, OpsWithoutTensorCoresHaveNoSuchCounter) {
  EXPECT_EQ(counter_names({.engine = Engine::cuda_core, .dtype = DType::fp32}).size(), CounterNames::always.size());
  EXPECT_EQ(counter_names({.engine = Engine::idle, .dtype = DType::bf16}).size(), CounterNames::always.size());
}

TEST(Counters, WhatCuptiDoesNotKnowIsRefused) {
  EXPECT_THROW(CounterConfig("GH100", {"sm__no_such_counter.sum"}), Error);
  EXPECT_THROW(CounterConfig("NOCHIP", counter_names({})), Error);
}

}  // namespace
}  // namespace vlmest::bench::counters_test
