// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace vlmest::tool {

/// What a report shows.
struct ReportOptions {
  bool inference = true;
  bool training = true;
  bool per_layer = false;
  std::size_t top = 10;  ///< tensors of the peak that are listed
  bool color = false;
  bool unicode = false;
  std::string no_training;  ///< why training was asked for and is not there
};

}  // namespace vlmest::tool
