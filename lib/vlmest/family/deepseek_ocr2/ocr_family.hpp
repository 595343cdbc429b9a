// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include <vlmest/family/deepseek_ocr2/deep_encoder.hpp>
#include <vlmest/family/deepseek_ocr2/expert_list.hpp>
#include <vlmest/family/deepseek_ocr2/ocr_rule.hpp>
#include <vlmest/nn/family/assembly.hpp>

namespace vlmest {

/// DeepSeek-OCR (modeling_deepseekocr.py of the checkpoint): DeepEncoder over the tiles and over the whole view of each
/// prompt's picture, a linear layer, DeepSeek-V2's experts. Towers and projector run under no_grad, in training too.
struct DeepseekOcrFamily {
  DeepEncoder vision;
  ExpertListConfig language;
  bool tied = false;
};

constexpr FamilyTraits traits(const DeepseekOcrFamily&) {
  return {.features = feature_calls::no_images,  // its forward runs one picture at a time as it is
          .plain_head = false,
          .all_logits = true,
          .note = "the checkpoint's own classes, called without autocast (its infer() runs them under bf16 autocast)"};
}

struct DeepseekOcrModel {
  const DeepseekOcrFamily* config = nullptr;
  ScopeId model = 0, projector_scope = 0;
  ExpertListDecoder language;
  DeepEncoderTower vision;
  Linear projector;
  TensorId newline = none, separator = none;
  Linear head;
};

/// In the order of DeepseekOCRModel.__init__ and DeepseekOCRForCausalLM.__init__.
inline DeepseekOcrModel make_model(Context& c, const DeepseekOcrFamily& g) {
  DeepseekOcrModel r{.config = &g};
  const std::int64_t channels = width(g.language);
  {
    Module m(c, "model", Part::language);
    r.model = m.scope;
    r.language = make_decoder(c, g.language);
    r.vision = make_tower(c, g.vision);
    {
      Module p(c, "projector", Part::projector);
      r.projector = make_linear(c, "layers", checked_mul(g.vision.clip.hidden, 2), channels, true);
    }
    Module own(c, "", Part::projector);
    r.newline = parameter(c, "image_newline", {channels});
    r.separator = parameter(c, "view_seperator", {channels});
  }
  r.head = make_head(c, channels, vocabulary(g.language), g.tied, embedding_weight(r.language));
  return r;
}

/// images: for each prompt its tiles and its whole view. Where a picture is not cut, zeros in fp32 stand for the tiles.
struct DeepseekOcrInputs {
  TextInputs text;
  std::vector<Value> tiles, whole;
  Value places;  ///< images_seq_mask: bool[B, S]
};

/// Throws Error for several pictures in a prompt, and for towers that are to run over a few pictures at a time.
inline DeepseekOcrInputs make_inputs(Context& c, const DeepseekOcrFamily& g, const Sequences& s) {
  DeepseekOcrInputs in;
  if (c.plan.vision_chunk > 0)
    throw Error("plan.vision_chunk", "DeepSeek-OCR's forward runs its towers over one picture at a time as it is",
                "leave plan.vision_chunk out");
  if (!s.images.empty()) {
    if (s.images.size() != static_cast<std::size_t>(s.batch))
      throw Error("plan.images", "DeepSeek-OCR's forward takes one picture for each prompt", "give plan.images=1");
    const auto pixels = [&](DType type, std::int64_t rows, std::int64_t side) {
      return c.b.existing("images", Role::input, type, {rows, g.vision.sam.channels, side, side});
    };
    for (const ImageLayout& l : s.images) {
      const std::int64_t side = l.patches.rows * g.vision.sam.patch_size, tiles = image_processor::local_tiles(l);
      in.tiles.push_back(tiles > 0 ? pixels(c.dtype(), tiles, image_processor::local_side(l))
                                   : pixels(DType::fp32, 1, side));
      in.whole.push_back(pixels(c.dtype(), 1, side));
    }
    in.places = c.b.existing("images_seq_mask", Role::input, DType::boolean, {s.batch, s.seq});
  }
  in.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  return in;
}

/// Variables of DeepseekOCRModel.forward's loop over prompts, which stay until it returns.
struct ViewStates {
  Value map, states, features;
};
struct PictureStates {
  ViewStates local, global;
  Value joined, of_prompt;
};

/// [N, side, side] views -> features[N, side * side, width].
inline void run_view(Context& c, const DeepseekOcrModel& m, const Value& pixels, ViewStates& v) {
  using namespace eager;
  v.map = sam_map(c, m.vision, pixels);
  v.states = clip_states(c, m.vision, v.map);
  v.features = cat(slice(v.states, 1, 1, v.states.size(1)), permute(flatten(v.map, 2, 3), {0, 2, 1}), -1);
  v.features = forward(c, m.projector, v.features);
}

/// features[rows, cols, width] with a newline behind each row, as one sequence.
inline Value with_newlines(const Value& newline, Value features) {
  using namespace eager;
  const std::int64_t rows = features.size(0), channels = features.size(2);
  const Value ends = expand(unsqueeze(unsqueeze(newline, 0), 0), {rows, 1, channels});
  return view(cat(std::move(features), ends, 1), {-1, channels});
}

/// What stands in the place of one prompt's placeholders.
inline void run_picture(Context& c, const DeepseekOcrModel& m, const Value& tiles, const Value& whole,
                        const ImageLayout& l, PictureStates& v) {
  using namespace eager;
  const NoGrad off(c.b);
  item(sum_all(tiles));
  const bool cut = image_processor::local_tiles(l) > 0;
  if (cut) run_view(c, m, tiles, v.local);
  run_view(c, m, whole, v.global);
  const Value newline(c.b, m.newline);
  const auto side = [](const ViewStates& s) { return s.map.size(2); };
  const std::int64_t h = side(v.global), channels = v.global.features.size(2);
  v.global.features = with_newlines(newline, view(v.global.features, {h, h, channels}));
  std::vector<Value> parts;
  if (cut) {
    const std::int64_t h2 = side(v.local), rows = l.tile_grid.rows, cols = l.tile_grid.cols;
    v.local.features = permute(view(v.local.features, {rows, cols, h2, h2, channels}), {0, 2, 1, 3, 4});
    v.local.features = reshape(v.local.features, {rows * h2, cols * h2, channels});
    v.local.features = with_newlines(newline, v.local.features);
    parts.push_back(v.local.features);
  }
  parts.push_back(v.global.features);
  parts.push_back(unsqueeze(Value(c.b, m.separator), 0));
  v.joined = cat(parts, 0);
  std::vector<Value> all{v.joined};
  v.of_prompt = cat(all, 0);
}

/// embeds[i].masked_scatter_(mask, features). The features need no gradient; that of the embeddings is copied and
/// zeroed in their place (CopySlices around MaskedScatterBackward).
inline void scatter_into_prompt(Value& embeds, std::int64_t at, const Value& mask, const Value& features) {
  using namespace eager;
  const GradEdge e = edge(embeds);
  {
    const NoGrad off(embeds.builder());
    masked_scatter_(select(embeds, 0, at), mask, features);
  }
  if (!e) return;
  GradCall call{.name = "CopySlices", .inputs = {e}, .run = [at, mask](Gradients& g) {
                  Value whole = clone(g.in[0]);
                  const Value part = select(whole, 0, at);
                  const Value kept = masked_fill(clone_contiguous(part), mask);
                  copy_over(part, kept);
                  g.out[0] = std::move(whole);
                }};
  embeds.builder().differentiable(std::move(call), std::span<const Value>(&embeds, 1));
}

/// DeepseekOCRForCausalLM.forward: logits of every position, and those in fp32.
inline Value ocr_head(Context& c, const DeepseekOcrModel& m, const Value& hidden) {
  using namespace eager;
  if (c.labels && loss_kind(c) != Loss::unfused)
    throw Error("plan.loss", "DeepSeek-OCR's forward computes its own loss", "leave plan.loss out");
  Value logits = forward(c, m.head, hidden);
  logits = to(logits, DType::fp32);
  if (!c.labels) return logits;
  const std::int64_t tokens = logits.size(1), entries = logits.size(2);
  Value shifted = contiguous(slice(logits, 1, 0, tokens - 1));
  Value labels = contiguous(slice(*c.labels, 1, 1, tokens));
  shifted = view(std::move(shifted), {-1, entries});
  labels = view(std::move(labels), {-1});
  return cross_entropy(shifted, labels);
}

inline Value prefill(Context& c, const DeepseekOcrModel& m, const DeepseekOcrInputs& in, const Sequences& s,
                     Cache& cache) {
  using namespace eager;
  Value hidden;
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.text.ids);
    PictureStates v;
    if (in.places) {
      refuse_written_leaf(c, "DeepSeek-OCR");
      item(sum_all(in.whole.front()));
    }
    for (std::size_t i = 0; i < in.whole.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      run_picture(c, m, in.tiles[i], in.whole[i], s.images[i], v);
      scatter_into_prompt(embeds, at, unsqueeze(select(in.places, 0, at), -1), v.of_prompt);
    }
    hidden = forward(c, m.language, embeds, in.text.mask, cache);
  }
  return ocr_head(c, m, hidden);
}

inline Value decode(Context& c, const DeepseekOcrModel& m, const TextInputs& in, Cache& cache) {
  Value logits = decode_one_token(c, m, in, cache);
  return eager::to(std::move(logits), DType::fp32);
}

}  // namespace vlmest
