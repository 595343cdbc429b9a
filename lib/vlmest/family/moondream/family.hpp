// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <vector>

#include <vlmest/family/moondream/text.hpp>
#include <vlmest/family/moondream/vision.hpp>
#include <vlmest/nn/family.hpp>

namespace vlmest {

/// Moondream 2 as the code that comes with its checkpoints runs it (vikhyat/moondream moondream/torch, HfMoondream):
/// one picture at most and one sequence, whose keys and values fill buffers of the whole context.
struct MoondreamFamily {
  MoondreamVision vision;
  MoondreamText language;
  MoondreamRegion region;
};

constexpr FamilyTraits traits(const MoondreamFamily&) {
  return {.features = feature_calls::no_images,
          .plain_head = false,
          .note =
              "the prefill is a query of Moondream's own code: the picture's encode_image, which also keeps a copy of "
              "its keys and values, then the prompt; it makes the logits of the last position whatever plan.logits "
              "says, and what picks the next token is left out"};
}

struct MoondreamModel {
  const MoondreamFamily* config = nullptr;
  ScopeId scope = 0;
  moondream::Vision vision;
  moondream::Text text;
  TensorId mask = none;  ///< attn_mask: bool, [1, 1, context, context]
};

/// The region model of MoondreamModel.__init__, which a query does not run.
inline void make_region(Context& c, const MoondreamRegion& g, std::int64_t width) {
  using moondream::make_mlp;
  Module m(c, "region", Part::projector);
  make_linear(c, "coord_encoder", g.coordinate_features, width, true);
  make_mlp(c, "coord_decoder", width, g.inner, g.coordinate_bins);
  make_linear(c, "size_encoder", g.size_features, width, true);
  make_mlp(c, "size_decoder", width, g.inner, g.size_bins);
  parameter(c, "coord_features", {1, g.coordinate_features / 2});
  parameter(c, "size_features", {2, g.size_features / 2});
}

/// In the order of MoondreamModel.__init__, below HfMoondream.model.
inline MoondreamModel make_model(Context& c, const MoondreamFamily& g) {
  Module m(c, "model");
  MoondreamModel r{.config = &g, .scope = m.scope};
  r.vision = moondream::make_vision(c, g.vision, g.language.hidden);
  r.text = moondream::make_text(c, g.language);
  make_region(c, g.region, g.language.hidden);
  r.mask = buffer(c, "attn_mask", {1, 1, g.language.context, g.language.context}, DType::boolean);
  return r;
}

struct MoondreamInputs {
  TextInputs text;             ///< neither: query makes the prompt's ids itself
  std::vector<Value> encoded;  ///< EncodedImage.caches: the picture's keys and values of every layer
};

/// Tokens ahead of the prompt: the first one and the picture.
inline std::int64_t prefix_tokens(const Sequences& s) { return s.images.empty() ? 0 : 1 + MoondreamVision::patches; }

/// Throws Error for what Moondream's code does not do.
inline void check_runs(const Context& c, const MoondreamFamily& g, const Sequences& s) {
  const Plan& p = c.plan;
  if (c.labels)
    throw Error("training",
                "Moondream's own fine-tuning, of the text model over one picture's features, is not modelled",
                "estimate inference, or train a model of transformers' own code: vlmest models");
  if (s.batch != 1)
    throw Error("plan.batch", "Moondream's caches are made for one sequence, not " + std::to_string(s.batch),
                "give plan.batch=1: its batch_answer runs one after the other");
  if (s.images.size() > 1)
    throw Error("plan.images", "Moondream's query takes one picture, not " + std::to_string(s.images.size()),
                "give plan.images=1 or 0");
  if (p.attention != AttentionKind::sdpa)
    throw Error("plan.attention", "Moondream's code calls torch's scaled_dot_product_attention and nothing else",
                "give plan.attention=sdpa");
  if (!s.images.empty() && (p.dtype != DType::bf16 || p.amp))
    throw Error("plan.dtype", "Moondream's code makes its pixels bf16, which other weights do not take",
                "give plan.dtype=bf16 without plan.amp");
  if (p.kv.kind != KvLayout::Kind::dense || p.kv.dtype.value_or(p.dtype) != p.dtype)
    throw Error("plan.kv", "Moondream's caches are buffers of the whole context in the model's type",
                "leave what changes the cache out");
  if (s.seq > g.language.context)
    throw Error("plan.seq",
                std::to_string(s.seq) + " tokens, but Moondream's caches hold " + std::to_string(g.language.context),
                "give a shorter prompt");
  if (s.seq <= prefix_tokens(s))
    throw Error("plan.text", "a query of Moondream has a prompt behind the picture", "give at least one token of text");
}

inline MoondreamInputs make_inputs(Context& c, const MoondreamFamily& g, const Sequences& s) {
  check_runs(c, g, s);
  return {};
}

/// A cache's buffer: there already, or made anew by the model's own method.
inline Value cache_buffer(Context& c, const MoondreamModel& m, std::size_t layer, const char* name, bool anew) {
  const Shape shape = moondream::cache_shape(m.config->language);
  const auto in_layer = [&](auto make) {
    InScope in(c.b, m.text.blocks[layer].cache_scope);
    return make();
  };
  if (!anew) return in_layer([&] { return c.b.existing(name, Role::kv_cache, c.dtype(), shape); });
  const TensorId r = in_layer([&] { return c.b.result(c.dtype(), shape, name); });
  c.b.emit("zeros", MemoryOp{.written = size_of(numel(shape), c.dtype()), .dtype = c.dtype()}, {},
           std::array<TensorId, 1>{r});
  Value buffer(c.b, r);
  c.b.label(buffer, name, Role::kv_cache);
  return buffer;
}

/// MoondreamModel._setup_caches, before the first call or, `anew`, within it: buffers, layer by layer.
inline void set_up_caches(Context& c, const MoondreamModel& m, Cache& cache, bool anew) {
  for (std::size_t i = 0; i < cache.layers.size(); ++i) {
    Value keys = cache_buffer(c, m, i, "k_cache", anew);
    Value values = cache_buffer(c, m, i, "v_cache", anew);
    cache.layers[i].keys = std::move(keys);
    cache.layers[i].values = std::move(values);
  }
}

/// Rows of a mask of the whole context.
inline Value mask_rows(const Value& mask, std::int64_t first, std::int64_t rows) {
  return eager::slice(mask, 2, first, first + rows);
}

/// MoondreamModel.encode_image: the picture goes through the language model, whose new keys and values are copied.
inline std::vector<Value> encode_image(Context& c, const MoondreamModel& m, const ImageLayout& image, Cache& cache) {
  using namespace eager;
  const Value features = moondream::image_features(c, m.vision, image);
  const Value first = moondream::embed_tokens(c, m.text, from_host(c.b, {1, 1}, DType::int64));
  const Value embeds = cat(first, unsqueeze(features, 0), 1);
  const std::int64_t n = embeds.size(1);
  const Value mask = mask_rows(Value(c.b, m.mask), 0, n);
  const moondream::Positions positions{.tokens = n, .seen = n};
  moondream::decode_text(c, {m.text, positions, mask, false}, embeds, cache);
  std::vector<Value> copies;
  for (CacheLayer& l : cache.layers)
    for (const Value* whole : {&l.keys, &l.values}) {
      copies.push_back(clone(slice(*whole, 2, 0, n)));
      c.b.label(copies.back(), "encoded image", Role::kv_cache);
    }
  return copies;
}

/// MoondreamModel.load_encoded_image: the copies go where they came from.
inline void load_encoded_image(const std::vector<Value>& copies, const Cache& cache) {
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const CacheLayer& l = cache.layers[i / 2];
    eager::copy_over(eager::slice(i % 2 == 0 ? l.keys : l.values, 2, 0, copies[i].size(2)), copies[i]);
  }
}

