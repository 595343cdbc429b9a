// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <utility>
#include <vector>

#include <vlmest/family/phi3_v/rule.hpp>
#include <vlmest/graph/eager/routing.hpp>
#include <vlmest/graph/eager/selection.hpp>
#include <vlmest/nn/attention.hpp>
#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/sequence.hpp>
#include <vlmest/nn/vision/clip.hpp>

namespace vlmest {

/// Pictures of Phi-3-vision (modeling_phi3_v.py, Phi3ImageEmbedding): CLIP over crops, 2 x 2 of its features in one, a
/// separator behind each row and another behind the crops, two linears.
struct Phi3VVision {
  ClipVision tower{
      .hidden = 1024, .intermediate = 4096, .layers = 24, .heads = 16, .image_size = 336, .patch_size = 14};
  std::int64_t feature_layer = -2;  ///< layer_idx

  std::int64_t merged() const { return checked_mul(tower.hidden, 4); }
};

struct Phi3VImages {
  const Phi3VVision* config = nullptr;
  ScopeId scope = 0, activation_scope = 0;
  TensorId between = none, row_end = none;  ///< glb_GN, sub_GN
  ClipTower tower;
  Linear first, second;
};

/// In the order of Phi3ImageEmbedding.__init__; its wte is the model's embedding.
inline Phi3VImages make_phi3v_images(Context& c, const Phi3VVision& g, std::int64_t width) {
  Module m(c, "vision_embed_tokens", Part::projector);
  Phi3VImages r{.config = &g, .scope = m.scope};
  {
    Module v(c, "img_processor", Part::vision);
    r.tower = make_tower(c, g.tower);
  }
  r.between = parameter(c, "glb_GN", {1, 1, g.merged()});
  r.row_end = parameter(c, "sub_GN", {1, 1, 1, g.merged()});
  r.first = make_linear(c, "img_projection", g.merged(), width, true, 0);
  r.activation_scope = c.b.child("img_projection", 1);
  r.second = make_linear(c, "img_projection", width, width, true, 2);
  return r;
}

/// get_img_features: [N, patches, hidden], a view of one of the tower's states. The tower's config is a constant of the
/// module, which what from_pretrained is asked for does not reach: its attention is transformers' default.
inline Value phi3v_features(Context& caller, const Phi3VImages& m, const Value& pixels) {
  Plan plan = caller.plan;
  plan.attention = AttentionKind::sdpa;
  Context c = with_plan(caller, plan);
  const std::array<std::int64_t, 1> read{m.config->feature_layer};
  const TowerOutput out =
      forward(c, m.tower, {.pixels = pixels, .images = {}, .keep_hidden_states = true, .read_states = read});
  const auto states = static_cast<std::int64_t>(out.hidden_states.size());
  const Value& x = out.hidden_states[static_cast<std::size_t>(read[0] < 0 ? read[0] + states : read[0])];
  return eager::slice(x, 1, 1, x.size(1));
}

/// reshape_hd_patches_2x2merge of crops[N, patches, hidden], `grid` of them a picture:
/// [N / grid, rows * 12, columns * 12, 4 hidden]. `counts` are rows and columns on the GPU, where they stand there:
/// each count that Python takes for a length is read from it.
inline Value merge_crops(const Value& crops, Grid grid, const std::array<Value, 2>& counts) {
  using namespace eager;
  constexpr std::int64_t half = image_processor::phi3v_merged;
  const std::int64_t n = crops.size(0), width = crops.size(2), pictures = n / grid.count();
  Value number;
  if (counts[0]) {
    item(compare_scalar("eq.Scalar", unary("remainder.Scalar_Tensor", mul(counts[0], counts[1]))));
    number = floor_divide(mul(counts[0], counts[1]));
  }
  Value x = view(crops, {n, 2 * half, 2 * half, width});
  x = permute(view(std::move(x), {n, half, 2, half, 2, width}), {0, 1, 3, 2, 4, 5});
  x = reshape(std::move(x), {n, -1, 4 * width});
  if (counts[0])
    for (const Value& v : {number, counts[0], counts[1]}) item(v);
  x = permute(view(std::move(x), {pictures, grid.rows, grid.cols, half, half, -1}), {0, 1, 3, 2, 4, 5});
  Value rows, cols;  // arguments of the last reshape, to its end
  if (counts[0]) {
    rows = floor_divide(mul_scalar(counts[0]));
    cols = floor_divide(mul_scalar(counts[1]));
    for (const Value& v : {number, rows, cols}) item(v);
  }
  return reshape(std::move(x), {pictures, grid.rows * half, grid.cols * half, 4 * width});
}

/// add_image_newline: [n, rows, columns, width] -> [n, rows * (columns + 1), width].
inline Value end_rows(Context& c, const Phi3VImages& m, const Value& x) {
  using namespace eager;
  const Value ends = expand(Value(c.b, m.row_end), {x.size(0), x.size(1), -1, -1});
  return view(cat(x, ends, 2), {x.size(0), -1, x.size(3)});
}

/// hd_feature_transform of features[pictures, crops, patches, hidden] and sizes int64[pictures, 2].
inline Value phi3v_arranged(Context& c, const Phi3VImages& m, const Value& features, const Value& sizes,
                            const std::vector<ImageLayout>& pictures) {
  using namespace eager;
  const Value whole = select(features, 1, 0);
  const Value whole_merged = merge_crops(whole, {1, 1}, {});
  const Value whole_rows = end_rows(c, m, whole_merged);
  std::vector<Value> all;
  Value rows, cols, count, merged;  // what the loop binds anew for each picture
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const Grid grid = pictures[i].tile_grid;
    const Value size = select(sizes, 0, at);
    rows = floor_divide(select(size, 0, 0));
    cols = floor_divide(select(size, 0, 1));
    count = mul(rows, cols);
    item(add_scalar(count));
    const Value crops = slice(select(features, 0, at), 0, 1, 1 + grid.count());
    merged = merge_crops(crops, grid, {rows, cols});
    all.push_back(squeeze(end_rows(c, m, merged), 0));
    all.push_back(squeeze(Value(c.b, m.between), 0));
    all.push_back(select(whole_rows, 0, at));
  }
  std::vector<Value> list = all;
  const Value joined = cat(list, 0);
  Value x = forward(c, m.first, joined);
  {
    InScope a(c.b, m.activation_scope);
    x = unary(functions::gelu, x);
  }
  return forward(c, m.second, x);
}

