// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <vlmest/op/attention.hpp>

namespace vlmest::kernels::attention {

/// In place on scores[batch x heads x q_len, kv_len] of the op's type: softmax(scores / sqrt(head_dim)) over the keys
/// that a row sees, 0 for the others and for all keys of a row that sees none.
void masked_softmax(const Attention& op, void* scores, cudaStream_t stream);

}  // namespace vlmest::kernels::attention
