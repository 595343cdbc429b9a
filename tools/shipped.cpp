// SPDX-License-Identifier: Apache-2.0
#include "shipped.hpp"

#include <cstdlib>
#include <system_error>

namespace vlmest::tool {

std::filesystem::path shipped_models() {
  if (const char* chosen = std::getenv("VLMEST_MODELS"); chosen != nullptr && *chosen != '\0') return chosen;
  // Relative to the program and not the configured prefix, so that a moved install tree still works.
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  auto installed = (program.parent_path() / VLMEST_INSTALLED_MODELS).lexically_normal();
  if (!program.empty() && std::filesystem::is_directory(installed, ignored)) return installed;
  return VLMEST_SOURCE_MODELS;
}

std::string_view version() { return VLMEST_VERSION; }

}  // namespace vlmest::tool
