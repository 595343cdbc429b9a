// SPDX-License-Identifier: Apache-2.0
// What somebody tells of a failure in sentences, and what is guessed from it.
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/diagnose/evidence/text/story.hpp>
#include <vlmest/diagnose/evidence/text/story_run_words.hpp>
#include <vlmest/diagnose/verdict/judge_story.hpp>

namespace vlmest::diagnose::story_test {
namespace {

std::string guess(std::string_view text, StoryContext c = {.says_memory = true}) {
  const auto v = judge_story(read_story(text), c);
  return v ? std::string(name(v->cause)) : "";
}

TEST(Story, SentencesAreToldFromLinesOfPrograms) {
  EXPECT_TRUE(read_story("the run was killed after an hour\n").has(Topic::killed));
  EXPECT_FALSE(read_story("--killed \\\n").has(Topic::killed));
  EXPECT_FALSE(read_story("  File \"/a/the run was killed .py\", line 1, in f\n").has(Topic::killed));
  EXPECT_EQ(read_story("\n\nthe run was killed\n")[Topic::killed]->line, 3);
  EXPECT_TRUE(read_story("训练到一半被kill掉\n").has(Topic::killed));
  // Torch's own advice is nobody's tale.
  EXPECT_FALSE(read_story("Tried to allocate 2 GiB. try setting max_split_size_mb to avoid fragmentation.\n")
                   .has(Topic::fragments));
  EXPECT_TRUE(read_story("").empty());
}

TEST(Story, MemoryOfTheHostIsToldFromThatOfTheDevice) {
  EXPECT_TRUE(read_story("I have 64GB of RAM and it is full\n").has(Topic::host));
  EXPECT_FALSE(read_story("I have 24 GB of CUDA RAM here\n").has(Topic::host));
  EXPECT_TRUE(read_story("内存不够\n").has(Topic::host));
  EXPECT_FALSE(read_story("显存不够\n").has(Topic::host));
}

TEST(Story, Figures) {
  EXPECT_EQ(read_story("I train on 8*A100 with LLaVA-v1.5-13B and a 7b head\n").gpus, 8);
  EXPECT_EQ(read_story("I train on 8*A100 with LLaVA-v1.5-13B and a 7b head\n").parameters, 13e9);
  EXPECT_EQ(read_story("4卡训练时报错显存溢出\n").gpus, 4);
  EXPECT_EQ(read_story("it tries to allocate 200 GiB of memory\n").largest, 200.0 * (1LL << 30));
  EXPECT_EQ(read_story("3e4b8b commit 12bb\n").parameters, 0);
}

TEST(Story, WhatAMachineHasIsNoUse) {
  EXPECT_FALSE(read_story("I run it with 16 GB VRAM and 64 GB RAM on this box\n").has(Topic::host));
  EXPECT_TRUE(read_story("the 64 GB RAM are full after an hour\n").has(Topic::host));
}

TEST(Story, AGpusMemoryIsToldOrKnownByItsName) {
  const auto gib = [](std::string_view text) { return read_story(text).device / 1073741824.0; };
  EXPECT_EQ(gib("I train on a 3090 GPU with 24GB memory here\n"), 24);
  EXPECT_EQ(gib("it does not fit a 16 GB card at all\n"), 16);
  EXPECT_EQ(gib("显卡：NVIDIA GeForce RTX 3080 supports bf16.\n"), 12);
  EXPECT_EQ(gib("we use one a100 for it\n"), 80);
  EXPECT_EQ(gib("step 3090 of 4090 took 24 GB of disk\n"), 0);
  EXPECT_EQ(gib("the log of 16 GB is in my home\n"), 0);
}

TEST(Story, SettingsThatAreOffAreNoTalk) {
  EXPECT_FALSE(read_story("[INFO:swift] use_logits_to_keep: False\n").has(Topic::logits));
  EXPECT_TRUE(read_story("model(x, logits_to_keep=1)\n").has(Topic::logits));
  EXPECT_FALSE(read_story("OOM on a T4 with HuggingFace (Non-vLLM)\n").has(Topic::serves));
  EXPECT_FALSE(read_story("I offload the optimizer states to the host\n").has(Topic::states));
}

TEST(Story, AVocabularyIsTold) {
  EXPECT_EQ(read_story("Qwen2.5 (vocab=151936) at 4096\n").vocabulary, 151936);
  EXPECT_EQ(read_story("  \"vocab_size\": 32000,\n").vocabulary, 32000);
  EXPECT_EQ(read_story("vocab of 12 words, vocab_size 99999999\n").vocabulary, 0);
}

TEST(Story, GrowthTakesAWordOfMemoryOneOfGrowthAndOneOfTime) {
  EXPECT_TRUE(read_story("memory usage increases with every step\n").has(Topic::grows));
  EXPECT_FALSE(read_story("memory usage increases with resolution\n").has(Topic::grows));
  EXPECT_FALSE(read_story("the loss increases with every step\n").has(Topic::grows));
  EXPECT_FALSE(read_story("the loss keeps increasing\n").has(Topic::grows));
}

TEST(Story, LongTextsAreReadAtBothEnds) {
  const std::string filler(300 << 10, '\n');
  const std::string text = filler + std::string(300 << 10, '\n') + "the run was killed\n";
  const auto s = read_story(text);
  ASSERT_TRUE(s.has(Topic::killed));
  EXPECT_EQ(s[Topic::killed]->line, 1 + 2 * (300 << 10));
}

TEST(Story, Causes) {
  EXPECT_EQ(guess("the host memory is used up\n"), "host_memory");
  EXPECT_EQ(guess("memory usage grows with every step\n"), "leak");
  EXPECT_EQ(guess("OOM at logits.float() in the loss\n"), "logits");
  EXPECT_EQ(guess("my GPU does not support flash attention\n"), "attention_scores");
  EXPECT_EQ(guess("OOM when saving the checkpoint\n"), "weights");
  EXPECT_EQ(guess("GRPO training with vllm runs out of memory\n"), "engine_budget");
  EXPECT_EQ(guess("the 72B model is out of memory in inference\nmodel-72b\n"), "weights");
  EXPECT_EQ(guess("full finetuning is out of memory\n"), "optimizer_state");
  EXPECT_EQ(guess("training with many images is out of memory\n"), "vision_tiles");
  EXPECT_EQ(guess("vllm serve qwen\n"), "profile_run");
  EXPECT_EQ(guess("sglang.launch_server\n"), "weights");
  EXPECT_EQ(guess("my training is out of memory\n"), "activations");
  EXPECT_EQ(guess("my training is slow as the dataloader waits\n", {}), "slow_data");
  EXPECT_EQ(guess("my training does not start\n", {}), "");
}

// Words that stand in a text for other reasons.
TEST(Story, WordsOfOtherThings) {
  const std::string trains = "my training is out of memory\n";
  EXPECT_EQ(guess(trains + "trainer.train()\nmodel.save_pretrained(\"out\")\n"), "activations");
  EXPECT_EQ(guess(trains + "  File \"/x/trainer.py\", line 7, in _save_checkpoint\n"), "weights");
  EXPECT_EQ(guess(trains + "If applicable, add screenshots to help explain your problem.\n"), "activations");
  EXPECT_EQ(guess(trains + "  - Intel(R) oneAPI Math Kernel Library Version 2022.1-Product Build\n"), "activations");
  EXPECT_EQ(guess(trains + "dynamo hit an error and is falling back to eager execution\n"), "activations");
  EXPECT_EQ(guess(trains + "a warning: Falling back to eager attention\n"), "attention_scores");
  EXPECT_EQ(guess("my training is slow with preprocessor_config.json from the hub\n", {}), "");
  EXPECT_EQ(guess("my training is slow as image preprocessing takes long\n", {}), "slow_data");
}

// What DeepSpeed's launcher calls its function, and engines that are turned off.
TEST(Story, NamesThatTellNothing) {
  EXPECT_FALSE(read_story("[INFO] [launch.py:315:sigkill_handler] Killing subprocess 2442\n").has(Topic::killed));
  EXPECT_TRUE(read_story("Signal 9 (SIGKILL) received by PID 394968\n").has(Topic::killed));
  EXPECT_FALSE(read_story("    max_steps=10, use_vllm=False,\n").has(Topic::serves));
  EXPECT_TRUE(read_story("    max_steps=10, use_vllm=True,\n").has(Topic::serves));
  EXPECT_EQ(guess("GRPO training is out of memory, with use_vllm=False here\n"), "activations");
}

TEST(Story, WhatAGpuOrItsHostIs) {
  EXPECT_EQ(guess("inference of one image with a V100 is out of memory\n"), "attention_scores");
  EXPECT_EQ(guess("inference of one image with an A100 is out of memory\n"), "vision_tiles");
  EXPECT_EQ(guess("training with images on a V100 is out of memory\n"), "vision_tiles");
  EXPECT_EQ(guess("my GPU is underutilized while the CPU is at 100% all day\n", {}), "host_bound");
  EXPECT_EQ(guess("my GPU and its CPU are at 100% all day\n", {}), "");
  EXPECT_EQ(guess("vllm is out of memory in its profiling stage, before the KV cache is made\n"), "profile_run");
  EXPECT_EQ(guess("vllm is out of memory as the KV cache is too small\n"), "kv_cache");
}

// Tensor parallelism divides the weights of a model that no single device holds.
TEST(Story, WeightsAreDividedByDevices) {
  constexpr double device = 80.0 * (1LL << 30);
  const auto on = [&](int gpus) { return StoryContext{.says_memory = true, .device = device, .gpus = gpus}; };
  EXPECT_EQ(guess("model-72b is out of memory in inference\nsglang.launch_server\n", on(1)), "weights");
  EXPECT_EQ(story_rule(read_story("model-72b is out of memory in inference\n"), on(1)), StoryRule::too_large);
  EXPECT_NE(story_rule(read_story("model-72b is out of memory in inference\n"), on(4)), StoryRule::too_large);
}

// What engines take for themselves is none of a server's that may have transformers answer.
TEST(Story, AServerIsNoEngine) {
  Failure f;
  f.requested = PrintedSize::exactly(Bytes(std::int64_t{7} << 30));
  const StoryContext c{.says_memory = true, .failure = &f};
  EXPECT_EQ(guess("xinference has create_chat_completion\n", c), "attention_scores");
  EXPECT_EQ(guess("xinference has create_chat_completion\nvllm.engine\n", c), "engine_budget");
}

// A row behind one whose words are part of its own is never asked.
TEST(Story, NoRowOfWordsIsInVain) {
  std::vector<story_words::Words> all(story_words::of_failures.begin(), story_words::of_failures.end());
  all.insert(all.end(), story_words::of_runs.begin(), story_words::of_runs.end());
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      EXPECT_FALSE(all[k].topic == all[i].topic && all[i].words.find(all[k].words) != std::string_view::npos &&
                   (all[k].in == story_words::In::any_line || all[i].in == story_words::In::sentence))
          << all[i].words << ", " << all[k].words;
}

// Weights of two bytes, gradients of two and states of twelve, on each GPU unless they are divided.
TEST(Story, StatesByTheNumberOfParameters) {
  constexpr double device = 80.0 * (1LL << 30);
  const StoryContext c{.says_memory = true, .device = device};
  EXPECT_EQ(guess("I train the vicuna-7b model here\n", c), "optimizer_state");
  EXPECT_EQ(guess("I train the vicuna-7b model here on 8 GPUs with zero3\n", c), "activations");
  EXPECT_EQ(guess("I train the vicuna-7b model here with lora\n", c), "activations");
  // What the host holds does not fill the device.
  EXPECT_EQ(guess("I train the vicuna-7b model here with optimizer offload\n", c), "activations");
  EXPECT_EQ(guess("full fine-tuning here with zero3 and offload\n", c), "activations");
}

// What is given as the reason is told by the text.
TEST(Story, ReasonsDoNotSayWhatNobodyTold) {
  const auto why = [](std::string_view text) { return judge_story(read_story(text), {.says_memory = true})->why; };
  const auto has = [](const std::string& s, const char* part) { return s.find(part) != std::string::npos; };
  EXPECT_TRUE(has(why("Qwen2-VL is out of memory in training with LoRA\n"), "in their own size"));
  EXPECT_FALSE(has(why("my inference is out of memory\n"), "in their own size"));
  EXPECT_TRUE(has(why("vllm serve qwen\n"), "runs its largest inputs")) << why("vllm serve qwen\n");
  EXPECT_FALSE(has(why("sglang.launch_server\n"), "runs its largest inputs"));
  Failure f;
  f.requested = PrintedSize::exactly(Bytes(std::int64_t{20} << 30));
  const auto v = judge_story(read_story("my training is out of memory\n"), {.says_memory = true, .failure = &f});
  ASSERT_TRUE(v);
  EXPECT_EQ(v->cause, Cause::attention_scores);
  EXPECT_FALSE(has(v->why, "inference")) << v->why;
}

TEST(Story, NoGuessIsLikelierThanNot) {
  for (std::size_t i = 0; i < story_rules; ++i) {
    EXPECT_GT(oom_confidence::of_story(i), 0) << i;
    EXPECT_LT(oom_confidence::of_story(i), 0.5) << i;
  }
}

// The counts are found by the sentence of each rule (cli_open_corpus_test.cpp).
TEST(Story, EachRuleHasItsOwnWords) {
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < story_rules; ++i) EXPECT_TRUE(seen.insert(reason(static_cast<StoryRule>(i))).second) << i;
}

}  // namespace
}  // namespace vlmest::diagnose::story_test
