// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <vlmest/device/device.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::tool {

/// The model that `--config` names: a description, a config.json or a folder that holds one; a bare name is also looked
/// up among the shipped models. "-" reads standard input.
Vlm find_model(const std::string& config);

/// Where the description of the device that `--device` names is; "-" stays.
std::filesystem::path device_file(const std::string& device);

/// The device that `--device` names: a shipped one or a file.
Device find_device(const std::string& device);

/// Names of the shipped descriptions in models/<kind>, sorted.
std::vector<std::string> shipped(const std::string& kind);

/// The whole of a file, or of standard input for "-". Throws Error where it cannot be read.
std::string read_file(const std::string& path);

/// The entry of `known` that is written most like `word`, or an empty string where none is near.
std::string nearest(const std::string& word, const std::vector<std::string>& known);

}  // namespace vlmest::tool
