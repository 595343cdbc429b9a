// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include <vlmest/nn/audio/layout.hpp>
#include <vlmest/nn/context.hpp>
#include <vlmest/nn/image_processor/image.hpp>

namespace vlmest {

/// What one batch is made of, after the processor's rules.
struct Sequences {
  std::int64_t batch = 1;
  std::int64_t text = 0;              ///< text tokens of a sequence
  std::int64_t markers = 0;           ///< those that the processor writes around images and frames; of the longest
  std::int64_t image_tokens = 0;      ///< positions of a sequence that receive image features; of the longest
  std::int64_t video_tokens = 0;      ///< those that receive features of a video
  std::int64_t audio_tokens = 0;      ///< those that receive features of its clips
  std::int64_t seq = 0;               ///< LLM tokens of a sequence; of the longest, to which the others are padded
  std::int64_t target = 0;            ///< tokens that the decoder of an encoder-decoder model is trained on
  std::int64_t instruction = 0;       ///< tokens of the text as what makes image features reads it, of each sequence
  ImageSize image;                    ///< pixels of each image, before any resize
  std::vector<ImageLayout> images;    ///< of the whole batch, sequence by sequence
  std::vector<ImageLayout> videos;    ///< the same of videos whose pixels are an input of their own
  std::optional<ImageLayout> video;   ///< each sequence's, whatever its pixels are
  std::vector<AudioLayout> audios;    ///< clips of the whole batch, sequence by sequence
  std::vector<std::int64_t> padding;  ///< positions of each sequence that hold nothing; empty where none does

  /// Positions of a sequence that text cannot have.
  std::int64_t visual_tokens() const { return image_tokens + video_tokens + audio_tokens + markers; }
  bool padded() const { return !padding.empty(); }
  /// Positions of sequence `b` that hold a token.
  std::int64_t length(std::int64_t b) const { return padded() ? seq - padding[static_cast<std::size_t>(b)] : seq; }
};

/// The inputs that every model takes: token ids and mask, int64[B, S].
struct TextInputs {
  Value ids;
  Value mask;
};

inline TextInputs make_text_inputs(Context& c, std::int64_t batch, std::int64_t tokens, std::int64_t mask_tokens) {
  TextInputs r;
  r.ids = c.b.existing("input_ids", Role::input, DType::int64, {batch, tokens});
  r.mask = c.b.existing("attention_mask", Role::input, DType::int64, {batch, mask_tokens});
  return r;
}

/// hidden[:, -keep:, :] of the last positions, or all of them.
inline Value kept_positions(const Value& hidden, Logits logits) {
  const std::int64_t n = hidden.size(1);
  return logits == Logits::all ? hidden : eager::slice(hidden, 1, n - 1, n);
}

}  // namespace vlmest
