// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include <vlmest/family/minicpmv/resampler.hpp>
#include <vlmest/family/minicpmv/tower.hpp>
#include <vlmest/graph/eager/view_write.hpp>
#include <vlmest/nn/decoder/decoder.hpp>
#include <vlmest/nn/family.hpp>
#include <vlmest/nn/family/image_rows.hpp>

namespace vlmest {

/// MiniCPM-V 2.6 (openbmb/MiniCPM-V-2_6) by the code that comes with its checkpoint, modeling_minicpmv.py, MiniCPMV:
/// a tower of SigLIP over whole pictures and slices of them, a resampler of learned queries, transformers'
/// Qwen2ForCausalLM. Its forward is handed positions, as generate() and its trainers hand them over.
struct MiniCpmVFamily {
  Idefics3Vision vision;
  MiniCpmResampler resampler;
  DecoderConfig language;
  std::int64_t vision_batch = 16;  ///< vision_batch_size: pieces in one call of the tower
  bool tied = false;
};

/// Pieces are cut into calls by vision_batch_size already.
inline FamilyTraits traits(const MiniCpmVFamily&) {
  return {.features = FeatureCall{},
          .frames = 1,
          .note =
              "MiniCPM-V's own code with transformers' Qwen2ForCausalLM; its tower writes attention out, whatever "
              "plan.attention says"};
}

struct MiniCpmVModel {
  const MiniCpmVFamily* config = nullptr;
  ScopeId outer = 0, llm = 0;
  Decoder language;
  Linear head;
  Idefics3Tower vision;
  MiniCpmResamplerLayers resampler;
};

/// In the order of MiniCPMV.__init__.
inline MiniCpmVModel make_model(Context& c, const MiniCpmVFamily& g) {
  MiniCpmVModel m{.config = &g, .outer = c.b.scope()};
  {
    Module l(c, "llm", Part::language);
    m.llm = l.scope;
    {
      Module inner(c, "model");
      m.language = make_decoder(c, g.language);
    }
    m.head = make_head(c, width(g.language), vocabulary(g.language), g.tied, embedding_weight(m.language));
  }
  {
    Module v(c, "vpm", Part::vision);
    m.vision = make_tower(c, g.vision);
    for (ClipLayer& l : m.vision.layers) l.split_each = false;  // SiglipAttention projects all three first
  }
  Module p(c, "resampler", Part::projector);
  m.resampler = make_resampler(c, g.resampler);
  return m;
}

/// What the processor makes beside the text: a tensor of pixels for every piece, and for every sequence sizes of its
/// pieces in patches and where their tokens stand.
struct MiniCpmVInputs {
  TextInputs text;
  Value positions;
  std::vector<Value> pixels, sizes, bounds;
  std::vector<Grid> pieces;
  std::vector<std::int64_t> counts;  ///< pieces of each sequence
};

/// What was not compared with a run of its code.
inline void check_minicpmv_runs(const Context& c, const Sequences& s) {
  const Plan& p = c.plan;
  if (p.attention == AttentionKind::flash)
    throw Error("plan.attention", "MiniCPM-V's own calls of FlashAttention-2 are not modelled",
                "give plan.attention=sdpa");
  if (p.amp)
    throw Error("plan.amp", "MiniCPM-V under autocast is not modelled", "give plan.dtype=bf16 without plan.amp");
  if (p.param_dtype.value_or(p.dtype) != p.dtype)
    throw Error("plan.param_dtype", "MiniCPM-V's layers gathered in another type were not compared with a run",
                "leave it out");
  if (c.quantization || p.weights.value_or(p.dtype) != p.dtype)
    throw Error("plan.weights", "MiniCPM-V's quantised weights were not compared with a run", "leave it out");
  if (c.sharding)
    throw Error("plan.parallel", "MiniCPM-V's layers divided among GPUs are not modelled", "leave it out");
  if (p.vision_chunk > 0)
    throw Error("plan.vision_chunk", "MiniCPM-V's code cuts pieces into calls by its config's vision_batch_size",
                "leave it out");
  if (s.images.empty()) return;
  const std::size_t each = s.images.size() / static_cast<std::size_t>(s.batch);
  for (std::size_t i = 0; i < s.images.size(); ++i) {
    const ImageLayout &a = s.images[i], &b = s.images[each > 0 ? i % each : 0];
    if (a.patches != b.patches || a.slices != b.slices || a.tiles != b.tiles)
      throw Error("images", "sequences whose pictures have different sizes were not compared with MiniCPM-V's own code",
                  "give every sequence pictures of the same sizes");
  }
}

inline MiniCpmVInputs make_inputs(Context& c, const MiniCpmVFamily& g, const Sequences& s) {
  check_minicpmv_runs(c, s);
  MiniCpmVInputs r;
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  r.positions = c.b.existing("position_ids", Role::input, DType::int64, {s.batch, s.seq});
  if (s.images.empty()) return r;
  r.counts = rows_of(s);
  for (const ImageLayout& i : s.images) {
    r.pieces.push_back(i.patches);
    r.pieces.insert(r.pieces.end(), static_cast<std::size_t>(i.tiles - 1), i.slices);
  }
  const std::int64_t p = g.vision.patch_size;
  for (const Grid& piece : r.pieces)  // the processor's floats, which no caller casts
    r.pixels.push_back(
        c.b.existing("pixel_values", Role::input, DType::fp32, {g.vision.channels, p, checked_mul(piece.count(), p)}));
  for (const std::int64_t n : r.counts) {
    r.sizes.push_back(c.b.existing("tgt_sizes", Role::input, DType::int64, {n, 2}));
    r.bounds.push_back(c.b.existing("image_bound", Role::input, DType::int64, {n, 2}));
  }
  return r;
}

/// All pieces' pixels in rows of the longest one's length, [N, channels, patch, L * patch] in the activations' type.
inline Value padded_pixels(const MiniCpmVFamily& g, const MiniCpmVInputs& in) {
  using namespace eager;
  std::vector<Value> rows;
  for (const Value& p : in.pixels) rows.push_back(permute(flatten(p, 0, 1), {1, 0}));
  Value all = permute(pad_sequences(std::move(rows)), {0, 2, 1});
  all = view(all, {all.size(0), g.vision.channels, g.vision.patch_size, all.size(2)});
  return all;
}

/// The tower in calls of vision_batch_size pieces; what each gives stays beside all of it.
inline Value run_tower(Context& c, const MiniCpmVModel& m, const MiniCpmVInputs& in, const Value& pixels,
                       const Value& mask, const Value& sizes, std::vector<Value>& parts) {
  using namespace eager;
  const std::int64_t n = pixels.size(0), length = longest(in.pieces), each = m.config->vision_batch;
  const auto padded = [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t i = from; i < to; ++i)
      if (in.pieces[static_cast<std::size_t>(i)].count() < length) return true;
    return false;
  };
  if (n <= each) {
    const ChunkRun one(c, 0, 1);
    return forward(c, m.vision, pixels, mask, sizes, padded(0, n));
  }
  const auto calls = static_cast<std::size_t>((n + each - 1) / each);
  for (std::size_t i = 0; i < calls; ++i) {
    const ChunkRun one(c, i, calls);
    const std::int64_t from = static_cast<std::int64_t>(i) * each, to = std::min(from + each, n);
    const auto rows = [&](const Value& v) { return slice(v, 0, from, to); };
    const Value some = rows(pixels), real = rows(mask), grids = rows(sizes);
    parts.push_back(forward(c, m.vision, some, real, grids, padded(from, to)));
  }
  std::vector<Value> list = parts;
  return cat(list, 0);
}

