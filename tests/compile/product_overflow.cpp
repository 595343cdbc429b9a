// SPDX-License-Identifier: Apache-2.0
// rejected with: Overflow
#include <vlmest/unit/units.hpp>

using namespace vlmest;

#ifdef REJECT
constexpr auto bytes = Bytes(std::int64_t{1} << 62) * 2;
#else
constexpr auto bytes = Bytes(std::int64_t{1} << 61) * 2;
#endif
