// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/family/llama4/tower.hpp>
#include <vlmest/nn/decoder/llama4.hpp>
#include <vlmest/nn/family.hpp>
#include <vlmest/nn/family/assembly.hpp>
#include <vlmest/nn/loss.hpp>

namespace vlmest {

/// Llama 4 (transformers models/llama4): a tower over square tiles, one linear layer, features scattered into the
/// embeddings of a whole Llama4ForCausalLM.
struct Llama4Family {
  Llama4Vision vision;
  Llama4Config language;
  bool tied = false;
};

/// The caller reads last_hidden_state, which has a row for each tile: modeling_llama4.py.
inline std::string llama4_line(const std::string&, std::int64_t n) {
  return "from transformers.modeling_outputs import BaseModelOutputWithPooling; " +
         feature_calls::wrapped("model.get_image_features", "pixel_values",
                                "BaseModelOutputWithPooling(last_hidden_state=torch.cat([f(pixel_values=p, "
                                "**k).last_hidden_state for p in " +
                                    feature_calls::split("pixel_values", n) + "]))");
}
constexpr FamilyTraits traits(const Llama4Family&) {
  return {.features = FeatureCall{llama4_line, true}, .plain_head = false};
}

struct Llama4Model {
  const Llama4Family* config = nullptr;
  ScopeId projector_scope = 0;
  Llama4Tower vision;
  Linear projector;
  Llama4Decoder language;
  Linear head;
};

/// In the order of Llama4ForConditionalGeneration.__init__ and Llama4ForCausalLM.__init__.
inline Llama4Model make_model(Context& c, const Llama4Family& g) {
  Llama4Model r{.config = &g};
  {
    Module v(c, "vision_model", Part::vision);
    r.vision = make_tower(c, g.vision);
  }
  {
    Module p(c, "multi_modal_projector", Part::projector);
    r.projector_scope = p.scope;
    r.projector = make_linear(c, "linear_1", g.vision.output, g.language.hidden, false);
  }
  Module l(c, "language_model", Part::language);
  {
    Module m(c, "model");
    r.language = make_decoder(c, g.language);
  }
  r.head = make_head(c, g.language.hidden, g.language.vocab, g.tied, r.language.embed_tokens.weight);
  return r;
}

/// Throws Error for towers that the classes make and cannot run.
inline void check_pictures(const Llama4Vision& g) {
  const auto refuse = [](const char* key, const std::string& what) {
    throw Error("config.json.vision_config." + std::string(key), what, "prompts without pictures run");
  };
  const std::int64_t folded = checked_mul(g.hidden, checked_mul(g.merge, g.merge));
  if (folded != g.intermediate)
    refuse("intermediate_size", "the adapter takes " + std::to_string(g.intermediate) +
                                    " channels, but folded patches have " + std::to_string(folded));
  if (g.adapter_in != g.adapter_out)
    refuse("projector_input_dim", "the adapter's second layer takes " + std::to_string(g.adapter_out) +
                                      " channels, but the first gives " + std::to_string(g.adapter_in));
  if (g.output != g.adapter_out)
    refuse("vision_output_dim", "the projector takes " + std::to_string(g.output) + " channels, but the tower gives " +
                                    std::to_string(g.adapter_out));
  if (g.head_dim() % 4 != 0)
    refuse("num_attention_heads", "heads of " + std::to_string(g.head_dim()) +
                                      " channels cannot turn by row and column, which takes a multiple of four");
}

inline PixelInputs make_inputs(Context& c, const Llama4Family& g, const Sequences& s) {
  if (!s.images.empty()) check_pictures(g.vision);
  return make_pixel_inputs(c, g.vision, s);
}

/// modeling_llama4.py, Llama4ForConditionalGeneration.get_image_features: rows of tiles.
inline Value image_features(Context& c, const Llama4Model& m, const PixelInputs& inputs, const Sequences&) {
  return forward(c, m.vision, inputs.pixels);
}

/// modeling_llama4.py, Llama4ForCausalLM.forward.
inline Value forward(Context& c, const Llama4Model& m, const Value& embeds, const Value& mask, Logits logits,
                     Cache& cache) {
  const Value hidden = forward(c, m.language, embeds, mask, cache);
  return forward(c, m.head, kept_positions(hidden, logits));
}

/// modeling_llama4.py, Llama4ForConditionalGeneration.forward over a fresh cache, which computes the loss itself.
inline Value prefill(Context& c, const Llama4Model& m, const PixelInputs& in, const Sequences& s, Cache& cache) {
  using namespace eager;
  Value embeds = embed(c, m.language, in.text.ids);
  Value features, rows, mask;  // variables of the function: alive until it returns
  if (in.pixels) {
    features = batch_features(c, m, in, s);
    {
      InScope p(c.b, m.projector_scope);
      rows = forward(c, m.projector, view(features, {-1, features.size(-1)}));
    }
    rows = to(rows, embeds.dtype());
    mask = placeholder_mask(in.text.ids);
    embeds = masked_scatter(embeds, mask, rows);
  }
  if (c.labels && loss_kind(c) != Loss::unfused) {
    const Value hidden = forward(c, m.language, embeds, in.text.mask, cache);
    return head_output(c, m.head, hidden);
  }
  const Value logits = forward(c, m, embeds, in.text.mask, c.labels ? Logits::all : c.plan.logits, cache);
  return c.labels ? causal_lm_loss(c, logits, *c.labels) : logits;
}

/// One token over the cache.
inline Value decode(Context& c, const Llama4Model& m, const TextInputs& in, Cache& cache) {
  const Value embeds = embed(c, m.language, in.ids);
  return forward(c, m, embeds, in.mask, Logits::last, cache);
}

}  // namespace vlmest
