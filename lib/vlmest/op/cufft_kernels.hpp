// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace vlmest::cufft {

// Which single-precision sizes cuFFT runs as one kernel is a property of the kernels that ship with it, not of
// arithmetic. Measured: cuFFT 12.0 (CUDA 13.0), sm_90, work sizes returned by cufftXtMakePlanMany for every length
// 1 … 1099 and the longer lengths in `measured_lengths`.

/// Even lengths whose batched r2c runs as one real kernel. All but 92, 232 and 248 do so in c2r too.
inline constexpr std::array<std::uint16_t, 155> even_real_kernels{
    2,   4,   6,   8,    10,   12,   14,   16,   18,   20,   22,   24,   26,   28,   30,   32,  36,  40,  42,  44,
    48,  50,  54,  56,   60,   64,   66,   68,   70,   72,   76,   80,   84,   88,   90,   92,  96,  100, 104, 108,
    110, 112, 120, 126,  128,  132,  136,  140,  144,  150,  152,  156,  160,  162,  168,  176, 180, 184, 192, 198,
    200, 210, 216, 220,  224,  232,  240,  248,  250,  252,  256,  260,  264,  270,  272,  280, 288, 300, 304, 308,
    320, 324, 330, 336,  350,  352,  360,  364,  368,  378,  380,  384,  392,  396,  400,  416, 420, 432, 440, 448,
    450, 456, 462, 464,  468,  480,  486,  490,  496,  504,  512,  528,  540,  550,  560,  576, 588, 594, 600, 616,
    630, 640, 648, 660,  672,  704,  720,  750,  756,  768,  770,  784,  792,  800,  810,  840, 864, 880, 896, 924,
    960, 972, 990, 1000, 1008, 1024, 1080, 1296, 1728, 1920, 2048, 3072, 4096, 8192, 16384};

/// Odd lengths with a real kernel of their own, r2c and c2r alike.
inline constexpr std::array<std::uint16_t, 80> odd_real_kernels{
    1,   3,   5,   7,   9,   11,  13,  15,  17,  19,  21,  23,  25,  27,  29,  31,  33,  35,   37,   41,
    43,  45,  47,  49,  53,  55,  59,  61,  63,  67,  71,  73,  77,  79,  81,  83,  89,  97,   99,   101,
    103, 105, 107, 109, 113, 121, 125, 127, 135, 165, 169, 175, 189, 225, 231, 243, 275, 289,  297,  315,
    343, 361, 385, 405, 441, 495, 529, 539, 567, 625, 693, 729, 841, 875, 891, 945, 961, 2187, 2401, 3125};

/// Lengths above 1099 that were measured.
inline constexpr std::array<std::int32_t, 69> measured_lengths{
    1120, 1152,  1155,  1200,  1225,  1250,  1280,  1296,  1344,   1372,   1400,   1440,    1458,   1500,
    1536, 1568,  1600,  1680,  1715,  1728,  1792,  1800,  1875,   1920,   1944,   2000,    2016,   2048,
    2049, 2187,  2304,  2401,  2500,  2560,  2592,  2880,  2916,   3000,   3072,   3125,    3136,   3200,
    3456, 3600,  3840,  4000,  4096,  4097,  4374,  4608,  5000,   5120,   6144,   6561,    6912,   8000,
    8192, 10000, 12288, 16384, 16807, 24576, 32768, 65536, 131072, 262144, 524288, 1048576, 2097152};

/// Sides of the two-dimensional grids measured, each against each.
inline constexpr std::array<std::uint16_t, 64> measured_sides{
    1,  2,  3,  4,  5,  7,   8,   9,   11,  12,  13,  14,  16,  17,  18,  20,  21,  23,  24,  25, 27, 28,
    30, 31, 32, 35, 36, 37,  40,  41,  42,  43,  45,  48,  49,  50,  54,  56,  60,  64,  67,  70, 72, 73,
    75, 80, 81, 96, 97, 100, 112, 125, 128, 144, 160, 192, 224, 256, 257, 320, 336, 384, 448, 512};

/// Multiples of a prime in 37 … 127 that one complex kernel covers nevertheless.
inline constexpr std::array<std::uint16_t, 19> one_kernel_composites{296, 328, 344, 376, 388, 404, 412, 428, 436, 444,
                                                                     452, 492, 508, 555, 740, 777, 888, 962, 999};

/// Products of primes up to 31 that take two complex kernels below 1100.
inline constexpr std::array<std::uint16_t, 6> two_kernel_composites{748, 759, 782, 899, 957, 1054};

/// Lengths of a strided (not last) axis that no in-place column kernel covers, although the row kernel does.
inline constexpr std::array<std::uint16_t, 1> out_of_place_columns{75};

template <class Table>
constexpr bool listed(const Table& t, std::int64_t n) {
  return std::any_of(t.begin(), t.end(), [n](auto v) { return v == n; });
}

}  // namespace vlmest::cufft
