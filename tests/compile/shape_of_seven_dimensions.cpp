// SPDX-License-Identifier: Apache-2.0
// rejected with: more than six dimensions
#include <vlmest/tensor/shape.hpp>

using namespace vlmest;

#ifdef REJECT
constexpr Shape shape{1, 2, 3, 4, 5, 6, 7};
#else
constexpr Shape shape{1, 2, 3, 4, 5, 6};
#endif
