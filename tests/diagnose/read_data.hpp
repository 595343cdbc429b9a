// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

/// A file under tests/data.
inline std::string read_data(const std::string& file) {
  std::ifstream in(VLMEST_SOURCE_DIR "/tests/data/" + file, std::ios::binary);
  EXPECT_TRUE(in.good()) << file;
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}
