// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kernels/reference/rows.hpp>

#include <vlmest/op/gather.hpp>

namespace vlmest::kernels::reference {

/// out[i] = table[index[i]]; throws Error for an index outside the table.
inline std::vector<double> gather(const Gather& op, std::span<const double> table,
                                  std::span<const std::int64_t> index) {
  const auto from = rows_of(table, op.table_rows, op.width, "table");
  expect_size(index, op.rows, "index");
  std::vector<double> r;
  auto out = rows_of(r, op.rows, op.width);
  for (std::int64_t i = 0; i < op.rows; ++i) {
    const std::int64_t row = index[static_cast<std::size_t>(i)];
    if (row < 0 || row >= op.table_rows) throw Error("reference", "index " + std::to_string(row) + " is outside");
    out.row(i) = from.row(row);
  }
  return r;
}

}  // namespace vlmest::kernels::reference
