// SPDX-License-Identifier: Apache-2.0
// Batch, length and pictures that nobody tells, of one figure: several settings explain it, and the run's are among the
// likeliest where they are usual.
#include <algorithm>

#include <gtest/gtest.h>

#include <vlmest/diagnose/evidence/oom/reader.hpp>
#include <vlmest/diagnose/inversion/score_matrix.hpp>
#include <vlmest/diagnose/inversion/size_products.hpp>
#include <vlmest/diagnose/inversion/together.hpp>
#include <vlmest/diagnose/inversion/usual_inputs.hpp>

#include "files.hpp"

namespace vlmest::diagnose::together_test {
namespace {

using namespace together;

const Device& device() {
  static const Device d = tool::find_device("h100-sxm");
  return d;
}

Failure asked(const std::string& size) {
  const auto all = find_oom_messages("CUDA out of memory. Tried to allocate " + size + ".\n");
  EXPECT_EQ(all.size(), 1u);
  return all.empty() ? Failure{} : failure_of(all.front());
}

Plan bf16() {
  Plan p;
  p.dtype = DType::bf16;
  return p;
}

TEST(SizeProducts, AreToldByWhatTheyGrowWith) {
  const Inputs one{1, 100, 1, 400}, two{2, 100, 1, 400}, longer{1, 150, 1, 900}, more{1, 100, 2, 800};
  const auto of = [&](Form f) {
    std::vector<std::pair<Inputs, Bytes>> at;
    for (const Inputs& in : {one, two, longer, more})
      at.emplace_back(in, Bytes(static_cast<std::int64_t>(6 * amount(f, in))));
    return form_of(at);
  };
  for (const Form f : forms) EXPECT_EQ(of(f), f);
  EXPECT_EQ(form_of({{one, Bytes(7)}, {two, Bytes(7)}}), std::nullopt) << "what stays grows with nothing";
  EXPECT_EQ(form_of({{one, Bytes(700)}, {two, Bytes(1401)}}), std::nullopt) << "no whole multiple";
}

TEST(UsualInputs, RoundOnesComeFirst) {
  EXPECT_GT(plausible_batch(4), plausible_batch(5));
  EXPECT_GT(plausible_batch(5), plausible_batch(7));
  EXPECT_GT(plausible_length(4096), plausible_length(3072));
  EXPECT_GT(plausible_length(3072), plausible_length(3073));
  EXPECT_EQ(likely_length(4000, 4200), 4096);
  EXPECT_EQ(likely_length(4097, 4200), 4200);
  EXPECT_EQ(likely_length(10, 9), std::nullopt);
  EXPECT_GT(plausible_length(5000), plausible_length(262144)) << "few run a quarter of a million tokens";
}

/// 4 sequences of 4,096 tokens: 4 x 4096 x 152064 x 4 bytes = 9.28 GiB; so are 2 of 8,192.
TEST(Together, SeveralSettingsExplainLogits) {
  const Vlm vlm = tool::find_model("qwen2.5-vl-7b");
  const Failure f = asked("9.28 GiB");
  const Together t = solve_together(vlm, bf16(), {}, device(), true, f, Cause::logits);
  ASSERT_GE(t.likeliest.size(), 3u);
  EXPECT_GT(t.found, 3u);
  const auto has = [&](std::int64_t batch, std::int64_t seq) {
    return std::any_of(t.likeliest.begin(), t.likeliest.end(), [&](const TogetherSolution& s) {
      return s.batch == batch && s.seq == seq && s.cause == Cause::logits && f.tensor->holds(s.tensor.bytes);
    });
  };
  EXPECT_TRUE(has(4, 4096)) << together_words(t.likeliest[0]);
  EXPECT_TRUE(has(2, 8192));
  double sum = 0;
  for (const TogetherSolution& s : t.likeliest) {
    EXPECT_LT(s.share, 0.6) << "none of several is sure: " << together_words(s);
    EXPECT_FALSE(s.images) << "the pictures in a length are not told by it";
    EXPECT_LE(*s.seq, vlm.positions.value_or(score_matrix::most_positions));
    sum += s.share;
  }
  EXPECT_LE(sum, 1 + 1e-9);
}

/// What is told stays, and leaves less to explain.
TEST(Together, ToldInputsAreFixed) {
  const Vlm vlm = tool::find_model("qwen2.5-vl-7b");
  Plan p = bf16();
  p.batch = 2;
  const Together t = solve_together(vlm, p, {.batch = true}, device(), true, asked("9.28 GiB"), Cause::logits);
  ASSERT_FALSE(t.likeliest.empty());
  EXPECT_EQ(t.likeliest.front().seq, 8192);
  for (const TogetherSolution& s : t.likeliest) EXPECT_EQ(s.batch, 2);

  p = bf16();
  p.seq = 4096;
  const Together u = solve_together(vlm, p, {.length = true}, device(), true, asked("9.28 GiB"), Cause::logits);
  ASSERT_FALSE(u.likeliest.empty());
  for (const TogetherSolution& s : u.likeliest) EXPECT_EQ(s.seq, 4096);
  EXPECT_EQ(u.likeliest.front().batch, 4);
}

/// Whole pictures that the processor makes: the scores of 16 heads over 52 x 92 patches (720 x 1280 pixels).
TEST(Together, PicturesAreOnesOfTheProcessor) {
  const Vlm vlm = tool::find_model("qwen2-vl-2b");
  Plan p = bf16();
  p.attention = AttentionKind::eager;
  Plan run = p;
  run.image_height = 720;
  run.image_width = 1280;
  run.text = 32;
  run.images = 1;
  solve::Builds builds(vlm, device(), false);
  ASSERT_TRUE(builds.build(run, true));
  Bytes scores{};
  for (const auto& [key, now] : builds.kinds())
    if (now.cause == Cause::attention_scores) scores = std::max(scores, now.bytes);
  Failure f;
  f.tensor = PrintedSize::exactly(scores);
  const Together t = solve_together(vlm, p, {}, device(), false, f, Cause::attention_scores);
  ASSERT_FALSE(t.likeliest.empty());
  const bool found = std::any_of(t.likeliest.begin(), t.likeliest.end(), [](const TogetherSolution& s) {
    return s.images == 1 && s.height == 720 && s.width == 1280;
  });
  EXPECT_TRUE(found) << together_words(t.likeliest.front());
  for (const TogetherSolution& s : t.likeliest) EXPECT_EQ(s.tensor.bytes, scores);
}

TEST(Together, NothingFitsNothingIsSaid) {
  const Vlm vlm = tool::find_model("qwen2.5-vl-7b");
  Failure f;
  f.tensor = PrintedSize::exactly(Bytes(1'000'000'007));  // a prime
  EXPECT_TRUE(solve_together(vlm, bf16(), {}, device(), true, f, Cause::unknown).likeliest.empty());
  f.tensor.reset();
  EXPECT_TRUE(solve_together(vlm, bf16(), {}, device(), true, f, Cause::unknown).likeliest.empty());
}

}  // namespace
}  // namespace vlmest::diagnose::together_test
