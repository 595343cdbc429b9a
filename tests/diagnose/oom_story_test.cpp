// SPDX-License-Identifier: Apache-2.0
// One consistent answer: what a verdict says of the tensor, of the settings and of the phase agrees with itself.
#include <filesystem>
#include <fstream>
#include <sstream>

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <vlmest/diagnose/advise/action/catalogue.hpp>
#include <vlmest/diagnose/advise/action/remedies.hpp>
#include <vlmest/diagnose/evidence/oom/reader.hpp>
#include <vlmest/diagnose/verdict/judge.hpp>
#include <vlmest/diagnose/verdict/judge_run.hpp>
#include <vlmest/json/model.hpp>

#include "../sanitizer.hpp"
#include "args.hpp"
#include "files.hpp"

namespace vlmest::diagnose::oom_story_test {
namespace {

const std::string data = std::string(VLMEST_SOURCE_DIR) + "/tests/data/";

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream s;
  s << in.rdbuf();
  return s.str();
}

struct Asked {
  Settings settings;
  std::optional<Mode> mode;
};
Asked asked(std::vector<std::string> flags) {
  tool::EstimateArgs args;
  CLI::App app;
  args.add_to(app);
  std::reverse(flags.begin(), flags.end());
  app.parse(flags);
  Asked a{{.vlm = tool::find_model(args.config), .plan = args.make_plan(), .allocator = {}, .placement = {}}, {}};
  if (args.phase != "all") a.mode = args.phase == "train" ? Mode::training : Mode::inference;
  return a;
}

const Device& device() {
  static const Device d = tool::find_device("h200-sxm");
  return d;
}

bool has(const std::string& text, std::string_view words) { return text.find(words) != std::string::npos; }

void expect_one_story(const Verdict& v, const Failure& f, const std::string& name) {
  EXPECT_FALSE(v.why.empty()) << name;
  EXPECT_GE(v.confidence, 0) << name;
  EXPECT_LT(v.confidence, 1) << name;
  if (has(v.why, "no tensor of these settings has that size")) {
    EXPECT_TRUE(v.hypotheses.empty()) << name << ": " << v.why;
    EXPECT_FALSE(v.tensor) << name << ": " << v.why;
  }
  if (has(v.why, "asked for was")) {
    EXPECT_TRUE(v.tensor) << name << ": " << v.why;
  }
  ASSERT_TRUE(v.explanation) << name;
  if (!v.explanation->changes.empty()) {
    EXPECT_FALSE(v.explanation->holds) << name;
    EXPECT_TRUE(v.changed) << name;
    EXPECT_TRUE(v.solutions.empty()) << name;
    EXPECT_TRUE(has(v.why, v.explanation->changes.front().flag)) << name << ": " << v.why;
  }
  // What the settings do not explain is not sure, unless the stack or the figures alone tell it.
  if (!v.explanation->holds && ground(f) != Ground::stack && v.cause != Cause::other_process && !f.growth) {
    EXPECT_LT(v.confidence, 0.9) << name << ": " << v.why;
  }
  if (!v.explanation->holds)
    for (const Action& a : memory_remedies(v, f)) {
      EXPECT_FALSE(a.fits && a.fits_known && a.id == action_id("let-go") && !f.growth) << name;
      EXPECT_FALSE(a.fits && a.fits_known && a.id == action_id("allocator-expandable")) << name;
    }
}

/// Each recorded run, with its own flags and with twice the batch, which no run had.
TEST(OomStory, OfEveryRecordedRun) {
  std::size_t runs = 0;
  Estimator e;
  for (const std::string folder : {"oom_runs/", "oom_held_out/"}) {
    const auto index = nlohmann::json::parse(read(data + folder + "index.json"));
    for (const auto& run : index.at("runs")) {
      auto flags = run.at("flags").get<std::vector<std::string>>();
      if (flags.empty() || runs++ % one_in(8) != 0) continue;
      const std::string name = run.at("case");
      for (std::size_t i = 0; i + 1 < flags.size(); ++i)
        if (flags[i] == "--config")
          flags[i + 1] = data + (folder == "oom_runs/" ? "" : folder) + "configs/" + flags[i + 1] + ".json";
      const Failure f = failure_of(find_oom_messages(read(data + folder + name + ".txt")).at(0));
      Asked a = asked(flags);
      expect_one_story(judge(f, a.settings, device(), a.mode, e), f, name);
      a.settings.plan.batch *= 2;
      expect_one_story(judge(f, a.settings, device(), a.mode, e), f, name + ", twice the batch");
    }
  }
  EXPECT_EQ(runs, 65u);
}

Failure failure(const std::string& run) { return failure_of(find_oom_messages(read(data + "oom_runs/" + run)).at(0)); }

/// The flag that was left out is found, and the actions are of the run with it.
TEST(OomStory, TheFlagThatWasLeftOutIsNamed) {
  Estimator e;
  const Failure f = failure("training_logits.txt");
  const Asked a = asked({"--config", data + "configs/qwen2.5-vl-3b.json", "--batch", "4", "--text", "4096",
                         "--image-size", "448x448", "--phase", "train"});
  const Verdict v = judge(f, a.settings, device(), a.mode, e);
  EXPECT_EQ(v.cause, Cause::logits) << v.why;
  ASSERT_TRUE(v.explanation);
  EXPECT_FALSE(v.explanation->holds);
  ASSERT_FALSE(v.explanation->changes.empty()) << v.why;
  EXPECT_EQ(v.explanation->changes.front().flag, "--checkpointing full");
  ASSERT_TRUE(v.changed);
  EXPECT_EQ(v.changed->checkpointing, Checkpointing::full);
  EXPECT_TRUE(has(v.why, "with --checkpointing full it would be")) << v.why;
}

/// A stack that tells a phase alone: a length that is solved for has the size by construction and explains nothing.
TEST(OomStory, ALengthThatWouldHaveTheSizeIsNoExplanation) {
  const Failure f = failure_of(
      find_oom_messages("  File \"/x/site-packages/torch/autograd/graph.py\", line 865, in _engine_run_backward\n"
                        "    return Variable._execution_engine.run_backward(\n"
                        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has a total "
                        "capacity of 79.10 GiB of which 1.10 GiB is free. Including non-PyTorch memory, this process "
                        "has 77.90 GiB memory in use. Of the allocated memory 76.50 GiB is allocated by PyTorch, and "
                        "300.00 MiB is reserved by PyTorch but unallocated.\n")
          .at(0));
  Estimator e;
  for (const char* model : {"llava-1.5-7b", "internvl3-2b"}) {
    const Asked a = asked({"--config", data + "configs/" + model + ".json", "--batch", "4", "--phase", "train"});
    const Verdict v = judge(f, a.settings, device(), a.mode, e);
    EXPECT_FALSE(has(v.why, "with --text")) << model << ": " << v.why;
    EXPECT_LT(v.confidence, 0.9) << model << ": " << v.why;
  }
}

/// Adapters alone need a third of what was allocated: not 95 % of anything.
TEST(OomStory, SettingsThatAreTwiceOffAreSaidNotToExplain) {
  Estimator e;
  const Failure f = failure("backward_gradients.txt");
  const Asked a = asked({"--config", data + "configs/llava-1.5-7b.json", "--text", "128", "--lora", "16", "--phase",
                         "train", "--checkpointing", "full"});
  const Verdict v = judge(f, a.settings, device(), a.mode, e);
  EXPECT_FALSE(v.explanation->holds) << v.why;
  EXPECT_EQ(v.cause, Cause::gradients) << v.why;
  ASSERT_FALSE(v.explanation->changes.empty()) << v.why;
  EXPECT_EQ(v.explanation->changes.front().flag, "no --lora");
}

/// Without --phase the evidence decides, and what contradicts it is said.
TEST(OomStory, ThePhaseIsTheEvidences) {
  Estimator e;
  const Failure f = failure("backward_gradients.txt");
  ASSERT_TRUE(f.told);
  EXPECT_EQ(f.told->mode, Mode::training);
  const Asked a = asked({"--config", data + "configs/llava-1.5-7b.json", "--text", "128", "--checkpointing", "full"});
  const Verdict v = judge(f, a.settings, device(), std::nullopt, e);
  EXPECT_EQ(v.mode, Mode::training);
  EXPECT_EQ(v.mode_by, f.told->by);
  const Verdict wrong = judge(f, a.settings, device(), Mode::inference, e);
  EXPECT_EQ(wrong.mode, Mode::inference);  // an explicit flag wins
  EXPECT_FALSE(wrong.explanation->holds) << wrong.why;
  EXPECT_TRUE(has(wrong.why, "--phase says inference, but ")) << wrong.why;
}

TEST(OomStory, FramesOfTrainersAndServersDecide) {
  const auto told = [](std::vector<Frame> frames) { return told_mode(frames, run_phase(frames)); };
  const auto frame = [](const char* file, const char* function, const char* code = "") {
    return Frame{.file = file, .line = 1, .function = function, .code = code};
  };
  EXPECT_EQ(told({frame("train.py", "<module>", "trainer.train()"), frame("trainer.py", "training_step"),
                  frame("modeling.py", "forward")})
                ->mode,
            Mode::training);
  EXPECT_EQ(told({frame("trainer.py", "evaluation_loop"), frame("trainer.py", "compute_loss")})->mode, Mode::inference);
  EXPECT_EQ(told({frame("trl/trainer/grpo_trainer.py", "training_step"), frame("x/vllm/engine.py", "run")})->mode,
            Mode::inference);
  EXPECT_EQ(told({frame("trl/trainer/sft_trainer.py", "run"), frame("modeling.py", "forward")})->mode, Mode::training);
  EXPECT_EQ(told({frame("x.py", "forward"), frame("y/torch/utils/checkpoint.py", "checkpoint")})->mode, Mode::training);
  EXPECT_FALSE(told({frame("x.py", "main"), frame("modeling.py", "forward")}));
}

/// 17 GiB in pieces, and 20 MiB that none of them serves.
TEST(OomStory, ManyPiecesAndASmallRequest) {
  const auto m = find_oom_messages(
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 79.15 "
      "GiB "
      "of which 10.00 MiB is free. Including non-PyTorch memory, this process has 79.10 GiB memory in use. Of the "
      "allocated memory 61.20 GiB is allocated by PyTorch, and 17.10 GiB is reserved by PyTorch but unallocated.");
  ASSERT_EQ(m.size(), 1u);
  const Failure f = failure_of(m.front());
  const Verdict v = judge(f);
  EXPECT_EQ(v.cause, Cause::fragmentation) << v.why;
  EXPECT_TRUE(has(v.why, "22 % of what is reserved")) << v.why;
  const auto actions = memory_remedies(v, f);
  std::vector<std::string> ids;
  for (const Action& a : actions) ids.emplace_back(name(a.id));
  EXPECT_EQ(ids,
            (std::vector<std::string>{"allocator-expandable", "empty-cache", "allocator-gc", "allocator-max-split"}));
}

/// 2.41 GiB beside 73.91 GiB of tensors are not the cause, but would have served 426 MiB.
TEST(OomStory, FewPiecesAreNamedBesideAnotherCause) {
  const auto m = find_oom_messages(
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 426.00 MiB. GPU 3 has a total capacity of 79.32 "
      "GiB "
      "of which 69.56 MiB is free. Including non-PyTorch memory, this process has 79.25 GiB memory in use. Of the "
      "allocated memory 73.91 GiB is allocated by PyTorch, and 2.41 GiB is reserved by PyTorch but unallocated.");
  const Failure f = failure_of(m.at(0));
  const Verdict v = judge(f);
  EXPECT_EQ(v.cause, Cause::unknown) << v.why;
  EXPECT_TRUE(has(v.why, "2.41 GiB that are reserved and not in use would have served it")) << v.why;
  const auto actions = memory_remedies(v, f);
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(name(actions.front().id), "allocator-expandable");
  EXPECT_FALSE(actions.front().fits);
}

}  // namespace
}  // namespace vlmest::diagnose::oom_story_test
