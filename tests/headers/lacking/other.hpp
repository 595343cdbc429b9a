// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace base {

struct Other {};

inline int area(const Other&) { return 0; }

}  // namespace base
