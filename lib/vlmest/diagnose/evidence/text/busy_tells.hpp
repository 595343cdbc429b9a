// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include <vlmest/diagnose/evidence/text/sentence.hpp>
#include <vlmest/diagnose/evidence/text/size_text.hpp>

/// What sentences tell of who works and who waits, of a CPU and a GPU. All take a line in lower case, as plain() makes
/// it.
namespace vlmest::diagnose::story {

/// The least percentage of a line; 101 where it has none.
inline int least_percentage(std::string_view low) {
  int least = 101;
  for (auto at = low.find('%'); at != std::string_view::npos; at = low.find('%', at + 1)) {
    std::size_t begin = at;
    while (begin > 0 && at - begin < 3 && is_digit(low[begin - 1])) --begin;
    if (begin == at || (begin > 0 && (low[begin - 1] == '.' || is_digit(low[begin - 1])))) continue;
    int n = 0;
    for (std::size_t i = begin; i < at; ++i) n = n * 10 + (low[i] - '0');
    if (n < least) least = n;
  }
  return least;
}

/// Whether a sentence says that a CPU, or one of its cores, is at its limit.
inline bool speaks_of_full_cpu(std::string_view low) {
  return has_any(low, {"cpu"}) && has_any(low, {"100%", "fully", "maxed", "saturated", "full load", "single core",
                                                "single-core", "one core", "单核", "单线程", "跑满", "占满", "满载"});
}

/// Whether a sentence says that a GPU has little to do: a utilisation below a half, or idleness.
inline bool speaks_of_idle_gpu(std::string_view low) {
  if (!has_any(low, {"gpu", "显卡"})) return false;
  if (has_any(low, {"underutil", "under-util", "low util", " idle", "闲置", "空闲"})) return true;
  return has_any(low, {"utiliz", "utilis", "usage", "gpu-util", "gpu load", "利用率", "使用率"}) &&
         !has_any(low, {"memory util", "memory usage", "vram", "显存"}) && least_percentage(low) < 50;
}

/// Whether a sentence says that a GPU waits for its inputs.
inline bool speaks_of_gpu_that_waits(std::string_view low) {
  return has_any(low, {"gpu", "显卡"}) &&
         has_any(low,
                 {"waiting for data", "wait for data", "waits for data", "waiting on data", "waiting for the data",
                  "starved", "starving", "starvation", "waiting for input", "waiting for batch", "等待数据", "等数据"});
}

}  // namespace vlmest::diagnose::story
