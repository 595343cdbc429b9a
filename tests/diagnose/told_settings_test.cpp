// SPDX-License-Identifier: Apache-2.0
// Settings that somebody tells in sentences.
#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include <vlmest/diagnose/evidence/text/told_settings.hpp>

namespace vlmest::diagnose::told_settings_test {
namespace {

std::string told(const std::string& text, const std::string& flag) {
  const auto all = told_settings(text);
  const auto found = std::find_if(all.begin(), all.end(), [&](const ReadSetting& s) { return s.flag == flag; });
  return found == all.end() ? "" : found->value;
}

TEST(ToldSettings, AreReadOffSentences) {
  const std::string text =
      "I train it with LoRA rank 16 on 2x24GB, batch size is 2 and gradient accumulation steps of 8.\n"
      "Each sample has 32 frames and an image of 4032x3024, with a context length of 32k.\n";
  EXPECT_EQ(told(text, "--batch"), "2");
  EXPECT_EQ(told(text, "--gradient-accumulation"), "8");
  EXPECT_EQ(told(text, "--lora"), "16");
  EXPECT_EQ(told(text, "--gpus"), "2");
  EXPECT_EQ(told(text, "--frames"), "32");
  EXPECT_EQ(told(text, "--image-size"), "3024x4032");
  EXPECT_EQ(told(text, "--seq"), "32768");
  EXPECT_EQ(told("it has a max length of 4,096 tokens here", "--seq"), "4096");
  EXPECT_EQ(told("我把 batch size 设置为 1，还是爆显存，怎么办", "--batch"), "1");
  EXPECT_EQ(told("we fine tune it with qlora on one card", "--weights"), "nf4");
  const auto all = told_settings("some words here\nwith a batch size of 4 it fails\n");
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].line, 2);
  EXPECT_EQ(all[0].from, "batch size 4");
}

TEST(ToldSettings, AreOfTheRunAlone) {
  for (const char* none : {"the effective batch size is 64 on all of them", "please reduce batch size 8 to something",
                           "no number of batch size here at all", "batch size 99999 is what they said once",
                           "the eval batch size 4 is fine here", "it is version 2.5 images of it all",
                           "a batch size of 1.5 makes no sense here"})
    EXPECT_EQ(told(none, "--batch") + told(none, "--images"), "") << none;
  EXPECT_EQ(told("--batch_size 4 \\", "--batch"), "");  // a flag is no sentence
  EXPECT_EQ(told("a tensor of 1024x1024 was made there", "--image-size"), "");
  EXPECT_EQ(told("an image grid of 3x4 tiles was made", "--image-size"), "");
  EXPECT_EQ(told("we train all of it without lora this time", "--lora"), "");
  EXPECT_TRUE(told_settings("").empty());
  EXPECT_TRUE(told_settings(std::string(5000, '9')).empty());
}

}  // namespace
}  // namespace vlmest::diagnose::told_settings_test
