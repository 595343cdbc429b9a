// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/family/muse_glimmer/text.hpp>
#include <vlmest/family/muse_glimmer/tower.hpp>
#include <vlmest/nn/family/causal_lm.hpp>
#include <vlmest/nn/family/qwen_vl.hpp>

namespace vlmest {

/// Muse Glimmer (transformers models/muse_glimmer): the tower's folded squares through an adapter, a projection and a
/// norm without weights, scattered into normed embeddings.
struct MuseGlimmerFamily {
  MuseGlimmerVision vision;
  MuseGlimmerText language;
  std::int64_t adapter = 4096;  ///< projector_hidden_size
  Activation adapter_activation = Activation::gelu;
  bool tied = false;

  static constexpr AssemblyTraits assembly{.projector = nullptr};
};
constexpr FamilyTraits traits(const MuseGlimmerFamily& g) {
  return {
      .features = feature_calls::packed, .plain_head = false, .frames = g.vision.frames, .videos = VideoPixels::own};
}

/// The modules behind the language model.
struct MuseAdapter {
  ScopeId scope = 0, activation_scope = 0;
  Linear fc1, fc2;
  Activation activation = Activation::gelu;
  Linear projection;
  RmsNorm norm;
};

/// In the order of MuseGlimmerModel.__init__.
inline MuseAdapter make_behind(Context& c, const MuseGlimmerFamily& g) {
  MuseAdapter a{.activation = g.adapter_activation};
  {
    Module m(c, "vision_adapter", Part::projector);
    a.scope = m.scope;
    a.fc1 = make_linear(c, "fc1", g.vision.folded(), g.adapter, false);
    a.activation_scope = c.b.child("act");
    a.fc2 = make_linear(c, "fc2", g.adapter, g.adapter, false);
  }
  {
    Module m(c, "vision_projection", Part::projector);
    a.projection = declare_linear(c, g.adapter, g.language.hidden, false);
  }
  a.norm = make_weightless_norm(c, "perception_emb_norm");
  return a;
}

using MuseGlimmerModel = Assembly<MuseGlimmerFamily>;

inline PackedInputs make_inputs(Context& c, const MuseGlimmerFamily& g, const Sequences& s) {
  return make_packed_inputs(c, g.vision.channels, g.vision.frames, g.vision.patch_size, s);
}

/// modeling_muse_glimmer.py, MuseGlimmerVisionAdapter.forward: one module acts behind both linears.
inline Value adapted(Context& c, const MuseAdapter& a, Value x) {
  InScope in(c.b, a.scope);
  for (const Linear* l : {&a.fc1, &a.fc2}) {
    x = forward(c, *l, std::move(x));
    InScope act(c.b, a.activation_scope);
    x = activate(c, a.activation, std::move(x));
  }
  return x;
}

/// modeling_muse_glimmer.py, MuseGlimmerModel.get_image_features, of a picture's or a video's patches; what the tower
/// returned stays to its end.
inline std::vector<Value> muse_features(Context& c, const MuseGlimmerModel& m, const PackedImages& input,
                                        std::span<const ImageLayout> images) {
  const Value tower = forward(c, m.vision, input, images);
  Value features = adapted(c, m.behind, tower);
  features = forward(c, m.behind.projection, features);
  features = forward(c, m.behind.norm, features);
  return split_by_grid(features, input.grid, images);
}
inline std::vector<Value> image_features(Context& c, const MuseGlimmerModel& m, const PackedImages& input,
                                         const Sequences& s) {
  return muse_features(c, m, input, s.images);
}
inline std::vector<Value> video_features(Context& c, const MuseGlimmerModel& m, const PackedImages& input,
                                         const Sequences& s) {
  const ChunkRun call = video_call(c, s);
  return muse_features(c, m, input, s.videos);
}

/// What MuseGlimmerModel.forward embeds: placeholders of pictures and videos are 0 in a copy.
struct MuseIds {
  Value placeholders, ids;
};
inline MuseIds muse_ids(const Value& input_ids) {
  using namespace eager;
  MuseIds r;
  {
    Value image = compare_scalar("eq.Scalar", input_ids);
    Value video = compare_scalar("eq.Scalar", input_ids);
    r.placeholders = compare("bitwise_or.Tensor", std::move(image), std::move(video));
  }
  r.ids = clone(input_ids);
  r.ids = pointwise_("index_put_", r.ids, r.placeholders);
  return r;
}

/// output_multiplier, then final_logit_softcapping.
inline Value muse_logits(Value logits) {
  return finish_logits(LogitStep::softcap, eager::mul_scalar(std::move(logits)));
}

/// modeling_muse_glimmer.py, MuseGlimmerForConditionalGeneration.forward over a fresh cache.
inline Value prefill(Context& c, const MuseGlimmerModel& m, const PackedInputs& in, const Sequences& s, Cache& cache) {
  if (c.labels && loss_kind(c) == Loss::chunked)
    throw Error("plan.loss", "the chunked loss leaves out what this model does to its logits",
                "give plan.loss=unfused or fused");
  Value hidden;
  {
    InScope scope(c.b, m.model);
    const MuseIds ids = muse_ids(in.text.ids);  // variables of the function: alive until it returns
    Value embeds = embed(c, m.language, ids.ids);
    PlacedFeatures placed;
    if (in.images.pixels) place_images(embeds, in.text.ids, batch_features(c, m, in.images, s), placed);
    if (in.videos.pixels) place_videos(embeds, in.text.ids, video_features(c, m, in.videos, s), placed);
    hidden = forward(c, m.language, embeds, in.text.mask, cache);
  }
  return head_output(c, m.head, hidden, muse_logits);
}

/// One token over the cache.
inline Value decode(Context& c, const MuseGlimmerModel& m, const TextInputs& in, Cache& cache) {
  Value hidden;
  {
    InScope scope(c.b, m.model);
    const MuseIds ids = muse_ids(in.ids);
    Value embeds = embed(c, m.language, ids.ids);
    hidden = forward(c, m.language, embeds, in.mask, cache);
  }
  return muse_logits(forward(c, m.head, kept_positions(hidden, Logits::last)));
}

}  // namespace vlmest
