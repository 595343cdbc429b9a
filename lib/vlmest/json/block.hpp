// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include <vlmest/json/families.hpp>
#include <vlmest/json/known_keys.hpp>
#include <vlmest/nn/vlm.hpp>

/// "blocks" of a description: what is added to the assembly, and where.
namespace vlmest::json {

inline constexpr std::int64_t widest = 1 << 20;

/// "vision_tower", "vision_tower.layers.N" or "projector".
BlockPoint read_point(const Reader& r);

inline Grid read_grid(const Reader& r, const char* key) {
  const auto [rows, cols] = pair_required(r, key, 4096);
  return {rows, cols};
}
inline bool read_flat(const Reader& r) { return r.integer("dims", 2, 1, 2) == 1; }

/// What one type of block reads beyond "type", "after", "norm" and "residual".
struct ReadBlock {
  BlockOp op;
  std::int64_t width = 0;  ///< channels that come in, where the block knows them
};

ReadBlock read_op(const Reader& r, const std::string& type);

inline constexpr std::array<std::string_view, 7> block_types{"spectral_filter",
                                                             "spectral_crop",
                                                             "linear",
                                                             "mlp",
                                                             "attention",
                                                             name(NormBlock::Kind::layer_norm),
                                                             name(NormBlock::Kind::rms_norm)};

BlockConfig read_block(const Reader& r);

/// The folders of families whose rules count resampled features.
std::string resampled_families(FamilyRows rows);

/// Crops change how many features a tile has, and with it what the language model sees. Throws Error where a crop does
/// not take up the grid that reaches it, and for token rules whose projector regroups the grid.
void resample_tokens(Vlm& vlm, const std::string& where, FamilyRows rows = families());

void read_blocks(const Reader& document, Vlm& vlm, FamilyRows rows = families());

}  // namespace vlmest::json

#ifndef VLMEST_COMPILED
#include <vlmest/json/impl/block.hpp>
#endif
