// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <utility>
#include <vector>

#include <vlmest/nn/activation.hpp>
#include <vlmest/nn/image_processor/image.hpp>
#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/norm.hpp>

namespace vlmest {

/// Norm, squares of `merge` by `merge` patches joined by a linear layer, linear, activation, linear (transformers
/// models/mistral3, Mistral3MultiModalProjector).
struct Mistral3Projector {
  std::int64_t in = 1024;   ///< vision width
  std::int64_t out = 5120;  ///< language width
  std::int64_t merge = 2;
  Activation activation = Activation::gelu;
  bool bias = false;
};

struct Mistral3Merger {
  const Mistral3Projector* config = nullptr;
  ScopeId scope = 0, merger_scope = 0, activation_scope = 0;
  RmsNorm norm;
  Linear merging, first, second;
};

inline Mistral3Merger make_projector(Context& c, const Mistral3Projector& g) {
  Mistral3Merger p{.config = &g, .scope = c.b.scope()};
  p.norm = make_rms_norm(c, "norm", g.in);
  {
    Module m(c, "patch_merger");
    p.merger_scope = m.scope;
    p.merging = make_linear(c, "merging_layer", checked_mul(g.in, checked_mul(g.merge, g.merge)), g.in, false);
  }
  p.first = make_linear(c, "linear_1", g.in, g.out, g.bias);
  p.activation_scope = c.b.child("act");
  p.second = make_linear(c, "linear_2", g.out, g.out, g.bias);
  return p;
}

/// modeling_mistral3.py, Mistral3PatchMerger.forward: each image's patches as a grid, unfolded. The sizes come from the
/// GPU: their quotients and products stay there as small tensors, which the host reads one by one.
inline Value merge_patches(Context& c, const Mistral3Merger& p, const Value& features, const Value& image_sizes,
                           std::span<const ImageLayout> images) {
  using namespace eager;
  InScope in(c.b, p.merger_scope);
  const std::int64_t merge = p.config->merge, width = features.size(1);
  std::vector<std::pair<Value, Value>> sides;
  std::vector<Value> areas;
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 0; i < images.size(); ++i) {
    Value height = unary("floor_divide", select(select(image_sizes, 0), 0));
    Value breadth = unary("floor_divide", select(select(image_sizes, 0), 0));
    sides.emplace_back(std::move(height), std::move(breadth));
  }
  for (const auto& [h, w] : sides) areas.push_back(mul(h, w));
  for (const auto& a : areas) item(a);
  for (const auto& i : images) lengths.push_back(i.patches.count());
  const std::vector<Value> tokens = split(features, lengths, 0);
  std::vector<Value> grids;
  for (std::size_t i = 0; i < images.size(); ++i) {
    item(sides[i].first);
    item(sides[i].second);
    Value grid = permute(view(tokens[i], {images[i].patches.rows, images[i].patches.cols, width}), {2, 0, 1});
    grid = im2col(unsqueeze(std::move(grid), 0), merge);
    grids.push_back(transpose(view(std::move(grid), {width * merge * merge, -1}), 0, 1));
  }
  std::vector<Value> joined = grids;  // the list lives to the end of the function
  Value x = cat(joined, 0);
  return forward(c, p.merging, x);
}

/// modeling_mistral3.py, Mistral3MultiModalProjector.forward: features[patches of all images, in] -> [tokens, out].
inline Value forward(Context& c, const Mistral3Merger& p, const Value& arg, const Value& image_sizes,
                     std::span<const ImageLayout> images) {
  InScope in(c.b, p.scope);
  Value features = forward(c, p.norm, arg);
  features = merge_patches(c, p, features, image_sizes, images);
  Value x = forward(c, p.first, features);
  {
    InScope a(c.b, p.activation_scope);
    x = activate(c, p.config->activation, x);
  }
  x = forward(c, p.second, x);
  return x;
}

}  // namespace vlmest
