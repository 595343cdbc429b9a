// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/nn/vision/clip.hpp>
#include <vlmest/nn/vision/packed_attention.hpp>

/// SigLIP's layers over the patches of all pictures as one sequence, in which each picture sees itself alone: the
/// towers of PaddleOCR-VL and VideoLLaMA 3 (positions rotate queries and keys), of MiniCPM-V 4.6 and HunYuan-VL
/// (sequences have a dimension of the batch, of one).
namespace vlmest {

/// What these layers are called with beside their input.
struct SiglipSegments {
  std::int64_t heads = 0;
  const Segments* segments = nullptr;
  const CosSin* positions = nullptr;  ///< none: queries and keys do not turn
};

/// q, k and v[1, heads, L, channels] of x[1, L, width]; where positions rotate, of x[L, width].
inline Qkv packed_siglip_heads(Context& c, const ClipLayer& l, const Value& x, const SiglipSegments& s) {
  using namespace eager;
  const std::int64_t channels = x.size(-1) / s.heads;
  if (!s.positions) {
    if (l.split_each) return project_heads(c, l.attention, x, channels);
    Qkv y = project(c, l.attention, x);
    split_heads(y, channels);
    return y;
  }
  const auto heads = [&](const Linear& p) { return view(forward(c, p, x), {x.size(0), s.heads, channels}); };
  Qkv y;
  y.q = heads(l.attention.q);
  y.k = heads(l.attention.k);
  y.v = heads(l.attention.v);
  apply_rope_fp32(c, y.q, y.k, *s.positions);
  for (Value* v : {&y.q, &y.k, &y.v}) *v = unsqueeze(transpose(std::move(*v), 0, 1), 0);
  return y;
}

/// modeling_paddleocr_vl.py, PaddleOCRVisionAttention.forward; modeling_minicpmv4_6.py,
/// MiniCPMV4_6VisionAttention.forward; modeling_hunyuan_vl.py, HunYuanVLVisionAttention.forward. `weights`: a list that
/// the first of them hands back, where eager attention's weights stay as long as the caller has it.
inline Value packed_siglip_attention(Context& c, const ClipLayer& l, const Value& x, const SiglipSegments& s,
                                     std::vector<Value>* weights) {
  using namespace eager;
  InScope in(c.b, l.attention.scope);
  Qkv y = packed_siglip_heads(c, l, x, s);
  Value out, lengths;
  std::vector<Value> outs;  // variables of the function: alive until it returns
  if (c.attention() == AttentionKind::flash) {
    const auto rows = [](const Value& v) { return transpose(squeeze(v, 0), 0, 1); };
    Value q = rows(y.q), k = rows(y.k), v = rows(y.v);
    out = flash_attn_varlen_func(q, k, v, s.segments->cu_seqlens, s.segments->lengths);
  } else {
    lengths = segment_lengths(*s.segments);
    std::array<std::vector<Value>, 3> parts;
    for (std::size_t i = 0; const Value* v : {&y.q, &y.k, &y.v}) {
      to_host(lengths);
      parts[i++] = split(*v, s.segments->lengths, 2);
    }
    for (std::size_t i = 0; i < s.segments->lengths.size(); ++i) {
      Attended a = stacks::attend(c, {parts[0][i], parts[1][i], parts[2][i], {}, false});
      outs.push_back(std::move(a.out));
      if (weights) weights->push_back(std::move(a.weights));
    }
    std::vector<Value> references = outs;
    out = cat(references, 1);
  }
  Shape rows = x.shape();
  out = contiguous(reshape(out, rows));
  return forward(c, l.attention.out, out);
}

/// modeling_paddleocr_vl.py, PaddleOCRVisionEncoderLayer.forward, and those of the same build.
inline Value forward(Context& c, const ClipLayer& l, Value arg, const SiglipSegments& s) {
  std::vector<Value> weights;
  std::vector<Value>* kept = s.positions ? &weights : nullptr;
  return pre_norm_layer(
      c, l.scope, std::move(arg), l.norm1,
      [&](const Value& x) -> Attended {
        return {packed_siglip_attention(c, l, x, s, kept), {}};
      },
      l.norm2, [&](const Value& x) { return forward(c, l.mlp, x); });
}

/// The layers one after the other; equal ones are recorded once and copied. `kind` sets apart those over other
/// segments.
class PackedSiglipStack {
 public:
  explicit PackedSiglipStack(Context& c) : c_(c), repeat_(c.b) {}

  Value operator()(const ClipLayer& l, const Value& x, const SiglipSegments& s, int kind = 0) {
    return repeat_({kind, l.scope, first_parameter(l)}, x, {}, [&](const Value& h) {
      if (!s.positions) return forward(c_, l, h, s);
      const CosSin positions = as_called(c_, *s.positions);
      SiglipSegments called = s;
      called.positions = &positions;
      return forward(c_, l, h, called);
    });
  }

 private:
  Context& c_;
  LayerRepeater repeat_;
};

}  // namespace vlmest
