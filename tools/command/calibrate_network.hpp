// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "args.hpp"

namespace vlmest::tool {

/// `vlmest calibrate --network`: the curves of a network, fitted to results of `vlmest bench --suite nccl`.
struct NetworkCalibration {
  std::vector<std::string> files;
  std::string network;     ///< a shipped one or a file: what the curves are put into
  std::string save, name;  ///< a file for the description with the new curves, and its name there
};

/// Writes a table of the curves. Throws Error where a file holds no collectives or more ranks than the network joins.
int calibrate_network(const NetworkCalibration& o, const Output& output);

}  // namespace vlmest::tool
