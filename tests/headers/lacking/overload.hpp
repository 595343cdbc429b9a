// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "forward.hpp"
#include "other.hpp"

namespace base {
inline int area_of(const Box& b) { return area(b); }
}  // namespace base
