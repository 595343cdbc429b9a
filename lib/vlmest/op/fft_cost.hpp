// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/op/cost.hpp>
#include <vlmest/op/fft_footprint.hpp>

namespace vlmest {

/// The compulsory cost of one transform with its copies and scaling: its FLOPs run outside the tensor cores.
inline Cost cost(const Fft& f) {
  Cost r;
  r.flops = r.flops_causal = flops(f);
  const FftFootprint bytes = footprint(f, {.collapses = !f.copied, .contiguous = !f.strided});
  const Bytes copied = bytes.clone + (f.copied ? input_bytes(f) : Bytes{});
  const Bytes scaled = f.scaled ? output_bytes(f) : Bytes{};
  r.read = input_bytes(f) + copied + scaled;
  r.written = output_bytes(f) + copied + scaled;
  r.workspace = bytes.peak_extra;
  r.engine = Engine::cuda_core;
  r.dtype = f.dtype;
  r.kernels = f.rank + (bytes.clone > Bytes{} ? 1 : 0) + (f.copied ? 1 : 0) + (f.scaled ? 1 : 0);
  return r;
}

}  // namespace vlmest
