// SPDX-License-Identifier: Apache-2.0
// What limits ops that do no counted arithmetic, on every shipped device.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include <vlmest/json/device.hpp>
#include <vlmest/json/model.hpp>
#include <vlmest/report/estimate.hpp>

namespace vlmest::moving_bound_test {
namespace {

std::vector<Device> devices() {
  std::vector<Device> r;
  for (const auto& f : std::filesystem::directory_iterator(VLMEST_SOURCE_DIR "/models/device"))
    r.push_back(load_device(f.path().string()));
  return r;
}

TEST(MovingBound, NeverArithmetic) {
  const std::int64_t n = std::int64_t{1} << 28;
  ASSERT_GT(devices().size(), 5U);
  for (const Device& d : devices())
    for (const Access a : {Access::contiguous, Access::functions, Access::cast, Access::strided, Access::transposed,
                           Access::concatenation, Access::gather, Access::reduction}) {
      const Work w =
          work(MemoryOp{.read = Bytes(2 * n), .written = Bytes(2 * n), .access = a, .elements = Elements(n)}, d);
      EXPECT_EQ(bound(w), Bound::memory) << d.name << ' ' << static_cast<int>(a);
      EXPECT_DOUBLE_EQ(w.memory_bound.value, w.time.value);
    }
}

TEST(MovingBound, ProductsStayArithmetic) {
  for (const Device& d : devices())
    EXPECT_EQ(bound(work(Matmul{.m = 8192, .n = 8192, .k = 8192}, d)), Bound::compute) << d.name;
}

// An optimizer's step is elementwise. With adapters alone its kernels are too small to move much.
TEST(MovingBound, StepsOfAdamW) {
  std::ifstream file(VLMEST_SOURCE_DIR "/tests/data/configs/smolvlm-256m.json");
  const Vlm vlm = json::read_model(nlohmann::json::parse(file), "smolvlm-256m");
  Estimator estimate;
  for (const Device& d : devices()) {
    const Estimate e = estimate(vlm, Plan{.images = 1}, d, Phases::train);
    EXPECT_NE(bound(e.training.step_work), Bound::compute) << d.name;
  }
}

}  // namespace
}  // namespace vlmest::moving_bound_test
