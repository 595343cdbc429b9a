// SPDX-License-Identifier: Apache-2.0
// Rows of logs, of nvidia-smi and of memory_summary().
#include <cmath>

#include <vlmest/diagnose/evidence/text/gpu_processes.hpp>
#include <vlmest/diagnose/evidence/text/log_time.hpp>
#include <vlmest/diagnose/evidence/text/memory_log.hpp>
#include <vlmest/diagnose/evidence/text/memory_summary.hpp>

#include "read_data.hpp"

namespace vlmest::memory_log_test {
namespace {

using namespace diagnose;

double mib(const std::optional<Bytes>& b) { return b ? static_cast<double>(b->value()) / (1 << 20) : -1; }

MemorySeries series(const std::string& file) { return read_memory_log(read_data("logs/" + file)); }

const LogFact* fact(const MemorySeries& s, std::string_view name) {
  for (const auto& f : s.facts)
    if (f.name == name) return &f;
  return nullptr;
}

TEST(MemoryLog, HuggingFace) {
  const auto s = series("hf_trainer.txt");
  ASSERT_EQ(s.rows.size(), 3u);
  EXPECT_EQ(s.rows[0].loss, 2.3105);
  EXPECT_EQ(s.rows[0].grad_norm, 1.84375);
  EXPECT_EQ(s.rows[0].line, 1);  // behind a progress bar
  EXPECT_TRUE(std::isnan(*s.rows[2].loss));
  EXPECT_TRUE(std::isnan(*s.rows[2].grad_norm));
  EXPECT_FALSE(s.rows[0].has_memory());
}

TEST(MemoryLog, Torchtitan) {
  const auto s = series("torchtitan.txt");
  ASSERT_EQ(s.rows.size(), 2u);
  EXPECT_EQ(s.rows[1].step, 10);
  EXPECT_EQ(s.rows[1].loss, 10.9012);
  EXPECT_EQ(s.rows[1].grad_norm, 2.9001);
  EXPECT_NEAR(mib(s.rows[1].used), 39.05 * 1024, 1e-5);
  EXPECT_EQ(s.rows[1].rank, 0);
  EXPECT_NEAR(*s.rows[1].time_s - *s.rows[0].time_s, 10.5, 1e-6);
}

TEST(MemoryLog, Megatron) {
  const auto s = series("megatron.txt");
  ASSERT_EQ(s.rows.size(), 3u);
  EXPECT_EQ(s.rows[0].step, 20);
  EXPECT_EQ(s.rows[0].loss, 10.70213);
  EXPECT_EQ(s.rows[0].loss_scale, 1.0);
  EXPECT_EQ(s.rows[0].grad_norm, 2.311);
  EXPECT_EQ(s.rows[1].step, 20);
  EXPECT_NEAR(mib(s.rows[1].allocated), 1550.4, 1e-5);
  EXPECT_NEAR(mib(s.rows[1].peak_allocated), 20561.5, 1e-5);
  EXPECT_NEAR(mib(s.rows[1].reserved), 28404, 1e-5);
  EXPECT_EQ(s.rows[2].rank, 1);
  EXPECT_EQ(s.rows[2].step, 40);
  EXPECT_NEAR(mib(s.rows[2].peak_reserved), 27.7 * 1024, 1e-5);
  ASSERT_TRUE(fact(s, "weights_and_optimizer"));
  EXPECT_NEAR(fact(s, "weights_and_optimizer")->number / (1 << 20), 57438.81, 1e-5);
  EXPECT_EQ(fact(s, "parameters_in_billions")->number, 8.0305);
}

TEST(MemoryLog, DeepSpeedsGigabytesAreBinary) {
  const auto s = series("deepspeed.txt");
  ASSERT_EQ(s.rows.size(), 1u);  // the host's line is none
  EXPECT_NEAR(mib(s.rows[0].allocated), 7.09 * 1024, 1e-5);
  EXPECT_NEAR(mib(s.rows[0].peak_allocated), 10.82 * 1024, 1e-5);
  EXPECT_NEAR(mib(s.rows[0].reserved), 13.46 * 1024, 1e-5);
  EXPECT_NEAR(mib(s.rows[0].peak_reserved), 13 * 1024, 1e-5);
}

TEST(MemoryLog, AnyWords) {
  const auto s = series("generic.txt");
  ASSERT_EQ(s.rows.size(), 5u);
  EXPECT_EQ(s.rows[0].step, 100);
  EXPECT_NEAR(mib(s.rows[0].allocated), 12.5 * 1024, 1e-5);
  EXPECT_NEAR(mib(s.rows[0].reserved), 14 * 1024, 1e-5);
  EXPECT_EQ(s.rows[2].peak_allocated, Bytes(14123456789));
  EXPECT_EQ(s.rows[2].grad_norm, 0.9);
  EXPECT_EQ(s.rows[3].step, 400);
  EXPECT_NEAR(mib(s.rows[3].allocated), 12900.5, 1e-5);
  EXPECT_TRUE(std::isinf(*s.rows[3].grad_norm));
  EXPECT_NEAR(mib(s.rows[4].used), 13000, 1e-5);
  const auto p = points(s, [](const MemoryRow& r) { return r.loss; });
  ASSERT_EQ(p.size(), 5u);
  EXPECT_EQ(p[4], (std::pair<double, double>(500, 1.0)));
}

/// "loss" counts, not a part of it before it (TableMASTER-mmocr issue 32); fairseq's lines begin with a bar.
TEST(MemoryLog, TheLossItself) {
  const auto m = series("mmocr.txt");
  ASSERT_EQ(m.rows.size(), 2u);
  EXPECT_EQ(m.rows[0].loss, 1.9091);
  EXPECT_EQ(mib(m.rows[1].used), 7239);
  const auto f = series("fairseq.txt");
  ASSERT_FALSE(f.rows.empty());
  EXPECT_EQ(f.rows[0].loss, 6.343);
  EXPECT_EQ(f.rows[0].grad_norm, 0.39);
  EXPECT_EQ(f.rows[0].loss_scale, 0.5);
  const auto l = series("lightning_bar.txt");
  ASSERT_EQ(l.rows.size(), 1u);
  EXPECT_TRUE(std::isnan(*l.rows[0].loss));
  EXPECT_FALSE(l.rows[0].step);
}

/// Objects over several lines, whose step stands behind what it belongs to (ms-swift issue 3617).
TEST(MemoryLog, TrainerState) {
  const auto s = series("trainer_state.json");
  ASSERT_EQ(s.rows.size(), 2u);
  EXPECT_EQ(s.rows[0].step, 3720);
  EXPECT_NEAR(*s.rows[0].loss, 5.2819168, 1e-6);
  EXPECT_EQ(s.rows[1].step, 3740);
  EXPECT_TRUE(std::isnan(*s.rows[1].grad_norm));
  EXPECT_TRUE(std::isnan(*s.rows[1].loss));
}

TEST(MemoryLog, TablesWithAHeading) {
  const auto s = series("lightning.csv");
  ASSERT_EQ(s.rows.size(), 3u);
  EXPECT_EQ(s.rows[0].allocated, Bytes(1000000000));  // neither what was ever allocated nor the peak
  EXPECT_EQ(s.rows[0].peak_allocated, Bytes(1500000000));
  EXPECT_EQ(s.rows[1].step, 1);
  EXPECT_FALSE(s.rows[1].loss);
  EXPECT_TRUE(std::isnan(*s.rows[2].loss));
  const auto t = read_memory_log("step\tloss\tgpu_mem_mb\n0\t2.5\t1000\n1\t2.4\t1010\nno row\n");
  ASSERT_EQ(t.rows.size(), 2u);
  EXPECT_EQ(mib(t.rows[1].used), 1010);
  const auto q = read_memory_log("\"Step\",\"run 1 - train/loss\"\n\"3\",\"0.5\"\n");
  ASSERT_EQ(q.rows.size(), 1u);
  EXPECT_EQ(q.rows[0].step, 3);
  EXPECT_EQ(q.rows[0].loss, 0.5);
  // Sentences and percentages are none.
  EXPECT_TRUE(read_memory_log("memory, loss and more\n1, 2\n").rows.empty());
  EXPECT_TRUE(read_memory_log("Step,system/gpu.0.memoryAllocated\n1,93.2\n").rows.empty());
}

TEST(MemoryLog, MoreSpellings) {
  const auto o = series("ort.txt");  // onnxruntime pull request 19620
  ASSERT_EQ(o.rows.size(), 3u);
  EXPECT_EQ(mib(o.rows[2].allocated), 8926);
  EXPECT_EQ(mib(o.rows[2].peak_reserved), 9382);
  const auto v = series("verl.txt");  // verl issue 3992
  ASSERT_EQ(v.rows.size(), 3u);
  EXPECT_NEAR(mib(v.rows[0].used), 10.25 * 1024, 1e-5);
  EXPECT_NEAR(mib(v.rows[0].total), 60.96 * 1024, 1e-5);
  EXPECT_NEAR(mib(v.rows[0].reserved), 52.16 * 1024, 1e-5);
  const auto d = series("detectron2.txt");
  ASSERT_EQ(d.rows.size(), 3u);
  EXPECT_EQ(mib(d.rows[0].peak_allocated), 3782);
  EXPECT_EQ(d.rows[0].step, 379);
  // Where both are given, what is allocated counts (torchtune pull request 2406).
  const auto t = series("torchtune_mps.txt");
  ASSERT_EQ(t.rows.size(), 3u);
  EXPECT_NEAR(mib(t.rows[0].peak_allocated), 52.0017 * 1024, 1e-2);
  const auto g = read_memory_log("[GPU0] free: 1.23 GB, total: 79.15 GB, used: 77.92 GB\n");
  ASSERT_EQ(g.rows.size(), 1u);
  EXPECT_NEAR(mib(g.rows[0].free), 1.23 * 1024, 1e-5);
}

TEST(MemoryLog, Servers) {
  const auto v = series("vllm.txt");
  EXPECT_TRUE(v.rows.empty());
  EXPECT_NEAR(fact(v, "weights")->number / (1 << 30), 15.77, 1e-6);
  EXPECT_NEAR(fact(v, "kv_cache")->number / (1 << 30), 24.05, 1e-6);
  EXPECT_EQ(fact(v, "kv_cache_tokens")->number, 482080);
  EXPECT_EQ(fact(v, "tokens_per_request")->number, 262144);
  EXPECT_EQ(fact(v, "encoder_tokens")->number, 8192);
  EXPECT_EQ(fact(v, "encoder_profile_items")->number, 3);
  EXPECT_NEAR(fact(v, "kv_cache_needed")->number / (1 << 30), 16, 1e-6);
  EXPECT_EQ(fact(v, "max_model_len")->number, 131072);
  EXPECT_NEAR(fact(v, "device_memory")->number / (1 << 30), 79.10, 1e-6);
  EXPECT_EQ(fact(v, "memory_utilization")->number, 0.9);
  EXPECT_NEAR(fact(v, "activation_peak")->number / (1 << 30), 1.21, 1e-6);
  const auto s = series("sglang.txt");
  EXPECT_EQ(fact(s, "kv_cache_tokens")->number, 350257);
  EXPECT_NEAR(fact(s, "k_cache")->number / (1 << 30), 9.35, 1e-6);
  EXPECT_NEAR(fact(s, "graphs")->number / (1 << 30), 0.80, 1e-6);
  const auto l = series("llama_cpp.txt");
  EXPECT_NEAR(fact(l, "weights")->number / (1 << 20), 4155.99, 1e-5);
  EXPECT_NEAR(fact(l, "compute_buffer")->number / (1 << 20), 560, 1e-5);
}

TEST(MemoryLog, NvidiaSmi) {
  const auto s = series("smi.csv");
  EXPECT_EQ(s.style, LogStyle::nvidia_smi_csv);
  ASSERT_EQ(s.rows.size(), 3u);
  EXPECT_EQ(mib(s.rows[0].used), 12345);
  EXPECT_EQ(mib(s.rows[0].total), 81559);
  EXPECT_EQ(s.rows[1].rank, 1);
  EXPECT_NEAR(*s.rows[2].time_s - *s.rows[0].time_s, 5, 1e-6);
  for (const char* file : {"smi_noheader.csv", "smi_nounits.csv", "smi_bare.csv"}) {
    const auto n = series(file);
    ASSERT_EQ(n.rows.size(), 2u) << file;
    EXPECT_EQ(mib(n.rows[0].used), 12345) << file;
    EXPECT_EQ(mib(n.rows[0].total), 81559) << file;
  }
  EXPECT_EQ(mib(series("smi_used_only.csv").rows.at(1).used), 12346);
  const auto t = series("smi_table.txt");
  EXPECT_EQ(t.style, LogStyle::nvidia_smi_table);
  ASSERT_EQ(t.rows.size(), 2u);
  EXPECT_EQ(mib(t.rows[0].used), 61234);
  EXPECT_EQ(t.rows[1].rank, 1);
}

TEST(MemoryLog, GpuProcesses) {
  EXPECT_TRUE(series("compute_apps.csv").rows.empty());  // processes are no rows of a series
  const auto apps = find_gpu_processes(read_data("logs/compute_apps.csv"));
  ASSERT_EQ(apps.size(), 2u);
  EXPECT_EQ(apps[1].pid, 40912);
  EXPECT_EQ(apps[1].used, Bytes(std::int64_t{64201} << 20));
  const auto old = find_gpu_processes(read_data("logs/smi_processes.txt"));  // mxnet issue 4242
  ASSERT_EQ(old.size(), 3u);
  EXPECT_EQ(old[0].pid, 31794);
  EXPECT_EQ(old[2].gpu, 1);
  EXPECT_EQ(old[2].used, Bytes(std::int64_t{1205} << 20));
  const auto now = find_gpu_processes(read_data("logs/smi_table.txt"));
  ASSERT_EQ(now.size(), 1u);
  EXPECT_EQ(now[0].pid, 11873);
  const auto g = series("gpustat.txt");
  ASSERT_EQ(g.rows.size(), 1u);
  EXPECT_EQ(mib(g.rows[0].used), 10151);
  EXPECT_EQ(g.rows[0].rank, 6);
}

TEST(MemoryLog, LongLogsAreThinnedEvenly) {
  MemoryLogReader reader(1000);
  for (int i = 0; i < 10000; ++i)
    reader.line("step " + std::to_string(i) + " memory allocated " + std::to_string(i + 1) + " bytes");
  const auto s = reader.take();
  EXPECT_LT(s.rows.size(), 1000u);
  EXPECT_GE(s.rows.size(), 500u);
  for (std::size_t i = 0; i < s.rows.size(); ++i) ASSERT_EQ(s.rows[i].step, static_cast<std::int64_t>(i) * s.stride);
}

TEST(LogTime, DatesAndTimes) {
  EXPECT_EQ(log_time("1970-01-02 00:00:01 x"), 86401.0);
  EXPECT_EQ(log_time("[2025-09-25 10:53:36] x"), 1758797616.0);
  EXPECT_NEAR(*log_time("2025/09/25 10:53:36.250, 3"), 1758797616.25, 1e-6);
  EXPECT_EQ(log_time("2024-03-01T00:00:00Z"), 1709251200.0);  // after a leap day
  EXPECT_EQ(log_time("10:53:36 x"), 39216.0);
  EXPECT_FALSE(log_time("no time: here"));
  EXPECT_FALSE(log_time("99:99:99"));
}

TEST(MemorySummary, TablesOfTorch2) {
  const auto all = find_memory_summaries("x\n" + read_data("summary/torch2.txt") + read_data("summary/torch1.txt"));
  ASSERT_EQ(all.size(), 2u);
  const auto& m = all[0];
  EXPECT_EQ(m.device, 1);
  EXPECT_EQ(m.ooms, 1);
  EXPECT_EQ(m.retries, 3);
  EXPECT_EQ(m.line, 8);
  // The table cuts off: 14324 MiB is 14324 to 14325 MiB.
  EXPECT_EQ(m.allocated.all->current.low, Bytes(std::int64_t{14324} << 20));
  EXPECT_EQ(m.allocated.all->current.high, Bytes((std::int64_t{14325} << 20) - 1));
  EXPECT_EQ(m.allocated.small->peak.value, Bytes(6 << 20));
  EXPECT_EQ(m.requested.large->freed.value, Bytes(std::int64_t{169163} << 20));
  EXPECT_EQ(m.reserved.all->peak.value, Bytes(std::int64_t{18650} << 20));
  EXPECT_EQ(m.non_releasable.all->current.value, Bytes(std::int64_t{1102} << 20));
  EXPECT_EQ(m.allocations.all->current, 1207);
  EXPECT_EQ(m.allocations.all->allocated, 812000);
  EXPECT_EQ(m.segments.small->freed, 1);
  EXPECT_EQ(m.oversize_segments->current, 0);
  // 1.x: KB are KiB, B are exact; no requested memory.
  EXPECT_EQ(all[1].device, 0);
  EXPECT_EQ(all[1].allocated.all->current.value, Bytes(512000 << 10));
  EXPECT_EQ(all[1].non_releasable.all->current, PrintedSize::exactly(Bytes(190464)));
  EXPECT_FALSE(all[1].requested.all);
}

TEST(MemorySummary, WithPrefixesAndWithoutHeading) {
  std::string text =
      "[rank0]: | Cur Usage |\n[rank0]: | Allocated memory      |  10 KiB |  20 KiB | 30 KiB | 20 KiB |\n";
  const auto m = find_memory_summaries(text);
  ASSERT_EQ(m.size(), 1u);
  EXPECT_EQ(m[0].allocated.all->peak.value, Bytes(20 << 10));
  EXPECT_TRUE(find_memory_summaries("Cur Usage of the disk\n1 2 3\n").empty());
}

}  // namespace
}  // namespace vlmest::memory_log_test
