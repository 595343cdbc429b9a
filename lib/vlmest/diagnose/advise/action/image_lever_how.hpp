// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>

#include <vlmest/nn/tokens/tokens.hpp>

/// How an image processor of transformers 5.17 is told the limits of a token rule.
namespace vlmest::diagnose {

namespace lever {

inline std::string processor(const std::string& arguments) {
  return "processor = AutoProcessor.from_pretrained(MODEL, " + arguments + ")";
}
inline std::string pixels(std::int64_t max_pixels, std::int64_t min_pixels) {
  return processor("size={\"shortest_edge\": " + std::to_string(min_pixels) +
                   ", \"longest_edge\": " + std::to_string(max_pixels) + "}");
}
inline std::string tiles(const char* name, std::int64_t n) { return processor(name + ("=" + std::to_string(n))); }
inline std::string edge(std::int64_t n) { return processor("size={\"longest_edge\": " + std::to_string(n) + "}"); }
inline std::string canvases(const std::vector<ImageSize>& list) {
  std::string s;
  for (const auto c : list)
    s += (s.empty() ? "[" : ", [") + std::to_string(c.height) + ", " + std::to_string(c.width) + "]";
  return "model.config.image_grid_pinpoints = processor.image_processor.image_grid_pinpoints = [" + s + "]";
}

/// Both keys count pixels: image_processing_qwen2_vl.py and image_processing_glm4v.py, _preprocess.
inline std::string how(const tokens::Qwen2Vl& r) { return pixels(r.budget.max_pixels, r.budget.min_pixels); }
inline std::string how(const tokens::Qwen2_5Vl& r) { return pixels(r.budget.max_pixels, r.budget.min_pixels); }
inline std::string how(const tokens::Qwen3Vl& r) { return pixels(r.budget.max_pixels, r.budget.min_pixels); }
inline std::string how(const tokens::Glm4v& r) { return pixels(r.budget.max_pixels, r.budget.min_pixels); }
inline std::string how(const tokens::Pixtral& r) { return edge(r.longest_edge); }
inline std::string how(const tokens::Mistral3& r) { return edge(r.longest_edge); }
inline std::string how(const tokens::LightOnOcr& r) { return edge(r.longest_edge); }
inline std::string how(const tokens::Idefics3& r) { return edge(r.longest_edge); }
/// image_processing_got_ocr2.py, which both use.
inline std::string how(const tokens::InternVl& r) { return tiles("max_patches", r.max_tiles); }
inline std::string how(const tokens::AyaVision& r) { return tiles("max_patches", r.max_tiles); }
inline std::string how(const tokens::Cohere2Vision& r) { return tiles("max_patches", r.max_tiles); }
inline std::string how(const tokens::Mllama& r) { return tiles("max_image_tiles", r.max_tiles); }
inline std::string how(const tokens::LlavaNext& r) { return canvases(r.pinpoints); }
inline std::string how(const tokens::LlavaOnevision& r) { return canvases(r.pinpoints); }
inline std::string how(const tokens::Gemma3& r) {
  return processor(std::string("do_pan_and_scan=") + (r.pan_and_scan ? "True" : "False"));
}
inline std::string how(const tokens::Gemma4& r) {
  return processor("max_soft_tokens=" + std::to_string(r.soft_tokens));
}
inline std::string how(const tokens::Llava&) { return {}; }
inline std::string how(const tokens::PaliGemma&) { return {}; }
inline std::string how(const tokens::Blip2&) { return {}; }
inline std::string how(const tokens::TextOnly&) { return {}; }

}  // namespace lever

inline std::string image_limit_line(const TokenRule& rule) {
  return std::visit([](const auto& r) { return lever::how(r); }, rule);
}

}  // namespace vlmest::diagnose
