// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "forward.hpp"

namespace base {
inline int width(const Box& b) { return b.width; }
}  // namespace base
