// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kernels/reference/rows.hpp>

#include <vlmest/op/elementwise.hpp>

namespace vlmest::kernels::reference {

/// The result of a kind that has one; `b` where it has two operands. SiLU: x / (1 + exp(-x)) (Elfwing, Uchibe, Doya,
/// arXiv:1702.03118). GELU: the exact one, x / 2 (1 + erf(x / sqrt 2)) (Hendrycks, Gimpel, arXiv:1606.08415). Throws
/// Error for the streams, which compute nothing.
inline std::vector<double> elementwise(const Elementwise& op, std::span<const double> a,
                                       std::span<const double> b = {}) {
  using Kind = Elementwise::Kind;
  const ElementwiseInfo& kind = info(op.kind);
  if (kind.read == 0 || kind.written == 0) throw Error("reference", std::string(kind.name) + " has no result");
  expect_size(a, op.elements, "a");
  expect_size(b, kind.read == 2 ? op.elements : 0, "b");
  const Eigen::Map<const Eigen::ArrayXd> x(a.data(), op.elements), y(b.data(), static_cast<std::int64_t>(b.size()));
  const auto silu = x / (1 + (-x).exp());
  std::vector<double> r(a.size());
  Eigen::Map<Eigen::ArrayXd> out(r.data(), op.elements);
  switch (op.kind) {
    case Kind::add: out = x + y; break;
    case Kind::mul: out = x * y; break;
    case Kind::silu: out = silu; break;
    case Kind::silu_mul: out = silu * y; break;
    case Kind::gelu: out = x.unaryExpr([](double v) { return v / 2 * (1 + std::erf(v / std::sqrt(2.0))); }); break;
    default: out = x;
  }
  return r;
}

}  // namespace vlmest::kernels::reference
