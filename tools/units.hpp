// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/unit/rate.hpp>

namespace vlmest::tool {

/// "15.9 GiB", "512 B": three significant digits, binary units.
std::string show(Bytes b);
/// "7.06 B" of parameters, "40.2 T" of FLOPs: three significant digits, powers of ten.
std::string show_count(std::int64_t n);
/// "53.1 ms", "870 us".
std::string show(Seconds s);
/// The same, and "-" where there is nothing.
std::string nothing_or(Bytes b);
std::string nothing_or(Seconds s);
std::string nothing_or(Flops f);
/// Six significant digits: beyond them the logarithms of one processor's mathematical library differ from another's,
/// and what is printed must not.
double significant(double x);
/// "12,345"
std::string grouped(std::int64_t n);

/// "80GiB" is 80 * 2^30 bytes, "80GB" 80 * 10^9; blanks before the unit and its case do not matter. Throws Error naming
/// `where` for anything else, a number without a unit or with half of one ("24", "24G") among it.
Bytes parse_size(const std::string& text, const std::string& where);

}  // namespace vlmest::tool
