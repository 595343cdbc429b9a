// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include <CLI/CLI.hpp>

namespace vlmest::tool {

/// Exit codes of every command.
enum Exit : int { done = 0, no = 1, usage = 2, unreadable = 3, internal = 4 };

/// What runs when the parsed command is `app`; returns the exit code.
using Action = std::function<int()>;

/// Each adds its subcommand to `app` and sets `action` when it is chosen.
void add_estimate(CLI::App& app, Action& action);
void add_op(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_calibrate(CLI::App& app, Action& action);
void add_roofline(CLI::App& app, Action& action);
void add_replay(CLI::App& app, Action& action);
void add_diagnose(CLI::App& app, Action& action);
void add_plan(CLI::App& app, Action& action);
void add_watch(CLI::App& app, Action& action);
void add_validate(CLI::App& app, Action& action);
void add_models(CLI::App& app, Action& action);
void add_devices(CLI::App& app, Action& action);
void add_completion(CLI::App& app, Action& action);

}  // namespace vlmest::tool
