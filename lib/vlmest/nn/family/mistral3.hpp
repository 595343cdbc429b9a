// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/decoder/decoder.hpp>
#include <vlmest/nn/family/scatter.hpp>
#include <vlmest/nn/projector/mistral3.hpp>
#include <vlmest/nn/sequence.hpp>
#include <vlmest/nn/vision/pixtral.hpp>

namespace vlmest {

/// Mistral Small 3.1 and its kin (transformers models/mistral3): a Pixtral tower, patches merged before the projector,
/// features scattered into the embeddings.
struct Mistral3Family {
  PixtralVision vision;
  Mistral3Projector projector;
  DecoderConfig language;
  std::int64_t feature_layer = -1;  ///< the hidden state that is used
  bool tied = true;
};

struct Mistral3Model {
  const Mistral3Family* config = nullptr;
  ScopeId root = 0, model = 0;
  PixtralTower vision;
  Mistral3Merger projector;
  Decoder language;
  Linear head;
};

inline Mistral3Model make_model(Context& c, const Mistral3Family& g) {
  Mistral3Model r{.config = &g, .root = c.b.scope()};
  {
    Module m(c, "model");
    r.model = m.scope;
    {
      Module v(c, "vision_tower", Part::vision);
      r.vision = make_tower(c, g.vision);
    }
    {
      Module p(c, "multi_modal_projector", Part::projector);
      r.projector = make_projector(c, g.projector);
    }
    Module l(c, "language_model", Part::language);
    r.language = make_language(c, g.language);
  }
  r.head = make_head(c, width(g.language), vocabulary(g.language), g.tied, embedding_weight(r.language));
  return r;
}

struct Mistral3Inputs {
  TextInputs text;
  Value pixels;
  Value image_sizes;
};

inline Mistral3Inputs make_inputs(Context& c, const Mistral3Family& g, const Sequences& s) {
  Mistral3Inputs r;
  if (!s.images.empty()) {
    r.pixels = make_pixels(c, g.vision, s);
    r.image_sizes = make_image_sizes(c, s);
  }
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  return r;
}

/// modeling_mistral3.py, Mistral3Model.get_image_features: all hidden states stay alive until the features are taken
/// out.
inline std::vector<Value> image_features(Context& c, const Mistral3Model& m, const Mistral3Inputs& inputs,
                                         const Sequences& s) {
  using namespace eager;
  TowerOutput tower = forward(c, m.vision, {inputs.pixels, s.images, true, inputs.image_sizes});
  const Value& selected = hidden_state(tower, m.config->feature_layer);
  Value features = forward(c, m.projector, squeeze(selected, 0), inputs.image_sizes, s.images);
  return split_by_image(std::move(features), inputs.image_sizes, s.images);
}

/// modeling_mistral3.py, Mistral3ForConditionalGeneration.forward over a fresh cache.
inline Value prefill(Context& c, const Mistral3Model& m, const Mistral3Inputs& in, const Sequences& s, Cache& cache) {
  using namespace eager;
  Value hidden, features;  // the output carries the image features
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.text.ids);
    Value mask;  // a variable of the function: alive until it returns
    if (in.pixels) {
      std::vector<Value> parts = image_features(c, m, in, s);
      features = cat(parts, 0);
      parts.clear();
      mask = placeholder_mask(c, in.text.ids);
      embeds = masked_scatter(embeds, mask, features);
    }
    hidden = forward(c, m.language, embeds, in.text.mask, cache);
  }
  return forward(c, m.head, kept_positions(hidden, c.plan.logits));
}

/// One token over the cache.
inline Value decode(Context& c, const Mistral3Model& m, const TextInputs& in, Cache& cache) {
  Value hidden;
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.ids);
    hidden = forward(c, m.language, embeds, in.mask, cache);
  }
  return forward(c, m.head, kept_positions(hidden, Logits::last));
}

}  // namespace vlmest
