// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vlmest::tool {

/// A whole number in plain decimal digits: "8", "010" (ten). Nothing for anything else: signs but one '-', blanks, hex,
/// underscores, exponents, fractions, and what a signed 64-bit integer cannot hold.
std::optional<std::int64_t> whole_number(std::string_view text);

/// A finite number in plain decimal digits, with a point or without: "24", "0.5". No sign but '-', no exponent, no
/// "nan", no "inf".
std::optional<double> decimal_number(std::string_view text);

/// "0.1", "1": without needless digits.
std::string plain(double x);

}  // namespace vlmest::tool
