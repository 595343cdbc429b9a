// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/nn/decoder/llama.hpp>
#include <vlmest/nn/mask_blocks.hpp>
#include <vlmest/nn/vision/sam.hpp>

namespace vlmest {

/// DeepSeek-OCR-2's vision model (transformers models/deepseek_ocr2, DeepseekOcr2VisionModel): SAM's tower with two
/// more convolutions behind its neck, and an encoder of Qwen2's layers over its features and as many learned queries,
/// which see all features and the queries before them. What the queries become are the features of the picture.
struct DeepseekOcr2Vision {
  SamVision sam{.resamples = true};
  std::int64_t between = 512, features = 896;  ///< downsample_channels
  LlamaConfig encoder{.vocab = 0, .intermediate = 22016, .qkv_bias = true};
};

/// Queries of the two tables, for maps of up to 144 features and for larger ones.
inline constexpr std::int64_t few_queries = 144, many_queries = 256;

struct DeepseekOcr2Tower {
  const DeepseekOcr2Vision* config = nullptr;
  ScopeId scope = 0, encoder_scope = 0, halvings_scope = 0;
  SamTower sam;
  ConvPair halvings;
  std::vector<LlamaLayer> layers;
  RmsNorm norm;
  Rope rope;
  Embedding few, many;
};

inline DeepseekOcr2Tower make_tower(Context& c, const DeepseekOcr2Vision& g) {
  DeepseekOcr2Tower t{.config = &g, .scope = c.b.scope()};
  {
    Module s(c, "sam_encoder");
    t.sam = make_tower(c, g.sam);
    Module p(c, "proj");
    t.halvings_scope = p.scope;
    t.halvings = make_halvings(c, "conv1", "conv2", g.sam.out, g.between, g.features);
  }
  {
    Module e(c, "vision_encoder");
    t.encoder_scope = e.scope;
    t.layers = make_layers(g.encoder.layers, [&](std::int32_t i) { return make_llama_layer(c, g.encoder, i); });
    t.norm = make_rms_norm(c, "norm", g.encoder.hidden);
    t.rope = make_rope(c, "rotary_emb", g.encoder.head_dim);
  }
  t.few = make_embedding(c, "query_768_resolution", few_queries, g.encoder.hidden);
  t.many = make_embedding(c, "query_1024_resolution", many_queries, g.encoder.hidden);
  return t;
}

/// What the features see of each other, and the queries of them and of the queries before (create_causal_mask with
/// block_sequence_ids and without padding).
inline Value feature_mask(Context& c, const Value& blocks) {
  if (!c.stack().makes_masks) return {};
  const std::int64_t tokens = blocks.size(1);
  const MaskShape m{.batch = blocks.size(0), .q_len = tokens, .kv_len = tokens};
  Value mask;
  {
    const MaskGrid g = mask_grid(c, m, false);
    auto causal = [&] { return causal_function(g); };
    auto same_block = [&] { return block_function(g, blocks); };
    mask = whole_mask(g, or_masks(c, g, causal, same_block));
  }
  return c.plan.attention == AttentionKind::eager ? additive_mask(c, std::move(mask)) : mask;
}

/// DeepseekOcr2VisionEncoder.forward: [N, features + queries, hidden].
inline Value encode(Context& c, const DeepseekOcr2Tower& t, const Value& embeds, std::int64_t features) {
  using namespace eager;
  const LlamaConfig& g = t.config->encoder;
  InScope in(c.b, t.encoder_scope);
  const Value position_ids = unsqueeze(arange(c.b, embeds.size(1)), 0);
  const Value blocks = fill(c.b, "full", {embeds.size(0), embeds.size(1)}, DType::int64);
  fill_(slice(blocks, 1, 0, features));
  const Value mask = feature_mask(c, blocks);
  Value x = embeds;
  const CosSin positions = forward(c, t.rope, position_ids);
  CacheLayer none_kept{.off = true};
  LayerRepeater repeat(c.b);
  repeat.pass(position_ids);
  for (const LlamaLayer& l : t.layers)
    x = repeat({0, l.scope, l.attention.first()}, x, {},
               [&](const Value& h) { return forward(c, g, l, h, mask, positions, none_kept); });
  return forward(c, t.norm, x);
}

/// DeepseekOcr2VisionModel.forward: pixels[N, 3, S, S] -> [N, queries, hidden], the queries' part of what the encoder
/// gave.
inline Value forward(Context& c, const DeepseekOcr2Tower& t, const Value& pixels) {
  using namespace eager;
  InScope in(c.b, t.scope);
  Value x;
  {
    const TowerOutput sam = forward(c, t.sam, TowerInput{.pixels = pixels, .images = {}});
    InScope p(c.b, t.halvings_scope);
    x = forward(c, t.halvings, sam.last);
  }
  const Value map = x;  // sam_encoder_outputs
  x = transpose(flatten(std::move(x), 2, 3), 1, 2);
  const std::int64_t batch = x.size(0), features = x.size(1);
  const Embedding& table = features <= few_queries ? t.few : t.many;
  const Value queries = expand(unsqueeze(Value(c.b, table.weight), 0), {batch, -1, -1});
  const Value combined = cat(x, queries, 1);
  const Value encoded = encode(c, t, combined, features);
  return slice(encoded, 1, features, encoded.size(1));
}

}  // namespace vlmest
