// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "forward.hpp"

namespace base {
inline int of_reference(const Box& b) { return area(b); }
}  // namespace base
