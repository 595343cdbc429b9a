// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <vlmest/diagnose/evidence/cause.hpp>
#include <vlmest/tensor/described_tensor.hpp>

namespace vlmest::diagnose {

/// What a run may have had more of than its settings say.
enum class Unknown : std::uint8_t { text_tokens, batch, images, image_side };

inline constexpr std::array<std::string_view, 4> unknowns{"text tokens of a sequence", "sequences",
                                                          "images of a sequence", "pixels of an image"};
constexpr std::string_view name(Unknown u) { return unknowns[static_cast<std::size_t>(u)]; }

/// "With 86,600 tokens a sequence the logits would have this size."
struct Solution {
  Unknown unknown = Unknown::text_tokens;
  std::int64_t value = 0;  ///< the setting: tokens, sequences, images; of image_side the height in pixels
  std::int64_t width = 0;  ///< of image_side
  Cause cause = Cause::unknown;
  DescribedTensor tensor;    ///< as it is with that value
  std::int64_t seq = 0;      ///< tokens of a sequence with that value
  std::int64_t patches = 0;  ///< of the vision tower, all images of a sequence
  bool exact = false;        ///< its size is one that the message allows; else it is the first that is larger
  std::string assuming;      ///< a flag that has to change as well; empty: none
};

}  // namespace vlmest::diagnose
