// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace base {
inline int side() { return right; }
}  // namespace base
