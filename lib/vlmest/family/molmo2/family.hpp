// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <vlmest/family/molmo2/backbone.hpp>
#include <vlmest/family/molmo2/batching.hpp>
#include <vlmest/family/molmo2/text.hpp>
#include <vlmest/graph/eager/view_write.hpp>
#include <vlmest/nn/family.hpp>
#include <vlmest/nn/family/scatter.hpp>
#include <vlmest/nn/loss.hpp>
#include <vlmest/nn/mask.hpp>

namespace vlmest {

/// Molmo 2 as the code that comes with its checkpoints runs it (allenai/molmo2, commit f3cb108, olmo/hf_model/
/// modeling_molmo2.py) over transformers 5.17: features of windows are added to the embeddings of their placeholders,
/// and tokens of pictures see each other in both directions.
struct Molmo2Family {
  Molmo2Vision vision;
  Molmo2Adapter adapter;
  Molmo2Text language;
};
constexpr FamilyTraits traits(const Molmo2Family&) {
  return {.features = feature_calls::no_images,
          .no_videos = "Molmo 2's video processor and its frames are not modelled"};
}

struct Molmo2Model {
  const Molmo2Family* config = nullptr;
  ScopeId model = 0;
  Molmo2Decoder language;
  Molmo2Backbone vision;
  Linear head;
};

/// In the order of Molmo2Model.__init__ and Molmo2ForConditionalGeneration.__init__.
inline Molmo2Model make_model(Context& c, const Molmo2Family& g) {
  Molmo2Model r{.config = &g};
  {
    Module m(c, "model");
    r.model = m.scope;
    {
      Module l(c, "transformer", Part::language);
      r.language = make_decoder(c, g.language);
    }
    r.vision = make_backbone(c, g.vision, g.adapter, g.language.hidden);
  }
  r.head = make_head(c, g.language.hidden, g.language.vocab, false, none);
  return r;
}

struct Molmo2Inputs {
  TextInputs text;
  Value types;  ///< token_type_ids: bool[B, S], the tokens that the processor writes for pictures
  Molmo2Pictures pictures;
};

/// Throws Error for what was not compared with a run of that code.
inline void check_pictures(const Context& c, const Sequences& s) {
  const Plan& p = c.plan;
  const std::vector<PictureCounts> of = count_pictures(s);
  for (const PictureCounts& x : of)
    if (x.crops != of.front().crops || x.each != of.front().each)
      throw Error("images", "sequences whose pictures have different sizes were not compared with Molmo 2's own code",
                  "give every sequence pictures of the same sizes");
  // aten/src/ATen/native/transformers/cuda/attention.cu, MAX_BATCH_SIZE: the kernel then runs several times.
  constexpr std::int64_t most = 65535;
  const std::int64_t windows = checked_mul(s.batch, of.front().windows);
  if (p.attention == AttentionKind::sdpa && windows > most)
    throw Error("plan.batch",
                std::to_string(windows) + " windows are pooled at once, and beyond " + std::to_string(most) +
                    " torch's attention works in parts, which is not modelled",
                "give fewer sequences or pictures");
  if (p.vision_chunk > 0)
    throw Error("plan.vision_chunk", "Molmo 2's code calls its tower once, for the crops of all sequences",
                "leave it out");
}
inline void check_runs(const Context& c, const Sequences& s) {
  const Plan& p = c.plan;
  if (p.attention == AttentionKind::flash)
    throw Error("plan.attention", "Molmo 2's own calls of FlashAttention-2 are not modelled",
                "give plan.attention=sdpa");
  if (p.amp) throw Error("plan.amp", "Molmo 2 under autocast is not modelled", "give plan.dtype=bf16 without plan.amp");
  if (p.param_dtype.value_or(p.dtype) != p.dtype)
    throw Error("plan.param_dtype", "Molmo 2's layers gathered in another type were not compared with a run",
                "leave it out");
  if (c.quantization || p.weights.value_or(p.dtype) != p.dtype)
    throw Error(
        "plan.weights",
        "Molmo 2's code gives its pictures the type of a linear layer's weight, which a quantised one does not have",
        "leave it out");
  if (c.sharding) throw Error("plan.parallel", "Molmo 2's layers divided among GPUs are not modelled", "leave it out");
  if (!s.images.empty()) check_pictures(c, s);
}

inline Molmo2Inputs make_inputs(Context& c, const Molmo2Family& g, const Sequences& s) {
  check_runs(c, s);
  Molmo2Inputs r;
  if (!s.images.empty()) {
    std::int64_t crops = 0, windows = 0;
    for (const ImageLayout& l : s.images) {
      crops = checked_add(crops, l.tiles);
      windows = checked_add(windows, l.llm_tokens);
    }
    const auto pictures = static_cast<std::int64_t>(s.images.size());
    const auto input = [&](const char* name, DType t, const Shape& shape) {
      return c.b.existing(name, Role::input, t, shape);
    };
    r.pictures.pixels = input("pixel_values", c.dtype(), {crops, g.vision.patches(), g.vision.patch_pixels()});
    r.pictures.windows = input("image_token_pooling", DType::int64, {windows, s.images.front().window.count()});
    r.pictures.grids = input("image_grids", DType::int64, {pictures, 4});
    r.pictures.num_crops = input("image_num_crops", DType::int64, {pictures});
  }
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  r.types = c.b.existing("token_type_ids", Role::input, DType::boolean, {s.batch, s.seq});
  return r;
}

/// input_ids * (input_ids != -1): ids of padding become those of the first token.
inline Value known_ids(const Value& input_ids) {
  using namespace eager;
  Value known = to(compare_scalar("ne.Scalar", input_ids), DType::int64);
  return mul(input_ids, std::move(known));
}

/// torch.arange(seen, seen + tokens).
inline Value cache_position(Context& c, std::int64_t tokens) {
  return eager::fill(c.b, "arange.start", {tokens}, DType::int64);
}

/// x.view(-1, width)[is_image] += features: the rows are taken out, added to and put back.
inline void add_features(Value& x, const Value& is_image, const Value& features) {
  using namespace eager;
  const auto rows_of = [](const Value& v) { return view(v, {-1, v.size(-1)}); };
  Value picked = masked_index(rows_of(x), is_image, features.size(0));
  picked = add_(std::move(picked), features);
  put_masked(x, rows_of, is_image, picked);
}

/// modeling_molmo2.py, token_type_ids_mask_function, under vmap: query and key are both of pictures.
inline Value both_of_pictures(Context& c, const MaskGrid& g, const Value& types) {
  using namespace eager;
  const auto zero = [&] { return fill(c.b, "scalar_tensor", Shape{}, DType::int64); };
  Value safe;
  {
    Value inside = compare_scalar("lt.Scalar", g.key);
    Value other = zero();
    safe = where(std::move(inside), g.key, std::move(other));
  }
  Value of_key = index(types, g.batch, safe, g.per_key);
  {
    Value inside = compare_scalar("lt.Scalar", g.key);
    Value other = zero();
    Value wide = to(of_key, DType::int64);
    of_key = where(std::move(inside), std::move(wide), std::move(other));
  }
  Value query = compare_scalar("eq.Scalar", index(types, g.batch, g.query, g.per_query));
  query = view(std::move(query), g.query_column);
  Value key = compare_scalar("eq.Scalar", of_key);
  key = view(std::move(key), g.key_row);
  const Value both = pointwise("bitwise_and.Tensor", DType::boolean, std::move(query), std::move(key));
  return pointwise("bitwise_and.Tensor", DType::boolean, both, both);
}

/// create_causal_mask of a prefill: what the causal mask shows, or what token_type_ids say.
inline Value picture_mask(Context& c, const MaskShape& m, const Value& attention_mask, const Value& types) {
  if (!c.stack().makes_masks) return {};
  const Value padding = eager::to(attention_mask, DType::boolean);
  const auto whole = [&] {
    const MaskGrid g = mask_grid(c, m, true);
    auto causal = [&] { return causal_function(g); };
    auto of_pictures = [&] { return both_of_pictures(c, g, types); };
    auto shown = [&] { return or_masks(c, g, causal, of_pictures); };
    auto real = [&] { return padding_function(g, padding); };
    return whole_mask(g, and_masks(c, g, shown, real));
  };
  return c.plan.attention == AttentionKind::eager ? additive_mask(c, whole()) : whole();
}

/// Molmo2ForConditionalGeneration.forward over a fresh cache.
inline Value prefill(Context& c, const Molmo2Model& m, const Molmo2Inputs& in, const Sequences& s, Cache& cache) {
  using namespace eager;
  Value hidden, features;  // the output carries the features
  {
    InScope scope(c.b, m.model);
    BatchedPictures pictures;
    if (!s.images.empty()) pictures = batch_pictures(c, in.text.ids, in.pictures, s);
    Value x;
    {
      const Value ids = known_ids(in.text.ids);
      x = embed(c, m.language, ids);
      if (!s.images.empty()) {
        refuse_written_leaf(c, "Molmo 2");
        features = forward(c, m.vision, pictures.images, pictures.windows, feature_count(s.images));
        const Value is_image = compare_scalar("eq.Scalar", view(ids, {-1}));
        item(compare_scalar("eq.Scalar", sum_all(is_image)));
        add_features(x, is_image, features);
      }
    }
    const Value places = cache_position(c, s.seq);
    const Value mask = picture_mask(c, mask_shape(cache, s.batch, s.seq), in.text.mask, in.types);
    hidden = forward(c, m.language, x, mask, unsqueeze(places, 0), cache);
  }
  return head_output(c, m.head, hidden);
}

/// One token over the cache.
inline Value decode(Context& c, const Molmo2Model& m, const TextInputs& in, Cache& cache) {
  using namespace eager;
  Value hidden;
  {
    InScope scope(c.b, m.model);
    Value x;
    {
      const Value ids = known_ids(in.ids);
      x = embed(c, m.language, ids);
    }
    const Value places = cache_position(c, in.ids.size(1));
    const Value mask = causal_mask(c, mask_shape(cache, x.size(0), x.size(1)), in.mask);
    hidden = forward(c, m.language, x, mask, unsqueeze(places, 0), cache);
  }
  return forward(c, m.head, kept_positions(hidden, Logits::last));
}

}  // namespace vlmest
