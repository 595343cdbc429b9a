// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace base {
template <HasWidth T>
int width(const T& t) {
  return t.width;
}
}  // namespace base
