// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace vlmest::cufft {

// Which single-precision sizes cuFFT runs as one kernel is a property of the kernels that ship with it, not of
// arithmetic. Measured: cuFFT 12.0 (CUDA 13.0), sm_90, work sizes returned by cufftXtMakePlanMany for every length
// 1 … 2030, every product of 2, 3, 5 and 7 up to 26244, primes and other lengths above; strided, 1 … 756 and the same
// products up to 52488.

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
inline constexpr std::array<std::uint16_t, 81> odd_real_kernels{
    1,   3,   5,   7,   9,   11,  13,  15,  17,  19,  21,  23,  25,  27,  29,   31,   33,   35,  37,  41,  43,
    45,  47,  49,  53,  55,  59,  61,  63,  67,  71,  73,  77,  79,  81,  83,   89,   97,   99,  101, 103, 105,
    107, 109, 113, 121, 125, 127, 135, 165, 169, 175, 189, 225, 231, 243, 275,  289,  297,  315, 343, 361, 385,
    405, 441, 495, 529, 539, 567, 625, 693, 729, 841, 875, 891, 945, 961, 1331, 2187, 2401, 3125};

inline constexpr std::int64_t last_length = 2030;           ///< measured without gaps, contiguous
inline constexpr std::int64_t last_smooth_length = 26244;   ///< and products of 2, 3, 5, 7
inline constexpr std::int64_t last_strided = 756;           ///< measured without gaps, strided
inline constexpr std::int64_t last_smooth_strided = 52488;  ///< and products of 2, 3, 5, 7

/// Multiples of a prime in 37 … 127 that one complex kernel covers nevertheless; beyond 2030 those seen by chance.
inline constexpr std::array<std::uint16_t, 67> one_kernel_composites{
    296,  328,  344,  376,  388,  404,  412,  428,  436,  444,  452,  492,  508,  555,  740,  777,  888,
    962,  999,  1110, 1204, 1230, 1312, 1332, 1353, 1369, 1406, 1419, 1443, 1476, 1480, 1505, 1551, 1554,
    1558, 1590, 1591, 1599, 1628, 1634, 1640, 1645, 1647, 1665, 1677, 1681, 1702, 1720, 1722, 1770, 1776,
    1804, 1806, 1845, 1849, 1850, 1886, 1887, 1892, 1924, 1935, 1968, 1974, 1978, 1998, 2337, 2829};

/// Products of primes up to 31 that take two complex kernels although they lie below `last_smooth_length` (products
/// of 2, 3, 5, 7) or 4097 (the others).
inline constexpr std::array<std::uint16_t, 46> two_kernel_composites{
    748,   759,   782,   899,   957,   1054,  1276,  1666,  9375,  9720,  12000, 15680, 16464, 16800, 16875, 17010,
    17150, 17500, 17640, 17920, 18375, 18522, 18816, 18900, 19600, 19845, 20160, 20580, 21000, 21504, 22050, 22400,
    22680, 23040, 23328, 23520, 23625, 23814, 24010, 24192, 24500, 24696, 25200, 25515, 25725, 25920};

/// Longer ones of the others with one kernel.
inline constexpr std::array<std::uint16_t, 14> long_one_kernel_composites{
    4176, 4914, 5082, 5408, 5425, 6930, 7830, 8352, 10164, 10985, 12540, 13182, 15138, 16240};

/// Lengths that one complex kernel covers, but not where its axis is strided (any but the last, or a channels-last
/// grid).
inline constexpr std::array<std::uint16_t, 112> two_kernel_strided{
    34,   38,   39,   46,   51,   52,   57,   58,   62,   65,   69,   75,   85,   87,   93,   95,   98,   115,  116,
    119,  124,  145,  147,  154,  155,  161,  174,  186,  187,  203,  207,  217,  238,  242,  245,  261,  266,  279,
    286,  290,  294,  310,  319,  322,  338,  341,  363,  374,  375,  377,  403,  406,  418,  434,  435,  465,  475,
    493,  506,  507,  522,  527,  551,  558,  575,  578,  580,  589,  605,  609,  620,  637,  638,  651,  682,  686,
    722,  726,  735,  882,  1029, 1080, 1225, 1296, 1372, 1568, 1701, 1715, 1728, 1792, 1875, 1920, 1944, 2000, 2025,
    2560, 2592, 2916, 3087, 3125, 3136, 3200, 3240, 3456, 3584, 3645, 3675, 3888, 3920, 3969, 4000, 4032};

/// Double precision, measured up to 228 and on products of 2, 3, 5, 7 up to 6000: lengths that one kernel covers in
/// single precision only; real kernels that do not exist.
inline constexpr std::array<std::uint16_t, 11> two_kernel_fp64{221,  1344, 2430, 2835, 3000, 3675,
                                                               3840, 4480, 5250, 5376, 5670};
inline constexpr std::array<std::uint16_t, 14> no_real_kernel_fp64{68,  76,  92,  104, 136, 152, 156,
                                                                   184, 232, 248, 260, 272, 304, 3072};

template <class Table>
constexpr bool listed(const Table& t, std::int64_t n) {
  return std::any_of(t.begin(), t.end(), [n](auto v) { return v == n; });
}

}  // namespace vlmest::cufft
