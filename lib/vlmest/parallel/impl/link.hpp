// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/parallel/link.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::parallel {

VLMEST_INLINE std::string own_network(const Device& d) {
  if (std::string_view(d.product).find("SXM") != std::string_view::npos) switch (d.sm / 10) {
      case 7: return "nvlink2";
      case 8: return "nvlink3";
      case 9: return "nvlink4";
      case 10: return "nvlink5";
      default: break;
    }
  return d.host_link.value > 40e9 ? "pcie5" : d.host_link.value > 20e9 ? "pcie4" : "pcie3";
}

}  // namespace vlmest::parallel
