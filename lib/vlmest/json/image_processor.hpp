// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/known_keys.hpp>
#include <vlmest/nn/vlm.hpp>

/// "image" of a description: what a checkpoint's image processor is set to, which its config.json does not say.
namespace vlmest::json {

inline void read_tiling(const Reader& r, tokens::Tiling& tiling) {
  static constexpr std::array<std::string_view, 3> words{"automatic", "always", "never"};
  if (!r.given("tiling")) return;
  const std::size_t i = one_of(r, "tiling", r.string("tiling", ""), words);
  tiling = i == 0 ? tokens::Tiling::automatic : i == 1 ? tokens::Tiling::always : tokens::Tiling::never;
}

/// Sets the fields that a family's rule has; each rule knows its own keys and no others. "native_size" is the size that
/// is meant where none is given.
template <class Rule>
void read_image(const Reader& r, Rule& rule) {
  std::vector<std::string_view> keys{"native_size"};
  auto number = [&](const char* key, std::int64_t& field, std::int64_t low = 1,
                    std::int64_t high = std::int64_t{1} << 40) {
    keys.push_back(key);
    field = r.integer(key, field, low, high);
  };
  if constexpr (requires { rule.budget; }) {
    number("min_pixels", rule.budget.min_pixels);
    number("max_pixels", rule.budget.max_pixels);
    if (rule.budget.min_pixels > rule.budget.max_pixels)
      r.fail("min_pixels", "larger than max_pixels", "exchange them");
  }
  if constexpr (requires { rule.longest_edge; }) number("longest_edge", rule.longest_edge, 1, tokens::max_side);
  if constexpr (requires { rule.min_tiles; }) number("min_tiles", rule.min_tiles, 1, tokens::max_tile_count);
  if constexpr (requires { rule.max_tiles; } && !std::is_same_v<Rule, tokens::Mllama>)
    number("max_tiles", rule.max_tiles, 1, tokens::max_tile_count);
  if constexpr (requires { rule.tiling; }) {
    keys.push_back("tiling");
    read_tiling(r, rule.tiling);
  }
  if constexpr (requires { rule.tile_several; }) {
    keys.push_back("tile_several");
    rule.tile_several = r.boolean("tile_several", rule.tile_several);
  }
  if constexpr (requires { rule.soft_tokens; }) number("max_soft_tokens", rule.soft_tokens, 1, 1 << 16);
  if constexpr (requires { rule.extra_newline; }) number("extra_newline", rule.extra_newline, 0, 1);
  if constexpr (requires { rule.pan_and_scan; }) {
    keys.insert(keys.end(), {"pan_and_scan", "min_ratio"});
    rule.pan_and_scan = r.boolean("pan_and_scan", rule.pan_and_scan);
    rule.min_ratio = r.number("min_ratio", rule.min_ratio);
    number("min_crop_size", rule.min_crop_size, 1, tokens::max_side);
    number("max_crops", rule.max_crops, 1, tokens::max_tile_count);
  }
  only_keys(r, keys);
}

void read_image(const Reader& document, Vlm& vlm);

/// The same, of the text of an "image" alone, as measured rows carry it; nothing where it is empty.
inline void set_image(const std::string& image, const std::string& where, Vlm& vlm) {
  if (image.empty()) return;
  const nlohmann::json document = {{"image", nlohmann::json::parse(image)}};
  read_image(Reader(document, where), vlm);
}

}  // namespace vlmest::json

#ifndef VLMEST_COMPILED
#include <vlmest/json/impl/image_processor.hpp>
#endif
