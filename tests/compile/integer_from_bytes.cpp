// SPDX-License-Identifier: Apache-2.0
// rejected with: cannot convert|no viable conversion
#include <vlmest/unit/units.hpp>

using namespace vlmest;

#ifdef REJECT
constexpr std::int64_t n = Bytes(1);
#else
constexpr std::int64_t n = Bytes(1).value();
#endif
