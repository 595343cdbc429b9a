// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include <vlmest/json/known_keys.hpp>
#include <vlmest/nn/image_processor/image.hpp>

namespace vlmest::json {

/// "image" of a description while a rule reads it: each word below sets one setting where the object has its key, and
/// notes that the key is known.
class DescriptionImage {
 public:
  explicit DescriptionImage(const Reader& r) : r_(r) {}

  void number(const char* key, std::int64_t& field, std::int64_t low = 1, std::int64_t high = std::int64_t{1} << 40) {
    keys_.push_back(key);
    field = r_.integer(key, field, low, high);
  }
  void number(const char* key, double& field) {
    keys_.push_back(key);
    field = r_.number(key, field);
  }
  void flag(const char* key, bool& field) {
    keys_.push_back(key);
    field = r_.boolean(key, field);
  }
  void budget(image_processor::PixelBudget& b) {
    number("min_pixels", b.min_pixels);
    number("max_pixels", b.max_pixels);
    if (b.min_pixels > b.max_pixels) r_.fail("min_pixels", "larger than max_pixels", "exchange them");
  }
  void longest_edge(std::int64_t& edge) { number("longest_edge", edge, 1, image_processor::max_side); }
  void min_tiles(std::int64_t& n) { number("min_tiles", n, 1, image_processor::max_tile_count); }
  void max_tiles(std::int64_t& n) { number("max_tiles", n, 1, image_processor::max_tile_count); }
  void tiling(image_processor::Tiling& tiling) {
    static constexpr std::array<std::string_view, 3> words{"automatic", "always", "never"};
    keys_.push_back("tiling");
    if (!r_.given("tiling")) return;
    const std::size_t i = one_of(r_, "tiling", r_.string("tiling", ""), words);
    tiling = i == 0   ? image_processor::Tiling::automatic
             : i == 1 ? image_processor::Tiling::always
                      : image_processor::Tiling::never;
  }

  const std::vector<std::string_view>& keys() const { return keys_; }

 private:
  Reader r_;
  std::vector<std::string_view> keys_;
};

}  // namespace vlmest::json
