// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace vlmest::tool {

/// One line that names our flag for one that other programs have ("--batch-size", "--load_in_4bit"), where a command's
/// `known` flags hold it; an empty string for any other word.
std::string our_flag(const std::string& word, const std::vector<std::string>& known);

}  // namespace vlmest::tool
