// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <vlmest/allocator/config.hpp>
#include <vlmest/report/estimate.hpp>

namespace vlmest::tool {

enum class Format { text, json, markdown, csv };

/// Where a command writes and how.
struct Output {
  Format format = Format::text;
  std::string file;  ///< empty: standard output
  std::string color = "auto";
  std::string flag = "--output";  ///< what named the file

  void add_to(CLI::App& app);
  /// Colours are wanted: on a terminal, unless NO_COLOR is set or --color says otherwise.
  bool colored() const;
  void write(const std::string& text) const;
};

/// What `--alloc-conf` says, over `base`. Throws Error naming the flag.
allocator::AllocatorConfig allocator_settings(const std::string& text, const allocator::AllocatorConfig& base);

/// The flags of `estimate`, which other commands share.
struct EstimateArgs {
  std::string config;
  std::string device = "h200-sxm";
  std::string phase = "all";
  std::string image_size;
  std::vector<std::string> freeze;
  std::optional<std::int64_t> seq, text, checkpoint_layers;
  std::string dtype, weights, kv, attention = "sdpa", profile = "transformers", logits = "last", optimizer = "adamw",
                                  checkpointing = "none", loss = "unfused", input_gradients = "auto";
  std::vector<std::string> lora_targets;
  double lora_dropout = 0;
  Plan plan;
  bool per_layer = false;
  std::size_t top = 10;
  std::string fail_on;
  std::string alloc_conf;             ///< the text of PYTORCH_ALLOC_CONF
  std::string timeline;               ///< file; empty: none
  std::string timeline_min = "1MiB";  ///< size of the smallest tensor with a slice of its own

  /// The model, the device, and everything that decides what runs.
  void add_run_to(CLI::App& app);
  /// The same, the phases, and what is reported of them.
  void add_to(CLI::App& app);
  /// The plan that the flags ask for. Throws Error for values that contradict each other.
  Plan make_plan() const;
  /// The same for this model: without --dtype in the type that its config.json names. Says on standard error what its
  /// quantization_config holds that has no effect.
  Plan make_plan(const Vlm& vlm) const;
  Phases phases() const;
};

}  // namespace vlmest::tool
