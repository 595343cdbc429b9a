// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/device/link.hpp>

namespace vlmest::parallel {

using vlmest::host_link;
using vlmest::peer_link;

}  // namespace vlmest::parallel
