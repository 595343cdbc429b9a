// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/nn/image_processor/processor.hpp>

#include "image_processor_reference.hpp"
#include "image_processor_rules.hpp"

namespace vlmest::image_processor_test {
namespace {

using namespace test_rules;

ImageSize pixels(reference::Size s) { return {s.height, s.width}; }

void expect_tokens(const ImageProcessor& rule, const reference::Counts& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto s = pixels(reference::sizes[i]);
    EXPECT_EQ(layout(rule, s).llm_tokens, expected[i]) << s.height << "x" << s.width;
  }
}

void expect_tokens(const ImageProcessor& rule, const reference::Counts& llm, const reference::Counts& with_text) {
  expect_tokens(rule, llm);
  for (std::size_t i = 0; i < with_text.size(); ++i) {
    const auto l = layout(rule, pixels(reference::sizes[i]));
    EXPECT_EQ(l.llm_tokens + l.text_overhead, with_text[i]) << limit_line(rule) << " size " << i;
  }
}

TEST(Tokens, GoldenCounts) {
  namespace ref = reference;
  expect_tokens(Llava{}, ref::llava);
  expect_tokens(LlavaNext{}, ref::llava_next);
  expect_tokens(LlavaOnevision{}, ref::llava_onevision);
  expect_tokens(qwen2_vl_small, ref::qwen2_vl_small);
  expect_tokens(Qwen2Vl{}, ref::qwen2_vl);
  expect_tokens(Qwen2_5Vl{}, ref::qwen2_vl);
  expect_tokens(Qwen3Vl{}, ref::qwen3_vl);
  expect_tokens(Glm4v{}, ref::glm4v);
  expect_tokens(InternVl{}, ref::internvl, ref::internvl_all);
  expect_tokens(AyaVision{}, ref::aya_vision, ref::aya_vision_all);
  expect_tokens(Gemma3{}, ref::gemma3);
  expect_tokens(idefics3, ref::idefics3, ref::idefics3_all);
  expect_tokens(smolvlm_2b, ref::smolvlm_2b, ref::smolvlm_2b_all);
  expect_tokens(smolvlm_256m, ref::smolvlm_256m, ref::smolvlm_256m_all);
  expect_tokens(Pixtral{}, ref::pixtral, ref::pixtral_all);
  expect_tokens(Mistral3{}, ref::mistral3, ref::mistral3_all);
  expect_tokens(Blip2{}, ref::blip2);
  for (const auto& [side, count] : {std::pair{224, 256}, {448, 1024}, {896, 4096}})
    EXPECT_EQ(layout(PaliGemma{.image_size = side}, {480, 640}).llm_tokens, count);
}

TEST(Tokens, GoldenTiles) {
  namespace ref = reference;
  for (std::size_t i = 0; i < ref::sizes.size(); ++i) {
    const auto s = pixels(ref::sizes[i]);
    EXPECT_EQ(layout(idefics3, s).tiles, ref::idefics3_tiles[i]);
    EXPECT_EQ(layout(smolvlm_2b, s).tiles, ref::smolvlm_2b_tiles[i]);
    EXPECT_EQ(layout(smolvlm_256m, s).tiles, ref::smolvlm_256m_tiles[i]);
    EXPECT_EQ(layout(gemma3_scan, s).tiles, 1 + ref::gemma3_crops[i]);
    EXPECT_EQ(layout(Mllama{}, s).tile_grid, (Grid{ref::mllama_rows[i], ref::mllama_cols[i]}));
  }
}

TEST(Tokens, OddSizes) {
  const auto count = [](const ImageProcessor& rule, ImageSize s) -> std::int64_t {
    try {
      return layout(rule, s).llm_tokens;
    } catch (const Error& e) {
      EXPECT_FALSE(e.hint.empty());
      return -1;
    }
  };
  for (const auto& o : reference::odd_sizes) {
    const auto s = pixels(o.image);
    SCOPED_TRACE(std::to_string(s.height) + "x" + std::to_string(s.width));
    EXPECT_EQ(count(LlavaNext{}, s), o.llava_next);
    EXPECT_EQ(count(LlavaOnevision{}, s), o.llava_onevision);
    EXPECT_EQ(count(Qwen2Vl{}, s), o.qwen2_vl);
    EXPECT_EQ(count(qwen2_vl_small, s), o.qwen2_vl_small);
    EXPECT_EQ(count(Qwen3Vl{}, s), o.qwen3_vl);
    EXPECT_EQ(count(Glm4v{}, s), o.glm4v);
    EXPECT_EQ(count(Pixtral{}, s), o.pixtral);
    EXPECT_EQ(count(Mistral3{}, s), o.mistral3);
    EXPECT_EQ(count(InternVl{}, s), o.internvl);
    EXPECT_EQ(count(AyaVision{}, s), o.aya_vision);
    EXPECT_EQ(layout(idefics3, s).tiles, o.idefics3);
    EXPECT_EQ(layout(smolvlm_2b, s).tiles, o.smolvlm_2b);
    EXPECT_EQ(layout(smolvlm_256m, s).tiles, o.smolvlm_256m);
    EXPECT_EQ(layout(gemma3_scan, s).tiles, 1 + o.gemma3_crops);
    const auto g = layout(Mllama{}, s).tile_grid;
    EXPECT_EQ(10 * g.rows + g.cols, o.mllama);
  }
}

// Prompts that were run on a GPU: model, pictures per prompt, their size, LLM tokens from them.
TEST(Tokens, RecordedRuns) {
  struct Row {
    const char* model;
    ImageProcessor rule;
    std::size_t images;
    ImageSize size;
    std::int64_t image_tokens;
  };
  Idefics3 smolvlm_whole = smolvlm_2b;
  smolvlm_whole.tiling = Tiling::never;
  const Row rows[] = {
      {"aya-vision-8b", AyaVision{}, 2, {364, 364}, 338},
      {"gemma-3-4b", Gemma3{}, 1, {896, 896}, 256},
      {"gemma-3-4b", Gemma3{}, 2, {896, 896}, 512},
      {"glm-4.1v-9b", Glm4v{}, 2, {448, 672}, 768},
      {"idefics3-8b", idefics3_whole, 2, {364, 364}, 338},
      {"internvl3", InternVl{}, 0, {448, 448}, 0},
      {"internvl3", InternVl{}, 1, {448, 448}, 256},
      {"internvl3", InternVl{}, 2, {448, 448}, 512},
      {"llama-3.2-11b-vision", Mllama{}, 1, {1120, 1120}, 1},
      {"llama-3.2-11b-vision", Mllama{}, 2, {1120, 1120}, 2},
      {"llava-1.5-7b", Llava{}, 1, {336, 336}, 576},
      {"llava-1.5-7b", Llava{}, 2, {336, 336}, 1152},
      {"llava-next-mistral-7b", LlavaNext{}, 1, {672, 1008}, 2144},
      {"llava-next-mistral-7b", LlavaNext{}, 1, {672, 672}, 2928},
      {"llava-next-vicuna-7b", LlavaNext{}, 2, {672, 672}, 5856},
      {"llava-onevision-qwen2-0.5b", LlavaOnevision{}, 1, {384, 384}, 1485},
      {"llava-onevision-qwen2-0.5b", LlavaOnevision{.tile_several = true}, 2, {768, 768}, 7398},
      {"paligemma-3b-224", PaliGemma{}, 1, {224, 224}, 256},
      {"paligemma-3b-224", PaliGemma{}, 2, {224, 224}, 512},
      {"pixtral-12b", Pixtral{}, 2, {512, 768}, 3072},
      {"qwen2-vl-2b", Qwen2Vl{}, 1, {672, 672}, 576},
      {"qwen2-vl-2b", Qwen2Vl{}, 2, {448, 448}, 512},
      {"qwen2.5-vl-3b", Qwen2_5Vl{}, 1, {672, 672}, 576},
      {"qwen2.5-vl-3b", Qwen2_5Vl{}, 2, {672, 1008}, 1728},
      {"qwen3-vl-4b", Qwen3Vl{}, 1, {512, 512}, 256},
      {"qwen3-vl-4b", Qwen3Vl{}, 2, {512, 768}, 768},
      {"smolvlm-2.2b", smolvlm_whole, 1, {384, 384}, 81},
      {"smolvlm-2.2b", smolvlm_whole, 2, {384, 384}, 162},
  };
  for (const auto& r : rows) {
    const auto t = sum(layouts(r.rule, std::vector<ImageSize>(r.images, r.size)));
    EXPECT_EQ(t.llm_tokens, r.image_tokens) << r.model;
    EXPECT_EQ(t.images, static_cast<std::int64_t>(r.images)) << r.model;
  }
}

TEST(Tokens, LayoutDetails) {
  EXPECT_EQ(layout(LlavaNext{}, {672, 1008}), (ImageLayout{.resized = {672, 672},
                                                           .tiles = 5,
                                                           .tile_grid = {2, 2},
                                                           .patches = {24, 24},
                                                           .tower_tokens = 577,
                                                           .llm_tokens = 576 + 32 * 48 + 32,
                                                           .unpadded = {32, 48},
                                                           .kept = {32, 48}}));
  const auto ov = layout(LlavaOnevision{}, {1080, 1920});
  EXPECT_EQ(ov.tile_grid, (Grid{3, 5}));  // 1152 x 1920 pixels, 81 x 135 features
  EXPECT_EQ(ov.unpadded, (Grid{75, 135}));
  EXPECT_EQ(ov.kept.count() + ov.kept.rows + 729, ov.llm_tokens);
  EXPECT_LT(ov.kept.count(), ov.unpadded.count());

  const auto ml = layout(Mllama{}, {480, 640});
  EXPECT_EQ(ml.tiles, 4);
  EXPECT_EQ(ml.resized, (ImageSize{560, 1120}));
  EXPECT_EQ(ml.cross_tokens, 4 * 1601);

  const auto m3 = layout(Mistral3{}, {480, 640});
  EXPECT_EQ(m3.patches, (Grid{2 * 18, 2 * 23}));
  EXPECT_EQ(m3.tower_tokens, 4 * m3.llm_tokens);
  const Llava siglip{.image_size = 384, .class_token = false, .select = FeatureSelect::full};
  EXPECT_EQ(layout(siglip, {9, 9}).llm_tokens, 729);
  EXPECT_EQ(layout(Llava{.select = FeatureSelect::full}, {9, 9}).llm_tokens, 577);
  EXPECT_EQ(layout(InternVl{}, {480, 640}).tower_tokens, 1025);
  EXPECT_EQ(layout(Gemma3{}, {480, 640}).text_overhead, 4);
}

TEST(Tokens, TilingChoice) {
  for (const ImageSize s : {ImageSize{364, 364}, {1, 1}}) EXPECT_EQ(layout(idefics3, s).llm_tokens, 2873);
  EXPECT_EQ(layout(Idefics3{.tiling = Tiling::always}, {364, 364}), layout(idefics3, {364, 364}));
  EXPECT_EQ(layout(idefics3_whole, {2000, 2000}).llm_tokens, 169);
  EXPECT_EQ(layout(InternVl{.tiling = Tiling::never}, {2000, 1000}).tiles, 1);
  EXPECT_EQ(layout(InternVl{}, {448, 448}).tiles, 1);
}

TEST(Tokens, SeveralPicturesInOnePrompt) {
  const std::vector<ImageSize> pictures{{384, 384}, {768, 768}, {1080, 1920}};
  const auto tiled = sum(layouts(LlavaOnevision{.tile_several = true}, pictures));
  EXPECT_EQ(tiled.llm_tokens, 1485 + 3699 + 7269);
  EXPECT_EQ(tiled.tiles, 2 + 5 + 16);
  EXPECT_EQ(tiled.tower_tokens, 23 * 729);
  const LlavaOnevision nested;
  EXPECT_EQ(sum(layouts(nested, pictures)).llm_tokens, 3 * 730);
  EXPECT_EQ(sum(layouts(nested, std::span(pictures).first(1))).llm_tokens, 1485);
}

}  // namespace
}  // namespace vlmest::image_processor_test
