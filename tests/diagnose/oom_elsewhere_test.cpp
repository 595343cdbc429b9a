// SPDX-License-Identifier: Apache-2.0
// Messages of memory that is no GPU's tensor, and failures that are none of memory.
#include <vlmest/diagnose/evidence/oom/reader.hpp>
#include <vlmest/diagnose/evidence/text/memory_log.hpp>
#include <vlmest/diagnose/evidence/text/other_failures.hpp>
#include <vlmest/diagnose/verdict/elsewhere.hpp>
#include <vlmest/diagnose/verdict/judge.hpp>

#include "read_data.hpp"

namespace vlmest::oom_elsewhere_test {
namespace {

using namespace diagnose;

/// The threads that the excerpts are from stand behind them.
TEST(OomElsewhere, ServersAndHosts) {
  struct Expected {
    const char* file;
    MemoryBackend backend;
    OomReason reason;
    Cause cause;
  };
  using B = MemoryBackend;
  using R = OomReason;
  for (const Expected& e : {
           Expected{"server_kv_cache", B::server, R::kv_cache_too_small, Cause::kv_cache},  // intel-arc-pro-b70 4
           {"server_no_blocks", B::server, R::kv_cache_too_small, Cause::kv_cache},         // vllm 13882
           {"server_length", B::server, R::kv_cache_too_small, Cause::kv_cache},
           {"server_fraction", B::server, R::share_too_small, Cause::engine_budget},  // gpustack 3831
           {"server_slots", B::server, R::kv_cache_full, Cause::kv_cache},            // sglang 10408
           {"server_pool", B::server, R::kv_cache_full, Cause::kv_cache},
           {"server_prefill", B::server, R::prefill_too_large, Cause::activations},            // TGI 1067
           {"server_device_in_use", B::server, R::device_in_use, Cause::other_process},        // kvcached 29
           {"server_device_in_use_named", B::server, R::device_in_use, Cause::other_process},  // pytorch 175666
           {"slurm", B::host, R::killed, Cause::host_memory},                                  // nextflow 5932
           {"slurm_cgroup", B::host, R::killed, Cause::host_memory},                           // ArjunaUsers 52
           {"ray", B::host, R::killed, Cause::host_memory},                                    // flingbot 11
           {"raylet", B::host, R::killed, Cause::host_memory},                                 // planTF 28
           {"kubernetes", B::host, R::killed, Cause::host_memory},
           {"host_killer", B::host, R::killed, Cause::host_memory},
           {"shared_memory", B::host, R::shared_memory, Cause::host_memory},  // STCN 132
           {"memory_error", B::host, R::none, Cause::host_memory},
           {"host", B::host, R::none, Cause::host_memory},
       }) {
    SCOPED_TRACE(e.file);
    const auto m = find_oom_messages(read_data("oom/" + std::string(e.file) + ".txt"));
    ASSERT_EQ(m.size(), 1u);
    EXPECT_EQ(name(m[0].backend), name(e.backend));
    EXPECT_EQ(name(m[0].reason), name(e.reason));
    const auto v = judge_elsewhere(m[0], {});
    ASSERT_TRUE(v);
    EXPECT_EQ(name(v->cause), name(e.cause));
    EXPECT_FALSE(v->why.empty());
    EXPECT_EQ(v->confidence > 0, e.cause != Cause::unknown);
  }
  EXPECT_FALSE(judge_elsewhere(find_oom_messages(read_data("oom/v5_alloc_conf.txt")).at(0), {}));
}

TEST(OomElsewhere, FiguresOfServers) {
  const auto mib = [](const std::optional<PrintedSize>& s) {
    return s ? static_cast<double>(s->value.value()) / (1 << 20) : -1;
  };
  const auto text = read_data("oom/server_kv_cache.txt");  // its words are broken by a terminal
  const auto m = find_oom_messages(text).at(0);
  EXPECT_NEAR(mib(m.requested), 4.26 * 1024, 1e-5);
  EXPECT_NEAR(mib(m.free), 4.25 * 1024, 1e-5);
  EXPECT_FALSE(tensor_sizes(m));
  EXPECT_NE(judge_elsewhere(m, read_memory_log(text).facts)->why.find("a length of 99584"), std::string::npos);
  const auto in_use = find_oom_messages(read_data("oom/server_device_in_use.txt")).at(0);
  EXPECT_NEAR(mib(in_use.total), 79.15 * 1024, 1e-5);
  EXPECT_NEAR(mib(in_use.free), 59.32 * 1024, 1e-5);
  EXPECT_NEAR(mib(in_use.requested), 71.24 * 1024, 1e-5);
  EXPECT_NEAR(mib(failure_elsewhere(in_use)->others), (79.15 - 59.32) * 1024, 1e-5);
  EXPECT_FALSE(failure_elsewhere(m));
  const auto blocks = read_data("oom/server_no_blocks.txt");
  const auto why = judge_elsewhere(find_oom_messages(blocks).at(0), read_memory_log(blocks).facts)->why;
  EXPECT_NE(why.find("weights take 5.20 GiB"), std::string::npos) << why;
}

/// Messages before 2.1 and those of HIP list no process. What is beyond any context is somebody else's
/// (amd-strix-halo-image-video-toolboxes issue 3, FastMRI_challenge issue 238).
TEST(OomElsewhere, ProcessesThatAMessageDoesNotList) {
  for (const char* file : {"unlisted_processes", "unlisted_processes_old"}) {
    const auto f = failure_of(find_oom_messages(read_data("oom/" + std::string(file) + ".txt")).at(0));
    EXPECT_TRUE(f.others_deduced) << file;
    EXPECT_EQ(name(judge(f).cause), "other_process") << file;
  }
  const auto full = failure_of(find_oom_messages(read_data("oom/v1_reserved.txt")).at(0));  // 0.9 GiB remain
  EXPECT_FALSE(full.others_deduced);
  EXPECT_NE(name(judge(full).cause), "other_process");
}

TEST(OomElsewhere, LibrariesAskOutsideOfTheAllocator) {
  const auto f = failure_of(find_oom_messages(read_data("oom/cublas.txt")).at(0));
  EXPECT_TRUE(f.outside);
  const auto v = judge(f);
  EXPECT_LT(v.confidence, 0.5);
  EXPECT_NE(v.why.find("outside of torch's allocator"), std::string::npos);
  EXPECT_EQ(v.why.find("--config"), std::string::npos);
  EXPECT_EQ(name(judge(failure_of(find_oom_messages(read_data("oom/cufft.txt")).at(0))).cause), "fft_buffers");
}

TEST(OomElsewhere, BuffersOfGgml) {
  const auto cause = [](const char* file) {
    return std::string(name(judge(failure_of(find_oom_messages(read_data(std::string("oom/") + file)).at(0))).cause));
  };
  EXPECT_EQ(cause("ggml_compute.txt"), "activations");
  EXPECT_EQ(cause("ggml_weights.txt"), "weights");
}

TEST(OtherFailures, WhatPeopleTakeForALackOfMemory) {
  const auto what = [](std::string_view text) {
    const auto f = find_other_failure(text);
    return f ? std::string(f->what) + (f->may_be_memory ? " ?" : "") : "";
  };
  EXPECT_NE(what("RuntimeError: CUDA error: an illegal memory access was encountered\n").find("illegal"),
            std::string::npos);
  EXPECT_NE(what("x\nCUDA error: device-side assert triggered\n").find("assertion"), std::string::npos);
  EXPECT_NE(
      what("triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 66560\n").find("Triton"),
      std::string::npos);
  EXPECT_NE(what("[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7753)\n").find("NCCL"),
            std::string::npos);
  for (const char* killed : {"Epoch 3\nKilled\n", "job.sh: line 28:  8156 Killed                  python3 main.py\n",
                             "failed (exitcode: -9) local_rank: 5 (pid: 2630) of binary: python\n",
                             "command terminated with exit code 137\n",
                             "  exitcode  : -9 (pid: 31631)\n  traceback : Signal 9 (SIGKILL) received by PID 31631\n",
                             "RuntimeError: DataLoader worker (pid 11011) is killed by signal: Killed.\n"}) {
    EXPECT_NE(what(killed).find("signal 9"), std::string::npos) << killed;
    EXPECT_TRUE(what(killed).ends_with("?")) << killed;
  }
  EXPECT_EQ(what("failed (exitcode: 1) local_rank: 0\nKilled time with tests\nexit code 13\n"), "");
  // The more certain one counts, at its own line.
  const auto both = find_other_failure("a\nSignal 9 (SIGKILL)\nb\nan illegal memory access was encountered\n");
  ASSERT_TRUE(both);
  EXPECT_EQ(both->line, 4);
  EXPECT_FALSE(both->may_be_memory);
}

TEST(OomElsewhere, TheCacheOfAServerThatWarmsUpIsToldFromItsPrefill) {
  const auto cause = [](std::string_view text) { return judge_elsewhere(find_oom_messages(text).at(0), {})->cause; };
  EXPECT_EQ(cause("RuntimeError: Not enough memory to handle 4096 prefill tokens. You need to decrease "
                  "`--max-batch-prefill-tokens`\n"),
            Cause::activations);
  EXPECT_EQ(cause("RuntimeError: Not enough memory to handle 20000 total tokens with 8 prefill tokens. You need to "
                  "decrease `--max-batch-total-tokens` or `--max-batch-prefill-tokens`\n"),
            Cause::kv_cache);
}

TEST(OomElsewhere, AnEngineThatAdmitsSeveralPicturesMeasuredThem) {
  const auto cause = [](const std::string& settings) {
    const OomMessage m =
        find_oom_messages("ValueError: No available memory for the cache blocks. Try increasing it.\n").at(0);
    Verdict v = *judge_elsewhere(m, {});
    name_admitted_pictures(v, m, read_settings(settings));
    return v.cause;
  };
  EXPECT_EQ(cause("vllm serve x --limit-mm-per-prompt image=4\n"), Cause::profile_run);
  EXPECT_EQ(cause("vllm serve x --limit-mm-per-prompt image=1\n"), Cause::kv_cache);
  EXPECT_EQ(cause("vllm serve x\n"), Cause::kv_cache);
  // With figures the message says how much is missing.
  const OomMessage m =
      find_oom_messages(
          "ValueError: To serve at least one request with the models's max seq len (100000), (4.26 GiB KV "
          "cache is needed, which is larger than the available KV cache memory (4.25 GiB).\n")
          .at(0);
  Verdict v = *judge_elsewhere(m, {});
  name_admitted_pictures(v, m, read_settings("vllm serve x --limit-mm-per-prompt image=4\n"));
  EXPECT_EQ(v.cause, Cause::kv_cache);
}

}  // namespace
}  // namespace vlmest::oom_elsewhere_test
