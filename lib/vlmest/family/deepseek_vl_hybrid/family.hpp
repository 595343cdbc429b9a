// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <vector>

#include <vlmest/nn/family/assembly.hpp>
#include <vlmest/nn/family/one_token.hpp>
#include <vlmest/nn/vision/sam.hpp>

namespace vlmest {

/// DeepSeek-VL (Lu et al., arXiv:2403.05525; transformers models/deepseek_vl_hybrid): every picture goes through SigLIP
/// and, larger, through SAM's tower, whose features behind its last layer and its first global one are joined.
struct DeepseekVlHybridFamily {
  SamVision high_res;
  SiglipVision vision;
  DecoderConfig language;
  bool tied = true;
};

/// DeepseekVLHybridAligner.
struct HybridAligner {
  ScopeId scope = 0, activation_scope = 0;
  Linear low, high, out;
};

struct DeepseekVlHybridModel {
  const DeepseekVlHybridFamily* config = nullptr;
  ScopeId model = 0;
  SamTower high_res;
  SamNeck neck;
  ScopeId halvings_scope = 0;
  ConvPair halvings;
  TensorId alpha = none;
  SiglipTower vision;
  HybridAligner aligner;
  Decoder language;
  Linear head;
};

/// In the order of DeepseekVLHybridModel.__init__.
inline DeepseekVlHybridModel make_model(Context& c, const DeepseekVlHybridFamily& g) {
  DeepseekVlHybridModel r{.config = &g};
  const std::int64_t out = width(g.language);
  {
    Module m(c, "model");
    r.model = m.scope;
    {
      Module v(c, "high_res_vision_model", Part::vision);
      Module encoder(c, "vision_encoder");
      r.high_res = make_tower(c, g.high_res);
    }
    {
      Module n(c, "high_res_vision_neck", Part::vision);
      r.neck = make_sam_neck(c, g.high_res);
    }
    {
      Module p(c, "high_res_vision_proj", Part::vision);
      r.halvings_scope = p.scope;
      const std::int64_t channels = g.high_res.out;
      r.halvings = make_halvings(c, "conv1", "conv2", channels, checked_mul(channels, 2), checked_mul(channels, 4));
    }
    {
      Module own(c, "", Part::vision);
      r.alpha = parameter(c, "high_res_vision_alpha", {1});
    }
    {
      Module v(c, "vision_model", Part::vision);
      r.vision = make_tower(c, g.vision);
    }
    {
      Module a(c, "aligner", Part::projector);
      r.aligner.scope = a.scope;
      r.aligner.low = make_linear(c, "vision_proj", g.vision.hidden, out / 2, true);
      r.aligner.high = make_linear(c, "high_res_vision_proj", checked_mul(g.high_res.out, 4), out / 2, true);
      r.aligner.activation_scope = c.b.child("act");
      r.aligner.out = make_linear(c, "proj", out, out, true);
    }
    Module l(c, "language_model", Part::language);
    r.language = make_decoder(c, g.language);
  }
  r.head = make_head(c, out, vocabulary(g.language), g.tied, embedding_weight(r.language));
  return r;
}

/// get_image_features(pixel_values, high_res_pixel_values), by position; the caller takes pooler_output as one tensor.
inline std::string deepseek_vl_hybrid_line(const std::string&, std::int64_t n) {
  return feature_calls::image_features("p, h", "torch.cat([f(a, b, **k).pooler_output for a, b in zip(" +
                                                   feature_calls::split("p", n) + ", " + feature_calls::split("h", n) +
                                                   ")])");
}
inline constexpr FeatureCall deepseek_vl_hybrid_call{deepseek_vl_hybrid_line};

constexpr FamilyTraits traits(const DeepseekVlHybridFamily&) { return {.features = deepseek_vl_hybrid_call}; }

struct DeepseekVlHybridInputs {
  TextInputs text;
  Value pixels;    ///< none without images
  Value high_res;  ///< a row for each of theirs
};

inline DeepseekVlHybridInputs make_inputs(Context& c, const DeepseekVlHybridFamily& g, const Sequences& s) {
  DeepseekVlHybridInputs in;
  if (!s.images.empty()) {
    in.pixels = make_pixels(c, g.vision, s);
    in.high_res = c.b.existing("high_res_pixel_values", Role::input, c.dtype(), pixel_shape(g.high_res, s.images));
  }
  in.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  return in;
}

inline std::vector<VisionChunk<DeepseekVlHybridInputs>> vision_chunks(Context& c, const DeepseekVlHybridInputs& in,
                                                                      const Sequences& s) {
  return cut_rows(c, in, s, s.images, &DeepseekVlHybridInputs::high_res);
}

/// DeepseekVLSamVisionProj.forward: to four times the sides of SigLIP's map, which two convolutions take back.
inline Value high_res_projection(Context& c, const DeepseekVlHybridModel& m, const Value& map) {
  const SiglipVision& g = m.config->vision;
  InScope in(c.b, m.halvings_scope);
  const std::int64_t side = checked_mul(g.image_size / g.patch_size, 4);
  return forward(c, m.halvings, eager::upsample_bilinear2d(map, side, side));
}

/// DeepseekVLHybridModel.get_high_res_image_features, which asks for all hidden states; the caller keeps what the tower
/// returned but its last state.
inline Value high_res_features(Context& c, const DeepseekVlHybridModel& m, const Value& pixels, const Sequences& s,
                               TowerOutput& tower) {
  using namespace eager;
  const std::int64_t layer = m.config->high_res.global_layers.front() + 1;
  const std::array<std::int64_t, 1> read{layer};
  tower = forward(c, m.high_res, {pixels, s.images, true, {}, read});
  Value last = tower.last;
  last = high_res_projection(c, m, last);
  Value global = tower.hidden_states.at(static_cast<std::size_t>(layer));
  global = forward(c, m.neck, global);
  global = high_res_projection(c, m, global);
  Value scaled = mul(global, Value(c.b, m.alpha));
  Value output = add(last, std::move(scaled));
  output = permute(output, {0, 2, 3, 1});
  output = reshape(output, {output.size(0), -1, output.size(3)});
  tower.last = output;
  return output;
}

/// DeepseekVLHybridAligner.forward.
inline Value forward(Context& c, const HybridAligner& a, const Value& low, const Value& high) {
  InScope in(c.b, a.scope);
  const Value narrow = forward(c, a.low, low);
  const Value fine = forward(c, a.high, high);
  Value x = eager::cat(fine, narrow, -1);
  {
    InScope act(c.b, a.activation_scope);
    x = activate(c, Activation::gelu, x);
  }
  x = forward(c, a.out, x);
  return x;
}

/// DeepseekVLHybridModel.get_image_features: a row for each picture.
inline Value image_features(Context& c, const DeepseekVlHybridModel& m, const DeepseekVlHybridInputs& in,
                            const Sequences& s) {
  const TowerOutput low = forward(c, m.vision, {in.pixels, s.images});
  TowerOutput tower;
  const Value high = high_res_features(c, m, in.high_res, s, tower);
  return forward(c, m.aligner, low.last, high);
}

/// modeling_deepseek_vl_hybrid.py, DeepseekVLHybridModel.forward, which makes the mask of placeholders first and does
/// not count them. Throws Error for a description's blocks, for which its two maps leave no place.
inline Value prefill(Context& c, const DeepseekVlHybridModel& m, const DeepseekVlHybridInputs& in, const Sequences& s,
                     Cache& cache) {
  using namespace eager;
  if (c.blocks && !c.blocks->list.empty())
    throw Error("blocks", "a model with two vision towers takes none", "leave blocks out");
  Value hidden, embedded, features;  // the output carries the image features
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.text.ids);
    Value mask;
    if (in.pixels) {
      mask = unsqueeze(compare_scalar("eq.Scalar", in.text.ids), -1);
      embedded = batch_features(c, m, in, s);
      features = to(reshape(embedded, {-1, embedded.size(-1)}), embeds.dtype());
      embeds = masked_scatter(embeds, mask, features);
    }
    hidden = forward(c, m.language, embeds, in.text.mask, cache);
  }
  return head_output(c, m.head, hidden);
}

/// One token over the cache.
inline Value decode(Context& c, const DeepseekVlHybridModel& m, const TextInputs& in, Cache& cache) {
  return decode_one_token(c, m, in, cache);
}

}  // namespace vlmest