/// get_vllm_embedding: pixels become features, which are written over the embeddings where their tokens stand. Its
/// variables are alive until it returns; the features stay with the caller.
inline Value embeddings(Context& c, const MiniCpmVModel& m, const MiniCpmVInputs& in, Value& features) {
  using namespace eager;
  if (in.pixels.empty()) return embed(c, m.language, in.text.ids);
  const std::int64_t n = static_cast<std::int64_t>(in.pieces.size()), length = longest(in.pieces);
  Value sizes;
  {
    std::vector<Value> all = in.sizes;
    sizes = to(cat(all, 0), DType::int32);
  }
  Value most;
  most = reduce("max", DType::int32, Shape{}, mul(select(sizes, 1, 0), select(sizes, 1, 1)));
  Value pixels = padded_pixels(*m.config, in);
  item(most);
  const Value mask = fill(c.b, "zeros", {n, 1, length}, DType::boolean);
  for (std::int64_t i = 0; i < n; ++i) {
    const Value size = select(sizes, 0, i);
    const Value count = mul(select(size, 0, 0), select(size, 0, 1));
    item(count);
    fill_(slice(select(select(mask, 0, i), 0, 0), 0, 0, in.pieces[static_cast<std::size_t>(i)].count()));
  }
  pixels = to(std::move(pixels), c.dtype());
  std::vector<Value> parts;
  {
    const Value seen = run_tower(c, m, in, pixels, mask, sizes, parts);
    const InScope scope(c.b, m.resampler.scope);
    features = forward(c, m.resampler, seen, sizes, in.pieces, length);
  }
  std::vector<Value> states;  // vision_hidden_states
  for (std::int64_t b = 0, first = 0; b < static_cast<std::int64_t>(in.counts.size()); ++b) {
    const std::int64_t count = in.counts[static_cast<std::size_t>(b)];
    states.push_back(slice_view(features, 0, first, first + count, 1));
    first += count;
  }
  Value embeds = embed(c, m.language, in.text.ids);
  refuse_written_leaf(c, "MiniCPM-V");
  Value places;
  for (std::int64_t b = 0; b < embeds.size(0); ++b) {
    const std::int64_t count = in.counts[static_cast<std::size_t>(b)], queries = m.config->resampler.queries;
    const Value& bounds = in.bounds[static_cast<std::size_t>(b)];
    for (std::int64_t i = 0; i < count; ++i)
      for (const int end : {0, 1}) item(select(select(bounds, 0, i), 0, end));
    places = from_host(c.b, {count, queries}, DType::int64, "_to_copy");
    const Value values = view(states[static_cast<std::size_t>(b)], {-1, features.size(2)});
    Value index = repeat(view(places, {-1, 1}), {1, features.size(2)});
    scatter_rows(
        embeds, [b](const Value& v) { return select(v, 0, b); }, std::move(index), values);
  }
  return embeds;
}

/// MiniCPMV.forward over a fresh cache.
inline Value prefill(Context& c, const MiniCpmVModel& m, const MiniCpmVInputs& in, const Sequences&, Cache& cache) {
  if (c.labels && in.pixels.empty())
    throw Error("plan.images", "MiniCPM-V's training of text alone runs the tower over a dummy picture: not modelled",
                "give a picture");
  Value features;
  const Value embeds = embeddings(c, m, in, features);
  InScope scope(c.b, m.llm);
  const Value hidden = forward(c, std::get<LlamaDecoder>(m.language), embeds, in.text.mask, cache, in.positions);
  return head_output(c, m.head, hidden);
}

/// One token over the cache: generate() calls the language model alone.
inline Value decode(Context& c, const MiniCpmVModel& m, const TextInputs& in, Cache& cache) {
  InScope scope(c.b, m.llm);
  Value hidden;
  {
    const Value embeds = embed(c, m.language, in.ids);
    hidden = forward(c, m.language, embeds, in.mask, cache);
  }
  return forward(c, m.head, kept_positions(hidden, Logits::last));
}

}  // namespace vlmest
