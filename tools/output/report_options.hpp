// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace vlmest::tool {

/// What a report shows.
struct ReportOptions {
  bool inference = true;
  bool training = true;
  bool verbose = false;    ///< every table, below the answer
  bool per_layer = false;  ///< the table of layers, one by one
  std::size_t top = 10;    ///< tensors of the peak that are listed
  bool tensors = false;    ///< their list was asked for
  bool device_assumed = false;
  bool color = false;
  bool unicode = false;
  std::string no_training;  ///< why training was asked for and is not there
};

}  // namespace vlmest::tool
