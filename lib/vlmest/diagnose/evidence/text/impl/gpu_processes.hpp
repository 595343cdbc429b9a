// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/evidence/text/gpu_processes.hpp>
#include <vlmest/diagnose/evidence/text/log_text.hpp>
#include <vlmest/diagnose/evidence/text/nvidia_smi.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace gpu_processes {

VLMEST_INLINE std::optional<GpuProcess> table_row(std::string_view line) {
  if (!line.starts_with("|") || line.find('/', line.find("MiB")) != std::string_view::npos) return std::nullopt;
  const auto unit = line.rfind("MiB");
  if (unit == std::string_view::npos) return std::nullopt;
  const auto used = size_before(line, unit + 3);
  if (!used || !used->size) return std::nullopt;
  GpuProcess p{.used = used->size->value};
  bool pid = false;
  for (std::size_t i = 1; i < used->at && !pid;) {
    if (!is_digit(line[i])) {
      ++i;
      continue;
    }
    const auto begin = i;
    std::int64_t n = 0;
    while (i < used->at && is_digit(line[i]) && i - begin < 12) n = n * 10 + (line[i++] - '0');
    if (!is_blank(line[begin - 1]) || i >= line.size() || !is_blank(line[i])) return std::nullopt;
    if (!p.gpu)
      p.gpu = n;
    else
      pid = (p.pid = n) > 0;
  }
  return pid ? std::optional(p) : std::nullopt;
}

}  // namespace gpu_processes

VLMEST_INLINE std::vector<GpuProcess> find_gpu_processes(std::string_view text) {
  std::vector<GpuProcess> found;
  text = text.substr(0, 4 << 20);
  int pid = -1, used = -1;
  for (std::size_t at = 0; at < text.size() && found.size() < gpu_processes::most;) {
    const auto line = next_line(text, at);
    if (line.find("used_gpu_memory") != std::string_view::npos || line.find("used_memory") != std::string_view::npos) {
      const auto cells = nvidia_smi::cells(line);
      pid = used = -1;
      for (std::size_t i = 0; i < cells.size(); ++i) {
        if (cells[i] == "pid") pid = static_cast<int>(i);
        if (cells[i].starts_with("used_")) used = static_cast<int>(i);
      }
      continue;
    }
    if (pid >= 0 && used >= 0) {
      const auto cells = nvidia_smi::cells(line);
      if (cells.size() > static_cast<std::size_t>(std::max(pid, used))) {
        const auto n = nvidia_smi::mebibytes(cells[static_cast<std::size_t>(pid)], false);
        const auto m = nvidia_smi::mebibytes(cells[static_cast<std::size_t>(used)], false);
        if (n && m) found.push_back({.pid = *n, .used = Bytes(*m << 20)});
      }
    } else if (const auto p = gpu_processes::table_row(line)) {
      found.push_back(*p);
    }
  }
  return found;
}

}  // namespace vlmest::diagnose
