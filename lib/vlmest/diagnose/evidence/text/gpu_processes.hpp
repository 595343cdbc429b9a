// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <vlmest/unit/units.hpp>

/// Who holds a GPU: the lower half of nvidia-smi's table, and
/// nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv.
namespace vlmest::diagnose {

struct GpuProcess {
  std::int64_t pid = 0;
  std::optional<std::int64_t> gpu;
  Bytes used{};
};

namespace gpu_processes {

inline constexpr std::size_t most = 256;

/// "|    0   N/A  N/A     11873      C   python      61220MiB |", with the columns of the instance or without.
std::optional<GpuProcess> table_row(std::string_view line);

}  // namespace gpu_processes

/// At most 256 of them. The first 4 MiB of the text are looked at: what is longer is no such list.
std::vector<GpuProcess> find_gpu_processes(std::string_view text);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/text/impl/gpu_processes.hpp>
#endif
