// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include <cuda_runtime.h>

#include <vlmest/op/gather.hpp>

namespace vlmest::kernels {

/// Device memory of one call.
struct GatherOperands {
  const void* table = nullptr;          ///< [table_rows, width]
  const std::int64_t* index = nullptr;  ///< [rows]
  void* out = nullptr;                  ///< [rows, width]
};

/// Rows of a table by int64 number, in one kernel: an embedding's forward. The row of a number outside the table
/// becomes NaN (0xFF in every byte) instead of something that happens to lie there.
class RowGather {
 public:
  /// Any type of whole bytes. Throws Error for half bytes and for indices other than int64.
  explicit RowGather(const Gather& op);

  std::string_view name() const { return "own"; }
  Bytes workspace() const { return {}; }
  void operator()(const GatherOperands& operands, cudaStream_t stream) const;

 private:
  Gather op_;
};

}  // namespace vlmest::kernels
