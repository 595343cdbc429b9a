// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <iterator>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <vlmest/nn/context.hpp>
#include <vlmest/nn/sequence.hpp>

/// The vision tower on a few images at a time (Plan::vision_chunk): a loop around get_image_features over slices of the
/// pixels, whose results stay and are put together at the end. diagnose/action/vision_chunk_line.hpp has the Python
/// that it stands for.
namespace vlmest {

/// What one call of the loop is given: a model's inputs with a part of the images, and the sequences with these alone.
template <class Inputs>
struct VisionChunk {
  Inputs inputs;
  Sequences sequences;
};

/// The lengths of tensor.split(n): the last one may be shorter.
inline std::vector<std::int64_t> chunk_lengths(std::size_t total, std::int64_t n) {
  std::vector<std::int64_t> r;
  const auto all = static_cast<std::int64_t>(total);
  for (std::int64_t at = 0; at < all; at += n) r.push_back(std::min(n, all - at));
  return r;
}

/// Every tile as an image of its own, for processors that hand tiles over as rows of pixel_values.
inline std::vector<ImageLayout> single_tiles(std::span<const ImageLayout> images) {
  std::vector<ImageLayout> r;
  for (const ImageLayout& i : images) {
    ImageLayout tile = i;
    tile.tiles = 1;
    tile.tile_grid = {1, 1};
    tile.llm_tokens = i.llm_tokens / i.tiles;
    tile.filled = i.filled / i.tiles;
    r.insert(r.end(), static_cast<std::size_t>(i.tiles), tile);
  }
  return r;
}

/// The sequences of each chunk of `images`.
inline std::vector<Sequences> chunk_sequences(const Sequences& s, std::span<const ImageLayout> images, std::int64_t n) {
  Sequences rest{.batch = s.batch,
                 .text = s.text,
                 .markers = s.markers,
                 .image_tokens = s.image_tokens,
                 .seq = s.seq,
                 .image = s.image};
  std::vector<Sequences> r;
  for (const std::int64_t count : chunk_lengths(images.size(), n)) {
    r.push_back(rest);
    r.back().images.assign(images.begin(), images.begin() + count);
    images = images.subspan(static_cast<std::size_t>(count));
  }
  return r;
}

/// Cuts in.pixels, and the tensor `beside` them where there is one, along the first dimension, which has a row for each
/// of `images`.
template <class Inputs>
std::vector<VisionChunk<Inputs>> cut_rows(const Context& c, const Inputs& in, const Sequences& s,
                                          std::span<const ImageLayout> images, Value Inputs::*beside = nullptr) {
  using namespace eager;
  const std::vector<std::int64_t> rows = chunk_lengths(images.size(), c.plan.vision_chunk);
  std::vector<Value> pixels = split(in.pixels, rows, 0), others;
  if (beside && in.*beside) others = split(in.*beside, rows, 0);
  std::vector<VisionChunk<Inputs>> r;
  for (Sequences& part : chunk_sequences(s, images, c.plan.vision_chunk)) {
    const std::size_t i = r.size();
    r.push_back({in, std::move(part)});
    r.back().inputs.pixels = std::move(pixels[i]);
    if (!others.empty()) r.back().inputs.*beside = std::move(others[i]);
  }
  return r;
}

/// One call of several that run the tower: each uses the same parameters, whose gradients are summed up over all calls.
class ChunkRun {
 public:
  /// Throws Error where the copies of the weights that autocast keeps, which all calls share, meet checkpointed layers.
  ChunkRun(Context& c, std::size_t at, std::size_t calls)
      : b_(c.b), before_(c.b.shared.before), after_(c.b.shared.after), copy_(c.b.copy_layers) {
    b_.shared.before = at;
    b_.shared.after = calls - at - 1;
    if (!b_.grad_enabled() || !b_.autocast.enabled || calls < 2) return;
    const bool trained = c.input_gradients || (c.plan.lora.rank > 0 ? c.plan.lora.vision : c.plan.trainable.vision);
    if (trained && b_.vision_checkpointing != Builder::Checkpoint::off && c.plan.vision_chunk == 0)
      throw Error("plan.video",
                  "pictures beside a video: with plan.amp, two calls of a checkpointed tower that is trained are not "
                  "modelled",
                  "leave one of plan.images, plan.amp and plan.checkpointing out, or freeze the tower");
    if (trained && b_.vision_checkpointing != Builder::Checkpoint::off)
      throw Error("plan.vision_chunk", "with plan.amp, a checkpointed tower that is trained is not modelled in chunks",
                  "leave one of plan.vision_chunk, plan.amp and plan.checkpointing out, or freeze the tower");
    b_.copy_layers = false;  // what the first call casts, the others read: their layers are not alike
  }
  ~ChunkRun() {
    b_.shared.before = before_;
    b_.shared.after = after_;
    b_.copy_layers = copy_;
  }
  ChunkRun(const ChunkRun&) = delete;
  ChunkRun& operator=(const ChunkRun&) = delete;

 private:
  Builder& b_;
  std::size_t before_, after_;
  bool copy_;
};

/// Calls of the tower on the pictures of a batch, which `s.images` are rows of.
inline std::size_t image_calls(const Context& c, const Sequences& s) {
  if (s.images.empty()) return 0;
  return c.plan.vision_chunk == 0 ? 1 : chunk_lengths(s.images.size(), c.plan.vision_chunk).size();
}
/// The call on its videos comes behind them.
inline std::size_t video_calls(const Sequences& s) { return s.videos.empty() ? 0 : 1; }
inline ChunkRun video_call(Context& c, const Sequences& s) { return {c, image_calls(c, s), image_calls(c, s) + 1}; }

/// Calls `run` on each chunk, with `later` calls of the tower behind them. Features of all images come back as one
/// tensor, those of each image as one list.
template <class Chunk, class Run>
auto in_chunks(Context& c, const std::vector<Chunk>& chunks, Run&& run, std::size_t later = 0) {
  using Result = decltype(run(chunks.front()));
  std::vector<Value> all;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const ChunkRun one(c, i, chunks.size() + later);
    Result r = run(chunks[i]);
    if constexpr (std::is_same_v<Result, Value>)
      all.push_back(std::move(r));
    else
      std::move(r.begin(), r.end(), std::back_inserter(all));
  }
  if constexpr (std::is_same_v<Result, Value>)
    return eager::cat(all, 0);
  else
    return all;
}

/// image_features(c, model, inputs, sequences) of the whole batch, or in chunks as vision_chunks(c, inputs, sequences)
/// cuts it: what a model's forward gets of get_image_features.
template <class Model, class Inputs>
auto batch_features(Context& c, const Model& m, const Inputs& in, const Sequences& s) {
  if (c.plan.vision_chunk == 0) {
    const ChunkRun all(c, 0, 1 + video_calls(s));
    return image_features(c, m, in, s);
  }
  return in_chunks(
      c, vision_chunks(c, in, s),
      [&](const auto& chunk) { return image_features(c, m, chunk.inputs, chunk.sequences); }, video_calls(s));
}

}  // namespace vlmest
