// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/graph/eager/assign.hpp>
#include <vlmest/graph/eager/scan.hpp>

/// Sums over what each step of a sequence has, and over the steps up to each one.
namespace vlmest::eager {

/// torch.sum of x[N, T, ...] over all dimensions but the first two, which stay as ones.
inline Value sum_inner(Value x) {
  std::array<bool, Shape::max_rank> summed{};
  Shape s = x.shape();
  for (int i = 2; i < s.rank(); ++i) {
    summed[static_cast<std::size_t>(i)] = true;
    s[i] = 1;
  }
  const DType t = x.dtype();
  const ReductionScratch split = reduction_scratch(x.tensor(), summed, is_half(t) ? 4 : bits(t) / 8, x.builder().gpu);
  const GradEdge e = edge(x);
  Value r = reduce("sum.dim_IntList", t, s, std::move(x), {}, 1, split);
  differentiable(r, "SumBackward1", {e}, [whole = e.shape](Gradients& g) { g.out[0] = expand(g.in[0], whole); });
  return r;
}

/// torch.cumsum over dimension 1 of x[N, T, 1, ...]: as over rows of that length, which nothing lies between.
inline Value running_total(Value x) {
  const Shape s = x.shape(), rows{s[0], s[1]};
  Builder& b = x.builder();
  const DType t = x.dtype();
  const Bytes n = data_bytes(x), scan = s[0] == 1 ? scan_workspace(s[1], bits(t) / 8) : Bytes{};
  const TensorId r = b.result(t, s, "cumsum");
  const GradEdge e = edge(x);
  const MemoryOp op{.read = n, .written = n, .workspace = scan, .dtype = t, .kernels = s[0] == 1 ? 2 : 1};
  Value sums = emit1(b, "cumsum", op, r, {scan}, x);
  // FunctionsManual.cpp, cumsum_backward: one expression, whose temporaries live to its end.
  differentiable(sums, "CumsumBackward0", {e}, [](Gradients& g) {
    if (g.in[0].size(1) == 1) {
      g.out[0] = g.in[0];
      return;
    }
    Value turned = flip(g.in[0]);
    Value summed = running_total(turned);
    g.out[0] = flip(summed);
  });
  return sums;
}

}  // namespace vlmest::eager
