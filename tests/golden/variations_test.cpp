// SPDX-License-Identifier: Apache-2.0
// Parameters of configs whose sizes, layers, heads and tying vary at random, against closed forms: sums written out
// from the papers' architectures, which share nothing with the blocks of the library.
#include <random>

#include <gtest/gtest.h>

#include <vlmest/nn/decoder/decoder.hpp>

#include "parameters.hpp"

namespace golden::variations_test {
namespace {

using Json = nlohmann::json;
using N = std::int64_t;

class Dice {
 public:
  explicit Dice(unsigned seed) : engine_(seed) {}
  /// A multiple of `step`.
  N from(N low, N high, N step = 1) {
    return low + step * static_cast<N>(engine_() % static_cast<unsigned>((high - low) / step + 1));
  }
  bool coin() { return engine_() % 2 == 0; }

 private:
  std::mt19937 engine_;
};

constexpr N linear(N in, N out, bool bias = true) { return in * out + (bias ? out : 0); }

/// A decoder with grouped queries and a gated MLP (Llama, Mistral, Qwen, Gemma).
struct Decoder {
  N vocab, hidden, intermediate, layers, heads, kv_heads, head_dim;
  bool tied;

  /// `norms`: vectors of the hidden size in a layer. `per_head`: vectors of the head size.
  N parameters(N norms, N per_head, bool qkv_bias, N mlp = -1) const {
    const N q = heads * head_dim, kv = kv_heads * head_dim;
    const N attention = linear(hidden, q, qkv_bias) + 2 * linear(hidden, kv, qkv_bias) + linear(q, hidden, false);
    const N layer = attention + (mlp < 0 ? 3 * hidden * intermediate : mlp) + norms * hidden + per_head * head_dim;
    return vocab * hidden * (tied ? 1 : 2) + layers * layer + hidden;
  }
  Json json(const char* type) const {
    return {{"model_type", type},
            {"vocab_size", vocab},
            {"hidden_size", hidden},
            {"intermediate_size", intermediate},
            {"num_hidden_layers", layers},
            {"num_attention_heads", heads},
            {"num_key_value_heads", kv_heads},
            {"head_dim", head_dim},
            {"tie_word_embeddings", tied}};
  }
};
/// Head sizes that stand in the config; without them they follow from the hidden size.
Decoder decoder(Dice& d, bool own_head_dim) {
  Decoder r{};
  r.kv_heads = d.from(1, 4);
  r.heads = r.kv_heads * d.from(1, 4);
  r.head_dim = d.from(16, 96, 16);
  r.hidden = own_head_dim ? d.from(64, 512, 64) : r.heads * r.head_dim;
  r.vocab = d.from(100, 3000);
  r.intermediate = d.from(64, 1024, 8);
  r.layers = d.from(1, 9);
  r.tied = d.coin();
  return r;
}

/// A ViT whose blocks have two LayerNorms, four projections with bias and an MLP of two layers.
struct Vit {
  N hidden, intermediate, layers, heads, patch, side;

