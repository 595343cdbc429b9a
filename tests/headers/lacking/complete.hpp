// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "forward.hpp"

namespace base {

struct Boxes {
  Box boxes[2];
};

Box made();
inline void make() { made(); }

}  // namespace base
