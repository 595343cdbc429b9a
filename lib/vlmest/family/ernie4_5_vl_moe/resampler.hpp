// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/vision/packed_patches.hpp>

namespace vlmest {

/// What ERNIE 4.5 VL has between its tower and its language model (transformers models/ernie4_5_vl_moe,
/// Ernie4_5_VLMoeVariableResolutionResamplerModel): squares of patches become one row, two frames one row again.
struct ResamplerConfig {
  std::int64_t in = 1280;   ///< the tower's width
  std::int64_t out = 2560;  ///< the language model's
  std::int64_t merge = 2;

  static constexpr std::int64_t temporal = 2;  ///< _temporal_slicing takes even and odd frames

  std::int64_t spatial_width() const { return checked_mul(in, checked_mul(merge, merge)); }
};

/// Ernie4_5_VLMoeVisionMLP.
struct ResamplerMlp {
  ScopeId scope = 0, activation_scope = 0;
  Linear fc1, fc2;
  LayerNorm norm;
};

struct Resampler {
  const ResamplerConfig* config = nullptr;
  ScopeId scope = 0;
  ResamplerMlp spatial, temporal;
  Linear mlp;
  RmsNorm after_norm;
};

/// In the order of Ernie4_5_VLMoeVisionMLP.__init__.
inline ResamplerMlp make_resampler_mlp(Context& c, const char* name, std::int64_t in, std::int64_t out) {
  Module m(c, name);
  ResamplerMlp r{.scope = m.scope};
  r.fc1 = make_linear(c, "fc1", in, out, true);
  r.activation_scope = c.b.child("act_fn");
  r.fc2 = make_linear(c, "fc2", out, out, true);
  r.norm = make_layer_norm(c, "ln", out);
  return r;
}

/// In the order of Ernie4_5_VLMoeVariableResolutionResamplerModel.__init__.
inline Resampler make_resampler(Context& c, const ResamplerConfig& g) {
  Module m(c, "resampler_model", Part::projector);
  Resampler r{.config = &g, .scope = m.scope};
  const std::int64_t width = g.spatial_width();
  r.spatial = make_resampler_mlp(c, "spatial_linear", width, width);
  r.temporal = make_resampler_mlp(c, "temporal_linear", checked_mul(width, g.temporal), width);
  r.mlp = make_linear(c, "mlp", width, g.out, true);
  r.after_norm = make_rms_norm(c, "after_norm", g.out);
  return r;
}

/// modeling_ernie4_5_vl_moe.py, Ernie4_5_VLMoeVisionMLP.forward.
inline Value forward(Context& c, const ResamplerMlp& m, Value arg) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, m.scope);
  x = forward(c, m.fc1, x);
  {
    InScope act(c.b, m.activation_scope);
    x = unary(functions::gelu, x);
  }
  x = forward(c, m.fc2, x);
  return forward(c, m.norm, x);
}

/// The rows of one frame, on the host: range(begin, end), each offset + frame * rows, which the GPU computes and the
/// host reads.
inline void frame_range(const Value& rows) {
  using namespace eager;
  const auto place = [&] {
    Value frames = mul_scalar(rows);
    return add_scalar(std::move(frames));
  };
  const Value begin = place(), end = place();
  item(begin);
  item(end);
}

/// modeling_ernie4_5_vl_moe.py, Ernie4_5_VLMoeVariableResolutionResamplerModel._temporal_slicing: even frames beside
/// odd ones, a picture beside itself. x[rows, width] -> [pairs of rows, 2 width].
inline Value pair_frames(Context& c, const Value& x, const Value& grid, std::span<const ImageLayout> images) {
  using namespace eager;
  const auto n = static_cast<std::int64_t>(images.size());
  const auto counted = [&](const Value& sides) {
    Value patches = reduce("prod.dim_int", DType::int64, {n}, sides);
    return floor_divide(std::move(patches));
  };
  const Value rows = counted(slice(grid, 1, 1, 3));
  const Value tokens = counted(grid);
  {
    const Value sums = cumsum(tokens, DType::int64);
    const Value before = slice(sums, 0, 0, n - 1);
    const std::array<TensorId, 1> read{before.id()};
    c.b.emit("copy_", HostSync{data_bytes(before)}, read, {});
  }
  std::int64_t tokens_left = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const ImageLayout& image = images[static_cast<std::size_t>(i)];
    const Value frames = select(select(grid, 1, 0), 0, i), each = select(rows, 0, i);
    item(frames);
    item(compare_scalar("gt.Scalar", frames));
    item(frames);
    for (std::int64_t frame = 0; frame < image.frames; frame += ResamplerConfig::temporal) {
      frame_range(each);
      frame_range(each);
    }
    tokens_left = checked_add(tokens_left, image.llm_tokens);
  }
  const Value first = from_host(c.b, {tokens_left}, DType::int64, "_to_copy");
  const Value second = from_host(c.b, {tokens_left}, DType::int64, "_to_copy");
  std::array<Value, 2> sides{index_select(x, 0, first), index_select(x, 0, second)};
  return cat(sides, -1);
}

/// modeling_ernie4_5_vl_moe.py, Ernie4_5_VLMoeVariableResolutionResamplerModel.forward: x[patches, in] -> [tokens,
/// out].
inline Value forward(Context& c, const Resampler& r, const Value& arg, const Value& grid,
                     std::span<const ImageLayout> images) {
  using namespace eager;
  InScope in(c.b, r.scope);
  Value x = reshape(arg, {-1, r.config->spatial_width()});
  x = forward(c, r.spatial, x);
  x = pair_frames(c, x, grid, images);
  x = forward(c, r.temporal, x);
  x = forward(c, r.mlp, x);
  return forward(c, r.after_norm, x);
}

}  // namespace vlmest
