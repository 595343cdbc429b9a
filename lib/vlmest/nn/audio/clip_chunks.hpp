// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include <vlmest/nn/audio/layout.hpp>
#include <vlmest/nn/context.hpp>

/// Clips cut into chunks of frames, which is what the convolutions of Qwen's omni models see (transformers 5.17,
/// modeling_qwen2_5_omni.py and modeling_qwen3_omni_moe.py; functions of the same names).
namespace vlmest {

/// Frames of every chunk of a clip: as many as go into 2 `window`, the last one shorter.
inline std::vector<std::int64_t> chunk_frames(std::span<const AudioLayout> clips, std::int64_t window) {
  std::vector<std::int64_t> r;
  for (const AudioLayout& l : clips)
    for (std::int64_t left = l.frames; left > 0; left -= 2 * window) r.push_back(std::min(left, 2 * window));
  return r;
}

/// Chunks, one below the other: features[chunks, mels, longest], a view, and their lengths int64[chunks].
struct ClipChunks {
  Value features, lengths;
  std::vector<std::int64_t> frames;
};

/// (x - 1) // 2 + 1 on the device, and by the same ops (x - 2) // 2 + 1.
inline Value halved(Value x) {
  using namespace eager;
  return add_scalar(floor_divide(sub_scalar(std::move(x))));
}

/// torch.nn.functional.pad(x, (1, 0)) of a vector.
inline Value behind_one(Value x) { return eager::pad(std::move(x), -1, 1, 0); }

/// torch.repeat_interleave(x, counts).
inline Value repeated(const Value& x, const Value& counts, std::int64_t total) {
  using namespace eager;
  Value at = repeat_interleave_index(counts, total);
  return index_select(x, 0, std::move(at));
}

/// torch.nn.utils.rnn.pad_sequence(parts, batch_first=True): a filled tensor, and a copy of each part into it
/// (aten/src/ATen/native/PackedSequence.cpp, pad_sequence).
inline Value pad_sequence(const std::vector<Value>& parts, std::int64_t longest) {
  using namespace eager;
  Builder& b = parts.front().builder();
  Value all =
      fill(b, "full", {static_cast<std::int64_t>(parts.size()), longest, parts.front().size(1)}, parts.front().dtype());
  for (std::size_t i = 0; i < parts.size(); ++i)
    copy_over(slice(select(all, 0, static_cast<std::int64_t>(i)), 0, 0, parts[i].size(0)), parts[i]);
  return all;
}

/// chunk_and_pad_features: features[mels, frames of all clips], a view of rows, and lengths int64[clips].
inline ClipChunks chunk_and_pad(const Value& features, const Value& lengths, std::span<const AudioLayout> clips,
                                std::int64_t window) {
  using namespace eager;
  ClipChunks r{.frames = chunk_frames(clips, window)};
  const auto n = static_cast<std::int64_t>(r.frames.size());
  Builder& b = features.builder();
  Value share = pointwise("div.Tensor", DType::fp32, lengths);
  share = pointwise("ceil", DType::fp32, std::move(share));
  const Value counts = to(std::move(share), DType::int64);
  {
    const Value total = sum_all(counts);
    item(total);
    r.lengths = fill(b, "full", {n}, DType::int64);
  }
  const Value tails = slice(cumsum(behind_one(counts), DType::int64), 0, 1, lengths.size(0) + 1);
  {
    Value rest = pointwise("remainder.Scalar", DType::int64, lengths);
    const MemoryOp op{.read = data_bytes(rest) * 2, .written = data_bytes(rest), .dtype = DType::int64};
    Value at = tails;
    r.lengths = emit_inplace(b, "index_put_", op, {}, r.lengths, at, rest);
  }
  {
    Value empty = compare_scalar("eq.Scalar", r.lengths);
    Value whole = fill(b, "scalar_tensor", Shape{}, DType::int64);
    r.lengths = where(std::move(empty), std::move(whole), r.lengths);
  }
  to_host(r.lengths);
  const std::vector<Value> parts = split(transpose(features, 0, 1), r.frames, 0);
  r.features = transpose(pad_sequence(parts, *std::max_element(r.frames.begin(), r.frames.end())), 1, 2);
  return r;
}

/// mask.flatten().nonzero().squeeze(-1) of the states that are no padding, given their numbers int64[chunks].
inline Value valid_indices(const Value& states, std::int64_t longest, std::int64_t total) {
  using namespace eager;
  Builder& b = states.builder();
  item(reduce("max", DType::int64, Shape{}, states));
  Value places = arange(b, longest);
  const Value mask = compare("lt.Tensor", std::move(places), unsqueeze(states, 1));
  return squeeze(nonzero(view(mask, {-1}), total), -1);
}

}  // namespace vlmest
