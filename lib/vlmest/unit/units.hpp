// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/unit/count.hpp>

namespace vlmest {

using Bytes = Count<struct BytesTag>;
using Elements = Count<struct ElementsTag>;
using Macs = Count<struct MacsTag>;    ///< fused multiply-adds
using Flops = Count<struct FlopsTag>;  ///< floating-point operations, two for each multiply-add

/// The only place where a multiply-add becomes two operations.
constexpr Flops flops(Macs m) { return Flops(m.value()) * 2; }

namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return Bytes(n); }
constexpr Bytes operator""_KiB(unsigned long long n) { return Bytes(n) * 1024; }
constexpr Bytes operator""_MiB(unsigned long long n) { return Bytes(n) * (1 << 20); }
constexpr Bytes operator""_GiB(unsigned long long n) { return Bytes(n) * (1 << 30); }
}  // namespace literals

}  // namespace vlmest
