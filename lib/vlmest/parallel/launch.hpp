// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <vlmest/graph/graph.hpp>
#include <vlmest/parallel/layout.hpp>
#include <vlmest/parallel/network.hpp>
#include <vlmest/plan/plan.hpp>

/// How a layout over GPUs is asked for: command lines, lines of a script and configurations.
namespace vlmest::parallel {

/// One way to write it down, for one tool.
struct Launch {
  std::string_view tool;  ///< torchrun, python, accelerate, deepspeed, megatron
  std::string text;       ///< a command line, lines of Python or JSON
};

/// The lists of modules whose members are units of fully_shard: "model.visual.blocks".
std::vector<std::string> layer_lists(const Graph& g);

/// What runs the layout, beginning with torchrun's command line (torch/distributed/run.py) and the lines of the script
/// that it starts, train.py; `model` and `optimizer` are that script's. What a tool cannot do is left out, so nothing
/// is returned on one GPU.
///
/// accelerate: accelerate 1.15, commands/launch.py. deepspeed: ds_config.json, as DeepSpeed 0.19.6 reads it
/// (runtime/config.py, runtime/zero/config.py). megatron: arguments of Megatron-LM's pretraining scripts
/// (megatron/training/arguments.py), which divide the model likewise; its memory is not what is estimated.
std::vector<Launch> launch(const Layout& l, const Plan& plan, const Network& network, const Graph& g, bool has_tower,
                           bool training);

}  // namespace vlmest::parallel

#ifndef VLMEST_COMPILED
#include <vlmest/parallel/impl/launch.hpp>
#endif
