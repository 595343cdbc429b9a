// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <system_error>

#include <vlmest/diagnose/evidence/trace/traced_op.hpp>
#include <vlmest/library/convolution.hpp>
#include <vlmest/library/rules.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE std::optional<DType> traced_dtype(std::string_view type) {
  if (type == "c10::BFloat16") return DType::bf16;
  if (type == "c10::Half") return DType::fp16;
  if (type == "float") return DType::fp32;
  if (type == "double") return DType::fp64;
  if (type.starts_with("c10::Float8")) return DType::fp8;
  if (type == "long int" || type == "long") return DType::int64;
  if (type == "int") return DType::int32;
  if (type == "signed char") return DType::int8;
  if (type == "unsigned char") return DType::uint8;
  if (type == "bool") return DType::boolean;
  if (type == "c10::complex<float>") return DType::complex64;
  return std::nullopt;
}

namespace traced {

VLMEST_INLINE std::vector<std::int64_t> integers(std::string_view text) {
  std::vector<std::int64_t> r;
  for (std::size_t i = 0; i < text.size() && r.size() < 8;) {
    std::int64_t n = 0;
    const auto [end, fault] = std::from_chars(text.data() + i, text.data() + text.size(), n);
    if (fault == std::errc()) {
      r.push_back(n);
      i = static_cast<std::size_t>(end - text.data());
    } else {
      ++i;
    }
  }
  return r;
}

VLMEST_INLINE std::optional<Op> product(const Call& c, std::size_t i, std::size_t rank, bool bias) {
  const auto t = c.dtype(i);
  if (!t || !is_floating(*t) || is_complex(*t) || *t == DType::fp64) return std::nullopt;
  if (!c.has(i, rank) || !c.has(i + 1, rank)) return std::nullopt;
  const Sizes &a = c.sizes(i), &b = c.sizes(i + 1);
  if (a[rank - 1] != b[rank - 2]) return std::nullopt;
  return Matmul{.batch = rank == 3 ? a[0] : 1,
                .m = a[rank - 2],
                .n = b[rank - 1],
                .k = a[rank - 1],
                .dtype = *t,
                .bias = bias,
                .lda = c.leading(i),
                .ldb = c.leading(i + 1)};
}

VLMEST_INLINE std::optional<Op> linear(const Call& c) {
  const auto t = c.dtype(0);
  if (!t || !is_half(*t) || c.inputs.size() < 2 || c.sizes(0).empty() || !c.has(0, c.sizes(0).size()) || !c.has(1, 2))
    return std::nullopt;
  std::int64_t m = 1;
  for (const auto s : c.sizes(0)) m = checked_mul(m, s);
  const std::int64_t k = c.sizes(0).back();
  if (k != c.sizes(1)[1]) return std::nullopt;
  return Matmul{.m = m / k, .n = c.sizes(1)[0], .k = k, .dtype = *t, .bias = c.has(2, 1), .ldb = c.leading(1)};
}

VLMEST_INLINE std::optional<Op> convolution(const Call& c, const Device* device) {
  const auto t = c.dtype(0);
  if (!t || !is_floating(*t) || c.inputs.size() < 9 || c.truth(6)) return std::nullopt;
  const auto rank = c.sizes(0).size();
  if (rank < 3 || rank > 5 || !c.has(0, rank) || !c.has(1, rank)) return std::nullopt;
  const auto stride = integers(c.value(3)), padding = integers(c.value(4)), dilation = integers(c.value(5)),
             groups = integers(c.value(8));
  if (stride.empty() || padding.empty() || dilation.empty() || groups.size() != 1) return std::nullopt;
  const auto of = [](const std::vector<std::int64_t>& list, std::size_t i) {
    return i < list.size() ? list[i] : list[0];
  };
  const Sizes &x = c.sizes(0), &w = c.sizes(1);
  Convolution o{.batch = x[0], .in_channels = x[1], .out_channels = w[0], .groups = groups[0], .dtype = *t};
  if (o.groups < 1 || o.in_channels % o.groups != 0 || o.in_channels / o.groups != w[1]) return std::nullopt;
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    const std::int64_t reach = checked_add(checked_mul(of(dilation, i), w[i + 2] - 1), 1);
    const std::int64_t room = checked_sub(checked_add(x[i + 2], checked_mul(2, of(padding, i))), reach);
    if (of(stride, i) < 1 || of(dilation, i) < 1 || of(padding, i) < 0 || room < 0) return std::nullopt;
    o.in_positions = checked_mul(o.in_positions, x[i + 2]);
    o.out_positions = checked_mul(o.out_positions, room / of(stride, i) + 1);
    o.kernel = checked_mul(o.kernel, w[i + 2]);
  }
  o.bias = c.has(2, 1);
  if (o.groups > 1 && o.groups == o.in_channels && o.out_channels == o.in_channels)
    return DepthwiseConvolution{.batch = o.batch,
                                .channels = o.in_channels,
                                .in_positions = o.in_positions,
                                .out_positions = o.out_positions,
                                .taps = o.kernel,
                                .dtype = o.dtype};
  if (device != nullptr && holds(ArchitectureRule::convolution_scratch, device->sm) && rank == 4)
    o.workspace = conv_scratch(o, x[2]);
  o.kernels = (o.workspace > Bytes{} ? 4 : 1) + (o.bias ? 1 : 0);
  return o;
}

