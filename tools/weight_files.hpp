// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <vlmest/nn/vlm.hpp>

#include "args.hpp"

namespace vlmest::tool {

/// The weights that lie beside a checkpoint's config.json.
struct WeightFiles {
  Bytes bytes{};     ///< of their tensors
  std::string path;  ///< of the file that says so
};

/// What a folder's model.safetensors.index.json says of all shards (`metadata.total_size`, huggingface_hub,
/// serialization/_base.py), or how much of model.safetensors are tensors; nothing where neither is there. Throws Error
/// where one is there and does not say it.
std::optional<WeightFiles> weight_files(const std::filesystem::path& folder);

/// Says on standard error where a checkpoint's weights are not those that the estimate counts: evidence that a key was
/// understood otherwise, that the files hold modules that are not loaded, or that they are kept in another type.
void compare_weight_files(const EstimateArgs& args, const Vlm& vlm, Plan plan);

}  // namespace vlmest::tool
