// SPDX-License-Identifier: Apache-2.0
// vlmest calibrate: what it refuses to fit.
#include "called.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_calibrate_test {
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

TEST(Calibrate, RefusesTypesThatNoParametersAreFor) {
  for (const char* type : {"fp64", "complex64", "int4", "int64"}) {
    const Json label{{"op", "linear"}, {"m", 64}, {"n", 64}, {"k", 64}, {"dtype", type}};
    const Json entry{{"name", "linear/cublaslt/cold"}, {"label", label.dump()}, {"real_time", 20.0}, {"cold", 1}};
    refused("calibrate -", 3, "calibrate: none of the 1 measured operations can be fitted",
            "measure products, attention and memory-bound operations: vlmest bench --suite calibrate",
            Json{{"benchmarks", Json::array({entry})}}.dump());
  }
}

}  // namespace
}  // namespace cli::cli_calibrate_test
#endif
