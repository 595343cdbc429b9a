// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include <vlmest/family/nemotron_h_vl/radio.hpp>
#include <vlmest/family/nemotron_h_vl/text.hpp>
#include <vlmest/graph/eager/view_write.hpp>
#include <vlmest/nn/family.hpp>
#include <vlmest/nn/family/scatter.hpp>
#include <vlmest/nn/family/vision_chunks.hpp>
#include <vlmest/nn/loss.hpp>
#include <vlmest/nn/projector/pixel_shuffle.hpp>

namespace vlmest {

/// Nemotron Nano V2 VL (nvidia/NVIDIA-Nemotron-Nano-12B-v2-VL) by the code that read.hpp names: C-RADIO over square
/// tiles, InternVL's pixel shuffle, an MLP that squares what ReLU leaves, and transformers' NemotronHForCausalLM.
struct NemotronHVlFamily {
  RadioVision vision;
  NemotronHText language;
  std::int64_t merge = 2;  ///< 1 / downsample_ratio
  std::int64_t projector_hidden = 4096;
};

inline FamilyTraits traits(const NemotronHVlFamily&) {
  return {
      .features = FeatureCall{},
      .plain_head = false,
      .frames = 1,
      .no_videos = "its frames go through their own processor, which is not modelled",
      .note =
          "Nemotron Nano V2 VL's own code with transformers' NemotronHForCausalLM, whose Mamba-2 layers run without "
          "the packages mamba_ssm and causal-conv1d; the tower runs torch's attention whatever plan.attention says"};
}

struct NemotronHVlModel {
  const NemotronHVlFamily* config = nullptr;
  ScopeId language_scope = 0, model = 0, tower = 0, projector = 0, squaring = 0;
  NemotronHDecoder language;
  Linear head;
  RadioTower vision;
  ScopeId norm_scope = 0;
  TensorId norm = none;
  Linear first, second;
};

/// In the order of NemotronH_Nano_VL_V2.__init__.
inline NemotronHVlModel make_model(Context& c, const NemotronHVlFamily& g) {
  NemotronHVlModel m{.config = &g};
  {
    const Module l(c, "language_model", Part::language);
    m.language_scope = l.scope;
    {
      const Module inner(c, "model");
      m.model = inner.scope;
      m.language = make_decoder(c, g.language);
    }
    m.head = make_head(c, g.language.hidden, g.language.vocab, false, none);
  }
  {
    const Module v(c, "vision_model", Part::vision);
    m.tower = v.scope;
    m.vision = make_tower(c, g.vision);
  }
  const Module p(c, "mlp1", Part::projector);
  m.projector = p.scope;
  const std::int64_t in = checked_mul(g.vision.hidden, checked_mul(g.merge, g.merge));
  {
    const Module n(c, "0");
    m.norm_scope = n.scope;
    m.norm = parameter(c, "weight", {in});
  }
  m.first = make_linear(c, "1", in, g.projector_hidden, false);
  m.squaring = c.b.child("2");
  m.second = make_linear(c, "3", g.projector_hidden, g.language.hidden, false);
  return m;
}

/// What was not compared with a run of its code.
inline void check_nemotron_vl_runs(const Context& c, const Sequences& s) {
  const Plan& p = c.plan;
  const auto refuse = [](const char* where, const char* what, const char* hint = "leave it out") {
    throw Error(where, std::string(what) + " of Nemotron Nano V2 VL was compared with no run", hint);
  };
  if (c.stack().flash_attention_2 && p.attention == AttentionKind::flash)
    refuse("plan.attention", "FlashAttention-2", "give plan.attention=sdpa or eager");
  if (p.amp) refuse("plan.amp", "autocast", "give plan.dtype=bf16 without plan.amp");
  if (p.param_dtype.value_or(p.dtype) != p.dtype) refuse("plan.param_dtype", "gathering in another type");
  if (c.quantization || p.weights.value_or(p.dtype) != p.dtype) refuse("plan.weights", "a quantised weight");
  if (c.sharding) refuse("plan.parallel", "division among GPUs");
  if (p.vision_chunk > 0) refuse("plan.vision_chunk", "a tower on a few tiles at a time");
  if (c.padded)
    refuse("images", "a batch of sequences of several lengths", "give every sequence pictures of the same sizes");
  if (!s.images.empty() && c.dtype() != DType::bf16)
    throw Error("plan.dtype",
                "its code casts features to bf16 whatever the projector's weights are, and the projector refuses them "
                "then",
                "give plan.dtype=bf16");
}

struct NemotronHVlInputs {
  TextInputs text;
  Value pixels;  ///< of all pictures' tiles; the processor's are fp32, a training step's in the model's type
  Value flags;   ///< int64[tiles, 1], of a training step: tiles that are pictures
};

inline NemotronHVlInputs make_inputs(Context& c, const NemotronHVlFamily& g, const Sequences& s) {
  check_nemotron_vl_runs(c, s);
  NemotronHVlInputs r{.text = make_text_inputs(c, s.batch, s.seq, s.seq), .pixels = {}, .flags = {}};
  if (s.images.empty()) return r;
  const Shape shape = pixel_shape(g.vision, s.images);
  r.pixels = c.b.existing("pixel_values", Role::input, c.labels ? c.dtype() : DType::fp32, shape);
  if (c.labels) r.flags = c.b.existing("image_flags", Role::input, DType::int64, {shape[0], 1});
  return r;
}

/// modeling.py, RMSNorm.forward.
inline Value projector_norm(Context& c, const NemotronHVlModel& m, const Value& given) {
  using namespace eager;
  InScope in(c.b, m.norm_scope);
  Value x = to(given, DType::fp32);
  const Value variance = mean(pow_scalar(x), -1, true);
  Value scale = rsqrt(add_scalar(variance));
  x = mul(x, std::move(scale));
  Value wide = to(Value(c.b, m.norm), DType::fp32);
  return to(mul(std::move(wide), x), given.dtype());
}

/// extract_feature: [tiles, tokens of a tile, language width].
inline Value tile_features(Context& c, const NemotronHVlModel& m, const Value& pixels) {
  using namespace eager;
  const std::int64_t side = m.config->vision.side(), tiles = pixels.size(0);
  Value x;
  {
    InScope v(c.b, m.tower);
    x = forward(c, m.vision, pixels);
  }
  x = insert_after_tower(c, std::move(x));
  x = reshape(x, {tiles, side, side, -1});
  x = pixel_shuffle(x, m.config->merge);
  x = reshape(x, {tiles, -1, x.size(3)});
  InScope p(c.b, m.projector);
  Value y = projector_norm(c, m, x);
  y = forward(c, m.first, y);
  {
    InScope square(c.b, m.squaring);
    Value positive = unary(functions::relu, y);
    y = pow_scalar(std::move(positive));
  }
  y = forward(c, m.second, y);
  return insert_after_projector(c, std::move(y));
}

/// NemotronHForCausalLM.forward over embeddings: fp32 logits.
inline Value language_logits(Context& c, const NemotronHVlModel& m, Value embeds, const Value& mask, Logits logits,
                             Cache& cache) {
  Value hidden;
  {
    InScope in(c.b, m.model);
    hidden = forward(c, m.language, std::move(embeds), mask, cache);
  }
  InScope in(c.b, m.language_scope);
  const Value narrow = forward(c, m.head, kept_positions(hidden, logits));
  return eager::to(narrow, DType::fp32);
}

/// Rows of embeddings, of which those at `places` are features. A training step's are the embeddings themselves times
/// nothing plus the features, so that each parameter has a gradient.
inline constexpr auto feature_rows = [](const Value& v) { return eager::view(v, {-1, v.size(-1)}); };

/// generate() up to the language model's prefill: features ahead of embeddings, which are written over.
inline Value prompt_embeddings(Context& c, const NemotronHVlModel& m, const NemotronHVlInputs& in, Value& pixels,
                               Value& features, Value& places) {
  using namespace eager;
  if (!in.pixels) return embed(c, m.language, in.text.ids);
  pixels = to(in.pixels, c.dtype());
  features = tile_features(c, m, pixels);
  Value embeds = embed(c, m.language, in.text.ids);
  places = compare_scalar("eq.Scalar", view(in.text.ids, {-1}));
  item(compare_scalar("ne.Scalar", sum_all(places)));
  put_masked(embeds, feature_rows, places, feature_rows(features));
  return embeds;
}

/// NemotronH_Nano_VL_V2.forward up to its language model.
inline Value training_embeddings(Context& c, const NemotronHVlModel& m, const NemotronHVlInputs& in, Value& places) {
  using namespace eager;
  if (!in.pixels)
    throw Error("plan.images", "its code asks a training step for pictures", "give one, or train the language model");
  Value embeds = embed(c, m.language, in.text.ids);
  refuse_written_leaf(c, "Nemotron Nano V2 VL");
  const std::int64_t batch = embeds.size(0), tokens = embeds.size(1);
  const Value before = feature_rows(embeds);
  places = compare_scalar("eq.Scalar", view(in.text.ids, {-1}));
  Value features = tile_features(c, m, in.pixels);
  {
    Value pictures = compare_scalar("eq.Scalar", squeeze(in.flags, 1));
    features = masked_index(features, std::move(pictures), features.size(0));
  }
  const Value rows = feature_rows(features);
  {
    Value values = mul_scalar(masked_index(before, places, rows.size(0)));
    values = add(std::move(values), rows);
    put_masked(embeds, feature_rows, places, values);
  }
  Value written = written_part(embeds, feature_rows);
  return view(std::move(written), {batch, tokens, -1});
}

/// Over a fresh cache.
inline Value prefill(Context& c, const NemotronHVlModel& m, const NemotronHVlInputs& in, const Sequences&,
                     Cache& cache) {
  Value pixels, features, places;  // variables of the function
  if (!c.labels) {
    const Value embeds = prompt_embeddings(c, m, in, pixels, features, places);
    return language_logits(c, m, embeds, in.text.mask, c.plan.logits, cache);
  }
  const Value embeds = training_embeddings(c, m, in, places);
  const Value logits = language_logits(c, m, embeds, in.text.mask, Logits::all, cache);
  return shifted_loss(logits, *c.labels);
}

/// One token over the cache: generate() calls the language model alone.
inline Value decode(Context& c, const NemotronHVlModel& m, const TextInputs& in, Cache& cache) {
  Value embeds = embed(c, m.language, in.ids);
  return language_logits(c, m, std::move(embeds), in.mask, Logits::last, cache);
}

}  // namespace vlmest
