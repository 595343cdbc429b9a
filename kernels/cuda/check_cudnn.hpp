// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include <cudnn.h>
#include <kernels/cuda/check.hpp>

namespace vlmest::cuda {

/// Throws Error where a call of cuDNN failed, with the explanation that cuDNN keeps for the calling thread.
inline void check(cudnnStatus_t status, std::source_location where = std::source_location::current()) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 1024> text{};
  cudnnGetLastErrorString(text.data(), text.size());
  const std::string details(text.data());
  throw Error(spelt(where), cudnnGetErrorString(status) + (details.empty() ? details : ", " + details));
}

}  // namespace vlmest::cuda
