// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include <vlmest/device/device.hpp>
#include <vlmest/nn/vlm.hpp>
#include <vlmest/parallel/network.hpp>

namespace vlmest::tool {

/// The model that `--config` names: a description, a config.json or a folder that holds one; a bare name is also looked
/// up among the shipped models, and so is a Hugging Face id. "-" reads standard input.
Vlm find_model(const std::string& config);

/// Where the description of the device that `--device` names is; "-" stays.
std::filesystem::path device_file(const std::string& device);

/// The device that `--device` names: a shipped one or a file.
Device find_device(const std::string& device);

/// Where the description of the network that `--network` names is; "-" stays.
std::filesystem::path network_file(const std::string& network);

/// The network that `--network` names: a shipped one or a file; without a name the device's own.
parallel::Network find_network(const std::string& network, const Device& device);

/// The whole of a file, or of standard input for "-": at most 64 MiB. Throws Error where it cannot be read or is
/// larger.
std::string read_file(const std::string& path);

}  // namespace vlmest::tool
