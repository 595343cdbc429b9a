// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <variant>

#include <vlmest/op/attention.hpp>
#include <vlmest/op/collective.hpp>
#include <vlmest/op/conv.hpp>
#include <vlmest/op/delta_rule.hpp>
#include <vlmest/op/depthwise_conv.hpp>
#include <vlmest/op/fft_cost.hpp>
#include <vlmest/op/grouped_matmul.hpp>
#include <vlmest/op/matmul.hpp>
#include <vlmest/op/memory.hpp>
#include <vlmest/op/norm.hpp>
#include <vlmest/op/softmax.hpp>
#include <vlmest/op/stored_matmul.hpp>
#include <vlmest/op/triangular_solve.hpp>

namespace vlmest {

/// Every op that a graph can hold. A new op is a header with an aggregate and a `cost`, and one word here.
using Op = std::variant<View, MemoryOp, Matmul, GroupedMatmul, StoredMatmul, Attention, AttentionBackward, Convolution,
                        DepthwiseConvolution, TriangularSolve, DeltaRule, Norm, Softmax, Fft, HostSync, CollectiveOp>;

constexpr Cost cost(const Op& op) {
  return std::visit([](const auto& o) { return cost(o); }, op);
}

}  // namespace vlmest
