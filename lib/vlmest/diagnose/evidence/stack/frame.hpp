// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace vlmest::diagnose {

/// A line of a Python (or C++) stack, of a traceback or of a memory snapshot.
struct Frame {
  std::string file;
  std::int64_t line = 0;
  std::string function;
  std::string code;  ///< the source line, where a traceback shows it
  bool operator==(const Frame&) const = default;
};

}  // namespace vlmest::diagnose
