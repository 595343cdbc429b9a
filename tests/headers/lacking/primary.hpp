// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace base {
template <class T>
inline constexpr int words_of = 0;
}
