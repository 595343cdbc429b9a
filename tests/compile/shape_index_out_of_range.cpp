// SPDX-License-Identifier: Apache-2.0
// rejected with: dimension index out of range
#include <vlmest/tensor/shape.hpp>

using namespace vlmest;

#ifdef REJECT
constexpr auto n = Shape{2, 3}[-3];
#else
constexpr auto n = Shape{2, 3}[-2];
#endif
