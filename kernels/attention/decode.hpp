// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>
#include <kernels/attention/attention.hpp>
#include <kernels/attention/decode_splits.hpp>

namespace vlmest::kernels {

/// Attention of one or a few new tokens over a long cache ("flash-decoding"): the keys of a head are split over blocks,
/// each makes a partial output, a second kernel combines them; no atomics, so that results repeat bit by bit. The
/// queries of all heads that share a key head, times q_len, are the rows of one matrix product, so that keys and values
/// are read once for every 16 such rows. bf16 and fp16, head sizes 64, 72, 80, 128 and 256, compute capability 8.0 and
/// above.
class DecodeAttention {
 public:
  /// Chooses the splits from kv_len, heads and the current device's multiprocessors; `splits` > 0 asks for a number.
  explicit DecodeAttention(const Attention& op, std::int64_t splits = 0);

  std::int64_t splits() const { return plan_.splits; }
  /// The partial outputs (fp32), where there is more than one split; given by the caller.
  Bytes workspace() const;
  std::string_view name() const { return "split_kv"; }
  void operator()(const AttentionOperands& operands, cudaStream_t stream) const;

 private:
  Attention op_;
  attention::DecodeSplits plan_;
};

}  // namespace vlmest::kernels
