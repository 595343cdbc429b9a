// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <vector>

#include <vlmest/nn/rope.hpp>
#include <vlmest/nn/sequence.hpp>
#include <vlmest/nn/vision/packed_patches.hpp>

/// Multimodal rotary positions (M-RoPE; Qwen2-VL, arXiv:2409.12191, section 2.1): time, row and column of every token,
/// int64[3, B, S]. Text counts on in all three; an image's tokens get their place in its merged grid.
namespace vlmest {

/// What a prompt with images brings besides its ids and mask.
struct MropeInputs {
  Value token_types;  ///< mm_token_type_ids, int32[B, S]: 0 text, 1 image, 2 video
  Value grid;         ///< image_grid_thw, int64[N, 3]
  Value video_grid;   ///< video_grid_thw, the same
  Value seconds;      ///< second_per_grid_ts, fp32[videos], of models whose positions in time depend on it
  Value deltas;       ///< rope_deltas of the model's last call, int64[B, 1]; replaced by this call's
};

/// A stretch of one kind of token in a sequence.
struct ModalityRun {
  std::int64_t tokens = 0;
  const ImageLayout* image = nullptr;  ///< none: text
  std::int64_t frames = 1;             ///< grids in time
};

/// Sequence `b` of the batch: one text token ahead of each image and video as long as there are any, of a video with
/// timestamps ahead of each grid, the rest behind the last one. Where exactly text stands does not change what runs.
inline std::vector<ModalityRun> modality_runs(const Sequences& s, std::int64_t b) {
  std::int64_t text = s.length(b);
  std::vector<ModalityRun> visual, r;
  for (const auto* all : {&s.images, &s.videos}) {
    const std::size_t each = all->size() / static_cast<std::size_t>(s.batch),
                      first = each * static_cast<std::size_t>(b);
    for (std::size_t i = first; i < first + each; ++i) {
      const ImageLayout& l = (*all)[i];
      const std::int64_t runs = l.timestamps ? l.frames : 1;
      visual.insert(visual.end(), static_cast<std::size_t>(runs), {l.llm_tokens / runs, &l, l.frames / runs});
      text -= l.llm_tokens;
    }
  }
  if (text < 0)
    throw Error("sequence", "its images need more than " + std::to_string(s.seq) + " tokens", "raise plan.seq");
  for (const ModalityRun& v : visual) {
    if (text > 0) {
      r.push_back({1, nullptr});
      --text;
    }
    r.push_back(v);
  }
  if (text > 0) r.push_back({text, nullptr});
  return r;
}

/// modeling_qwen2_vl.py, Qwen2VLModel.get_vision_position_ids: int64[3, frames * rows * cols] of one image or video.
/// `start` is empty while the position is still a Python number.
inline Value grid_positions(Context& c, const Value& grid_row, Grid merged, std::int64_t frames, const Value& start) {
  using namespace eager;
  for (int i = 0; i < 3; ++i) item(select(grid_row, 0, i));
  auto shifted = [&](std::int64_t n) {
    Value x = arange(c.b, n);
    return start ? add(std::move(x), start) : add_scalar(std::move(x));
  };
  Value time = mul_scalar(arange(c.b, frames));
  Value rows = shifted(merged.rows);
  Value cols = shifted(merged.cols);
  const Shape grid{frames, merged.rows, merged.cols};
  std::array<Value, 3> axes{expand(view(time, {frames, 1, 1}), grid), expand(view(rows, {1, merged.rows, 1}), grid),
                            expand(view(cols, {1, 1, merged.cols}), grid)};
  Value ids = reshape(stack(axes, 0), {3, -1});
  Value first = start ? add_(select(ids, 0, 0), start) : pointwise_(accumulate, select(ids, 0, 0));
  // ids[0] += start stores the result onto itself: no kernel runs.
  Value self = select(ids, 0, 0);
  emit_inplace(c.b, "copy_", MemoryOp{.dtype = DType::int64, .kernels = 0}, {}, self, first);
  return ids;
}

/// modeling_qwen3_vl.py and modeling_glm4v.py, get_rope_index, first lines: a row for each grid of a video with
/// timestamps, of one frame each.
inline Value split_video_grid(const Value& grid, std::int64_t frames) {
  using namespace eager;
  Value index = repeat_interleave_index(select(grid, 1, 0), frames);
  Value rows = index_select(grid, 0, std::move(index));
  fill_(select(rows, 1, 0));
  return rows;
}

/// modeling_qwen2_vl.py, Qwen2VLModel.get_rope_index: positions int64[3, B, S] of a prompt with images or videos;
/// leaves the new deltas in `in`. The running position is a Python number until the first image and a tensor after it.
/// `temporal` grids of a video have one position in time (modeling_ernie4_5_vl_moe.py, get_rope_index).
inline Value rope_index(Context& c, const TextInputs& text, MropeInputs& in, const Sequences& s, std::int64_t merge,
                        std::int64_t temporal = 1) {
  using namespace eager;
  Value video_grid = in.video_grid;
  if (video_grid && s.videos.front().timestamps) video_grid = split_video_grid(video_grid, total_frames(s.videos));
  Value positions = fill(c.b, "zeros", {3, s.batch, text.ids.size(1)}, DType::int64);
  std::vector<Value> deltas, parts;
  Value ids, types, image_positions, all, at;  // variables of the loop: each lives until it is bound again
  std::int64_t image = 0, video = 0;
  for (std::int64_t b = 0; b < s.batch; ++b) {
    const std::int64_t tokens = s.length(b);
    auto attended = [&] { return to(select(text.mask, 0, b), DType::boolean); };
    ids = select(text.ids, 0, b);
    types = select(in.token_types, 0, b);
    ids = masked_index(ids, attended(), tokens);
    types = masked_index(types, attended(), tokens);
    to_host(types);
    at.reset();
    parts.clear();
    for (const auto& run : modality_runs(s, b)) {
      if (!run.image) {
        Value steps = expand(view(arange(c.b, run.tokens), {1, run.tokens}), {3, run.tokens});
        parts.push_back(at ? add(std::move(steps), at) : add_scalar(std::move(steps)));
        if (at) at = pointwise_(accumulate, std::move(at));
        continue;
      }
      const Grid patches = run.image->patches;
      const bool moves = run.image->sampled > 0;
      Value row = moves ? select(video_grid, 0, video++) : select(in.grid, 0, image++);
      if (moves && in.seconds) item(select(in.seconds, 0, video - 1));
      image_positions = grid_positions(c, row, {patches.rows / merge, patches.cols / merge},
                                       moves ? run.frames / temporal : run.frames, at);
      parts.push_back(image_positions);
      // max() of Python compares the two on the host.
      item(compare("gt.Tensor", select(row, 0, 2), select(row, 0, 1)));
      Value longer = floor_divide(select(row, 0, 1));
      at = at ? add_(std::move(at), std::move(longer)) : add_scalar(std::move(longer));
    }
    std::vector<Value> references = parts;
    all = cat(references, 1);
    Value mask = attended();
    masked_index_put_(select(positions, 1, b), std::move(mask), all, tokens);
    Value last = add_scalar(reduce("max", DType::int64, Shape{}, all));
    deltas.push_back(sub_scalar(std::move(last)));
  }
  Value fresh = from_host(c.b, {s.batch}, DType::int64);
  deltas.clear();
  in.deltas = unsqueeze(std::move(fresh), 1);
  return positions;
}

/// Positions that text models count where the caller gives none, the same in all axes: int64[axes, B, S].
inline Value text_positions_on(Context& c, std::int64_t axes, std::int64_t batch, std::int64_t tokens) {
  using namespace eager;
  Value p = arange(c.b, tokens);
  return expand(view(add_scalar(std::move(p)), {1, 1, tokens}), {axes, batch, tokens});
}
inline Value text_positions_3d(Context& c, std::int64_t batch, std::int64_t tokens) {
  return text_positions_on(c, 3, batch, tokens);
}

/// modeling_qwen2_vl.py, Qwen2VLRotaryEmbedding.forward: positions[3, B, S] -> cos, sin[B, S, head_dim] in the type
/// `as`; `deal` lays the frequencies [3, B, S, n] of the axes, of which HunYuan-VL has four, out over the channels, for
/// sines first.
template <class Deal>
CosSin mrope(Context& c, const Rope& r, const Value& positions, Deal&& deal, DType as) {
  using namespace eager;
  InScope in(c.b, r.scope);
  Value inv = unsqueeze(unsqueeze(unsqueeze(Value(c.b, r.inv_freq), 0), 0), 3);
  inv = expand(std::move(inv), {positions.size(0), positions.size(1), -1, 1});
  Value at = to(unsqueeze(positions, 2), DType::fp32);
  const Autocast off(c.b, std::nullopt);
  Value freqs = transpose(matmul(inv, at), 2, 3);
  Value cosine = mul_scalar(eager::cos(freqs));
  Value sine = mul_scalar(eager::sin(freqs));
  sine = deal(sine);
  cosine = deal(cosine);
  CosSin out;
  out.cos = to(cosine, as);
  out.sin = to(sine, as);
  return out;
}
/// In the activations' type.
template <class Deal>
CosSin mrope(Context& c, const Rope& r, const Value& positions, Deal&& deal) {
  return mrope(c, r, positions, deal, c.dtype());
}

/// Section i of the frequencies comes from axis i mod 3: freq[3, B, S, n] -> [B, S, n].
inline Value interleave_axes(Value arg, const std::vector<std::int64_t>& sections) {
  using namespace eager;
  Value freq = std::move(arg);
  std::vector<Value> parts = split(freq, sections, -1);
  for (std::size_t i = 0; i < parts.size(); ++i)
    parts[i] = select(std::move(parts[i]), 0, static_cast<std::int64_t>(i % 3));
  return cat(parts, -1);
}

}  // namespace vlmest
