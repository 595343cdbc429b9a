// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace vlmest::tool {

/// What --help prints of a command: its flags in their groups, no line wider than 100 columns.
std::string help_text(const CLI::App& app);

/// What the program prints when it is called with nothing.
std::string short_help();

}  // namespace vlmest::tool