  N grid() const { return side / patch; }
  N block() const {
    return 4 * linear(hidden, hidden) + linear(hidden, intermediate) + linear(intermediate, hidden) + 4 * hidden;
  }
  N patches(bool bias) const { return linear(3 * patch * patch, hidden, bias); }
  Json json(const char* type) const {
    return {{"model_type", type},          {"hidden_size", hidden},        {"intermediate_size", intermediate},
            {"num_hidden_layers", layers}, {"num_attention_heads", heads}, {"patch_size", patch},
            {"image_size", side}};
  }
};
Vit vit(Dice& d, N merge) {
  Vit v{};
  v.heads = d.from(1, 8);
  v.hidden = v.heads * d.from(16, 64, 8);
  v.intermediate = d.from(32, 512, 4);
  v.layers = d.from(2, 9);
  v.patch = d.from(7, 16);
  v.side = v.patch * merge * d.from(1, 8);
  return v;
}
N siglip(const Vit& v) {
  return v.patches(true) + v.grid() * v.grid() * v.hidden + v.layers * v.block() + 2 * v.hidden;
}

class Variation : public testing::TestWithParam<unsigned> {};

TEST_P(Variation, Llava) {
  Dice d(GetParam());
  const Decoder t = decoder(d, true);
  const Vit v = vit(d, 1);
  const bool bias = d.coin();
  Json c{{"model_type", "llava"},
         {"text_config", t.json("llama")},
         {"vision_config", v.json("clip_vision_model")},
         {"multimodal_projector_bias", bias},
         {"tie_word_embeddings", t.tied}};
  // CLIP: a class token, two norms around the blocks, no bias on the patches (arXiv:2103.00020).
  const N clip =
      v.hidden + v.patches(false) + (v.grid() * v.grid() + 1) * v.hidden + v.layers * v.block() + 4 * v.hidden;
  N layers = 1;
  if (d.coin()) {
    c["vision_feature_layer"] = {-2, -1};
    layers = 2;
  }
  EXPECT_EQ(count(c, "llava"), clip + linear(layers * v.hidden, t.hidden, bias) + linear(t.hidden, t.hidden, bias) +
                                   t.parameters(2, 0, false))
      << c.dump();
}

TEST_P(Variation, InternVl) {
  Dice d(GetParam());
  const Decoder t = decoder(d, false);
  const Vit v = vit(d, 2);
  Json vision = v.json("internvl_vision");
  const bool bias = d.coin();
  vision["attention_bias"] = bias;
  vision["use_absolute_position_embeddings"] = true;
  vision["use_mean_pooling"] = true;
  Json text = t.json("qwen2");
  text.erase("head_dim");
  const Json c{
      {"model_type", "internvl"}, {"text_config", text}, {"vision_config", vision}, {"tie_word_embeddings", t.tied}};
  // Scale vectors after both halves of a block (LayerScale, arXiv:2103.17239); the output projection keeps its bias.
  const N block = v.block() - (bias ? 0 : 3 * v.hidden) + 2 * v.hidden;
  const N tower = v.hidden + v.patches(true) + (v.grid() * v.grid() + 1) * v.hidden + v.layers * block;
  const N wide = 4 * v.hidden;
  EXPECT_EQ(count(c, "internvl"),
            tower + 2 * wide + linear(wide, t.hidden) + linear(t.hidden, t.hidden) + t.parameters(2, 0, true))
      << c.dump();
}

TEST_P(Variation, Qwen2Vl) {
  Dice d(GetParam());
  Decoder t = decoder(d, false);
  const N heads = d.from(1, 8), width = heads * d.from(16, 64, 8), depth = d.from(1, 9), patch = d.from(4, 16),
          merge = d.from(1, 3), time = d.from(1, 3), ratio = d.from(1, 5);
  Json text = t.json("qwen2_vl_text");
  text.erase("head_dim");
  const N half = t.head_dim / 2;
  text["rope_scaling"] = {{"type", "mrope"}, {"mrope_section", {half - 2 * (half / 3), half / 3, half / 3}}};
  const Json c{{"model_type", "qwen2_vl"},
               {"text_config", text},
               {"tie_word_embeddings", t.tied},
               {"vision_config",
                {{"model_type", "qwen2_vl"},
                 {"depth", depth},
                 {"embed_dim", width},
                 {"hidden_size", t.hidden},
                 {"num_heads", heads},
                 {"mlp_ratio", ratio},
                 {"patch_size", patch},
                 {"spatial_merge_size", merge},
                 {"temporal_patch_size", time}}}};
  const N block = linear(width, 3 * width) + linear(width, width) + linear(width, ratio * width) +
                  linear(ratio * width, width) + 4 * width;
  const N wide = merge * merge * width;
  const N tower =
      3 * time * patch * patch * width + depth * block + 2 * width + linear(wide, wide) + linear(wide, t.hidden);
  EXPECT_EQ(count(c, "qwen2_vl"), tower + t.parameters(2, 0, true)) << c.dump();
}

TEST_P(Variation, Qwen2_5Vl) {
  Dice d(GetParam());
  const Decoder t = decoder(d, false);
  const N heads = d.from(1, 8), width = heads * d.from(16, 64, 8), depth = d.from(2, 9), patch = d.from(4, 16),
          time = d.from(1, 3), mlp = d.from(32, 512, 4);
  Json text = t.json("qwen2_5_vl_text");
  text.erase("head_dim");
  const N half = t.head_dim / 2;
  text["rope_scaling"] = {{"type", "mrope"}, {"mrope_section", {half - 2 * (half / 3), half / 3, half / 3}}};
  const Json c{{"model_type", "qwen2_5_vl"},
               {"text_config", text},
               {"tie_word_embeddings", t.tied},
               {"vision_config",
                {{"model_type", "qwen2_5_vl"},
                 {"depth", depth},
                 {"hidden_size", width},
                 {"intermediate_size", mlp},
                 {"num_heads", heads},
                 {"patch_size", patch},
                 {"spatial_merge_size", 2},
                 {"temporal_patch_size", time},
                 {"out_hidden_size", t.hidden},
                 {"window_size", patch * 8},
                 {"fullatt_block_indexes", {depth - 1}}}}};
  // RMSNorm has no bias, the gated MLP has three.
  const N block =
      linear(width, 3 * width) + linear(width, width) + 2 * linear(width, mlp) + linear(mlp, width) + 2 * width;
  const N tower = 3 * time * patch * patch * width + depth * block + width + linear(4 * width, 4 * width) +
                  linear(4 * width, t.hidden);
  EXPECT_EQ(count(c, "qwen2_5_vl"), tower + t.parameters(2, 0, true)) << c.dump();
}

TEST_P(Variation, Qwen3VlMoe) {
  Dice d(GetParam());
  Decoder t = decoder(d, true);
  t.layers = 4;
  const N experts = d.from(2, 16), expert = d.from(16, 128, 8), width = 4 * d.from(16, 64, 8), depth = d.from(2, 6),
          patch = d.from(4, 16), side = d.from(2, 9), mlp = d.from(32, 512, 4), levels = d.from(1, 2);
  Json text = t.json("qwen3_vl_moe_text");
  const N half = t.head_dim / 2;
  text["num_experts"] = experts;
  text["num_experts_per_tok"] = 2;
  text["moe_intermediate_size"] = expert;
  text["decoder_sparse_step"] = 1;
  text["rope_scaling"] = {{"rope_type", "default"},
                          {"mrope_interleaved", true},
                          {"mrope_section", {half - 2 * (half / 3), half / 3, half / 3}}};
  Json taps = Json::array();
  for (N i = 0; i < levels; ++i) taps.push_back(i);
  const Json c{{"model_type", "qwen3_vl_moe"},
               {"text_config", text},
               {"tie_word_embeddings", t.tied},
               {"vision_config",
                {{"model_type", "qwen3_vl_moe"},
                 {"depth", depth},
                 {"hidden_size", width},
                 {"intermediate_size", mlp},
                 {"num_heads", 4},
                 {"patch_size", patch},
                 {"spatial_merge_size", 2},
                 {"temporal_patch_size", 2},
                 {"out_hidden_size", t.hidden},
                 {"num_position_embeddings", side * side},
                 {"deepstack_visual_indexes", taps}}}};
  const N block = linear(width, 3 * width) + linear(width, width) + linear(width, mlp) + linear(mlp, width) + 4 * width;
  const N wide = 4 * width, merger = linear(wide, wide) + linear(wide, t.hidden);
  // The mergers of the deepstack levels normalise what they have joined, the last one what it has yet to join.
  const N tower = linear(3 * 2 * patch * patch, width) + side * side * width + depth * block + merger + 2 * width +
                  levels * (merger + 2 * wide);
  const N moe = experts * 3 * t.hidden * expert + experts * t.hidden;
  EXPECT_EQ(count(c, "qwen3_vl_moe"), tower + t.parameters(2, 2, false, moe)) << c.dump();
}

TEST_P(Variation, Gemma3) {
  Dice d(GetParam());
  Decoder t = decoder(d, true);
  t.hidden = t.heads * d.from(16, 64, 16);  // its config class asks for a multiple of the heads
  t.tied = true;
  const Vit v = vit(d, 4);
  Json vision = v.json("siglip_vision_model");
  vision["vision_use_head"] = false;
  const N side = v.grid() / 4;
  Json text = t.json("gemma3_text");
  text.erase("tie_word_embeddings");
  const Json c{
      {"model_type", "gemma3"}, {"text_config", text}, {"vision_config", vision}, {"mm_tokens_per_image", side * side}};
  EXPECT_EQ(count(c, "gemma3"), siglip(v) + v.hidden * t.hidden + v.hidden + t.parameters(4, 2, false)) << c.dump();
}

TEST_P(Variation, PaliGemma) {
  Dice d(GetParam());
  Decoder t = decoder(d, true);
  t.tied = true;
  const Vit v = vit(d, 1);
  Json vision = v.json("siglip_vision_model");
  vision["vision_use_head"] = false;
  Json text = t.json("gemma");
  text.erase("tie_word_embeddings");
  const Json c{
      {"model_type", "paligemma"}, {"text_config", text}, {"vision_config", vision}, {"projection_dim", t.hidden}};
  EXPECT_EQ(count(c, "paligemma"), siglip(v) + linear(v.hidden, t.hidden) + t.parameters(2, 0, false)) << c.dump();
}

TEST_P(Variation, Idefics3) {
  Dice d(GetParam());
  const Decoder t = decoder(d, true);
  const N merge = d.from(1, 4);
  const Vit v = vit(d, merge);
  const Json c{{"model_type", "idefics3"},
               {"text_config", t.json("llama")},
               {"vision_config", v.json("idefics3_vision")},
               {"scale_factor", merge},
               {"tie_word_embeddings", t.tied}};
  EXPECT_EQ(count(c, "idefics3"), siglip(v) + merge * merge * v.hidden * t.hidden + t.parameters(2, 0, false))
      << c.dump();
}

TEST_P(Variation, Mllama) {
  Dice d(GetParam());
  Decoder t = decoder(d, false);
  t.tied = false;
  t.layers = d.from(4, 12);
  const Vit v = vit(d, 1);
  const N global = d.from(1, 4), tiles = d.from(1, 6), taps = d.from(1, 2), crossing = d.from(1, 3);
  Json vision = v.json("mllama_vision_model");
  vision.erase("num_attention_heads");
  vision["attention_heads"] = v.heads;
  vision["num_global_layers"] = global;
  vision["max_num_tiles"] = tiles;
  vision["intermediate_layers_indices"] = taps == 1 ? Json{0} : Json{0, 1};
  vision["vision_output_dim"] = (1 + taps) * v.hidden;
  // Every way to arrange at most `tiles` tiles in a rectangle, and none.
  N ratios = 1;
  Json arrangements = Json::array();
  for (N w = 1; w <= tiles; ++w)
    for (N h = 1; w * h <= tiles; ++h, ++ratios) arrangements.push_back({w, h});
  vision["supported_aspect_ratios"] = arrangements;
  Json text = t.json("mllama_text_model");
  text.erase("head_dim");
  Json cross = Json::array();
  for (N i = 0; i < crossing; ++i) cross.push_back(i + 1);
  text["cross_attention_layers"] = cross;
  const Json c{{"model_type", "mllama"}, {"text_config", text}, {"vision_config", vision}};
  const N tokens = v.grid() * v.grid() + 1;
  const N block = v.block() - 4 * v.hidden;  // attention has no bias
  const N tower = v.hidden + v.patches(false) + 1 + tokens * v.hidden + ratios * tiles * tokens * v.hidden +
                  2 * (1 + ratios * tiles * v.hidden) + 4 * v.hidden + v.layers * block + global * (block + 2);
  // Crossing layers have gates and norms of a head's size; the input table has eight rows more than the head.
  EXPECT_EQ(count(c, "mllama"), tower + linear((1 + taps) * v.hidden, t.hidden) + t.parameters(2, 0, false) +
                                    8 * t.hidden + crossing * (2 + 2 * t.head_dim))
      << c.dump();
}

INSTANTIATE_TEST_SUITE_P(Golden, Variation, testing::Range(0U, 40U));

}  // namespace
}  // namespace golden::variations_test
