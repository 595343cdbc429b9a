// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include <vlmest/device/device.hpp>

namespace vlmest::parallel {

/// To and from pinned memory of the host, one direction: as measured, or the link's own rate.
inline Bandwidth host_link(const Device& d) { return d.measured.host_link.value_or(d.host_link); }

/// To the other GPUs of a host, one direction. SXM modules have NVLink: 6 links of 25 GB/s a direction on V100 (NVIDIA
/// Tesla V100 whitepaper, WP-08608-001), 12 on A100 and 18 on Hopper (NVIDIA H100 whitepaper v1.04, "Fourth-Generation
/// NVLink"), 18 of 50 GB/s on Blackwell (NVIDIA Blackwell architecture brief, "Fifth-Generation NVLink"). Everything
/// else goes over the host's link.
Bandwidth peer_link(const Device& d);

/// The name of the shipped network (models/network) that joins such GPUs: NVLink of the module's generation, or the
/// host's PCI Express.
std::string own_network(const Device& d);

}  // namespace vlmest::parallel

#ifndef VLMEST_COMPILED
#include <vlmest/parallel/impl/link.hpp>
#endif
