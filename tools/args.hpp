// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include <vlmest/allocator/config.hpp>
#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/report/estimate.hpp>

namespace vlmest::tool {

enum class Format { text, json, markdown, csv };

}  // namespace vlmest::tool

namespace vlmest {
template <>
inline constexpr std::array<std::string_view, 4> words_of<tool::Format>{"text", "json", "markdown", "csv"};
}  // namespace vlmest

namespace vlmest::tool {

/// The format that the name of a file asks for: "markdown" of "x.md"; nothing where its ending says none.
std::optional<std::string> format_of_name(const std::string& file);

/// The format out of --format, --json and the name of --output, of which any may be missing: `fallback` where all are.
/// Throws UsageError where two of them contradict each other, or where the name asks for what is not in `known`.
std::string chosen_format(const CLI::App& app, const std::vector<std::string>& known, const std::string& fallback);

/// Where a command writes and how.
struct Output {
  Format format = Format::text;
  std::string file;  ///< empty: standard output
  std::string color = "auto";
  std::string flag = "--output";  ///< what named the file
  std::string asked;              ///< as --format names it

  void add_to(CLI::App& app);
  /// Decides the format, once the command line is read. Throws UsageError.
  void resolve(const CLI::App& app);
  /// Colours are wanted: on a terminal, unless NO_COLOR is set or --color says otherwise.
  bool colored() const;
  /// Throws Error where the file cannot be opened, WriteError where what is open cannot be written.
  void write(const std::string& text) const;
};

/// What `--alloc-conf` says, over `base`. Throws Error naming the flag.
allocator::AllocatorConfig allocator_settings(const std::string& text, const allocator::AllocatorConfig& base);

/// The flags of `estimate`, which other commands share.
struct EstimateArgs {
  std::string config;
  std::string device = "h200-sxm";
  std::string phase = "all";
  std::string image_size, video_size;
  std::vector<std::string> packages;
  std::vector<std::string> freeze;
  std::optional<std::int64_t> seq, text, images, frames, audio_clips, target, denoising_steps, instruction,
      checkpoint_layers;
  std::optional<double> fps, video_seconds, recorded_fps, audio_seconds;
  std::string dtype, weights, kv, attention = "sdpa", profile{name(Runtime{})}, logits = "last", optimizer = "adamw",
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

  /// The model, the device, and everything that decides what runs, with `phases` to choose from.
  void add_run_to(CLI::App& app, const std::vector<std::string>& phases, const std::string& phase_help);
  /// The same, and what is reported of it.
  void add_to(CLI::App& app);
  void add_alloc_conf_to(CLI::App& app);
  /// The plan that the flags ask for. Throws Error for values that contradict each other.
  Plan make_plan() const;
  /// The same for a model: without --dtype in the type that its config.json names; a plain language model has no
  /// images. Throws Error for flags that mean a part that the model lacks. Says on standard error what its
  /// config.json holds that has no effect.
  Plan make_plan(const Vlm& vlm) const;
  Phases phases() const;
};

}  // namespace vlmest::tool
