// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <vlmest/nn/image_processor/image.hpp>

/// What image processors of transformers 5.17 let one lower, and how they are told: the words of which a rule's
/// lower() and limit_line() are made.
namespace vlmest {

/// Parts that a range is lowered by, from 15 / 16 to 1 / 16.
inline constexpr std::int64_t lever_steps = 16;

namespace image_processor {

/// A budget of pixels, in whole merged patches of what the picture has now, over `frames` copies of it.
template <class Rule>
std::vector<Rule> lower_budget(const Rule& r, const ImageLayout& now, std::int64_t frames = 1) {
  const std::int64_t side = r.patch_size * r.merge, cell = side * side;
  const std::int64_t cells = now.resized.height * now.resized.width / cell;
  std::vector<Rule> all;
  for (std::int64_t k = lever_steps - 1; k > 0; --k) {
    Rule less = r;
    less.budget.max_pixels = std::max<std::int64_t>(cells * k / lever_steps, 1) * cell * frames;
    less.budget.min_pixels = std::min(less.budget.min_pixels, less.budget.max_pixels);
    all.push_back(less);
  }
  return all;
}

/// The longer side, in whole cells.
template <class Rule>
std::vector<Rule> lower_edge(const Rule& r, const ImageLayout& now, std::int64_t cell) {
  const std::int64_t edge = std::max(now.resized.height, now.resized.width);
  std::vector<Rule> all;
  for (std::int64_t k = lever_steps - 1; k > 0; --k) {
    Rule less = r;
    less.longest_edge = std::max<std::int64_t>(edge * k / lever_steps / cell, 1) * cell;
    all.push_back(less);
  }
  return all;
}

template <class Rule>
std::vector<Rule> lower_tiles(const Rule& r, const ImageLayout& now) {
  std::vector<Rule> all;
  for (std::int64_t n = now.tile_grid.count() - 1; n > 0; --n) {
    Rule less = r;
    less.max_tiles = n;
    if constexpr (requires { less.min_tiles; }) less.min_tiles = std::min(less.min_tiles, n);
    all.push_back(less);
  }
  return all;
}

/// Any-resolution rules: the list without its largest canvases.
template <class Rule>
std::vector<Rule> lower_canvas(const Rule& r, const ImageLayout& now) {
  const auto area = [](ImageSize s) { return s.height * s.width; };
  std::vector<Rule> all;
  Rule less = r;
  for (std::int64_t most = area(now.resized); !less.pinpoints.empty();) {
    std::erase_if(less.pinpoints, [&](ImageSize s) { return area(s) >= most; });
    if (less.pinpoints.empty()) break;
    all.push_back(less);
    most = 0;
    for (const auto s : less.pinpoints) most = std::max(most, area(s));
  }
  return all;
}

inline std::string processor_line(const std::string& arguments) {
  return "processor = AutoProcessor.from_pretrained(MODEL, " + arguments + ")";
}
/// Both keys count pixels: image_processing_qwen2_vl.py and image_processing_glm4v.py, _preprocess.
inline std::string budget_line(PixelBudget b) {
  return processor_line("size={\"shortest_edge\": " + std::to_string(b.min_pixels) +
                        ", \"longest_edge\": " + std::to_string(b.max_pixels) + "}");
}
inline std::string edge_line(std::int64_t n) {
  return processor_line("size={\"longest_edge\": " + std::to_string(n) + "}");
}
inline std::string number_line(const char* name, std::int64_t n) {
  return processor_line(name + ("=" + std::to_string(n)));
}
inline std::string canvas_line(const std::vector<ImageSize>& list) {
  std::string s;
  for (const auto c : list)
    s += (s.empty() ? "[" : ", [") + std::to_string(c.height) + ", " + std::to_string(c.width) + "]";
  return "model.config.image_grid_pinpoints = processor.image_processor.image_grid_pinpoints = [" + s + "]";
}

}  // namespace image_processor
}  // namespace vlmest
