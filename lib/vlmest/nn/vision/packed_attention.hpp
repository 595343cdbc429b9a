// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>
#include <vector>

#include <vlmest/nn/attention.hpp>
#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/vision/packed_patches.hpp>

namespace vlmest {

/// Attention over a packed sequence of patches that stays inside segments (images, windows): one projection for q, k
/// and v, rotation in fp32, one attention call per segment.
struct PackedAttention {
  ScopeId scope = 0;
  Linear qkv, proj;
};

inline PackedAttention make_packed_attention(Context& c, std::int64_t width, bool qkv_bias, bool proj_bias) {
  Module m(c, "attn");
  PackedAttention a{.scope = m.scope};
  a.qkv = make_linear(c, "qkv", width, checked_mul(width, 3), qkv_bias);
  a.proj = make_linear(c, "proj", width, width, proj_bias);
  return a;
}

/// Boundaries of the segments: cu_seqlens, int32[segments + 1] on the device, and the lengths that the host works with.
struct Segments {
  Value cu_seqlens;
  std::vector<std::int64_t> lengths;
};

/// Lengths of the segments on the device, int32[segments].
inline Value segment_lengths(const Segments& s) {
  const std::int64_t n = s.cu_seqlens.size(0);
  const Value ends = eager::slice(s.cu_seqlens, 0, 1, n), starts = eager::slice(s.cu_seqlens, 0, 0, n - 1);
  return eager::sub(ends, starts);
}

/// utils/generic.py, get_max_seqlen: FlashAttention's call needs the longest segment on the host; the others do not
/// ask.
inline void check_longest(Context& c, const Segments& s) {
  using namespace eager;
  if (c.fused() || c.plan.attention != AttentionKind::flash) return;
  Value lengths = segment_lengths(s);
  item(reduce("max", DType::int32, Shape{}, std::move(lengths)));
}

/// The segments of full attention: every image sees itself alone.
inline Segments image_segments(Context& c, const Value& grid, std::span<const ImageLayout> images) {
  Segments s;
  s.cu_seqlens = vision_cu_seqlens(grid, static_cast<std::int64_t>(images.size()));
  s.lengths.reserve(images.size());
  for (const auto& i : images) s.lengths.push_back(i.patches.count());
  check_longest(c, s);
  return s;
}

/// flash_attn_varlen_func: one call for all segments, q, k and v[patches, heads, head_dim]. Its cost is written per
/// length, as one node for the segments that share it; the first allocates the result.
inline Value varlen_attention(Context& c, const Value& q, const Value& k, const Value& v, const Segments& s) {
  std::map<std::int64_t, std::int64_t> counts;
  for (auto n : s.lengths) ++counts[n];
  const std::int64_t patches = q.size(0), heads = q.size(1), dim = q.size(2);
  const DType t = q.dtype();
  const std::array<TensorId, 3> outs{c.b.result(t, {patches, heads, dim}, "attention"),
                                     c.b.result(DType::fp32, {heads, patches}, "logsumexp"),
                                     c.b.result(DType::int64, {2}, "rng_state")};
  const std::array<TensorId, 4> ins{q.id(), k.id(), v.id(), s.cu_seqlens.id()};
  Value result(c.b, outs[0]);
  Value lse(c.b, outs[1]), rng(c.b, outs[2]);
  for (bool first = true; const auto& [length, count] : counts) {
    const Attention op{.batch = count,
                       .heads = heads,
                       .kv_heads = heads,
                       .q_len = length,
                       .kv_len = length,
                       .head_dim = dim,
                       .v_dim = dim,
                       .dtype = t,
                       .backend = AttentionBackend::flash};
    c.b.emit("_flash_attn_varlen_forward", op, ins, std::span(outs).first(first ? 3 : 1));
    first = false;
  }
  return result;
}

/// modeling_qwen2_vl.py, VisionAttention.forward: x[patches, width] -> the same.
inline Value forward(Context& c, const PackedAttention& a, Value arg, std::int64_t heads, const CosSin& positions,
                     const Segments& segments) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, a.scope);
  const std::int64_t patches = x.size(0);
  Value q, k, v;
  {
    std::vector<Value> parts = unbind(permute(reshape(forward(c, a.qkv, x), {patches, 3, heads, -1}), {1, 0, 2, 3}), 0);
    q = std::move(parts[0]);
    k = std::move(parts[1]);
    v = std::move(parts[2]);
  }
  apply_rope_fp32(c, q, k, positions);
  Value out;
  std::vector<Value> outs;  // variables of the function: alive until it returns
  Value lengths;
  if (c.fused() || c.plan.attention == AttentionKind::flash) {
    out = varlen_attention(c, q, k, v, segments);
  } else {
    auto batched = [](Value& y) { y = unsqueeze(transpose(std::move(y), 0, 1), 0); };
    batched(q);
    batched(k);
    batched(v);
    lengths = segment_lengths(segments);
    std::array<std::vector<Value>, 3> parts;
    for (std::size_t i = 0; const Value* y : {&q, &k, &v}) {
      to_host(lengths);
      parts[i++] = split(*y, segments.lengths, 2);
    }
    for (std::size_t i = 0; i < segments.lengths.size(); ++i)
      outs.push_back(attend(c, {parts[0][i], parts[1][i], parts[2][i], {}, false}).out);
    std::vector<Value> references = outs;
    out = cat(references, 1);
  }
  out = contiguous(reshape(out, {patches, -1}));
  out = forward(c, a.proj, out);
  return out;
}

}  // namespace vlmest
