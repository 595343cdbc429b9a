// SPDX-License-Identifier: Apache-2.0
// rejected with: no match for 'operator|invalid operands
#include <vlmest/unit/units.hpp>

using namespace vlmest;

#ifdef REJECT
constexpr auto sum = Bytes(1) + 2;
#else
constexpr auto sum = Bytes(1) + Bytes(2);
#endif
