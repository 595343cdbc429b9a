// SPDX-License-Identifier: Apache-2.0
// Public failures whose causes are settled (tests/data/corpus/requests.json): how many of their requests are read
// rightly, and how many misleadingly. The bounds are what is reached; the cases that stay open are named beside them.
#include <algorithm>
#include <fstream>
#include <map>

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <vlmest/diagnose/advise/action/generic_actions.hpp>
#include <vlmest/diagnose/evidence/oom/reader.hpp>
#include <vlmest/diagnose/verdict/judge.hpp>
#include <vlmest/diagnose/verdict/judge_run.hpp>
#include <vlmest/json/model.hpp>

#include "../sanitizer.hpp"
#include "args.hpp"
#include "files.hpp"

namespace vlmest::diagnose::corpus_requests_test {
namespace {

using Json = nlohmann::json;

const Json& cases() {
  static const Json all = [] {
    std::ifstream in(std::string(VLMEST_SOURCE_DIR) + "/tests/data/corpus/requests.json");
    return Json::parse(in).at("cases");
  }();
  return all;
}

struct Answer {
  Failure failure;
  Verdict verdict;
};

/// As `vlmest diagnose` answers, with the flags of the case or without any.
Answer answer(const Json& c, bool with_flags) {
  std::string text;
  for (const auto& line : c.at("evidence")) text += line.get<std::string>() + "\n";
  const auto messages = find_oom_messages(text);
  if (messages.empty()) return {};
  const auto first = std::find_if(messages.begin(), messages.end(), [](const OomMessage& m) { return m.has_numbers; });
  Answer a{.failure = failure_of(first == messages.end() ? messages.front() : *first), .verdict = {}};
  tool::EstimateArgs args;
  if (with_flags) {
    CLI::App app;
    args.add_to(app);
    std::vector<std::string> flags;
    for (const auto& f : c.at("flags")) flags.push_back(f.get<std::string>());
    const auto gpus = std::find(flags.begin(), flags.end(), "--gpus");
    if (gpus != flags.end()) flags.erase(gpus, gpus + 2);
    const bool named = std::find(flags.begin(), flags.end(), "--config") != flags.end();
    if (named) {
      std::reverse(flags.begin(), flags.end());
      app.parse(flags);
      const Vlm vlm = tool::find_model(args.config);
      const Settings s{.vlm = vlm, .plan = args.make_plan(), .allocator = {}, .placement = {}};
      std::optional<Mode> mode;
      if (args.phase != "all") mode = args.phase == "train" ? Mode::training : Mode::inference;
      Estimator estimator;
      a.verdict = judge(a.failure, s, tool::find_device(args.device), mode, estimator);
      return a;
    }
  }
  a.verdict = judge(a.failure);
  return a;
}

const Json& named(const std::string& name) {
  for (const Json& c : cases())
    if (c.at("name") == name) return c;
  throw std::out_of_range(name);
}

/// Causes that the settled ones are called here.
bool is_right(const std::string& truth, Cause c) {
  if (truth == "rollout_engine") return c == Cause::engine_budget;
  return truth == name(c);
}
/// A mask is quadratic in what there is too much of: what is named is the tensor, not the input.
bool is_partly(const std::string& truth, Cause c) {
  return c == Cause::attention_scores && (truth == "vision_tokens" || truth == "sequence_length");
}

struct Counts {
  int right = 0, partly = 0, open = 0, misleading = 0;
  std::string names;
};
Counts count(bool with_flags) {
  Counts n;
  for (std::size_t i = 0; i < cases().size(); i += one_in(4)) {
    const Json& c = cases()[i];
    const Verdict v = answer(c, with_flags).verdict;
    const std::string truth = c.at("true_cause").get<std::string>();
    if (v.cause == Cause::unknown)
      ++n.open;
    else if (is_right(truth, v.cause))
      ++n.right;
    else if (is_partly(truth, v.cause))
      ++n.partly;
    else {
      ++n.misleading;
      n.names += c.at("name").get<std::string>() + ": " + std::string(name(v.cause)) + "; ";
    }
  }
  return n;
}

}  // namespace

// Open: two of GLM-4V's weights, without a stack, ggml's pools without a size, an SAM bias of 730 MiB, scores of 3.77
// GiB in a training that logits could have as well. Misleading: an engine's tower in a trainer's process, read as the
// trainer's.
TEST(CorpusRequests, WithFlags) {
  const Counts n = count(true);
  if (under_address_sanitizer) return;  // one case in four was looked at
  EXPECT_EQ(n.right, 17) << n.names;
  EXPECT_EQ(n.partly, 2) << n.names;
  EXPECT_EQ(n.open, 6) << n.names;
  EXPECT_EQ(n.misleading, 1) << n.names;
}

// Without flags the size of 256 dummy pictures is nobody's: the forward in the stack is all that is left.
TEST(CorpusRequests, WithoutFlags) {
  const Counts n = count(false);
  if (under_address_sanitizer) return;
  EXPECT_EQ(n.right, 16) << n.names;
  EXPECT_EQ(n.partly, 2) << n.names;
  EXPECT_EQ(n.open, 6) << n.names;
  EXPECT_EQ(n.misleading, 2) << n.names;
}

TEST(CorpusRequests, LengthsToTheLastDigit) {
  for (const auto& [name, length] : std::map<std::string, std::int64_t>{
           {"dinference660", 96516}, {"lmstudio2240", 39026}, {"mlxvlm121", 65044}, {"mlxvlm167", 65536}}) {
    const Answer a = answer(named(name), false);
    ASSERT_TRUE(a.verdict.tensor) << name;
    EXPECT_EQ(a.verdict.tensor->shape, (Shape{1, 16, length, length})) << name;
    EXPECT_EQ(a.verdict.tensor->bytes.value(), named(name).at("asked_bytes").get<std::int64_t>()) << name;
  }
}

TEST(CorpusRequests, HeadsAndPatchesOfTheModel) {
  const Answer video = answer(named("videor115"), true);
  ASSERT_TRUE(video.verdict.tensor);
  EXPECT_EQ(video.verdict.tensor->shape, (Shape{1, 16, 66356, 66356}));
  EXPECT_NE(video.verdict.why.find("more than one picture has (65,536)"), std::string::npos) << video.verdict.why;
  EXPECT_NE(video.verdict.why.find("math path"), std::string::npos);
  ASSERT_TRUE(video.verdict.explanation);
  EXPECT_FALSE(video.verdict.explanation->holds);
  // ggml asks for a whole graph: the scores are at most that, in fp32.
  const Answer ggml = answer(named("llamacpp12586"), true);
  ASSERT_TRUE(ggml.verdict.tensor);
  EXPECT_EQ(ggml.verdict.tensor->dtype, "fp32");
  EXPECT_NE(ggml.verdict.why.find("at most"), std::string::npos) << ggml.verdict.why;
}

TEST(CorpusRequests, MultiplesOfAnEnginesPictures) {
  const Answer unfold = answer(named("vllm9356"), true);
  EXPECT_NE(unfold.verdict.why.find("256 pictures of 4 tiles"), std::string::npos) << unfold.verdict.why;
  EXPECT_NE(unfold.verdict.why.find("in fp32"), std::string::npos);
  const Answer shared = answer(named("vllm10034"), true);
  EXPECT_NE(shared.verdict.why.find("divided over 2 GPUs"), std::string::npos) << shared.verdict.why;
  const Answer ten = answer(named("vllm22173"), true);
  EXPECT_NE(ten.verdict.why.find("10 pictures"), std::string::npos) << ten.verdict.why;
}

TEST(CorpusRequests, ASequenceGivenIsAnUpperBound) {
  const Failure f = answer(named("lmstudio2240"), false).failure;
  const std::vector<AttentionHeads> text{{.part = Part::language, .scope = {}, .heads = 16}};
  EXPECT_FALSE(score_matrices(f, text, {.seq = 40000}).empty());
  EXPECT_TRUE(score_matrices(f, text, {.seq = 39025}).empty());
}

TEST(CorpusRequests, ActionsInGeneralActOnTheRuntime) {
  for (const Json& c : cases()) {
    const Answer a = answer(c, false);
    const auto actions = generic_actions_of(a.verdict, a.failure, {.mode = Mode::inference});
    EXPECT_FALSE(actions.empty()) << c.at("name");
    for (const Action& x : actions) {
      EXPECT_TRUE(x.generic && !x.fits && !x.fits_known && x.saves == Bytes{} && !x.how.empty()) << name(x.id);
      if (!a.failure.foreign) continue;
      for (const char* torch : {"from_pretrained", "PYTORCH", "BitsAndBytes", "--max-num-seqs"})
        EXPECT_EQ(x.how.find(torch), std::string::npos) << c.at("name") << ": " << x.how;
    }
  }
}

TEST(CorpusRequests, WhatIsInForceIsNotOffered) {
  const Answer a = answer(named("qwenvl26"), false);
  Plan plan;
  plan.weights = DType::nf4;
  for (const Action& x : generic_actions_of(a.verdict, a.failure, {.mode = Mode::inference, .plan = &plan}))
    EXPECT_NE(x.id, action_id("weights-nf4"));
}

}  // namespace vlmest::diagnose::corpus_requests_test
