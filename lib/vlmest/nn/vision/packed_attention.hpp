// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/stack/attention.hpp>
#include <vlmest/nn/vision/packed_patches.hpp>

namespace vlmest {

/// Attention over a packed sequence of patches that stays inside segments (images, windows): one projection for q, k
/// and v, rotation in fp32, one attention call per segment.
struct PackedAttention {
  struct Apart {
    Linear q, k, v;
  };
  ScopeId scope = 0;
  Linear qkv, proj;
  std::optional<Apart> apart;  ///< three projections in the place of qkv
  std::optional<RmsNorm> q_norm, k_norm;
  std::int64_t kv_heads = 0;  ///< each for several query heads; 0: one for each, all three of one size
};

/// `normed`: channels of a head where queries and keys have norms; 0: they have none.
inline PackedAttention make_packed_attention(Context& c, std::int64_t width, bool qkv_bias, bool proj_bias,
                                             std::int64_t normed = 0) {
  Module m(c, "attn");
  PackedAttention a{.scope = m.scope};
  a.qkv = make_linear(c, "qkv", width, checked_mul(width, 3), qkv_bias);
  a.proj = make_linear(c, "proj", width, width, proj_bias);
  if (normed > 0) {
    a.q_norm = make_rms_norm(c, "q_norm", normed);
    a.k_norm = make_rms_norm(c, "k_norm", normed);
  }
  return a;
}

/// modeling_exaone4_5.py, Exaone4_5_VisionAttention.__init__: keys and values of `kv_heads` heads.
inline PackedAttention make_grouped_packed_attention(Context& c, std::int64_t width, std::int64_t heads,
                                                     std::int64_t kv_heads) {
  Module m(c, "attn");
  PackedAttention a{.scope = m.scope, .kv_heads = kv_heads};
  a.proj = make_linear(c, "proj", width, width, true);
  const std::int64_t keys = checked_mul(kv_heads, width / heads);
  a.qkv = make_linear(c, "qkv", width, checked_add(width, checked_mul(keys, 2)), true);
  return a;
}

/// Queries, keys and values by a projection each, in the order of Qwen2_5OmniVisionAttention.__init__.
inline PackedAttention make_apart_attention(Context& c, std::int64_t width) {
  Module m(c, "attn");
  PackedAttention a{.scope = m.scope};
  a.apart.emplace();
  a.apart->q = make_linear(c, "q", width, width, true);
  a.apart->k = make_linear(c, "k", width, width, true);
  a.apart->v = make_linear(c, "v", width, width, true);
  a.proj = make_linear(c, "proj", width, width, true);
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
  if (!c.stack().flash_attention_2 || c.plan.attention != AttentionKind::flash) return;
  Value lengths = segment_lengths(s);
  item(reduce("max", DType::int32, Shape{}, std::move(lengths)));
}

/// The segments of full attention: every image sees itself alone, and so does every temporal patch of a video.
inline Segments frame_segments(const Value& grid, std::span<const ImageLayout> images) {
  Segments s;
  const std::int64_t frames = total_frames(images);
  s.cu_seqlens = vision_cu_seqlens(grid, frames);
  s.lengths.reserve(static_cast<std::size_t>(frames));
  for (const auto& i : images) s.lengths.insert(s.lengths.end(), static_cast<std::size_t>(i.frames), i.patches.count());
  return s;
}
/// The same of towers that ask for the longest one ahead of their layers.
inline Segments image_segments(Context& c, const Value& grid, std::span<const ImageLayout> images) {
  Segments s = frame_segments(grid, images);
  check_longest(c, s);
  return s;
}

/// What a module's forward holds until it returns when each segment has attended to itself.
struct SegmentedAttention {
  Value lengths;
  std::vector<Value> outs;
  Value out;  ///< [1, patches, heads, head_dim]
};

/// modeling_qwen2_vl.py, VisionAttention.forward: q, k and v[1, heads, patches, head_dim], one call for each segment,
/// whose lengths the host reads for each of the three.
inline SegmentedAttention attend_in_segments(Context& c, const Value& q, const Value& k, const Value& v,
                                             const Segments& segments) {
  using namespace eager;
  SegmentedAttention r;
  r.lengths = segment_lengths(segments);
  std::array<std::vector<Value>, 3> parts;
  for (std::size_t i = 0; const Value* y : {&q, &k, &v}) {
    to_host(r.lengths);
    parts[i++] = split(*y, segments.lengths, 2);
  }
  for (std::size_t i = 0; i < segments.lengths.size(); ++i)
    r.outs.push_back(stacks::attend(c, {parts[0][i], parts[1][i], parts[2][i], {}, false}).out);
  std::vector<Value> references = r.outs;
  r.out = cat(references, 1);
  return r;
}

/// q, k and v[S, heads, head_dim], which are rebound, by one attention call per segment -> [S, width]
/// (modeling_qwen2_vl.py, VisionAttention.forward; modeling_qwen2_5_omni.py, Qwen2_5OmniAudioAttention.forward). `held`
/// is what the caller's variables keep until it returns.
inline Value attend_segments(Context& c, Value& q, Value& k, Value& v, const Segments& segments,
                             SegmentedAttention& held) {
  using namespace eager;
  const std::int64_t rows = q.size(0);
  if (c.attention() == AttentionKind::flash) {
    held.out = flash_attn_varlen_func(q, k, v, segments.cu_seqlens, segments.lengths);
  } else {
    auto batched = [](Value& y) { y = unsqueeze(transpose(std::move(y), 0, 1), 0); };
    batched(q);
    batched(k);
    batched(v);
    held = attend_in_segments(c, q, k, v, segments);
  }
  return contiguous(reshape(std::move(held.out), {rows, -1}));
}

/// q, k and v[patches, heads, channels] of x: views of the one projection's result, or those of three.
inline std::array<Value, 3> packed_qkv(Context& c, const PackedAttention& a, const Value& x, std::int64_t heads) {
  using namespace eager;
  const std::int64_t patches = x.size(0);
  if (a.apart) {
    const auto project = [&](const Linear& l) { return reshape(forward(c, l, x), {patches, heads, -1}); };
    std::array<Value, 3> each;
    each[0] = project(a.apart->q);
    each[1] = project(a.apart->k);
    each[2] = project(a.apart->v);
    return each;
  }
  std::vector<Value> parts;
  if (a.kv_heads == 0) {
    parts = unbind(permute(reshape(forward(c, a.qkv, x), {patches, 3, heads, -1}), {1, 0, 2, 3}), 0);
  } else {
    Value all = forward(c, a.qkv, x);
    const std::int64_t channels = all.size(1) / (heads + 2 * a.kv_heads), keys = a.kv_heads * channels;
    parts = split(std::move(all), std::array{heads * channels, keys, keys}, -1);
    for (Value& y : parts) y = view(std::move(y), {patches, -1, channels});
  }
  return {std::move(parts[0]), std::move(parts[1]), std::move(parts[2])};
}

/// modeling_qwen2_vl.py, VisionAttention.forward, with norms modeling_glm_ocr.py, GlmOcrVisionAttention.forward, with
/// fewer heads of keys and values modeling_exaone4_5.py, Exaone4_5_VisionAttention.forward, with three projections
/// modeling_qwen2_5_omni.py, Qwen2_5OmniVisionAttention.forward: x[patches, width] -> the same.
inline Value forward(Context& c, const PackedAttention& a, Value arg, std::int64_t heads, const CosSin& positions,
                     const Segments& segments) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, a.scope);
  auto [q, k, v] = packed_qkv(c, a, x, heads);
  if (a.q_norm) {
    q = forward(c, *a.q_norm, q);
    k = forward(c, *a.k_norm, k);
  }
  apply_rope_fp32(c, q, k, positions);
  SegmentedAttention held;  // variables of the function: alive until it returns
  Value out = attend_segments(c, q, k, v, segments, held);
  out = forward(c, a.proj, out);
  return out;
}

}  // namespace vlmest
