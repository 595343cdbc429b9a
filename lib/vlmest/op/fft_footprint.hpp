// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <utility>

#include <vlmest/op/cufft_workspace.hpp>
#include <vlmest/op/fft.hpp>
#include <vlmest/tensor/shape.hpp>

namespace vlmest {

/// How the input of a transform lies in memory, as far as torch's cuFFT path cares.
struct FftLayout {
  bool collapses = true;   ///< the batch axes are one axis without a copy (at::reshape gives a view)
  bool embeds = true;      ///< cuFFT's advanced data layout can describe the strides
  bool contiguous = true;  ///< batch first, then the signal axes, without gaps
  bool aligned = true;     ///< address a multiple of the complex size; only a real view at an odd offset is not
};

/// The layout of a tensor transformed over `axes` (in the caller's order, the halved one last). `sizes` and `strides`
/// are those of the tensor that goes in; a c2r is cloned to row-major first, so its strides do not matter.
/// torch 2.11, ATen/native/cuda/SpectralOps.cpp, _exec_fft: batch axes are sorted by stride and reshaped to one;
/// CuFFTPlanCache.h, as_cufft_embed: which strides need another clone.
constexpr FftLayout layout_of(const Fft& f, const Shape& sizes, Shape strides, std::array<int, 3> axes) {
  if (f.kind == Fft::Kind::c2r) strides = contiguous_strides(sizes);
  std::array<int, Shape::max_rank> batch{};
  int batches = 0;
  for (int i = 0; i < sizes.rank(); ++i) {
    bool transformed = false;
    for (int k = 0; k < f.rank; ++k) transformed = transformed || axes[static_cast<std::size_t>(k)] == i;
    if (!transformed && sizes[i] != 1) batch[static_cast<std::size_t>(batches++)] = i;
  }
  // By insertion: std::sort of so few would be unrolled past the end of the array, and compilers warn of it.
  const auto by_stride = [&](auto& of, int count) {
    for (int i = 1; i < count; ++i)
      for (int k = i; k > 0 && strides[of[static_cast<std::size_t>(k)]] > strides[of[static_cast<std::size_t>(k - 1)]];
           --k)
        std::swap(of[static_cast<std::size_t>(k)], of[static_cast<std::size_t>(k - 1)]);
  };
  by_stride(batch, batches);
  if (f.kind == Fft::Kind::c2c) by_stride(axes, f.rank);

  FftLayout r;
  for (int i = 0; i + 1 < batches; ++i) {
    const int inner = batch[static_cast<std::size_t>(i + 1)];
    r.collapses =
        r.collapses && strides[batch[static_cast<std::size_t>(i)]] == checked_mul(sizes[inner], strides[inner]);
  }
  std::int64_t dense = 1;
  std::int64_t step = strides[axes[static_cast<std::size_t>(f.rank - 1)]];
  r.embeds = step > 0 && (f.dtype != DType::fp16 || step == 1);
  for (int k = f.rank - 1; k >= 0; --k) {
    const int a = axes[static_cast<std::size_t>(k)];
    if (sizes[a] != 1) {
      r.contiguous = r.contiguous && strides[a] == dense;
      if (k + 1 < f.rank) {
        r.embeds = r.embeds && strides[a] > 0 && strides[a] % step == 0;
        step = strides[a] > 0 ? strides[a] : step;
      }
    }
    dense = checked_mul(dense, sizes[a]);
  }
  if (batches > 0) {
    const std::int64_t distance = strides[batch[static_cast<std::size_t>(batches - 1)]];
    r.contiguous = r.contiguous && distance == dense;
    r.embeds = r.embeds && distance != 0;
  }
  return r;
}

/// What torch takes from its allocator for one transform. Order of events: output; clone; contiguous copy; work area;
/// run; then all but the output go together when the call returns, so the peak of the call is output + peak_extra.
struct FftFootprint {
  Bytes output{};
  Bytes clone{};            ///< c2r: cuFFT may overwrite its input; r2c: an input that is not aligned
  Bytes contiguous_copy{};  ///< an input whose batch axes do not collapse, e.g. channels last with more than one item
  FftWorkspace workspace{};
  Bytes peak_extra{};  ///< clone + contiguous_copy + workspace: they live at the same time
};

/// Sizes as requested; the allocator rounds each on its own. torch 2.11, ATen/native/cuda/SpectralOps.cpp,
/// _fft_r2c_cufft, _fft_c2r_cufft, _fft_c2c_cufft, _exec_fft. Not covered: transforms of two or more axes that start
/// with axes 0 and 1 of the tensor, and of more than three axes, which torch runs as several passes.
constexpr FftFootprint footprint(const Fft& f, const FftLayout& layout = {}) {
  FftFootprint r;
  r.output = output_bytes(f);
  const bool real_input = f.kind == Fft::Kind::r2c;
  if (f.kind == Fft::Kind::c2r || (real_input && !layout.aligned)) r.clone = input_bytes(f);
  const bool copied = !layout.collapses || !layout.embeds;
  if (copied) r.contiguous_copy = input_bytes(f);
  r.workspace = workspace(f, !copied && !layout.contiguous);
  r.peak_extra = r.clone + r.contiguous_copy + r.workspace.bytes;
  return r;
}

}  // namespace vlmest
