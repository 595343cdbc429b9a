// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "forward.hpp"
#include "primary.hpp"

namespace base {
inline int words() { return words_of<Box>; }
}  // namespace base
