// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/nn/decoder/mllama.hpp>
#include <vlmest/nn/family.hpp>
#include <vlmest/nn/family/vision_chunks.hpp>
#include <vlmest/nn/loss.hpp>
#include <vlmest/nn/sequence.hpp>
#include <vlmest/nn/vision/mllama_tiles.hpp>

namespace vlmest {

/// Llama 3.2 Vision (transformers models/mllama): tiles through the tower, a linear projector, cross-attention. The
/// output head is never tied.
struct MllamaFamily {
  MllamaVision vision;
  MllamaText language;
};

/// The tower is called itself, with pixel_values[B, images, tiles, ...]: modeling_mllama.py.
inline std::string mllama_line(const std::string&, std::int64_t n) {
  return "from transformers.modeling_outputs import BaseModelOutput; " +
         feature_calls::wrapped(
             "model.model.vision_model.forward",
             "pixel_values, aspect_ratio_ids, aspect_ratio_mask, cut=lambda t: " +
                 feature_calls::split("t.flatten(0, 1).unsqueeze(1)", n),
             "BaseModelOutput(last_hidden_state=torch.cat([f(*a, **k).last_hidden_state for a in "
             "zip(cut(pixel_values), cut(aspect_ratio_ids), cut(aspect_ratio_mask))]).flatten(0, 1).unflatten(0, "
             "aspect_ratio_ids.shape))");
}
constexpr FamilyTraits traits(const MllamaFamily&) { return {.features = FeatureCall{mllama_line}}; }

struct MllamaModel {
  const MllamaFamily* config = nullptr;
  ScopeId model = 0;
  MllamaVisionTower vision;
  MllamaDecoder language;
  Linear projector;
  Linear head;
};

inline MllamaModel make_model(Context& c, const MllamaFamily& g) {
  MllamaModel r{.config = &g};
  const std::int64_t hidden = g.language.base.hidden;
  {
    Module m(c, "model");
    r.model = m.scope;
    {
      Module v(c, "vision_model", Part::vision);
      r.vision = make_tower(c, g.vision);
    }
    {
      Module l(c, "language_model", Part::language);
      r.language = make_decoder(c, g.language);
    }
    Module p(c, "multi_modal_projector", Part::projector);
    r.projector = declare_linear(c, g.vision.output(), hidden, true);
  }
  Module h(c, "lm_head", Part::language);
  c.b.graph.head = h.scope;
  r.head = declare_linear(c, hidden, g.language.base.vocab, false, StoredModule::head);
  return r;
}

struct MllamaInputs {
  TextInputs text;
  MllamaVisionInput vision;
  Value cross_mask;  ///< int64[B, S, pictures, tiles]: which tiles a token sees
};

/// What the processor makes (transformers 5.17 processing_mllama.py): every picture padded to max_tiles tiles.
inline MllamaInputs make_inputs(Context& c, const MllamaFamily& g, const Sequences& s) {
  MllamaInputs r;
  const std::int64_t media = static_cast<std::int64_t>(s.images.size()) / s.batch, tiles = g.vision.max_tiles;
  if (media > 0) {
    const std::int64_t side = g.vision.image_size;
    r.vision.pixels =
        c.b.existing("pixel_values", Role::input, c.dtype(), {s.batch, media, tiles, g.vision.channels, side, side});
    r.vision.ids = c.b.existing("aspect_ratio_ids", Role::input, DType::int64, {s.batch, media});
    r.vision.tile_mask = c.b.existing("aspect_ratio_mask", Role::input, DType::int64, {s.batch, media, tiles});
  }
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  if (media > 0)
    r.cross_mask = c.b.existing("cross_attention_mask", Role::input, DType::int64, {s.batch, s.seq, media, tiles});
  return r;
}

/// modeling_mllama.py, _prepare_cross_attention_mask: over all rows of the mask, whose tiles are widened to their
/// tokens.
inline void prepare_cross_mask(Context& c, const Value& tile_mask, std::int64_t tile_tokens, CrossInputs& cross) {
  using namespace eager;
  const Shape s = tile_mask.shape();
  const std::int64_t batch = s[0], rows = s[1];
  Value mask = clone_contiguous(expand(unsqueeze(tile_mask, -1), {s[0], s[1], s[2], s[3], tile_tokens}));
  mask = unsqueeze(view(mask, {batch, rows, -1}), 1);
  Value inverted = to(pointwise("rsub.Scalar", DType::fp32, mask), c.dtype());
  Value hidden = to(inverted, DType::boolean);
  const Bytes n = data_bytes(inverted);
  const TensorId filled = c.b.result(c.dtype(), inverted.shape(), "masked_fill");
  // The copy of the operand is a memory copy, the fill a kernel.
  const MemoryOp fill{.read = n + data_bytes(hidden), .written = n + n, .dtype = c.dtype()};
  {
    Value from = inverted;
    mask = emit1(c.b, "masked_fill.Scalar", fill, filled, {}, from, hidden);
  }
  Value visible = compare_scalar("ne.Scalar", mask);
  const Shape row{batch, 1, rows};
  Value any = reduce("any.dim", DType::boolean, row, std::move(visible));
  Value seen = unsqueeze(to(std::move(any), c.dtype()), -1);
  mask = mul_(mask, seen);
  cross.mask = std::move(mask);
  cross.rows = std::move(seen);
}

/// The rows of the new tokens out of the prepared masks (modeling_mllama.py, MllamaModel.forward).
inline void select_cross_rows(CrossInputs& cross, const Value& positions) {
  using namespace eager;
  auto pick = [&](Value& v) {
    Shape s = v.shape();
    s[2] = positions.size(0);
    v = gather_rows("index.Tensor", v, positions, s);
  };
  pick(cross.mask);
  pick(cross.rows);
}

/// The tower's features of all pictures, or of a few at a time, each with all its tiles: then pictures count as
/// sequences of their own, and the result is seen in the shape that one call gives.
inline Value tower_features(Context& c, const MllamaVisionTower& t, const MllamaVisionInput& in) {
  using namespace eager;
  if (c.plan.vision_chunk == 0) return forward(c, t, in);
  const std::int64_t batch = in.ids.size(0), media = in.ids.size(1);
  const std::vector<std::int64_t> lengths =
      chunk_lengths(static_cast<std::size_t>(checked_mul(batch, media)), c.plan.vision_chunk);
  const auto cut = [&](const Value& v) { return split(unsqueeze(flatten(v, 0, 1), 1), lengths, 0); };
  const std::vector<Value> pixels = cut(in.pixels), ids = cut(in.ids), masks = cut(in.tile_mask);
  std::vector<MllamaVisionInput> chunks;
  for (std::size_t i = 0; i < lengths.size(); ++i) chunks.push_back({pixels[i], ids[i], masks[i]});
  Value all = in_chunks(c, chunks, [&](const MllamaVisionInput& chunk) { return forward(c, t, chunk); });
  const Shape out{batch, media, all.size(2), all.size(3), all.size(4)};
  return view(std::move(all), out);
}

/// modeling_mllama.py, MllamaModel.forward and the head.
inline Value mllama_forward(Context& c, const MllamaModel& m, const TextInputs& text, const MllamaVisionInput& vision,
                            const Value& tile_mask, Logits logits, Cache& cache) {
  using namespace eager;
  Value hidden;
  {
    InScope scope(c.b, m.model);
    CrossInputs cross;
    Value features, positions;  // variables of the function: alive until it returns
    if (vision.pixels) {
      features = tower_features(c, m.vision, vision);
      cross.states = forward(c, m.projector, features);
      cross.states = view(cross.states, {-1, features.size(-2), m.config->language.base.hidden});
    }
    if (tile_mask && c.stack().makes_masks) {
      prepare_cross_mask(c, tile_mask, m.config->vision.tile_tokens(), cross);
      positions = arange(c.b, text.ids.size(1));
      positions = add_scalar(positions);
      select_cross_rows(cross, positions);
    }
    hidden = forward(c, m.language, text.ids, text.mask, cross, cache);
  }
  if (c.labels) return head_output(c, m.head, hidden);
  return forward(c, m.head, kept_positions(hidden, logits));
}

inline Value prefill(Context& c, const MllamaModel& m, const MllamaInputs& in, const Sequences&, Cache& cache) {
  return mllama_forward(c, m, in.text, in.vision, in.cross_mask, c.plan.logits, cache);
}

/// One token over the cache. generate() hands over the mask of all tokens so far, a row more each step
/// (_update_model_kwargs_for_generation), and no pixels.
inline Value decode(Context& c, const MllamaModel& m, const TextInputs& in, Cache& cache) {
  const MllamaVision& g = m.config->vision;
  Value tile_mask;
  for (const auto& l : cache.layers)
    if (l.fixed && l.keys && !tile_mask) {
      const std::int64_t media = l.keys.size(2) / (g.max_tiles * g.tile_tokens());
      tile_mask = c.b.existing("cross_attention_mask", Role::input, DType::int64,
                               {in.ids.size(0), in.mask.size(1), media, g.max_tiles});
    }
  return mllama_forward(c, m, in, {}, tile_mask, Logits::last, cache);
}

}  // namespace vlmest
