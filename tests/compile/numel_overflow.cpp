// SPDX-License-Identifier: Apache-2.0
// rejected with: Overflow
#include <vlmest/tensor/shape.hpp>

using namespace vlmest;

#ifdef REJECT
constexpr auto n = numel(Shape{1 << 30, 1 << 30, 1 << 30});
#else
constexpr auto n = numel(Shape{1 << 30, 1 << 30});
#endif
