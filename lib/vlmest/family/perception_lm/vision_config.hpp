// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <vlmest/unit/count.hpp>

namespace vlmest {

/// What timm makes of the states of a picture (global_pool): nothing else, or one vector, which is the class token,
/// means, largest values, half the sum of both, or what a learned query attends to.
enum class EvaPool : std::uint8_t { states, token, mean, max, mean_and_max, attention };

/// A tower that timm builds for Perception Encoders (timm 1.0 models/eva.py, Eva with attn_type "rope"), as arguments
/// of create_model leave it.
struct EvaVision {
  std::int64_t hidden = 1024;
  std::int64_t intermediate = 4096;  ///< int(embed_dim * mlp_ratio)
  std::int64_t layers = 24;
  std::int64_t heads = 16;
  std::int64_t image_size = 448;
  std::int64_t patch_size = 14;
  std::int64_t channels = 3;
  bool class_token = true;
  bool positions = true;       ///< use_abs_pos_emb: a table that is added to the patches
  bool class_position = true;  ///< it has an entry for the class token (no_embed_class is false)
  bool rotates = true;         ///< use_rot_pos_emb: queries and keys turn by row and column
  bool qkv_bias = true;
  bool pre_norm = true;    ///< ahead of the layers; the patch convolution has a bias without
  bool post_norm = false;  ///< behind them
  bool scaled = true;      ///< init_values is a number: branches are scaled by channel
  EvaPool pool = EvaPool::states;
  bool pools = true;       ///< do_pooling of the wrapper: whether the forward runs what follows the layers
  bool pool_norm = false;  ///< fc_norm, behind the pool
  std::int64_t pool_heads = 16;
  std::int64_t pool_intermediate = 4096;
  bool position_dropout = false;  ///< in training mode, as those that follow
  bool projection_dropout = false;
  bool attention_dropout = false;
  bool pool_dropout = false;  ///< drop_rate
  bool drop_path = false;     ///< of every layer but the first

  std::int64_t side() const { return image_size / patch_size; }
  std::int64_t patches() const { return checked_mul(side(), side()); }
  std::int64_t prefix() const { return class_token ? 1 : 0; }
  std::int64_t tokens() const { return patches() + prefix(); }
  std::int64_t head_dim() const { return hidden / heads; }
};

}  // namespace vlmest
