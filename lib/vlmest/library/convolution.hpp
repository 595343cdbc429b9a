// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/library/gpu.hpp>
#include <vlmest/op/conv.hpp>

/// What cuDNN takes from the allocator for convolutions, by its own heuristics: recorded with cuDNN 9.19 on compute
/// capability 9.0 (ArchitectureRule::convolution_scratch) and taken for the others too.
namespace vlmest {

/// Input, weight and result as cuDNN converts them, with so many channels each.
constexpr Bytes converted_copies(const Convolution& o, std::int64_t in, std::int64_t out) {
  const auto bytes = [&](std::int64_t a, std::int64_t b, std::int64_t c) {
    const std::int64_t n = size_of(Elements(checked_mul(checked_mul(a, b), c)), o.dtype).value();
    return Bytes(checked_add(n, 15) / 16 * 16);
  };
  return bytes(o.batch, in, o.in_positions) + bytes(out, in, o.kernel) + bytes(o.batch, out, o.out_positions) +
         Bytes(16);
}

/// Kernels of so many positions (32 x 32, 64 x 64) are large, from where cuDNN chooses otherwise.
inline constexpr std::int64_t large_kernel = 32 * 32, largest_kernel = 64 * 64;

/// What cuDNN takes where it works with a table of the places of input and weight.
constexpr Bytes table_of_places(const Convolution& o) {
  return Bytes(checked_mul(checked_mul(o.in_channels, o.kernel), 4));
}

/// Whether cuDNN forms the product of patches of up to three channels in bf16 without scratch: where 64 does not divide
/// the kernel's positions (14 x 14, 28 x 28, not 16 x 16), for result channels that 64 does not divide either and for
/// few patches; where it does, for fewer than 256 result channels.
constexpr bool makes_patches_in_place(const Convolution& o) {
  const bool tiles = o.kernel % 64 == 0;
  if (tiles && o.out_channels < 256) return true;
  if (o.out_channels % 64 != 0 && (!tiles || o.kernel >= largest_kernel)) return true;
  return !tiles && o.batch < (o.kernel < 28 * 28 ? 128 : 64);
}

/// What cuDNN takes for a 2-D convolution of a few channels that covers its input (patches of [channels, side, side]):
/// input and weight with channels last, in bf16 padded to eight and in fp32 to four; the result lies so already. Three
/// channels are not padded in fp32 where 64 does not divide the kernel's positions, nor where there are 64 x 64 of
/// them. In bf16 patches of up to three channels may need none (makes_patches_in_place), and rows of kernel positions
/// that 64 does not divide are converted for whole tiles of 16 patches alone, below 28 x 28; else it works with a
/// table. Recorded with 16 to 16,384 patches of 8, 14, 16, 28, 32 and 64 pixels a side and 16 to 1280 result channels:
/// of 2,034 shapes with cuDNN 9.19 the scratch is this in nine tenths. The others are fp16 with few or many channels,
/// one input channel, and result channels that 64 does not divide over many patches of 8, 16 and 32.
constexpr Bytes patch_scratch(const Convolution& o) {
  const auto up = [](std::int64_t n, std::int64_t to) { return checked_add(n, to - 1) / to * to; };
  const bool tiles = o.kernel % 64 == 0;
  std::int64_t channels = o.in_channels;
  if (o.dtype == DType::bf16) {
    if (channels < 4) {
      if (makes_patches_in_place(o)) return Bytes{};
      if (o.kernel >= largest_kernel || (!tiles && o.kernel < 28 * 28 && o.batch % 16 != 0)) return table_of_places(o);
    }
    channels = up(channels, 8);
  } else if (o.dtype == DType::fp32) {
    if (o.batch < 48) return Bytes{};
    if (channels != 3 || (tiles && o.kernel < largest_kernel)) channels = up(channels, 4);
  }
  return size_of(Elements(checked_mul(checked_add(o.batch, o.out_channels), checked_mul(channels, o.kernel))),
                 o.dtype) +
         Bytes(16);
}

/// And for its weight's gradient in half types: input and gradient of the weight, channels padded to eight. Where 64
/// divides the result channels, counters for each tile of 64 x 64 of it come from 448 patches on; beyond 2560 the sum
/// over patches is shared by twenty fp32 partial results. Up to 768 result channels have no counters. Fewer than a
/// hundred patches of up to 16 x 16 need none of this with 96 to 768 result channels.
constexpr Bytes square_patch_gradient_scratch(const Convolution& o) {
  if (o.batch < 96 && o.kernel <= 16 * 16 && o.out_channels >= 96 && o.out_channels <= 768) return Bytes{};
  const std::int64_t taps = checked_mul(checked_add(o.in_channels, 7) / 8 * 8, o.kernel),
                     weights = checked_mul(o.out_channels, taps);
  const Bytes converted =
      size_of(Elements(checked_mul(checked_add(o.batch, o.out_channels), taps)), o.dtype) + Bytes(16);
  if (o.batch > 2560) return converted + Bytes(128) + size_of(Elements(weights), DType::fp32) * 20;
  if (o.out_channels <= 768 || o.out_channels % 64 != 0) return converted;
  if (o.batch < 448) return converted + Bytes(128);
  return converted + Bytes(checked_add(128, checked_mul(checked_mul(o.out_channels / 64, (taps + 63) / 64), 4)));
}

/// What cuDNN takes from the allocator for a convolution of NCHW images of the given height.
/// Its tensor-core kernels want channels last and, for up to eight input channels, channels padded to eight: input,
/// weight and result are then converted through scratch. Otherwise it forms the product implicitly, without scratch.
/// Which of the two is cuDNN's own heuristic; the borders are those of cuDNN 9.19, recorded over heights, widths,
/// batches, types, patch sizes 8, 14, 16 and 32 and 64 to 3200 result channels. Patches of three channels and 32 pixels
/// a side are converted in bf16 however few the result's channels are, those of 64 up to 320 of them: from 384 on it
/// works with a table. Patches of 7 and 28, which cuDNN did not convert, have no rule of their own here. A result of
/// one position is the same in both layouts and stays where it is (recorded with 624 to 3072 images of 14 x 14 and of
/// 16 x 16); such convolutions are converted however few their result's channels are. Kernels of 1 x 1 are a plain
/// product (recorded with 640 and 2304 channels).
constexpr Bytes conv_scratch(const Convolution& o, std::int64_t height) {
  if (o.kernel == 1) return Bytes{};
  if (o.out_positions == 1) return patch_scratch(o);
  const auto up = [](std::int64_t n, std::int64_t to) { return checked_add(n, to - 1) / to * to; };
  const auto converted = [&](std::int64_t in, std::int64_t out) { return converted_copies(o, in, out); };
  const bool few = o.in_channels < 4;
  if (!is_half(o.dtype))
    return !few || (o.out_channels > 768 && o.kernel > 64 && checked_mul(o.batch, o.out_positions) >= 1024)
               ? converted(o.in_channels, o.out_channels)
               : Bytes{};
  const bool large = o.dtype == DType::bf16 && o.in_channels == 3 && o.kernel >= large_kernel;
  if (large && height < 399 && o.kernel >= largest_kernel && o.out_channels >= 384) return table_of_places(o);
  if (!few || height < 399)
    return o.out_channels > 392 || large ? converted(up(o.in_channels, 8), up(o.out_channels, 8)) : Bytes{};
  return o.dtype == DType::fp16 && o.out_channels % 8 == 0 ? converted(o.in_channels, o.out_channels) : Bytes{};
}

/// What cuDNN takes from the allocator for an NCHW convolution of few channels whose kernels overlap, as towers of
/// convolutions begin with: copies in its own layout, the result among them, in bf16 with channels by eights. For one
/// picture and 96 filters it makes none; from which number on was not measured (recorded: one and two pictures, 96 and
/// 128 filters of 7 x 7, of Florence-2).
constexpr Bytes overlapping_conv_scratch(const Convolution& o) {
  if (!is_half(o.dtype) || o.in_channels >= 4 || checked_mul(o.batch, o.out_channels) < 128) return Bytes{};
  return o.dtype == DType::fp16 ? converted_copies(o, o.in_channels, o.out_channels)
                                : converted_copies(o, 8, (o.out_channels + 7) / 8 * 8);
}

/// What cuDNN takes from the allocator for a convolution whose kernels overlap, of more channels or over one dimension:
/// input, weight and result with channels last, and, `large` ones, a counter with its alignment. One input channel is
/// not converted forwards. Recorded with cuDNN 9.19 at 80 to 1280 channels, kernels of 3 and 3 x 3; what it takes
/// besides for partial sums of some two-dimensional ones has no rule.
constexpr Bytes strided_conv_scratch(const Convolution& o, bool large) {
  const auto bytes = [&](std::int64_t a, std::int64_t b, std::int64_t c) {
    return size_of(Elements(checked_mul(checked_mul(a, b), c)), o.dtype);
  };
  return bytes(o.batch, o.in_channels, o.in_positions) + bytes(o.out_channels, o.in_channels, o.kernel) +
         bytes(o.batch, o.out_channels, o.out_positions) + Bytes(16 + (large && is_half(o.dtype) ? 4 + 127 : 0));
}
/// Elements from which on there is a counter.
inline constexpr std::int64_t large_convolution = 3'840'000;
constexpr Bytes strided_conv_scratch(const Convolution& o) {
  if (o.in_channels < 4) return Bytes{};
  const std::int64_t results = checked_mul(checked_mul(o.batch, o.out_channels), o.out_positions);
  return strided_conv_scratch(o, o.batch > 1 && o.out_positions >= 800 && results >= large_convolution);
}
/// The same of both gradients.
constexpr Bytes strided_conv_gradient_scratch(Convolution o) {
  const std::int64_t width = is_half(o.dtype) ? 8 : 4;
  if (o.in_channels < 4) o.in_channels = width;
  const std::int64_t inputs = checked_mul(checked_mul(o.batch, o.in_channels), o.in_positions);
  return strided_conv_scratch(o, o.in_channels >= 480 && inputs >= large_convolution);
}

/// What cuDNN takes from the allocator for the gradient of the weight of conv_scratch's convolutions, few input
/// channels and a gradient that is NCHW: input, weight and gradient are always converted, channels padded to 16 bytes.
/// The sum over positions is shared among multiprocessors: by counters, one for each tile of 64 x 64 of the result, up
/// to 2592 positions of several images with more than 768 result channels, else by fp32 partial results that a second
/// kernel adds up: 3 of them with up to 1296 positions an image, 14 from 1536. Recorded with cuDNN 9.19 at 196 to
/// 16,384 positions (none between 2704 and 3072), 256 to 1536 result channels, patches of 14 and 16; up to 2.7 KB of
/// counters, which some single images have, and 0.5 MB at 2592 positions are left out.
constexpr Bytes conv_weight_gradient_scratch(const Convolution& o) {
  if (o.out_positions == 1 && is_half(o.dtype)) return square_patch_gradient_scratch(o);
  const auto up = [](std::int64_t n, std::int64_t to) { return checked_add(n, to - 1) / to * to; };
  const std::int64_t in = up(o.in_channels, is_half(o.dtype) ? 8 : 4),
                     positions = checked_mul(o.batch, o.out_positions);
  const std::int64_t taps = checked_mul(in, o.kernel), weights = checked_mul(o.out_channels, taps);
  const auto bytes = [&](std::int64_t n) { return Bytes(up(size_of(Elements(n), o.dtype).value(), 16)); };
  const Bytes gradient = o.out_positions > 1 ? bytes(checked_mul(positions, o.out_channels)) : Bytes{};
  const Bytes converted =
      bytes(checked_mul(checked_mul(o.batch, in), o.in_positions)) + bytes(weights) + gradient + Bytes(16 + 128);
  if (!is_half(o.dtype)) return converted;
  // The sum of a single image or of few channels is not split.
  const bool splits = o.batch > 1 && o.out_channels > 768;
  if (positions <= 2352 && !splits) return converted - Bytes(128);
  if (positions <= 2704 && o.batch == 1) return converted;
  if (positions <= 2592 && splits) return converted + Bytes(up(o.out_channels, 64) / 64 * (up(taps, 64) / 64) * 4);
  return converted + size_of(Elements(weights), DType::fp32) * (o.out_positions <= 1296 ? 3 : 14);
}

/// What cuDNN takes for the weight's gradient of a 3-D convolution that covers its input (patches of [channels, frames,
/// side, side]), on compute capability 9.0: input and gradient with channels last and padded to eight. Where the number
/// of kernel positions is no multiple of 64 (patches of 14, not of 16) it accumulates in an fp32 copy, with a counter
/// for every 256 result channels at each position (recorded with 400 to 6144 patches of 1024 to 1536 channels).
constexpr Bytes patch_gradient_scratch(const Convolution& o) {
  if (!is_half(o.dtype)) return Bytes{};
  const std::int64_t taps = checked_mul(checked_add(o.in_channels, 7) / 8 * 8, o.kernel);
  const auto rows = [&](std::int64_t n, DType t) { return size_of(Elements(checked_mul(n, taps)), t); };
  const Bytes converted = rows(o.batch, o.dtype) + rows(o.out_channels, o.dtype);
  if (o.kernel % 64 == 0) return converted + Bytes(16);
  const std::int64_t counters = checked_mul((o.out_channels + 255) / 256, o.kernel);
  return converted + rows(o.out_channels, DType::fp32) + Bytes(checked_add(checked_mul(counters, 4), 48 + 127));
}

/// True where cuDNN shares the tiles of one result among multiprocessors: with fewer tiles of 128 rows and 256 channels
/// than multiprocessors, some would have no work. Sums of fewer products are not worth it: recorded with 6,144 products
/// a result it splits, with 4,096 and 1,280 it does not. Channels-last convolutions on compute capability 9.0.
constexpr bool splits_result(const Convolution& o, const Gpu& gpu) {
  const auto tiles = [](std::int64_t n, std::int64_t tile) { return (n + tile - 1) / tile; };
  if (!is_half(o.dtype) || checked_mul(o.in_channels, o.kernel) < 6144) return false;
  return checked_mul(tiles(checked_mul(o.batch, o.out_positions), 128), tiles(o.out_channels, 256)) <
         gpu.multiprocessors;
}

/// What cuDNN takes from the allocator for a convolution of channels-last images on compute capability 9.0: a counter
/// and its alignment, and, where results are split, partial sums of an eighth of the fp32 result (recorded with 256,
/// 768 and 1536 rows of 4096 channels).
constexpr Bytes channels_last_scratch(const Convolution& o, const Gpu& gpu) {
  if (!is_half(o.dtype)) return Bytes{};
  if (!splits_result(o, gpu)) return Bytes(4 + 127);
  const std::int64_t results = checked_mul(checked_mul(o.batch, o.out_positions), o.out_channels);
  return Bytes(checked_add(results * 4 / 8, 228 + 127));
}

/// What cuDNN takes for a channels-last convolution by a kernel of several positions: nothing, but where channels are
/// no multiple of eight, copies of the weight and of what has them, padded (recorded in bf16 with 1 to 8 maps of 24 to
/// 96 positions a side and 128 to 1024 channels; up to 131 bytes of counters, which some sizes have, are left out).
constexpr Bytes padded_channels_scratch(const Convolution& o) {
  const auto up = [](std::int64_t n) { return checked_add(n, 7) / 8 * 8; };
  const auto bytes = [&](std::int64_t a, std::int64_t b, std::int64_t c) {
    return size_of(Elements(checked_mul(checked_mul(a, b), c)), o.dtype);
  };
  const std::int64_t in = up(o.in_channels), out = up(o.out_channels);
  const bool pads_in = in != o.in_channels, pads_out = out != o.out_channels;
  if (!is_half(o.dtype) || !(pads_in || pads_out)) return Bytes{};
  return bytes(in, out, o.kernel) + (pads_in ? bytes(o.batch, in, o.in_positions) : Bytes{}) +
         (pads_out ? bytes(o.batch, out, o.out_positions) : Bytes{}) + Bytes(16);
}

/// What cuDNN takes for an NCHW convolution by a kernel of one position: counters where tiles of 128 x 128 of the
/// result outnumber the multiprocessors (recorded in bf16 with 64 to 256 tiles, 128 without, 144 with them).
constexpr Bytes pointwise_scratch(const Convolution& o, const Gpu& gpu) {
  const auto tiles = [](std::int64_t n) { return checked_add(n, 127) / 128; };
  if (!is_half(o.dtype)) return Bytes{};
  const std::int64_t all = checked_mul(tiles(checked_mul(o.batch, o.out_positions)), tiles(o.out_channels));
  return all > gpu.multiprocessors ? Bytes(144 + 128) : Bytes{};
}
/// The same for the weight's gradient: an fp32 partial sum for each map (recorded in bf16 with 1, 2 and 4 maps of 28 to
/// 64 positions a side).
constexpr Bytes pointwise_gradient_scratch(const Convolution& o) {
  if (!is_half(o.dtype)) return Bytes{};
  return size_of(Elements(checked_mul(o.batch, checked_mul(o.in_channels, o.out_channels))), DType::fp32);
}
/// The same where results are row-major: small maps of many channels are copied instead, input and gradient with
/// channels last, with a counter where tiles of 128 x 256 of the weight outnumber the multiprocessors. Which maps those
/// are is cuDNN's own heuristic: recorded in bf16 with 1 to 8 maps of 8 to 20 a side, 1536 channels and more are
/// copied, 768 and fewer are not. Some single maps of 128 and 256 a side and pairs of them share a sum otherwise, which
/// has no rule.
constexpr Bytes rows_pointwise_gradient_scratch(const Convolution& o, const Gpu& gpu) {
  const bool in_is_less = o.in_channels < o.out_channels;
  const std::int64_t fewer = in_is_less ? o.in_channels : o.out_channels,
                     more = in_is_less ? o.out_channels : o.in_channels;
  if (!is_half(o.dtype) || fewer < 1536 || o.out_positions > 20 * 20) return pointwise_gradient_scratch(o);
  const auto tiles = [](std::int64_t n, std::int64_t side) { return checked_add(n, side - 1) / side; };
  const bool counts = checked_mul(tiles(fewer, 128), tiles(more, 256)) > gpu.multiprocessors;
  const std::int64_t places = checked_mul(o.batch, o.out_positions);
  return size_of(Elements(checked_mul(places, checked_add(fewer, more))), o.dtype) + Bytes(16 + (counts ? 4 + 127 : 0));
}

}  // namespace vlmest
