// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace vlmest::tool {

/// Text as the content or the quoted attribute of an element of XML or HTML. Characters that XML does not allow at all
/// (controls other than tab and line feed) and bytes that are not UTF-8 become U+FFFD.
std::string escaped(std::string_view text);

}  // namespace vlmest::tool