VLMEST_INLINE std::optional<Attention> attention(const Call& c, std::size_t i, AttentionBackend backend) {
  const auto t = c.dtype(i);
  if (!t || !is_floating(*t) || is_complex(*t) || *t == DType::fp64) return std::nullopt;
  if (!c.has(i, 4) || !c.has(i + 1, 4) || !c.has(i + 2, 4)) return std::nullopt;
  const Sizes &q = c.sizes(i), &k = c.sizes(i + 1), &v = c.sizes(i + 2);
  if (q[1] % k[1] != 0 || q[3] != k[3] || q[0] != k[0]) return std::nullopt;
  return Attention{.batch = q[0],
                   .heads = q[1],
                   .kv_heads = k[1],
                   .q_len = q[2],
                   .kv_len = k[2],
                   .head_dim = q[3],
                   .v_dim = v[3],
                   .dtype = *t,
                   .backend = backend};
}

VLMEST_INLINE bool pointwise(std::string_view op) {
  for (const std::string_view known :
       {"aten::add", "aten::add_", "aten::sub", "aten::mul", "aten::mul_", "aten::div", "aten::silu", "aten::gelu",
        "aten::relu", "aten::neg", "aten::rsqrt", "aten::pow", "aten::sigmoid", "aten::tanh", "aten::exp",
        "aten::clone", "aten::silu_backward", "aten::gelu_backward"})
    if (op == known) return true;
  return false;
}

VLMEST_INLINE std::optional<Op> pointwise(const Call& c) {
  const auto t = c.dtype(0);
  if (!t || !is_floating(*t)) return std::nullopt;
  MemoryOp o{.dtype = *t};
  Sizes result;
  for (std::size_t i = 0; i < c.inputs.size() && i < 3; ++i) {
    const Sizes& s = c.sizes(i);
    const auto bytes = c.bytes(i);
    if (!bytes) continue;
    o.read += *bytes;
    if (s.size() > result.size()) result.insert(result.begin(), s.size() - result.size(), 1);
    for (std::size_t j = 0; j < s.size(); ++j) {
      auto& r = result[result.size() - s.size() + j];
      r = std::max(r, s[j]);
    }
  }
  Elements n(1);
  for (const auto s : result) n = Elements(checked_mul(n.value(), s));
  o.written = size_of(n, *t);
  if (o.read == Bytes{} || o.written == Bytes{}) return std::nullopt;
  return o;
}

}  // namespace traced

VLMEST_INLINE std::optional<Op> op_of(const ProfileTrace& trace, std::string_view name, traced::Inputs inputs,
                                      const Device* device) {
  using namespace traced;
  const Call c{trace, inputs};
  if (!name.starts_with("aten::")) return std::nullopt;
  const std::string_view op = name.substr(6);
  if (op == "mm") return product(c, 0, 2, false);
  if (op == "bmm") return product(c, 0, 3, false);
  if (op == "addmm") return product(c, 1, 2, true);
  if (op == "_addmm_activation") return product(c, 1, 2, true);
  if (op == "baddbmm") return product(c, 1, 3, true);
  if (op == "linear") return traced::linear(c);
  if (op == "convolution") return convolution(c, device);
  const auto fused = [&](AttentionBackend b, std::size_t causal, std::size_t mask) -> std::optional<Op> {
    auto a = traced::attention(c, 0, b);
    if (!a) return std::nullopt;
    a->causal = c.truth(causal);
    if (mask > 0) a->mask = c.bytes(mask).value_or(Bytes{});
    return *a;
  };
  if (op == "_scaled_dot_product_cudnn_attention") return fused(AttentionBackend::cudnn, 6, 3);
  if (op == "_scaled_dot_product_flash_attention") return fused(AttentionBackend::flash, 4, 0);
  if (op == "_scaled_dot_product_efficient_attention") return fused(AttentionBackend::efficient, 6, 3);
  const auto backward = [&](AttentionBackend b, std::size_t causal) -> std::optional<Op> {
    auto a = traced::attention(c, 1, b);
    if (!a) return std::nullopt;
    a->causal = c.truth(causal);
    return AttentionBackward{*a};
  };
  if (op == "_scaled_dot_product_cudnn_attention_backward") return backward(AttentionBackend::cudnn, 14);
  if (op == "_scaled_dot_product_flash_attention_backward") return backward(AttentionBackend::flash, 11);
  if (op == "_scaled_dot_product_efficient_attention_backward") return backward(AttentionBackend::efficient, 11);
  if (traced::pointwise(name)) return traced::pointwise(c);
  return std::nullopt;
}

}  // namespace vlmest::diagnose
