// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <vlmest/device/device.hpp>

namespace vlmest {

/// To and from pinned memory of the host, one direction: as measured, or the link's own rate.
inline Bandwidth host_link(const Device& d) { return d.measured.host_link.value_or(d.host_link); }

/// To the other GPUs of a host, one direction. SXM modules have NVLink: 6 links of 25 GB/s a direction on V100 (NVIDIA
/// Tesla V100 whitepaper, WP-08608-001), 12 on A100 and 18 on Hopper (NVIDIA H100 whitepaper v1.04, "Fourth-Generation
/// NVLink"), 18 of 50 GB/s on Blackwell (NVIDIA Blackwell architecture brief, "Fifth-Generation NVLink"). Everything
/// else goes over the host's link.
inline Bandwidth peer_link(const Device& d) {
  if (std::string_view(d.product).find("SXM") == std::string_view::npos) return host_link(d);
  switch (d.sm / 10) {
    case 7: return {6 * 25e9};
    case 8: return {12 * 25e9};
    case 9: return {18 * 25e9};
    case 10: return {18 * 50e9};
    default: return host_link(d);
  }
}

}  // namespace vlmest
