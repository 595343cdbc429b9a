// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/evidence/text/log_quantity.hpp>
#include <vlmest/diagnose/evidence/text/log_values.hpp>
#include <vlmest/diagnose/evidence/text/memory_series.hpp>

/// Tables whose first line names the columns, parted by commas or tabs: Lightning's CSVLogger, exports of wandb.
namespace vlmest::diagnose {

struct LogTable {
  struct Column {
    std::string label;  ///< plain_label
    memory_log::Quantity quantity = memory_log::Quantity::none;
  };
  char separator = ',';
  std::vector<Column> columns;
};

namespace log_table {

constexpr std::size_t most_columns = 512;

std::vector<std::string_view> cells(std::string_view line, char separator);

/// A cell that is one number, with a unit of size at most, NaN or an infinity.
std::optional<LogValue> value(std::string_view cell);

}  // namespace log_table

/// The columns, where a line is nothing but names and one of them is a quantity other than the step.
std::optional<LogTable> table_heading(std::string_view line);

/// A line of as many cells, where those of quantities are numbers or empty.
std::optional<MemoryRow> table_row(std::string_view line, const LogTable& t);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/text/impl/log_table.hpp>
#endif
