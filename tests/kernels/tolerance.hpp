// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>

#include <vlmest/tensor/dtype.hpp>

namespace vlmest::kernels {

struct Tolerance {
  DType dtype;
  double relative;  ///< of norm(out - reference) / norm(reference)
};

/// What a correct kernel stays below when the reference is given the inputs as they are after rounding to the type. A
/// bound of ours, set by reasoning, not by what the kernels happen to reach. u: half the spacing of the type's numbers
/// at 1, the largest relative error of one rounding.
inline constexpr std::array<Tolerance, 9> tolerances{{
    // Products summed in double, thousands of terms: about u * sqrt(terms), u = 1.1e-16.
    {DType::fp64, 1e-13},
    // Sums of up to 16,384 terms in some order: u * sqrt(terms) = 7.6e-6 with u = 6e-8, and exp and rsqrt of 2 ulp.
    {DType::fp32, 2e-5},
    // Tensor cores read the upper 10 bits of the mantissa. Whether the library rounds or cuts off the rest, each of the
    // two factors of a product is off by at most 2^-10.
    {DType::tf32, 2e-3},
    // One rounding of the result and one of an intermediate (probabilities, the normalised row): 2 u, u = 2^-11.
    {DType::fp16, 1e-3},
    // The same with u = 2^-8.
    {DType::bf16, 8e-3},
    // Results are bf16. Hopper adds fp8 products up with some 14 bits before they reach an fp32 sum (DeepSeek-V3
    // Technical Report, arXiv 2412.19437, 3.3.2).
    {DType::fp8, 1e-2},
    // Transforms. Errors grow with the number of passes, log2 n, and a length with a large prime factor is convolved
    // (Bluestein), which passes three times: 60 u in double, where the reference has an error, too; 30 u in single.
    {DType::complex128, 1e-14},
    {DType::complex64, 2e-6},
    // Twiddle factors and the values between passes are in half precision; lengths are powers of two: 8 u.
    {DType::complex32, 4e-3},
}};

/// Of a kernel whose inputs have type `t`; transforms name the complex type.
constexpr double tolerance(DType t) {
  for (const Tolerance& row : tolerances)
    if (row.dtype == t) return row.relative;
  throw Error("tolerance", "no row for " + std::string(name(t)),
              "add it to tests/kernels/tolerance.hpp with its reason");
}

}  // namespace vlmest::kernels
