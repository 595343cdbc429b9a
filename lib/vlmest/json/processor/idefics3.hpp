// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/processor/keys.hpp>
#include <vlmest/nn/tokens/idefics3.hpp>

namespace vlmest::json {

/// Idefics3 and SmolVLM. transformers 5.17 image_processing_idefics3.py and image_processing_smolvlm.py, which make the
/// same sizes; what the file leaves out is the class's own.
inline void read_image_keys(ProcessorKeys& k, tokens::Idefics3& rule) {
  k.must_be("do_resize", true);
  const ProcessorSize size = k.size("size"), tile = k.size("max_image_size");
  if (size.given() && !size.longest_edge) k.fail("size", "has no longest_edge", "give the pixels of the longer side");
  rule.longest_edge = size.longest_edge.value_or(4 * 364);
  if (const std::int64_t side = tile.longest_edge.value_or(364); side != rule.tile_size)
    k.differs("max_image_size", "tiles of " + std::to_string(side) + " pixels",
              "vision_config.image_size of config.json is " + std::to_string(rule.tile_size));
  rule.tiling = k.boolean("do_image_splitting", true) ? tokens::Tiling::automatic : tokens::Tiling::never;
  k.ignore({"video_sampling", "max_frames", "video_size"});  // of videos
}
inline void read_outer_keys(ProcessorKeys& k, tokens::Idefics3& rule) {
  k.same("image_seq_len", tokens::merged(tokens::square_patches(rule.tile_size, rule.patch_size), rule.merge).count(),
         "scale_factor");
}

}  // namespace vlmest::json
