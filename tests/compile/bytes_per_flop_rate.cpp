// SPDX-License-Identifier: Apache-2.0
// rejected with: no match for 'operator|invalid operands
#include <vlmest/unit/rate.hpp>

using namespace vlmest;

#ifdef REJECT
constexpr auto time = Bytes(1) / FlopRate{1};
#else
constexpr auto time = Bytes(1) / Bandwidth{1};
#endif
