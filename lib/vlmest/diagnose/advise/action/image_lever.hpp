// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include <vlmest/diagnose/advise/action/action_entry.hpp>
#include <vlmest/nn/sequence_layout.hpp>

/// What an image processor lets one lower: its name differs from family to family.
namespace vlmest::diagnose {

namespace lever {

constexpr std::int64_t at_least(std::int64_t n, std::int64_t least) { return n < least ? least : n; }

/// The Qwen line and GLM-4V: the pixel budget, in whole merged patches of what the picture has now.
template <class Rule>
void lower_budget(std::vector<TokenRule>& to, const Rule& r, const ImageLayout& now, std::int64_t frames) {
  const std::int64_t side = r.patch_size * r.merge, cell = side * side;
  const std::int64_t cells = now.resized.height * now.resized.width / cell;
  for (std::int64_t k = lever_steps - 1; k > 0; --k) {
    Rule less = r;
    less.budget.max_pixels = at_least(cells * k / lever_steps, 1) * cell * frames;
    less.budget.min_pixels = std::min(less.budget.min_pixels, less.budget.max_pixels);
    to.push_back(less);
  }
}

/// Pixtral, Mistral 3 and LightOnOCR: the longer side, in whole cells.
template <class Rule>
void lower_edge(std::vector<TokenRule>& to, const Rule& r, const ImageLayout& now, std::int64_t cell) {
  const std::int64_t edge = std::max(now.resized.height, now.resized.width);
  for (std::int64_t k = lever_steps - 1; k > 0; --k) {
    Rule less = r;
    less.longest_edge = at_least(edge * k / lever_steps / cell, 1) * cell;
    to.push_back(less);
  }
}

template <class Rule>
void lower_tiles(std::vector<TokenRule>& to, const Rule& r, const ImageLayout& now) {
  for (std::int64_t n = now.tile_grid.count() - 1; n > 0; --n) {
    Rule less = r;
    less.max_tiles = n;
    if constexpr (requires { less.min_tiles; }) less.min_tiles = std::min(less.min_tiles, n);
    to.push_back(less);
  }
}

/// Any-resolution rules: the list without its largest canvases.
template <class Rule>
void lower_canvas(std::vector<TokenRule>& to, const Rule& r, const ImageLayout& now) {
  const auto area = [](ImageSize s) { return s.height * s.width; };
  Rule less = r;
  for (std::int64_t most = area(now.resized); !less.pinpoints.empty();) {
    std::erase_if(less.pinpoints, [&](ImageSize s) { return area(s) >= most; });
    if (less.pinpoints.empty()) return;
    to.push_back(less);
    most = 0;
    for (const auto s : less.pinpoints) most = std::max(most, area(s));
  }
}

inline void lower(std::vector<TokenRule>& to, const tokens::Qwen2Vl& r, const ImageLayout& l) {
  lower_budget(to, r, l, 1);
}
inline void lower(std::vector<TokenRule>& to, const tokens::Qwen2_5Vl& r, const ImageLayout& l) {
  lower_budget(to, r, l, 1);
}
inline void lower(std::vector<TokenRule>& to, const tokens::Qwen3Vl& r, const ImageLayout& l) {
  lower_budget(to, r, l, 1);
}
inline void lower(std::vector<TokenRule>& to, const tokens::Glm4v& r, const ImageLayout& l) {
  lower_budget(to, r, l, r.temporal_patch_size);
}
inline void lower(std::vector<TokenRule>& to, const tokens::Pixtral& r, const ImageLayout& l) {
  lower_edge(to, r, l, r.patch_size);
}
inline void lower(std::vector<TokenRule>& to, const tokens::Mistral3& r, const ImageLayout& l) {
  lower_edge(to, r, l, r.patch_size * r.merge);
}
inline void lower(std::vector<TokenRule>& to, const tokens::LightOnOcr& r, const ImageLayout& l) {
  lower_edge(to, r, l, r.cell);
}
inline void lower(std::vector<TokenRule>& to, const tokens::Idefics3& r, const ImageLayout& l) {
  for (std::int64_t n = std::max(l.tile_grid.rows, l.tile_grid.cols) - 1; n > 0; --n) {
    tokens::Idefics3 less = r;
    less.longest_edge = n * r.tile_size;
    to.push_back(less);
  }
}
inline void lower(std::vector<TokenRule>& to, const tokens::InternVl& r, const ImageLayout& l) {
  lower_tiles(to, r, l);
}
inline void lower(std::vector<TokenRule>& to, const tokens::AyaVision& r, const ImageLayout& l) {
  lower_tiles(to, r, l);
}
inline void lower(std::vector<TokenRule>& to, const tokens::Cohere2Vision& r, const ImageLayout& l) {
  lower_tiles(to, r, l);
}
inline void lower(std::vector<TokenRule>& to, const tokens::Mllama& r, const ImageLayout& l) { lower_tiles(to, r, l); }
inline void lower(std::vector<TokenRule>& to, const tokens::LlavaNext& r, const ImageLayout& l) {
  lower_canvas(to, r, l);
}
inline void lower(std::vector<TokenRule>& to, const tokens::LlavaOnevision& r, const ImageLayout& l) {
  lower_canvas(to, r, l);
}
inline void lower(std::vector<TokenRule>& to, const tokens::Gemma3& r, const ImageLayout&) {
  if (!r.pan_and_scan) return;
  tokens::Gemma3 less = r;
  less.pan_and_scan = false;
  to.push_back(less);
}
inline void lower(std::vector<TokenRule>& to, const tokens::Gemma4& r, const ImageLayout&) {
  for (auto n = tokens::gemma4_soft_tokens.rbegin(); n != tokens::gemma4_soft_tokens.rend(); ++n) {
    if (*n >= r.soft_tokens) continue;
    tokens::Gemma4 less = r;
    less.soft_tokens = *n;
    to.push_back(less);
  }
}
/// Every picture becomes one square of fixed size.
inline void lower(std::vector<TokenRule>&, const tokens::Llava&, const ImageLayout&) {}
inline void lower(std::vector<TokenRule>&, const tokens::PaliGemma&, const ImageLayout&) {}
inline void lower(std::vector<TokenRule>&, const tokens::Blip2&, const ImageLayout&) {}
inline void lower(std::vector<TokenRule>&, const tokens::TextOnly&, const ImageLayout&) {}

}  // namespace lever

/// The size of a run's pictures, before the processor; of several the first.
inline ImageSize image_size(const Vlm& vlm, const Plan& p) { return image_sizes(vlm, p).front(); }

/// The settings with another rule or other images, and the same text: where the plan gives the whole length of a
/// sequence, that changes by as many tokens as the images do. Throws Error as make_sequences().
inline void keep_text(const Settings& before, Settings& after) {
  if (!after.plan.seq) return;
  Plan loose = after.plan;
  loose.seq.reset();
  loose.text = make_sequences(before.vlm, before.plan).text;
  after.plan.seq = make_sequences(after.vlm, loose).seq;
}

/// The settings with lower limits on the pictures, each with fewer tokens in the tower or the language model than the
/// one before. Empty where there are no pictures, and for towers of one fixed size.
std::vector<Settings> lower_images(const Settings& now);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/advise/action/impl/image_lever.hpp>
#endif
