// SPDX-License-Identifier: Apache-2.0
// Logits and caches of models that nobody names: a number of rows is said where it is round, and told apart from
// chance.
#include <gtest/gtest.h>

#include <vlmest/diagnose/evidence/oom/reader.hpp>
#include <vlmest/diagnose/verdict/unknown_model.hpp>

#include "files.hpp"

namespace vlmest::diagnose::unknown_model_test {
namespace {

Failure asked(const std::string& size) {
  const auto all = find_oom_messages("CUDA out of memory. Tried to allocate " + size + ".\n");
  EXPECT_EQ(all.size(), 1u);
  return all.empty() ? Failure{} : failure_of(all.front());
}

const PublicRows& rows() {
  static const PublicRows r = [] {
    const Vlm qwen = tool::find_model("qwen2.5-vl-7b"), mid = tool::find_model("qwen2-vl-7b"),
              llava = tool::find_model("llava-1.5-7b");
    return public_rows({&qwen, &mid, &llava}, tool::find_device("h100-sxm"));
  }();
  return r;
}

TEST(PublicRows, AreOfTheModelsGiven) {
  ASSERT_EQ(rows().vocabularies.size(), 2u);
  EXPECT_EQ(rows().vocabularies[0].elements, 152064);
  EXPECT_EQ(rows().vocabularies[0].models.size(), 2u);
  ASSERT_FALSE(rows().caches.empty());
  EXPECT_EQ(rows().caches[0].elements, 4 * 128);
}

/// 4,096 x 152,064 x 4 bytes = 2.32 GiB.
TEST(UnknownModel, LogitsThatAStackTellsAreNamed) {
  const Failure f = asked("2.32 GiB");
  Verdict v{.cause = Cause::logits, .confidence = 0.9};
  name_by_public_rows(v, f, rows());
  ASSERT_TRUE(v.tensor) << v.why;
  EXPECT_EQ(v.tensor->shape, (Shape{4096, 152064}));
  EXPECT_EQ(v.tensor->dtype, "fp32");
  EXPECT_EQ(v.confidence, 0.9);
}

TEST(UnknownModel, WhatFitsNothingRoundIsNotNamed) {
  Verdict v{.cause = Cause::logits, .confidence = 0.9};
  name_by_public_rows(v, asked("2.71 GiB"), rows());
  EXPECT_FALSE(v.tensor);
  EXPECT_EQ(v.why, "");
}

/// Where another vocabulary has as many bytes the size tells none of them.
TEST(UnknownModel, SeveralVocabulariesAreSaidToBeSeveral) {
  PublicRows two = rows();
  two.vocabularies.push_back({152064 * 2, {"another"}});
  Verdict v{.cause = Cause::logits, .confidence = 0.9};
  name_by_public_rows(v, asked("2.32 GiB"), two);
  EXPECT_FALSE(v.tensor);
  EXPECT_NE(v.why.find("Several fit"), std::string::npos) << v.why;
}

/// 65,536 tokens of 4 heads of 128 in 2 bytes: 64 MiB.
TEST(UnknownModel, CachesAreReckonedAndNotNamed) {
  Verdict v{.cause = Cause::kv_cache, .confidence = 0.7};
  name_by_public_rows(v, asked("64.00 MiB"), rows());
  EXPECT_FALSE(v.tensor);
  EXPECT_NE(v.why.find("65,536 x 512"), std::string::npos) << v.why;
}

TEST(UnknownModel, OtherCausesAndRuntimesAreLeftAlone) {
  Failure f = asked("2.32 GiB");
  EXPECT_FALSE(may_name_rows({}, f)) << "a size alone tells nothing";
  const Verdict v{.cause = Cause::logits};
  EXPECT_TRUE(may_name_rows(v, f));
  f.foreign = true;
  EXPECT_FALSE(may_name_rows(v, f));
}

}  // namespace
}  // namespace vlmest::diagnose::unknown_model_test