/// Phi3ImageEmbedding.forward: embeddings, with the pictures' features where ids are negative. `pixels` and `sizes`
/// are none behind the first token, whose ids are looked through all the same.
template <class Embed>
Value phi3v_embeddings(Context& c, const Phi3VImages& m, const Value& ids, const Value& pixels, const Value& sizes,
                       const std::vector<ImageLayout>& pictures, Embed&& embed) {
  using namespace eager;
  InScope scope(c.b, m.scope);
  std::int64_t tokens = 0;
  for (const ImageLayout& l : pictures) tokens = checked_add(tokens, l.llm_tokens);
  Value places;  // a row for each dimension: CUDA's nonzero gives columns without gaps (Nonzero.cu,
                 // nonzero_cuda_out_impl)
  {
    Value negative = compare_scalar("lt.Scalar", ids);
    Value above = compare_scalar("gt.Scalar", ids);
    Value mask = pointwise("bitwise_and.Tensor", DType::boolean, std::move(negative), std::move(above));
    places = view(nonzero(std::move(mask), tokens), {2, tokens});
  }
  to_host(select(places, 0, 0));
  const Value known = unary("clamp_max", unary("clamp_min", ids));
  Value x = embed(known);
  if (!pixels) return x;
  Value features = phi3v_features(c, m, flatten(pixels, 0, 1));
  const auto n = static_cast<std::int64_t>(pictures.size());
  features = view(std::move(features), {n, pixels.size(1), -1, m.config->tower.hidden});
  const Value projected = phi3v_arranged(c, m, features, sizes, pictures);
  x = index_put(x, select(places, 0, 0), select(places, 0, 1), projected);
  return x;
}

}  // namespace vlmest
