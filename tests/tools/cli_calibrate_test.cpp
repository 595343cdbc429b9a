// SPDX-License-Identifier: Apache-2.0
// vlmest calibrate: what it refuses to fit.
#include "called.hpp"

#ifdef VLMEST_PROGRAM
namespace cli {
namespace {

/// A copy of 8.6 GB in so many microseconds.
std::string copied(double us) {
  const Json entry{{"name", "copy/own/elements:2147483648/dtype:bf16/cold"},
                   {"label", R"({"op":"copy","elements":2147483648,"dtype":"bf16"})"},
                   {"real_time", us},
                   {"time_unit", "us"},
                   {"cold", 1}};
  return Json{{"context", Json::object()}, {"benchmarks", Json::array({entry})}}.dump();
}

TEST(Calibrate, RefusesTheDescriptionOfASlowerGpu) {
  refused("calibrate - --device h100-sxm", 3,
          "--device: h100-sxm has 3.352 TB/s of memory bandwidth, but 4.295 were measured",
          "give the description of the measured GPU, or correct its dram_bytes_per_s", copied(2000));
  EXPECT_NE(good("calibrate - --device h200-sxm", copied(2000)).find("memory.fused"), std::string::npos);
}

}  // namespace
}  // namespace cli
#endif
