// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace vlmest::tool {

/// Rows of text under headings. The first `left` columns are aligned left, numbers right.
struct Table {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
  std::size_t left = 1;
};

/// Columns padded to the same width, two blanks between them, no trailing blanks.
std::string text(const Table& t);
std::string markdown(const Table& t);
/// RFC 4180: quoted where needed.
std::string csv(const Table& t);

}  // namespace vlmest::tool
