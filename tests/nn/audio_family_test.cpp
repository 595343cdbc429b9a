// SPDX-License-Identifier: Apache-2.0
// Models that take sound: what their processors make of a clip, and how the encoders' work follows from it.
#include <gtest/gtest.h>

#include <vlmest/family/gemma4/family.hpp>
#include <vlmest/family/glmasr/rule.hpp>
#include <vlmest/family/qwen2_audio/family.hpp>
#include <vlmest/family/qwen3_asr/rule.hpp>
#include <vlmest/nn/audio/exact_rule.hpp>
#include <vlmest/nn/audio/gemma4_rule.hpp>
#include <vlmest/nn/audio/whisper_rule.hpp>
#include <vlmest/nn/audio/window_rule.hpp>
#include <vlmest/nn/stack/registry.hpp>

#include "family_support.hpp"

namespace vlmest::audio_family_test {
namespace {

using test::count;
using test::inference;

Vlm tiny() {
  Qwen2AudioFamily f;
  f.audio = {.widths = {.hidden = 32, .intermediate = 48, .heads = 2},
             .mels = 16,
             .layers = 2,
             .positions = 50,
             .pools = true};
  f.language = LlamaConfig{
      .vocab = 100, .hidden = 64, .intermediate = 96, .layers = 2, .heads = 4, .kv_heads = 2, .head_dim = 16};
  Vlm v{.name = "tiny", .type = "qwen2_audio", .family = f};
  v.audio = audio::FilledClips{.mel = {.chunk_samples = 16000, .mels = 16}, .positions = 50};
  return v;
}
Plan heard(double seconds, std::int64_t clips = 1) {
  Plan p{.batch = 2, .images = 0, .text = 10};
  p.audio = AudioPlan{.seconds = seconds, .clips = clips};
  return p;
}

// 0.5 s are 50 of 100 frames, 25 states, 12 tokens.
TEST(AudioFamily, TokensOfClipsStandInTheSequence) {
  const Vlm v = tiny();
  const Sequences s = make_sequences(v, heard(0.5, 3));
  EXPECT_EQ(s.audio_tokens, 3 * 12);
  EXPECT_EQ(s.seq, 10 + 36);
  EXPECT_EQ(s.audios.size(), 6u);
  EXPECT_EQ(s.audios.front().tower_tokens, 50);
  EXPECT_EQ(s.visual_tokens(), 36);
}

// The encoder runs over what is filled up: a shorter clip costs it as much, and a mask besides.
TEST(AudioFamily, PaddingIsSeenByTheEncoder) {
  const auto convolutions = [](const Graph& g) { return count(g, "convolution"); };
  const Graph whole = inference(tiny(), heard(1)), part = inference(tiny(), heard(0.5));
  EXPECT_EQ(convolutions(whole), convolutions(part));
  EXPECT_EQ(count(whole, "avg_pool2d"), 1);
  EXPECT_GT(count(part, "bitwise_and.Tensor"), count(whole, "bitwise_and.Tensor"));
}

TEST(AudioFamily, WithoutClipsNothingOfTheEncoderRuns) {
  Plan p{.batch = 1, .images = 0, .text = 10};
  EXPECT_EQ(count(inference(tiny(), p), "convolution"), 0);
}

TEST(AudioFamily, RefusesWhatNoRunHas) {
  const Vlm v = tiny();
  EXPECT_THROW(make_sequences(v, heard(0)), Error);
  EXPECT_THROW(make_sequences(v, heard(1e9)), Error);
  EXPECT_THROW(make_sequences(v, heard(0.5, 0)), Error);
  EXPECT_THROW(make_sequences(v, heard(0.001)), Error);  // no token
  Vlm other = tiny();
  other.audio = {};
  EXPECT_THROW(make_sequences(other, heard(0.5)), Error);
}

TEST(AudioRules, FillCutAndCount) {
  const auto of = [](const AudioProcessor& p, double seconds) { return audio_layout(p, {seconds}); };
  const AudioLayout filled = of(audio::FilledClips{}, 45);
  EXPECT_TRUE(filled.cut);
  EXPECT_EQ(filled.llm_tokens, 750);
  EXPECT_EQ(of(audio::FilledClips{}, 7.31).llm_tokens, 183);
  EXPECT_EQ(of(audio::ExactClips{}, 45).llm_tokens, 45 * 13);
  EXPECT_EQ(of(audio::ExactClips{}, 45.5).row_frames, 4550);
  EXPECT_EQ(of(audio::WholeWindows{}, 31).rows, 2);
  EXPECT_EQ(of(audio::WholeWindows{}, 31).llm_tokens, 750);
  EXPECT_EQ(of(audio::FilledWindows{}, 31).llm_tokens, 387);
  EXPECT_EQ(of(audio::FilledWindows{}, 700).rows, 21);
  EXPECT_EQ(of(audio::WholeChunks{}, 0.1).llm_tokens, 7);  // as long as half a second
  EXPECT_EQ(of(audio::WholeChunks{}, 1.2).row_frames, 200);
  EXPECT_EQ(of(audio::Gemma4Clips{}, 10).llm_tokens, 250);
}

TEST(AudioRules, AnEncoderInsistsOnItsPositions) {
  EXPECT_THROW(audio_layout(audio::FilledClips{.positions = 700}, {1.0}), Error);
  EXPECT_THROW(audio_layout(audio::WholeWindows{.positions = 700}, {1.0}), Error);
}

TEST(AudioRules, CopiesShareSettingsUntilOneChanges) {
  AudioProcessor a = audio::FilledClips{}, b = a;
  b.mel()->chunk_samples = 16000;
  EXPECT_FALSE(audio_layout(a, {2.0}).cut);
  EXPECT_TRUE(audio_layout(b, {2.0}).cut);
  AudioProcessor none;
  EXPECT_EQ(none.mel(), nullptr);
}

}  // namespace
}  // namespace vlmest::audio_family_test