/// MoondreamModel.query: encode_image, load_encoded_image and _prefill_prompt; without a picture a mask and caches of
/// its own. The logits of the last position.
inline Value prefill(Context& c, const MoondreamModel& m, MoondreamInputs& in, const Sequences& s, Cache& cache) {
  using namespace eager;
  InScope scope(c.b, m.scope);
  set_up_caches(c, m, cache, false);
  const std::int64_t context = m.config->language.context, before = prefix_tokens(s);
  Value mask(c.b, m.mask);
  if (s.images.empty()) {
    set_up_caches(c, m, cache, true);
    mask = from_host(c.b, {1, 1, context, context}, DType::boolean, "_to_copy");
    in.encoded.push_back(mask);  // query's variable, as EncodedImage is
  } else {
    in.encoded = encode_image(c, m, s.images.front(), cache);
    load_encoded_image(in.encoded, cache);
  }
  const Value prompt = from_host(c.b, {1, s.seq - before}, DType::int64);
  const Value embeds = moondream::embed_tokens(c, m.text, prompt);
  const Value rows = mask_rows(mask, before, embeds.size(1));
  const moondream::Positions positions{.tokens = embeds.size(1), .seen = s.seq};
  const Value hidden = moondream::decode_text(c, {m.text, positions, rows, true}, embeds, cache);
  return moondream::last_logits(c, m.text, hidden);
}

/// A step of MoondreamModel._generate_answer's loop up to its logits; the ids' mask says how many tokens there are.
/// Throws Error where the caches are full.
inline Value decode(Context& c, const MoondreamModel& m, const TextInputs& in, Cache& cache) {
  using namespace eager;
  const std::int64_t seen = in.mask.size(1), context = m.config->language.context;
  if (seen > context)
    throw Error("plan.new_tokens",
                std::to_string(seen) + " tokens, but Moondream's caches hold " + std::to_string(context),
                "give a shorter prompt, or fewer new tokens");
  InScope scope(c.b, m.scope);
  // A mask of three dimensions, as the loop makes it.
  const Value mask = c.b.existing("mask", Role::input, DType::boolean, {1, 1, context});
  const Value places = c.b.existing("pos_ids", Role::input, DType::int64, {1});
  const Value embeds = moondream::embed_tokens(c, m.text, in.ids);
  fill_(select(mask, 2, seen - 1));
  Value place = select(places, 0, 0);
  emit_inplace(c.b, "copy_", HostSync{Bytes(8)}, {}, place);
  const moondream::Positions positions{.tokens = 1, .seen = seen, .on_device = places};
  const Value hidden = moondream::decode_text(c, {m.text, positions, mask, true}, embeds, cache);
  return moondream::last_logits(c, m.text, hidden);
}

}  // namespace vlmest
