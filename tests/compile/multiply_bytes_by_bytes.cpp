// SPDX-License-Identifier: Apache-2.0
// rejected with: no match for 'operator|invalid operands
#include <vlmest/unit/units.hpp>

using namespace vlmest;

#ifdef REJECT
constexpr auto product = Bytes(3) * Bytes(2);
#else
constexpr auto product = Bytes(3) * 2;
#endif
