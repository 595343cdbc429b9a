// SPDX-License-Identifier: Apache-2.0
// rejected with: Overflow
#include <vlmest/unit/units.hpp>

using namespace vlmest;

#ifdef REJECT
constexpr auto bytes = Bytes(INT64_MAX) + Bytes(1);
#else
constexpr auto bytes = Bytes(INT64_MAX - 1) + Bytes(1);
#endif
