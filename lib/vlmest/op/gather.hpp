// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/op/memory.hpp>

namespace vlmest {

/// Rows of a table by number: out[i] = table[index[i]], aten embedding and index_select. `rows` of the `table_rows` are
/// taken, each `width` wide. A row that is asked for twice counts twice: which ones are is not known beforehand.
struct Gather {
  std::int64_t rows = 1;
  std::int64_t width = 1;
  std::int64_t table_rows = 1;
  DType dtype = DType::bf16;
  DType index = DType::int64;
};

constexpr MemoryOp memory_op(const Gather& o) {
  const Bytes moved = size_of(Elements(checked_mul(o.rows, o.width)), o.dtype);
  return {
      .read = moved + size_of(Elements(o.rows), o.index), .written = moved, .dtype = o.dtype, .access = Access::gather};
}
constexpr Cost cost(const Gather& o) { return cost(memory_op(o)); }

}  // namespace vlmest
