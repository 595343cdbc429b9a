// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include <zlib.h>

namespace conformance {

/// The lines of a recorded trace; a compressed file (gzip) is inflated, another one read as it is.
inline std::istringstream text_of(const std::string& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) throw std::runtime_error("cannot read " + path);
  std::string text;
  std::array<char, 1 << 16> piece;
  int read = 0;
  while ((read = gzread(file, piece.data(), piece.size())) > 0)
    text.append(piece.data(), static_cast<std::size_t>(read));
  gzclose(file);
  if (read < 0) throw std::runtime_error(path + " cannot be inflated");
  return std::istringstream(std::move(text));
}

}  // namespace conformance
