// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace base {
inline Length length() { return 1; }
}  // namespace base
