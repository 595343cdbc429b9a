// SPDX-License-Identifier: Apache-2.0
// rejected with: no matching function
#include <vlmest/unit/units.hpp>

using namespace vlmest;

#ifdef REJECT
constexpr auto bytes = Bytes(1.5);
#else
constexpr auto bytes = Bytes(1);
#endif
