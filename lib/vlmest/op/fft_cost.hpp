// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/op/cost.hpp>
#include <vlmest/op/fft_footprint.hpp>

namespace vlmest {

/// The compulsory cost of one transform of a contiguous input: its FLOPs run outside the tensor cores.
inline Cost cost(const Fft& f) {
  Cost r;
  r.flops = r.flops_causal = flops(f);
  const FftFootprint bytes = footprint(f);
  r.read = input_bytes(f) + bytes.clone;
  r.written = output_bytes(f) + bytes.clone;
  r.workspace = bytes.peak_extra;
  r.engine = Engine::cuda_core;
  r.dtype = f.dtype;
  r.kernels = f.rank + (bytes.clone > Bytes{} ? 1 : 0);
  return r;
}

}  // namespace vlmest
