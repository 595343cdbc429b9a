// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/library/rules.hpp>
#include <vlmest/unit/units.hpp>

namespace vlmest {

/// The workspace that PyTorch takes from its allocator at the first cuBLAS call of each stream and keeps
/// (aten/src/ATen/cuda/CublasHandlePool.cpp, parseChosenWorkspaceSize): KiB and how many of each.
constexpr Bytes cublas_workspace(int sm) {
  return Bytes(holds(ArchitectureRule::large_cublas_workspace, sm) ? 4096 * 1024 * 8 : 4096 * 1024 * 2 + 16 * 1024 * 8);
}

/// The second one, at the first cuBLASLt call of each stream: a linear layer with a bias in a half type takes that path
/// (same file, parseCUDABlasLtWorkspaceSize).
constexpr Bytes cublaslt_workspace() { return Bytes(1024 * 1024); }

}  // namespace vlmest
