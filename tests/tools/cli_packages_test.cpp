// SPDX-License-Identifier: Apache-2.0
// --packages on the command line: what it changes, what is said without it, and where it is refused.
#include "called.hpp"
#include "schema.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_packages_test {
namespace {

/// Notes on standard error may be there.
Json estimate(const std::string& arguments) {
  const Called r = run(arguments + " --top 0 --json");
  EXPECT_EQ(r.code, 0) << r.err;
  return Json::parse(r.out);
}

TEST(CliPackages, TakeLessMemoryAndTime) {
  const std::string run = "--config qwen3.5-4b --images 0 --seq 2048 --batch 2";
  const Json plain = estimate(run), both = estimate(run + " --packages fla,causal-conv1d");
  EXPECT_FALSE(plain["inputs"].contains("packages"));
  EXPECT_EQ(both["inputs"]["packages"], Json({"fla", "causal-conv1d"}));
  EXPECT_LT(both["inference"]["prefill"]["peak_bytes"], plain["inference"]["prefill"]["peak_bytes"]);
  EXPECT_LT(both["training"]["peak_bytes"], plain["training"]["peak_bytes"]);
  EXPECT_EQ(both["inference"]["kv_cache_states_bytes"], plain["inference"]["kv_cache_states_bytes"]);
  // Each has an effect of its own.
  const Json fla = estimate(run + " --packages fla"), conv = estimate(run + " --packages causal-conv1d");
  EXPECT_NE(fla["training"]["peak_bytes"], both["training"]["peak_bytes"]);
  EXPECT_NE(conv["training"]["peak_bytes"], plain["training"]["peak_bytes"]);
}

TEST(CliPackages, WhatIsAssumedWithoutThemIsSaid) {
  const Called plain = run("--config qwen3.5-4b --images 0"),
               fla = run("--config qwen3.5-4b --images 0 --packages fla"),
               both = run("--config qwen3.5-4b --images 0 --packages fla,causal-conv1d");
  EXPECT_NE(plain.err.find("without fla,causal-conv1d; --packages fla,causal-conv1d takes"), std::string::npos)
      << plain.err;
  EXPECT_NE(fla.err.find("without causal-conv1d;"), std::string::npos) << fla.err;
  EXPECT_EQ(both.err.find("causal-conv1d"), std::string::npos) << both.err;
}

TEST(CliPackages, AreRefusedWhereNothingRunsByThem) {
  EXPECT_EQ(run("--config llava-1.5-7b --packages fla").err,
            "error: --packages: llava has nothing that fla runs\nhint: leave it out\n");
  EXPECT_EQ(run("--config lfm2-vl-450m --packages fla,causal-conv1d").err,
            "error: --packages: lfm2_vl has nothing that fla runs\nhint: leave it out\n");
  EXPECT_NE(run("--config qwen3.5-4b --packages xformers").code, 0);
}

TEST(CliPackages, HaveKernelsForSomeConvolutionsAlone) {
  Folder folder;
  folder.write("config.json", R"({"model_type": "qwen3_5_text", "linear_conv_kernel_dim": 5})");
  const Called r = run("--config '" + folder.path.string() + "' --packages causal-conv1d");
  EXPECT_NE(r.err.find("error: --packages: causal-conv1d has no kernel for 5 taps\n"
                       "hint: leave causal-conv1d out of --packages: transformers' own function runs it\n"),
            std::string::npos)
      << r.err;
}

}  // namespace
}  // namespace cli::cli_packages_test
#endif
