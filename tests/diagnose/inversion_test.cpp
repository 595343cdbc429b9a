// SPDX-License-Identifier: Apache-2.0
// Out-of-memory errors that people reported, with the tensor that their size belongs to.
#include <cmath>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <vlmest/diagnose/evidence/oom/reader.hpp>
#include <vlmest/diagnose/inversion/solve.hpp>
#include <vlmest/diagnose/verdict/judge.hpp>
#include <vlmest/diagnose/verdict/judge_run.hpp>
#include <vlmest/json/model.hpp>
#include <vlmest/nn/image_processor/qwen2_5_vl.hpp>
#include <vlmest/nn/sequence_layout.hpp>

#include "files.hpp"

namespace vlmest::diagnose::inversion_test {
namespace {

const Device& device() {
  static const Device d = tool::find_device("h200-sxm");
  return d;
}

Failure message(const std::string& text) {
  const auto found = find_oom_messages(text);
  EXPECT_EQ(found.size(), 1u);
  return found.empty() ? Failure{} : failure_of(found.front());
}

/// A shipped model with another vocabulary.
Vlm with_vocabulary(const std::string& config, std::int64_t words) {
  std::ifstream in(std::string(VLMEST_SOURCE_DIR) + "/tests/data/configs/" + config);
  auto j = nlohmann::json::parse(in);
  (j.contains("text_config") ? j["text_config"] : j)["vocab_size"] = words;
  return json::parse_model(j.dump(), config);
}

/// The solution for one unknown and one kind of tensor.
const Solution* find(const std::vector<Solution>& all, Unknown u, Cause c) {
  for (const Solution& s : all)
    if (s.unknown == u && s.cause == c) return &s;
  return nullptr;
}

/// QwenLM/Qwen3-VL#297: Qwen2-VL-7B, a demo image of 2048 x 1365 pixels.
TEST(Inversion, TheScoresOfAVisionBlock) {
  Failure f = message(
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 6.10 GiB. GPU 0 has a total capacity of 23.69 GiB "
      "of which 5.83 GiB is free.");
  Settings s{.vlm = tool::find_model("qwen2-vl-7b"), .plan = {}, .allocator = {}, .placement = {}};
  s.plan.image_height = 1365;
  s.plan.image_width = 2048;
  s.plan.dtype = DType::fp16;
  Estimator e;
  const Verdict v = judge(f, s, device(), Mode::inference, e);
  EXPECT_EQ(v.cause, Cause::attention_scores) << v.why;
  ASSERT_TRUE(v.tensor.has_value());
  EXPECT_EQ(v.tensor->bytes, Bytes(std::int64_t{16} * 14308 * 14308 * 2));
  EXPECT_NE(v.tensor->scope.find("visual.blocks."), std::string::npos) << v.tensor->scope;
  EXPECT_FALSE(v.hypotheses.front().assuming.empty()) << "SDPA would not have made scores";
}

/// vllm-project/vllm#27706: the largest image of 16,384 tokens, four patches each, in SDPA's math path.
TEST(Inversion, TheLargestImageOnTheMathPath) {
  Failure f = message(
      "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 256.00 GiB. GPU 0 has a total capacity of 15.98 "
      "GiB");
  Plan p;
  p.attention = AttentionKind::eager;
  p.dtype = DType::fp32;
  const auto all =
      solve_unknown(tool::find_model("qwen2.5-vl-3b"), p, device(), false, *f.tensor, AllocationSite::score_matrix);
  const Solution* s = find(all, Unknown::image_side, Cause::attention_scores);
  ASSERT_NE(s, nullptr);
  EXPECT_NEAR(static_cast<double>(s->patches), 65536, 65536 * 0.02);
}

/// A search for sizes leaves layers out: what is left has every size that the whole graph has, in training too, where
/// gradients of what several layers read are added up.
TEST(Inversion, FewerLayersHaveTheSameSizes) {
  for (const char* model : {"qwen2.5-vl-7b", "llama-3.2-11b-vision", "gemma-3-4b", "pixtral-12b", "blip2-opt-2.7b"})
    for (const Checkpointing c : {Checkpointing::off, Checkpointing::selective, Checkpointing::full}) {
      const Vlm vlm = tool::find_model(model);
      Plan p;
      p.batch = 2;
      p.gradient_accumulation = 2;
      p.checkpointing = c;
      solve::Builds whole(vlm, device(), true), fewer(vlm, device(), true);
      ASSERT_TRUE(whole.build(p));
      ASSERT_TRUE(fewer.build(p, true));
      EXPECT_LT(fewer.graph().nodes.size(), whole.graph().nodes.size() / 2) << model;
      for (const auto& [key, sized] : whole.kinds())
        EXPECT_EQ(fewer.size_of(key), sized.bytes) << model << ' ' << std::get<1>(key) << ' ' << std::get<2>(key);
    }
}

/// open-compass/VLMEvalKit#1183: eager attention, 28.43 GiB: 30,884 or 30,888 patches.
TEST(Inversion, PatchesOutOfAnEagerScoreMatrix) {
  Failure f = message("CUDA out of memory. Tried to allocate 28.43 GiB (GPU 0; 15.77 GiB total capacity)");
  Plan p;
  p.attention = AttentionKind::eager;
  p.dtype = DType::fp16;
  const auto all =
      solve_unknown(tool::find_model("qwen2.5-vl-7b"), p, device(), false, *f.tensor, AllocationSite::score_matrix);
  // In fp16; the softmax in fp32 would have that size with fewer patches, and is named too.
  bool found = false;
  for (const Solution& s : all)
    found = found || (s.unknown == Unknown::image_side && s.cause == Cause::attention_scores &&
                      s.tensor.dtype == "fp16" && std::abs(static_cast<double>(s.patches) / 30886 - 1) < 0.03);
  EXPECT_TRUE(found);
}

/// THUDM/slime#2253: a vocabulary of 248,320 and 11,600 tokens: logits of 10.73 GiB in fp32.
TEST(Inversion, TokensOutOfLogits) {
  const Bytes size(std::int64_t{11600} * 248320 * 4);
  EXPECT_NEAR(static_cast<double>(size.value()) / (1 << 30), 10.73, 0.005);
  Plan p;
  const auto all = solve_unknown(with_vocabulary("qwen3-vl-4b.json", 248320), p, device(), true,
                                 PrintedSize{size, size - Bytes(2 << 20), size}, AllocationSite::logits_upcast);
  const Solution* s = find(all, Unknown::text_tokens, Cause::logits);
  ASSERT_NE(s, nullptr);
  EXPECT_TRUE(s->exact);
  EXPECT_NEAR(static_cast<double>(s->seq), 11600, 3);
}

/// modelscope/ms-swift#6966: "why 49 GiB for logits.float() and not 18.5": 86,600 tokens, not 32,768.
TEST(Inversion, WhyFortyNineGibibytes) {
  const auto gib = [](double n) { return Bytes(static_cast<std::int64_t>(n * (1 << 30))); };
  EXPECT_NEAR(32768.0 * 151936 * 4 / (1 << 30), 18.55, 0.005);
  Plan p;
  const auto all = solve_unknown(with_vocabulary("qwen2.5-vl-7b.json", 151936), p, device(), true,
                                 PrintedSize{gib(49), gib(48.995), gib(49.005)}, AllocationSite::logits_upcast);
  const Solution* s = find(all, Unknown::text_tokens, Cause::logits);
  ASSERT_NE(s, nullptr);
  EXPECT_TRUE(s->exact);
  EXPECT_NEAR(static_cast<double>(s->seq), 86600, 100);
}

/// huggingface/trl#3678: 2 x 256 x 151,665 logits take 310.6 MB, so they are fp32.
TEST(Inversion, TheTypeOfLogits) {
  Plan p;
  p.batch = 2;
  p.images = 0;
  p.text = 256;
  Settings s{.vlm = with_vocabulary("qwen2.5-vl-7b.json", 151665), .plan = p, .allocator = {}, .placement = {}};
  Failure f;
  f.requested = f.tensor = PrintedSize{Bytes(310'600'000), Bytes(310'550'000), Bytes(310'650'000)};
  Estimator e;
  const Verdict v = judge(f, s, device(), Mode::training, e);
  EXPECT_EQ(v.cause, Cause::logits) << v.why;
  ASSERT_TRUE(v.tensor.has_value());
  EXPECT_EQ(v.tensor->dtype, "fp32");
}

/// vllm-project/vllm#10569: 256 images of four tiles at once: pixels 1.79 GiB, one hidden state 3.93 GiB.
TEST(Inversion, ManyTilesAtOnce) {
  Plan p;
  p.batch = 256;
  p.text = 8;
  p.image_height = p.image_width = 1120;
  Settings s{.vlm = tool::find_model("llama-3.2-11b-vision"), .plan = p, .allocator = {}, .placement = {}};
  for (const double gib : {1.79, 3.93}) {
    Failure f;
    const auto at = [&](double x) { return Bytes(static_cast<std::int64_t>(x * (1 << 30))); };
    f.requested = f.tensor = PrintedSize{at(gib), at(gib - 0.005), at(gib + 0.005)};
    Estimator e;
    const Verdict v = judge(f, s, device(), Mode::inference, e);
    EXPECT_EQ(v.cause, Cause::vision_tiles) << gib << ": " << v.why;
  }
}

/// vllm-project/vllm#18550: a server that profiles twelve images of the largest size, of which clients send none. What
/// it then reserves leads back to that size, and to a 21st of the tokens for the images that are sent.
TEST(Inversion, ImagesThatOnlyTheProfilerSees) {
  const std::int64_t sent = 12 * layout(image_processor::Qwen2_5Vl{}, {672, 896}).llm_tokens;
  EXPECT_EQ(sent, 9216);
  const auto scores = Bytes(std::int64_t{16} * 65536 * 65536 * 2);
  Plan p;
  p.attention = AttentionKind::eager;
  const auto all = solve_unknown(tool::find_model("qwen2.5-vl-7b"), p, device(), false, PrintedSize::exactly(scores),
                                 AllocationSite::score_matrix);
  const Solution* s = find(all, Unknown::image_side, Cause::attention_scores);
  ASSERT_NE(s, nullptr);
  EXPECT_EQ(s->patches, 65536);
  const std::int64_t profiled = 12 * s->patches / 4;
  EXPECT_EQ(profiled, 196608);
  EXPECT_EQ(profiled / sent, 21);
}

/// MiaAI-Lab's 33 frames that a client sent as images: "image items, not file size, count".
TEST(Inversion, FramesSentAsImages) {
  Plan p;
  p.images = 33;
  p.text = 0;
  p.image_height = 1792;
  p.image_width = 3136;
  EXPECT_EQ(make_sequences(tool::find_model("qwen2.5-vl-7b"), p).image_tokens, 236544);
}

TEST(Inversion, NoTensorOfThatSizeNamesNone) {
  Settings s{.vlm = tool::find_model("qwen2-vl-2b"), .plan = {}, .allocator = {}, .placement = {}};
  Failure f;
  f.requested = f.tensor = PrintedSize::exactly(Bytes(123'456'789'012));
  Estimator e;
  const Verdict v = judge(f, s, device(), Mode::inference, e);
  EXPECT_FALSE(v.tensor.has_value());
  EXPECT_LT(v.confidence, 0.5);
}

}  // namespace
}  // namespace vlmest::diagnose::inversion_test
