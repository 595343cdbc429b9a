// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <vlmest/parallel/layout.hpp>

#include "flag_rules.hpp"

namespace vlmest::tool {

/// The flags that lay a run out over several GPUs.
struct ParallelArgs {
  std::string mesh;  ///< "dp=2,tp=4"
  std::optional<int> gpus;
  std::string shard = "none", reshard = "on", param_dtype, reduce_dtype, schedule = "1f1b", tower = "shard";
  std::string network;  ///< a name or a file; empty: the device's own links
  bool bucket_views = false, sequence_parallel = false;
  std::optional<std::int64_t> micro_batches;
  std::vector<std::string> stages;

  void add_to(CLI::App& app);
  /// What the flags say. Throws UsageError or CLI::ValidationError for what cannot be read or contradicts itself.
  parallel::Layout layout() const;
};

/// As --schedule takes it.
std::string schedule_word(const parallel::Schedule& s);

/// The flags that say it.
std::string layout_flags(const parallel::Layout& l);

/// Flags that would change nothing with this layout are refused. Throws UsageError.
void check_parallel_flags(const GivenFlags& given, const parallel::Layout& layout, const AskedPhases& phases);

}  // namespace vlmest::tool
