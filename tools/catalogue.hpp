// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// The shipped descriptions by the names that people use for them.
namespace vlmest::tool {

/// A shipped description: its file, its name, and what else it is called.
struct ShippedFile {
  std::filesystem::path file;
  std::string name;
  std::vector<std::string> aliases;  ///< a device's; a model's Hugging Face id
};

/// Names of the shipped descriptions in models/<kind>, sorted.
std::vector<std::string> shipped(const std::string& kind);

/// The same with their aliases. Throws Error for a description that is not JSON.
std::vector<ShippedFile> catalogue(const std::string& kind);

/// The file of the shipped model of that name, with or without ".json", or of that Hugging Face id, with or without its
/// organisation. Case does not matter.
std::optional<std::filesystem::path> shipped_model(const std::string& name);

/// The file of the shipped device of that name or alias. Case does not matter, and blanks and '_' are dashes.
std::optional<std::filesystem::path> shipped_device(const std::string& name);

/// A hint for a name that no shipped description has. For what looks like a Hugging Face id it says how to get the
/// config.json.
std::string did_you_mean_model(const std::string& name);
std::string did_you_mean_device(const std::string& name);

/// The entry of `known` that is written most like `word`, or an empty string where none is near.
std::string nearest(const std::string& word, const std::vector<std::string>& known);

}  // namespace vlmest::tool
