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

/// An all-reduce of a mebibyte that took so many microseconds.
std::string reduced(double us, int ranks = 2) {
  const Json label{{"op", "all_reduce"}, {"ranks", ranks}, {"bytes", 1 << 20}, {"dtype", "bf16"}};
  const Json entry{{"name", "nccl/all_reduce"}, {"label", label.dump()}, {"real_time", us}, {"time_unit", "us"}};
  return Json{{"context", {{"device", "NVIDIA H100"}, {"nccl", "2.28.9"}, {"ranks", "2"}}},
              {"benchmarks", Json::array({entry})}}
      .dump();
}

TEST(Calibrate, CurvesOfANetwork) {
  const Folder f;
  const std::string saved = f.write("n.json", "");
  const Json j =
      Json::parse(good("calibrate - --network nvlink4 --json --save '" + saved + "' --name mine", reduced(27)));
  EXPECT_EQ(j["network"], "nvlink4");
  EXPECT_EQ(j["curves"][0]["op"], "all_reduce");
  EXPECT_NEAR(j["curves"][0]["network"]["from_1_mib"]["mape_pct"].get<double>(), 50, 1e-6);  // 13.5 is shipped
  const Json network = Json::parse(std::ifstream(saved));
  EXPECT_EQ(network["name"], "mine");
  bool found = false;
  for (const auto& c : network["domains"][0]["curves"])
    if (c["op"] == "all_reduce") found = c["bytes_us"] == Json::array({Json::array({1 << 20, 27.0})});
  EXPECT_TRUE(found);
  EXPECT_EQ(network["domains"][0]["curves"].size(), 5u);
  const std::string run = "--config qwen3-vl-2b --phase train --gpus 2 --json";
  EXPECT_NE(Json::parse(good(run + " --network '" + saved + "'"))["parallel"]["nccl_ms"],
            Json::parse(good(run))["parallel"]["nccl_ms"]);
}

TEST(Calibrate, RefusesWhatIsNoCollectiveOrOneWithoutANetwork) {
  refused("calibrate -", 3, "standard input.benchmarks[0]: is a collective",
          "give --network NAME|FILE to fit its curves", reduced(27));
  const std::string hint = "vlmest bench --suite nccl --output nccl.json writes them";
  refused("calibrate - --network nvlink4", 3, "standard input.benchmarks[0]: is no collective", hint, copied(2000));
  refused("calibrate - --network nvlink4", 3, "standard input: holds no benchmark results", hint, "[]");
  EXPECT_EQ(run("calibrate - --network nvlink4 --device h100-sxm", reduced(27)).code, 2);
  EXPECT_EQ(run("calibrate - --network pcie5", reduced(27, 64)).code, 2) << "joins no 64 GPUs";
}

}  // namespace
}  // namespace cli::cli_calibrate_test
#endif
