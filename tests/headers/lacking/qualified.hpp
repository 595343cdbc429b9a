// SPDX-License-Identifier: Apache-2.0
#pragma once

template <class T>
int area_of_any(const T& t) {
  return base::area(t);
}
