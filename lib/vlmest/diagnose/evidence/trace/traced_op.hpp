// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <vlmest/device/device.hpp>
#include <vlmest/diagnose/evidence/trace/profile_trace.hpp>
#include <vlmest/op/op.hpp>

/// An operator of a trace as one of ours: the sizes, strides and types that torch.profiler recorded of its arguments
/// (record_shapes), in the order of the operator's schema (aten/src/ATen/native/native_functions.yaml).
namespace vlmest::diagnose {

/// C++ names of element types as torch.profiler writes them (caffe2::TypeMeta::name).
std::optional<DType> traced_dtype(std::string_view type);

namespace traced {

using Inputs = std::span<const OpInput>;
using Sizes = std::vector<std::int64_t>;

/// The arguments of one call.
struct Call {
  const ProfileTrace& trace;
  Inputs inputs;

  bool has(std::size_t i, std::size_t rank) const {
    return i < inputs.size() && inputs[i].sizes.size() == rank &&
           std::all_of(inputs[i].sizes.begin(), inputs[i].sizes.end(), [](std::int64_t n) { return n > 0; });
  }
  const Sizes& sizes(std::size_t i) const { return inputs[i].sizes; }
  std::optional<DType> dtype(std::size_t i) const {
    return i < inputs.size() ? traced_dtype(trace.names[inputs[i].type]) : std::nullopt;
  }
  std::string_view value(std::size_t i) const {
    return i < inputs.size() ? trace.names[inputs[i].value] : std::string_view();
  }
  bool truth(std::size_t i) const { return value(i) == "True"; }
  std::optional<Bytes> bytes(std::size_t i) const {
    const auto t = dtype(i);
    if (!t || inputs[i].sizes.empty()) return std::nullopt;
    Elements n(1);
    for (const auto s : inputs[i].sizes) n = Elements(checked_mul(n.value(), s));
    return size_of(n, *t);
  }
  /// Elements between rows, or columns where those are dense; 0 where it is not recorded, neither is dense, or there is
  /// a single row or column, whose stride says nothing.
  std::int64_t leading(std::size_t i) const {
    const auto& s = inputs[i].strides;
    const auto r = s.size();
    if (r < 2 || r != sizes(i).size() || sizes(i)[r - 1] == 1 || sizes(i)[r - 2] == 1) return 0;
    const std::int64_t ld = s[r - 1] == 1 ? s[r - 2] : s[r - 2] == 1 ? s[r - 1] : 0;
    return ld > 0 && ld < std::int64_t{1} << 40 ? ld : 0;
  }
};

/// "[14, 14]" or "14".
std::vector<std::int64_t> integers(std::string_view text);

/// a[..., m, k] x b[..., k, n], the arguments number i and i + 1.
std::optional<Op> product(const Call& c, std::size_t i, std::size_t rank, bool bias);

/// x[..., k] and a weight [n, k].
std::optional<Op> linear(const Call& c);

/// convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups); its sizes are
/// known with the values of its lists alone.
std::optional<Op> convolution(const Call& c, const Device* device);

/// q[batch, heads, q_len, d], k and v behind it from argument i on.
std::optional<Attention> attention(const Call& c, std::size_t i, AttentionBackend backend);

/// Operators whose result has the sizes of their operands broadcast against each other, and its kernel reads each
/// operand once and writes the result once.
bool pointwise(std::string_view op);
std::optional<Op> pointwise(const Call& c);

}  // namespace traced

/// The op that a call of `name` with these arguments is, for time and work; nothing where it is none of these, or its
/// arguments were not recorded. `device`, where known, decides how a convolution is run. May throw Overflow.
std::optional<Op> op_of(const ProfileTrace& trace, std::string_view name, traced::Inputs inputs,
                        const Device* device = nullptr);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/trace/impl/traced_op.hpp>
#endif
