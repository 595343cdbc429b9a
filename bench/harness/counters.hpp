// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <vlmest/op/cost.hpp>

namespace vlmest::bench {

/// The hardware counters of one point, by CUPTI's names: bytes read from and written to DRAM, bytes asked of the L2
/// cache, nanoseconds, and operations of the tensor cores on operands of the op's type.
struct CounterNames {
  static constexpr std::array<const char*, 4> always{"dram__bytes_read.sum", "dram__bytes_write.sum",
                                                     "lts__t_bytes.sum", "gpu__time_duration.sum"};
};

/// The tensor cores' counters for products of `type`, which add up; empty where there is none. That of all fp16
/// products takes two passes, so it stands here in two halves: Hopper's warpgroup instructions, and the older ones with
/// fp32 sums.
inline std::vector<const char*> tensor_counters(DType type) {
  switch (type) {
    case DType::bf16: return {"sm__ops_path_tensor_src_bf16_dst_fp32.sum"};
    case DType::fp16:
      return {"sm__ops_path_tensor_op_hgmma_src_fp16.sum", "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32.sum"};
    case DType::tf32: return {"sm__ops_path_tensor_src_tf32_dst_fp32.sum"};
    case DType::fp8: return {"sm__ops_path_tensor_src_fp8.sum"};
    default: return {};
  }
}

/// "130001" for CUPTI of CUDA 13.0; empty in a build without it.
std::string cupti_version();

/// The counters to read for an op of this cost.
std::vector<const char*> counter_names(const Cost& cost);

/// How a chip's counters are to be set for some names: made on the host alone, no GPU is needed.
class CounterConfig {
 public:
  /// `chip` as CUPTI calls it: GH100 is H100, H200 and GH200. `available` is what a device says of its counters; empty
  /// for what CUPTI knows of the chip. Throws Error for a chip or a counter that CUPTI does not know.
  CounterConfig(const std::string& chip, std::vector<const char*> names,
                const std::vector<std::uint8_t>& available = {});
  CounterConfig(const CounterConfig&) = delete;
  CounterConfig& operator=(const CounterConfig&) = delete;
  ~CounterConfig();

  /// How often the work would have to run to read all of them.
  std::size_t passes() const { return passes_; }
  const std::vector<const char*>& names() const { return names_; }
  std::vector<std::uint8_t>& image() { return image_; }
  /// The counters' values over the only range of a decoded data image, in the order of names().
  std::vector<double> values(const std::vector<std::uint8_t>& data) const;

 private:
  std::vector<const char*> names_;
  std::vector<std::uint8_t> image_;
  std::size_t passes_ = 0;
  struct Host;
  std::unique_ptr<Host> host_;
};

/// What the counters say of one call.
struct Counted {
  double dram_read = 0, dram_written = 0, l2 = 0;
  double duration_us = 0;
  double tensor_ops = -1;  ///< negative: the op has none
};

/// Reads counters of the current CUDA device through CUPTI's range profiler.
class Counters {
 public:
  /// Throws Error with a hint where the device, the driver or the process's rights do not allow it.
  Counters();

  const std::string& chip() const { return chip_; }

  /// Runs `work`, which makes `calls` calls and waits for them, once as one range, and divides by the calls. Nothing is
  /// replayed. Throws Error where CUPTI fails.
  Counted measure(const Cost& cost, int calls, const std::function<void()>& work) const;

 private:
  std::string chip_;
  std::vector<std::uint8_t> available_;
};

}  // namespace vlmest::bench
