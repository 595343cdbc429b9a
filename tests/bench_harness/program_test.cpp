// SPDX-License-Identifier: Apache-2.0
// vlmest bench, which runs vlmest-bench: lists of points need no GPU, measuring does.
#include <algorithm>
#include <filesystem>

#include "called.hpp"

namespace cli::program_test {
namespace {

TEST(Bench, WrongWordsAreRefused) {
  refused("bench --suite qick", 2, "--suite: 'qick' is not one of quick, ceilings, calibrate, heldout, nccl",
          "did you mean quick?");
  refused("bench --countres", 2, "arguments: unknown '--countres'", "did you mean --counters?");
}

/// A folder with the program alone: as where CUDA was not found.
TEST(Bench, WithoutItsProgramSaysWhatIsMissing) {
  const Folder f;
  fs::copy_file(VLMEST_PROGRAM, f.path / "vlmest");
  const std::string err = (f.path / "err").string();
  const int status = std::system(("'" + (f.path / "vlmest").string() + "' bench 2>'" + err + "'").c_str());
  EXPECT_EQ(WEXITSTATUS(status), 3);
  EXPECT_EQ(slurp(err),
            "error: vlmest-bench: is not beside vlmest, nor in ../libexec/vlmest\n"
            "hint: it is built where a CUDA compiler and Google Benchmark are found; see bench/README.md\n");
}

#ifdef VLMEST_BENCH
TEST(Bench, ListsPointsWithoutAGpu) {
  const Called r = run("bench add sdpa/flash --list");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.out.find("add/own/elements:134217728/dtype:bf16/cold\n"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("sdpa/flash/batch:1/"), std::string::npos) << r.out;
  EXPECT_EQ(r.out.find("linear"), std::string::npos) << r.out;
  EXPECT_NE(r.err.find("4 points, about "), std::string::npos) << r.err;
}

TEST(Bench, TakesAListOfOps) {
  const Called r = run("bench --points - --list --hot", R"({"op":"linear","m":8,"n":16,"k":32,"dtype":"fp16"})");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, "linear/cublaslt/m:8/n:16/k:32/dtype:fp16/hot\n");
  refused("bench --points - --list", 3, "standard input[0].op: no benchmark of 'conv'",
          "known: linear, sdpa, fft, ifft, rfft, irfft, fft2, ifft2, rfft2, irfft2, copy, read, write, add, silu_mul, "
          "softmax, layernorm, rmsnorm, rope, embedding, cross_entropy, launch",
          R"([{"op":"conv"}])");
  refused("bench linear/flash --list", 2, "bench: linear has no variant 'flash'", "known: cublaslt, cublaslt_best");
  refused("bench --filter '(' --list", 2, "--filter: '(' is no regular expression", "as for grep -E");
}

TEST(Bench, CollectivesAreListedAndNeedTwoGpus) {
  if (fs::exists("/dev/nvidia0")) GTEST_SKIP() << "this machine has a GPU";
  const Called r = run("bench --suite nccl send --list");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out.substr(0, r.out.find('\n')), "nccl/send/ranks:2/bytes:1024");
  EXPECT_EQ(std::count(r.out.begin(), r.out.end(), '\n'), 41);
  refused("bench --suite nccl", 3, "vlmest-bench: 0 GPUs can be used here",
          "collectives need two or more; CUDA_VISIBLE_DEVICES says which");
  refused("bench --suite nccl all_redcue", 2, "bench: 'all_redcue' is no collective",
          "known: all_reduce, reduce_scatter, all_gather, all_to_all, send");
  refused("bench --suite nccl --hot", 2, "--hot: has no effect with --suite nccl, which measures collectives",
          "leave it out");
  refused("bench --suite nccl --list --filter zzz", 2, "bench: no collective is left to measure",
          "--list shows what there is");
}

TEST(Bench, WithoutAGpuEndsWithOneError) {
  if (fs::exists("/dev/nvidia0")) GTEST_SKIP() << "this machine has a GPU";
  refused("bench", 3, "vlmest-bench: no CUDA device can be used here",
          "run it on a machine with an NVIDIA GPU and its driver; --list works anywhere");
}
#endif

}  // namespace
}  // namespace cli::program_test
