// SPDX-License-Identifier: Apache-2.0
// rejected with: no match for 'operator|invalid operands
#include <vlmest/unit/units.hpp>

using namespace vlmest;

#ifdef REJECT
constexpr bool less = Flops(1) < Macs(1);
#else
constexpr bool less = Flops(1) < flops(Macs(1));
#endif
