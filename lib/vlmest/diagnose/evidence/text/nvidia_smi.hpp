// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/evidence/text/log_prefix.hpp>
#include <vlmest/diagnose/evidence/text/memory_series.hpp>

/// nvidia-smi --query-gpu=...memory.used,memory.total... --format=csv[,noheader][,nounits]; its table; gpustat's lines.
/// MiB are meant everywhere.
namespace vlmest::diagnose {

/// Columns of a CSV by what they hold; -1 where there is none.
struct SmiColumns {
  int used = -1, total = -1, free = -1, reserved = -1, index = -1, time = -1;
  bool any() const { return used >= 0 || free >= 0; }
};

namespace nvidia_smi {

constexpr std::size_t most_cells = 64;

std::vector<std::string_view> cells(std::string_view line);

/// "12345", "12345 MiB" and nothing else.
std::optional<std::int64_t> mebibytes(std::string_view cell, bool needs_unit);

}  // namespace nvidia_smi

/// The columns of a heading such as "timestamp, index, memory.used [MiB], memory.total [MiB]".
std::optional<SmiColumns> smi_heading(std::string_view line);

/// The columns of a line without a heading: two cells of MiB, the larger one the total; without units, two whole
/// numbers above 500 in a line of numbers, a name and a time at most.
std::optional<SmiColumns> smi_columns_of(std::string_view line);

std::optional<MemoryRow> smi_row(std::string_view line, const SmiColumns& c);

/// "| 30%  45C  P2  200W / 300W |  12345MiB / 24576MiB | ..." and gpustat's "12345 / 40960 MB".
std::optional<MemoryRow> smi_table_row(std::string_view line);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/text/impl/nvidia_smi.hpp>
#endif
