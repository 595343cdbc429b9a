// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <vlmest/unit/units.hpp>

namespace vlmest::tool {

/// What the driver says of one GPU: as `nvidia-smi` does, over all processes.
struct NvmlReading {
  unsigned index = 0;  ///< NVML's number, by PCI bus; CUDA_VISIBLE_DEVICES does not change it
  Bytes used{}, total{};
  std::optional<double> utilization;  ///< share of the last sample period with a kernel running, 0 to 1
};

/// NVIDIA's management library, loaded when it is asked for: the program runs without a driver, too.
class Nvml {
 public:
  /// Loads libnvidia-ml.so.1 where the dynamic linker finds it. Throws Error where there is none, it lacks a function,
  /// or the driver does not answer.
  Nvml();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// Every GPU that tells its memory. Throws Error where none does.
  std::vector<NvmlReading> read() const;

 private:
  struct Functions;
  struct Close {
    void operator()(void* library) const;
  };
  std::unique_ptr<void, Close> library_;
  std::unique_ptr<Functions> functions_;
};

}  // namespace vlmest::tool
