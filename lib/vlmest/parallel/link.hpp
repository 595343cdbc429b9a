// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/device/link.hpp>

namespace vlmest::parallel {

using vlmest::host_link;
using vlmest::peer_link;

/// The name of the shipped network (models/network) that joins such GPUs: NVLink of the module's generation, or the
/// host's PCI Express.
std::string own_network(const Device& d);

}  // namespace vlmest::parallel

#ifndef VLMEST_COMPILED
#include <vlmest/parallel/impl/link.hpp>
#endif
