// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/audio/qwen3_omni.hpp>
#include <vlmest/nn/mrope.hpp>
#include <vlmest/nn/sequence.hpp>

/// Positions of three axes as the omni models find them (modeling_qwen2_5_omni.py, get_rope_index): the ranges are made
/// on the host, of counts and grids that are asked for on the device, one number at a time.
namespace vlmest {

/// Without pictures and videos: positions counted by the mask, int64[3, B, S] (Qwen3-Omni: fp32), the same on all axes.
inline Value counted_positions(const Value& mask, Value& deltas, DType t) {
  using namespace eager;
  Value positions = sub_scalar(cumsum(t == DType::int64 ? mask : to(mask, t), t));
  {
    Value hidden = compare_scalar("eq.Scalar", mask);
    positions = masked_fill_(std::move(positions), std::move(hidden));
  }
  const Value wide = expand(unsqueeze(positions, 0), {3, positions.size(0), positions.size(1)});
  const auto largest = [&](const Value& of, int dim, bool keep) {
    Builder& b = of.builder();
    const Shape s = reduced(of.shape(), dim, keep);
    const std::array<TensorId, 2> outs{b.result(t, s, "max"), b.result(DType::int64, s, "max_indices")};
    const std::array<TensorId, 1> ins{of.id()};
    b.emit("max.dim",
           MemoryOp{.read = data_bytes(of),
                    .written = size_of(numel(s), t) + size_of(numel(s), DType::int64),
                    .dtype = t,
                    .access = Access::reduction,
                    .elements = numel(of.shape())},
           ins, outs);
    Value values(b, outs[0]);
    const Value places(b, outs[1]);
    return values;
  };
  const Value most = largest(largest(wide, 0, false), -1, true);
  Value next = add_scalar(most);
  Value tokens = sum(mask, -1, true);
  deltas = sub(std::move(next), std::move(tokens));
  return wide;
}

/// How a class finds its positions.
struct OmniAxes {
  DType type = DType::int64;  ///< of positions: Qwen3-Omni counts in fp32
  /// Qwen2.5-Omni: where the search for the next picture or clip goes on stays a number on the device. Else the host
  /// has it, and looks for what begins a picture instead.
  bool begins_on_device = false;
};

/// Variables of the loop over sequences, which live until they are bound again: where pictures begin and what stands
/// behind that; pictures, videos and clips that are left; all of them; where the search is; text ahead; tokens.
struct OmniSearch {
  Value starts, kinds, images, videos, audios, all, at, text, picture_tokens, clip_tokens;
};
inline void left_over(const Value& count) { eager::item(eager::compare_scalar("gt.Scalar", count)); }

/// get_llm_pos_ids_for_vision of a picture: the host asks for rows and columns, for each range and each expansion.
inline void ask_grid(const Value& row) {
  using namespace eager;
  item(select(row, 0, 0));
  const Value rows = floor_divide(select(row, 0, 1)), cols = floor_divide(select(row, 0, 2));
  item(rows);
  item(cols);
  item(cols);
  item(rows);
  item(pointwise("mul.Tensor", DType::int64, rows, cols));
}

/// Positions of the text ahead of a picture or a clip, where the host does not know where it begins.
inline void text_ahead(OmniSearch& o) {
  using namespace eager;
  o.text = sub_scalar(pointwise("rsub.Scalar", DType::int64, o.at));
  item(compare_scalar("ne.Scalar", o.text));
}
/// st += text_len + bos_len + tokens + eos_len.
inline void go_on(OmniSearch& o, const Value& tokens, const OmniAxes& a) {
  using namespace eager;
  Value sum = o.text ? add(add_scalar(o.text), tokens) : add_scalar(tokens);
  sum = add_scalar(std::move(sum));
  if (!a.begins_on_device) {
    item(std::move(sum));
    return;
  }
  o.at = o.at ? pointwise_(accumulate, std::move(o.at), std::move(sum)) : add_scalar(std::move(sum));
}

/// The search for the next one: which kinds are left, and from where on.
inline void look_for(const OmniSearch& o, bool has_images, bool has_audio, bool images_left, bool audio_left,
                     const OmniAxes& a) {
  using namespace eager;
  if (has_images && !a.begins_on_device) left_over(o.videos);
  const auto kind = [&](const Value& count, bool left) {
    left_over(count);
    if (left && a.begins_on_device && o.at) item(o.at);
  };
  if (has_images) kind(o.images, images_left);
  if (has_audio) kind(o.audios, audio_left);
}

/// Positions of sequence `b` with `images` pictures and `clips` clips, pictures first, nothing between them.
inline void search_sequence(OmniSearch& o, const Value& ids, const Value& grid, const Value& lengths, std::int64_t b,
                            std::int64_t images, std::int64_t clips, const OmniAxes& a) {
  using namespace eager;
  o.starts = squeeze(nonzero(compare_scalar("eq.Scalar", ids), images), 1);
  {
    Value next = add_scalar(o.starts);
    o.kinds = take_rows(ids, std::move(next));
  }
  {
    const auto count = [](const Value& of) { return sum_all(compare_scalar("eq.Scalar", of)); };
    Value audio_count = count(ids);
    Value image_count = count(o.kinds);
    Value video_count = count(o.kinds);
    to_host(ids);
    o.at.reset();
    o.images = std::move(image_count);
    o.videos = std::move(video_count);
    o.audios = std::move(audio_count);
  }
  {
    Value pixels = pointwise("add.Tensor", DType::int64, o.images, o.videos);
    o.all = pointwise("add.Tensor", DType::int64, std::move(pixels), o.audios);
  }
  item(o.all);
  std::int64_t images_left = images, clips_left = clips;
  for (std::int64_t i = 0; i < images + clips; ++i) {
    look_for(o, images > 0, clips > 0, images_left > 0, clips_left > 0, a);
    if (a.begins_on_device && o.at)
      text_ahead(o);
    else
      o.text.reset();
    if (images_left > 0) {
      if (!a.begins_on_device) item(compare_scalar("eq.Scalar", select(ids, 0, 0)));
      const Value row = select(grid, 0, b * images + images - images_left--);
      ask_grid(row);
      o.picture_tokens = floor_divide(reduce("prod", DType::int64, Shape{}, row));
      go_on(o, o.picture_tokens, a);
      o.images = pointwise_("sub_.Tensor", std::move(o.images));
    } else {
      const Value frames = select(lengths, 0, b * clips + clips - clips_left--);
      o.clip_tokens = a.begins_on_device ? halved(halved(frames)) : halving_lengths(frames);
      item(o.clip_tokens);
      go_on(o, o.clip_tokens, a);
      o.audios = pointwise_("sub_.Tensor", std::move(o.audios));
    }
  }
  if (!a.begins_on_device) return;
  item(compare_scalar("lt.Scalar", o.at));
  o.text = pointwise("rsub.Scalar", DType::int64, o.at);
  item(o.text);
}

/// A tensor that the host made, on the device.
inline Value copied_over(Builder& b, const Shape& s, DType t) {
  const TensorId r = b.result(t, s, "_to_copy");
  b.emit("_to_copy", HostSync{size_of(numel(s), t)}, {}, std::array<TensorId, 1>{r});
  return Value(b, r);
}

/// get_rope_index of a prompt with pictures, and where there are any with clips, whose numbers of frames are
/// `lengths`.
inline Value searched_positions(Context& c, const TextInputs& text, const Value& grid, const Value& lengths,
                                const Sequences& s, Value& deltas, const OmniAxes& a) {
  using namespace eager;
  const Value shown = compare_scalar("eq.Scalar", text.mask);
  Value positions = fill(c.b, a.begins_on_device ? "ones" : "zeros", {3, s.batch, text.ids.size(1)}, a.type);
  const auto each = [&](std::size_t n) { return static_cast<std::int64_t>(n) / s.batch; };
  Value ids;
  OmniSearch search;
  for (std::int64_t b = 0; b < s.batch; ++b) {
    const std::int64_t tokens = s.length(b);
    ids.reset();
    ids = masked_index(select(text.ids, 0, b), select(shown, 0, b), tokens);
    search_sequence(search, ids, grid, lengths, b, each(s.images.size()), each(s.audios.size()), a);
    Value found = copied_over(c.b, {3, tokens}, a.type);
    Value mask = select(shown, 0, b);
    if (!a.begins_on_device) mask = compare_scalar("eq.Scalar", mask);
    masked_index_put_(select(positions, 1, b), std::move(mask), std::move(found), tokens);
  }
  deltas = a.begins_on_device ? copied_over(c.b, {s.batch, 1}, DType::int64)
                              : unsqueeze(from_host(c.b, {s.batch}, a.type), 1);
  return positions;
}

/// compute_3d_position_ids over a fresh cache.
inline Value omni_positions(Context& c, const TextInputs& text, const Value& grid, const Value& lengths,
                            const Sequences& s, Value& deltas, const OmniAxes& a) {
  return grid ? searched_positions(c, text, grid, lengths, s, deltas, a) : counted_positions(text.mask, deltas, a.type);
}

}  // namespace vlmest
