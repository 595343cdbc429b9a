// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <initializer_list>
#include <string>
#include <utility>

#include <vlmest/op/op.hpp>

#include "formula.hpp"
#include "source.hpp"

/// Ops as the reference shows them: written out, with the fields that its formulas name.
namespace reference {

using namespace vlmest;

/// One way to call an op: how it is written, the fields that formulas name, what it costs.
struct Example {
  std::string call;
  Values fields;
  Cost cost;
};
inline double bytes_of(DType t) { return static_cast<double>(size_of(Elements(2), t).value()) / 2; }
inline double number(std::int64_t n) { return static_cast<double>(n); }

inline std::string call(std::initializer_list<std::pair<const char*, std::int64_t>> fields, const std::string& more) {
  std::string s;
  for (const auto& [name, value] : fields) s += std::string(name) + " " + grouped(value) + ", ";
  return s + more;
}

inline Example example(const Matmul& o) {
  return {call({{"batch", o.batch}, {"m", o.m}, {"n", o.n}, {"k", o.k}},
               std::string(name(o.dtype)) + (o.bias ? ", bias" : "")),
          {{"batch", number(o.batch)},
           {"m", number(o.m)},
           {"n", number(o.n)},
           {"k", number(o.k)},
           {"bias", o.bias ? 1.0 : 0.0},
           {"size", bytes_of(o.dtype)}},
          cost(o)};
}
inline Example example(const StoredMatmul& o) {
  return {call({{"m", o.m}, {"n", o.n}, {"k", o.k}, {"stored", o.stored.value()}}, std::string(name(o.dtype))),
          {{"m", number(o.m)},
           {"n", number(o.n)},
           {"k", number(o.k)},
           {"stored", number(o.stored.value())},
           {"size", bytes_of(o.dtype)}},
          cost(o)};
}
inline Example example(const GroupedMatmul& o) {
  return {call({{"rows", o.rows}, {"n", o.n}, {"k", o.k}, {"groups", o.groups}, {"active", o.active}},
               std::string(name(o.dtype))),
          {{"rows", number(o.rows)},
           {"n", number(o.n)},
           {"k", number(o.k)},
           {"active", number(o.active)},
           {"size", bytes_of(o.dtype)}},
          cost(o)};
}
inline Example example(const Attention& o) {
  return {
      call({{"batch", o.batch},
            {"heads", o.heads},
            {"kv_heads", o.kv_heads},
            {"q_len", o.q_len},
            {"kv_len", o.kv_len},
            {"head_dim", o.head_dim}},
           std::string(name(o.dtype)) + (o.causal ? ", causal" : "")),
      {{"batch", number(o.batch)},
       {"heads", number(o.heads)},
       {"kv_heads", number(o.kv_heads)},
       {"q_len", number(o.q_len)},
       {"kv_len", number(o.kv_len)},
       {"head_dim", number(o.head_dim)},
       {"v_dim", number(o.v_dim)},
       {"mask", number(o.mask.value())},
       {"size", bytes_of(o.dtype)},
       {"visible", o.causal ? number(o.q_len) * number(o.kv_len - o.q_len) + number(o.q_len) * number(o.q_len + 1) / 2
                            : number(o.q_len) * number(o.kv_len)}},
      cost(o)};
}
inline Example example(const AttentionBackward& o) {
  Example e = example(o.forward);
  e.fields["inputs"] = number(cost(o.forward).read.value());
  e.cost = cost(o);
  return e;
}
inline Example example(const Convolution& o) {
  return {call({{"batch", o.batch},
                {"in_channels", o.in_channels},
                {"out_channels", o.out_channels},
                {"in_positions", o.in_positions},
                {"out_positions", o.out_positions},
                {"kernel", o.kernel},
                {"groups", o.groups}},
               std::string(name(o.dtype)) + (o.bias ? ", bias" : "")),
          {{"batch", number(o.batch)},
           {"in_channels", number(o.in_channels)},
           {"out_channels", number(o.out_channels)},
           {"in_positions", number(o.in_positions)},
           {"out_positions", number(o.out_positions)},
           {"kernel", number(o.kernel)},
           {"groups", number(o.groups)},
           {"bias", o.bias ? 1.0 : 0.0},
           {"size", bytes_of(o.dtype)}},
          cost(o)};
}
inline Example example(const DepthwiseConvolution& o) {
  const char* made = o.forward ? "" : ", both gradients";
  return {call({{"batch", o.batch},
                {"channels", o.channels},
                {"in_positions", o.in_positions},
                {"out_positions", o.out_positions},
                {"taps", o.taps}},
               std::string(name(o.dtype)) + made),
          {{"batch", number(o.batch)},
           {"channels", number(o.channels)},
           {"in_positions", number(o.in_positions)},
           {"out_positions", number(o.out_positions)},
           {"taps", number(o.taps)},
           {"results", number(results(o))},
           {"copies", number(o.copies)},
           {"workspace", number(o.workspace.value())},
           {"size", bytes_of(o.dtype)}},
          cost(o)};
}
inline Example example(const TriangularSolve& o) {
  return {call({{"batch", o.batch}, {"rows", o.rows}, {"columns", o.columns}}, std::string(name(o.dtype))),
          {{"batch", number(o.batch)},
           {"rows", number(o.rows)},
           {"columns", number(o.columns)},
           {"size", bytes_of(o.dtype)}},
          cost(o)};
}
inline Example example(const DeltaRule& o, const char* kernel) {
  const DeltaRuleWork w = work_of(o);
  return {call({{"batch", o.batch},
                {"tokens", o.tokens},
                {"heads", o.heads},
                {"key_dim", o.key_dim},
                {"value_dim", o.value_dim}},
               std::string(name(o.dtype)) + ", " + kernel),
          {{"heads", number(o.batch * o.heads)},
           {"tokens", number(o.tokens)},
           {"chunks", number(chunks(o))},
           {"macs", number(w.macs)},
           {"token_in", number(w.read.token)},
           {"chunk_in", number(w.read.chunk)},
           {"floats_in", number(w.read.token_floats)},
           {"token_out", number(w.written.token)},
           {"chunk_out", number(w.written.chunk)},
           {"floats_out", number(w.written.token_floats)},
           {"head_out", number(w.written.head_floats)},
           {"size", bytes_of(o.dtype)}},
          cost(o)};
}
inline Example example(const Norm& o) {
  const bool layer = o.kind == Norm::Kind::layer_norm;
  return {(layer ? "layer_norm, " : "rms_norm, ") +
              call({{"rows", o.rows}, {"width", o.width}}, std::string(name(o.dtype)) + (o.packed ? ", packed" : "")),
          {{"rows", number(o.rows)},
           {"width", number(o.width)},
           {"parameters", number(o.parameters)},
           {"packed", o.packed ? 1.0 : 0.0},
           {"statistics", (layer ? 2.0 : 1.0) * bytes_of(is_half(o.dtype) ? DType::fp32 : o.dtype)},
           {"size", bytes_of(o.dtype)}},
          cost(o)};
}
inline Example example(const Softmax& o) {
  return {call({{"rows", o.rows}, {"width", o.width}},
               std::string(name(o.in)) + " to " + std::string(name(o.out)) + (o.safe ? ", safe" : "")),
          {{"rows", number(o.rows)},
           {"width", number(o.width)},
           {"in", bytes_of(o.in)},
           {"out", bytes_of(o.out)},
           {"safe", o.safe ? 1.0 : 0.0}},
          cost(o)};
}
inline Example example(const MemoryOp& o) {
  return {call({{"read", o.read.value()}, {"written", o.written.value()}}, std::string(name(o.dtype))),
          {{"read", number(o.read.value())},
           {"written", number(o.written.value())},
           {"workspace", number(o.workspace.value())},
           {"kernels", number(o.kernels)}},
          cost(o)};
}
inline Example example(const Fft& o) {
  static constexpr std::array<const char*, 3> kinds{"c2c", "r2c", "c2r"};
  std::string sizes;
  double points = number(o.batch), axes = 1;
  for (int i = 0; i < o.rank; ++i) {
    const auto n = o.n[static_cast<std::size_t>(i)];
    sizes += (i ? "x" : "") + std::to_string(n);
    points *= number(n);
    axes *= number(n);
  }
  const double last = number(o.n[static_cast<std::size_t>(o.rank - 1)]), size = bytes_of(o.dtype);
  const double half = points / last * (std::floor(last / 2) + 1) * 2 * size;
  const bool to_half = o.kind == Fft::Kind::r2c, from_half = o.kind == Fft::Kind::c2r;
  const double in = to_half ? points * size : from_half ? half : points * 2 * size;
  const double out = to_half ? half : from_half ? points * size : points * 2 * size;
  return {std::string(kinds[static_cast<std::size_t>(o.kind)]) + ", batch " + grouped(o.batch) + ", " + sizes + ", " +
              std::string(name(o.dtype)),
          {{"factor", to_half || from_half ? 2.5 : 5},
           {"points", points},
           {"axes", axes},
           {"in", in},
           {"out", out},
           {"clone", from_half ? in : 0}},
          cost(o)};
}

}  // namespace reference
