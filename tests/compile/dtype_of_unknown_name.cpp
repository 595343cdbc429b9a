// SPDX-License-Identifier: Apache-2.0
// rejected with: unknown type
#include <vlmest/tensor/dtype.hpp>

using namespace vlmest;

#ifdef REJECT
constexpr auto type = parse_dtype("bf17");
#else
constexpr auto type = parse_dtype("bf16");
#endif
