// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include <vlmest/nn/activation.hpp>
#include <vlmest/nn/spectral.hpp>
#include <vlmest/unit/words.hpp>

/// What a description can add to an assembled model.
namespace vlmest {

/// Where a block stands.
struct BlockPoint {
  enum class At : std::uint8_t {
    tower_layer,  ///< inside the vision tower, after layer `layer`; a class token passes spectral blocks by
    tower,        ///< after the vision tower, on the features that go on to the projector
    projector,    ///< after the projector, on features as wide as the language model, before tiles are joined
  } at = At::tower;
  std::int64_t layer = 0;
  constexpr bool operator==(const BlockPoint&) const = default;
};

struct LinearBlock {
  std::int64_t in = 0, out = 0;
  bool bias = true;
};
struct MlpBlock {
  std::int64_t width = 0, inner = 0;
  Activation activation = Activation::gelu;
  bool bias = true;
};
struct NormBlock {
  enum class Kind : std::uint8_t { layer_norm, rms_norm } kind = Kind::layer_norm;
  std::int64_t width = 0;
};
template <>
inline constexpr std::array<std::string_view, 2> words_of<NormBlock::Kind>{"layer_norm", "rms_norm"};
/// Self-attention among the tokens of a tile, without mask or positions.
struct AttentionBlock {
  std::int64_t width = 0, heads = 1;
  bool bias = true;
};

using BlockOp = std::variant<SpectralFilter, SpectralCrop, LinearBlock, MlpBlock, NormBlock, AttentionBlock>;

/// One block: x -> [x +] op([norm(]x[)]).
struct BlockConfig {
  BlockPoint after;
  BlockOp op;
  std::optional<NormBlock> norm;  ///< what op sees is normed first
  bool residual = false;          ///< the block's input is added to its result
};

}  // namespace vlmest
