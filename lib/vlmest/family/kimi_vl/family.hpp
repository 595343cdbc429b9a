// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <vlmest/family/kimi_vl/loss.hpp>
#include <vlmest/family/kimi_vl/tower.hpp>
#include <vlmest/graph/eager/view_write.hpp>
#include <vlmest/nn/decoder/decoder.hpp>
#include <vlmest/nn/family.hpp>
#include <vlmest/nn/family/qwen_vl.hpp>
#include <vlmest/nn/projector/merged_mlp.hpp>

namespace vlmest {

/// Kimi-VL (moonshotai/Kimi-VL-A3B-Instruct, -Thinking, -Thinking-2506) by the code that comes with its checkpoints,
/// modeling_kimi_vl.py, KimiVLForConditionalGeneration. Its copy of DeepSeek-V3 runs under transformers below 4.49
/// alone (modelscope/ms-swift swift/llm/model/model/moonshot.py), so that transformers 5.17's DeepseekV3ForCausalLM,
/// which loads the same weights, stands in its place.
struct KimiVlFamily {
  KimiVlVision vision;
  MergedMlp projector{};
  DecoderConfig language;
  bool tied = false;
};

inline std::string kimi_vl_line(const std::string&, std::int64_t n) {
  return feature_calls::wrapped("model._extract_image_features", "pixel_values, grid",
                                "torch.cat([f(p, g) " + feature_calls::packed_pairs(n) + "])");
}

constexpr FamilyTraits traits(const KimiVlFamily&) {
  return {.features = FeatureCall{kimi_vl_line},
          .plain_head = false,
          .frames = 1,
          .all_logits = true,
          .note =
              "Kimi-VL's own code with transformers' DeepseekV3ForCausalLM in the place of its copy; it makes the "
              "logits of every position whatever plan.logits says, and its tower is not checkpointed"};
}

struct KimiVlModel {
  const KimiVlFamily* config = nullptr;
  ScopeId outer = 0, language_scope = 0;
  KimiVlTower vision;
  MergedMlpLayers projector;
  Decoder language;
  Linear head;
};

/// In the order of KimiVLForConditionalGeneration.__init__ and DeepseekV3ForCausalLM.__init__.
inline KimiVlModel make_model(Context& c, const KimiVlFamily& g) {
  KimiVlModel m{.config = &g, .outer = c.b.scope()};
  {
    Module v(c, "vision_tower", Part::vision);
    m.vision = make_tower(c, g.vision);
  }
  {
    Module p(c, "multi_modal_projector", Part::projector);
    m.projector = make_merged_mlp(c, g.projector, "linear_1", "linear_2");
  }
  Module l(c, "language_model", Part::language);
  m.language_scope = l.scope;
  {
    Module inner(c, "model");
    m.language = make_decoder(c, g.language);
  }
  m.head = make_head(c, width(g.language), vocabulary(g.language), g.tied, embedding_weight(m.language));
  return m;
}

struct KimiVlInputs {
  TextInputs text;
  KimiVlImages images;
};

inline KimiVlInputs make_inputs(Context& c, const KimiVlFamily& g, const Sequences& s) {
  KimiVlInputs r;
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  if (!s.images.empty()) r.images = make_kimi_vl_images(c, g.vision, s.images);
  return r;
}

/// Chunks of pixels and their grids; all share the rotations' table.
inline std::vector<VisionChunk<KimiVlImages>> vision_chunks(Context& c, const KimiVlImages& in, const Sequences& s) {
  std::vector<VisionChunk<KimiVlImages>> r;
  for (VisionChunk<PackedImages>& part : vision_chunks(c, PackedImages{in.pixels, in.grid}, s))
    r.push_back({{std::move(part.inputs.pixels), std::move(part.inputs.grid), in.turns}, std::move(part.sequences)});
  return r;
}

/// _extract_image_features: all pictures' features in one row.
inline Value image_features(Context& c, const KimiVlModel& m, const KimiVlImages& input, const Sequences& s) {
  const std::vector<Value> merged = forward(c, m.vision, input, s.images);  // the caller's variable: alive to the end
  InScope in(c.b, m.projector.scope);
  std::vector<Value> references = merged;
  const Value joined = eager::cat(references, 0);
  return project_rows(c, m.projector, joined, {-1, m.projector.config->row()});
}

/// _merge_with_image_features: embeds[B, S, hidden] are written over where placeholders stand, through a view of rows.
inline Value merge_features(Value embeds, const Value& ids, const Value& features) {
  using namespace eager;
  const Shape whole = embeds.shape();
  item(sum_all(compare_scalar("eq.Scalar", ids)));
  const Value flat = flatten(ids, 0, 1);
  Value places = compare_scalar("eq.Scalar", flat);
  const auto rows = [width = whole[2]](const Value& v) { return view(v, {-1, width}); };
  put_masked(embeds, rows, std::move(places), features);
  Value merged = written_part(embeds, rows);
  return view(std::move(merged), whole);
}

/// DeepseekV3ForCausalLM.forward over embeddings: the logits of all positions.
inline Value language_logits(Context& c, const KimiVlModel& m, const Value& embeds, const Value& mask, Cache& cache) {
  InScope in(c.b, m.language_scope);
  const Value hidden = forward(c, m.language, embeds, mask, cache);
  return forward(c, m.head, hidden);
}

/// Over a fresh cache.
inline Value prefill(Context& c, const KimiVlModel& m, const KimiVlInputs& in, const Sequences& s, Cache& cache) {
  Value embeds = embed(c, m.language, in.text.ids);
  Value features;  // a variable of the function, as the embeddings are: alive until it returns
  if (in.images.pixels) {
    refuse_written_leaf(c, "Kimi-VL");
    features = batch_features(c, m, in.images, s);
    embeds = merge_features(std::move(embeds), in.text.ids, features);
  }
  const Value logits = language_logits(c, m, embeds, in.text.mask, cache);
  return c.labels ? kimi_vl_loss(c, logits, *c.labels, in.text.mask) : logits;
}

/// One token over the cache.
inline Value decode(Context& c, const KimiVlModel& m, const TextInputs& in, Cache& cache) {
  const Value embeds = embed(c, m.language, in.ids);
  return language_logits(c, m, embeds, in.mask, cache);
}

}  // namespace vlmest
