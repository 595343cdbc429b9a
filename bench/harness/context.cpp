// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <bench/harness/context.hpp>
#include <benchmark/benchmark.h>
#include <cublasLt.h>
#include <cufft.h>
#include <kernels/cuda/device.hpp>
#ifdef VLMEST_HAVE_CUDNN
#include <cudnn.h>
#endif

namespace vlmest::bench {
namespace {

/// "9.19.0" of 91900, where 10,000 of them make a major version and 100 a minor one.
std::string version(std::size_t packed, std::size_t major, std::size_t minor) {
  return std::to_string(packed / major) + "." + std::to_string(packed % major / minor) + "." +
         std::to_string(packed % minor);
}

}  // namespace

void add_context(const Bench& bench) {
  const auto add = [](const char* key, const std::string& value) {
    if (!value.empty()) benchmark::AddCustomContext(key, value);
  };
  const auto number = [&](const char* key, double value) { add(key, OpJson(value).dump()); };
  add("device", cuda::device_name());
  add("driver", bench.nvml().driver_version());
  int runtime = 0;
  cuda::check(cudaRuntimeGetVersion(&runtime));
  add("cuda", std::to_string(runtime / 1000) + "." + std::to_string(runtime % 1000 / 10));
  add("cublaslt", version(cublasLtGetVersion(), 10000, 100));
  int cufft = 0;
  if (cufftGetVersion(&cufft) == CUFFT_SUCCESS) add("cufft", version(static_cast<std::size_t>(cufft), 1000, 100));
#ifdef VLMEST_HAVE_CUDNN
  add("cudnn", version(cudnnGetVersion(), 10000, 100));
#endif
  add("cupti", cupti_version());
  add("compute_capability", std::to_string(cuda::sm()));
  add("multiprocessors", std::to_string(cuda::multiprocessors()));
  add("l2_bytes", std::to_string(cuda::l2_size().value()));
  std::size_t free = 0, total = 0;
  cuda::check(cudaMemGetInfo(&free, &total));
  add("memory_bytes", std::to_string(total));
  number("sm_clock_limit_mhz", bench.most_clock_mhz());
  const Settings& s = bench.settings();
  number("warm_up_ms", s.warm_up.ms());
  add("counters", s.counters ? (bench.no_counters().empty() ? "on" : bench.no_counters()) : "off");
  add("kernel_times", s.kernel_times ? (bench.no_kernel_times().empty() ? "on" : bench.no_kernel_times()) : "off");
  if (!s.device) return;
  add("predicted_for", s.device->name);
  const MeasuredCeilings& m = s.device->measured;
  if (m.dram_copy) number("measured_dram_copy_bytes_per_s", m.dram_copy->value);
  if (m.bf16) number("measured_bf16_flops_per_s", m.bf16->value);
}

}  // namespace vlmest::bench
