// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "forward.hpp"

namespace base {
inline int sum(const Box& a, const Box& b) { return a + b; }
}  // namespace base
