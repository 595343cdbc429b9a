// SPDX-License-Identifier: Apache-2.0
// What sentences tell by several words together, and models by their names alone.
#include <gtest/gtest.h>

#include <vlmest/diagnose/evidence/text/busy_tells.hpp>
#include <vlmest/diagnose/evidence/text/one_memory.hpp>
#include <vlmest/diagnose/evidence/text/public_models.hpp>
#include <vlmest/diagnose/evidence/text/story.hpp>
#include <vlmest/diagnose/verdict/judge_story.hpp>

namespace vlmest::diagnose::sentence_tells_test {
namespace {

bool tells(Topic t, std::string_view text) { return read_story(text).has(t); }

std::string guess(std::string_view text, StoryContext c = {.says_memory = true}) {
  const auto v = judge_story(read_story(text), c);
  return v ? std::string(name(v->cause)) : "";
}

TEST(SentenceTells, ALackOfTheMachinesMemory) {
  EXPECT_TRUE(tells(Topic::host, "The actors died of CPU Out of Memory while they loaded\n"));
  EXPECT_TRUE(tells(Topic::host, "we see a host OOM each night on this node\n"));
  EXPECT_TRUE(tells(Topic::host, "the RSS climbs until the container is restarted\n"));
  EXPECT_FALSE(tells(Topic::host, "I offload the states to the CPU out of memory concerns\n"));
  EXPECT_FALSE(tells(Topic::host, "CUDA out of memory on the first GPU of this server\n"));
}

TEST(SentenceTells, ACheckpointThatWasBeingWritten) {
  for (const char* text : {"OOM during saving step\n", "it is out of memory while saving the model\n",
                           "the GPU is full on save steps of the trainer\n"}) {
    EXPECT_TRUE(tells(Topic::saves, text)) << text;
    EXPECT_EQ(guess(text), "weights") << text;
  }
  EXPECT_FALSE(tells(Topic::saves, "which tricks help when saving memory is the aim\n"));
  EXPECT_FALSE(tells(Topic::saves, "I trained it with gradient checkpointing on two cards\n"));
  EXPECT_FALSE(tells(Topic::saves, "is there a memory saving mode for this model\n"));
}

TEST(SentenceTells, WhereInAStepItWas) {
  EXPECT_EQ(guess("training is OOM at the first optimizer.step() call\n"), "optimizer_state");
  EXPECT_EQ(guess("training is OOM when computing the loss of long answers\n"), "logits");
  EXPECT_EQ(guess("training is OOM and each optimization step takes long\n"), "activations");
}

TEST(SentenceTells, LimitsOfContainersAreTheMachines) {
  EXPECT_TRUE(tells(Topic::host, "the container hits its memory limit of 32 GB and restarts\n"));
  EXPECT_FALSE(tells(Topic::host, "in the container the GPU memory limit of 32 GB is hit\n"));
}

// Weights that nothing divides stand whole on each GPU, whatever is trained.
TEST(SentenceTells, AdaptersOfAModelThatDoesNotFit) {
  EXPECT_EQ(guess("LoRA training of LLaVA-34B on 8 RTX 3090 is out of memory\n"), "weights");
  EXPECT_EQ(guess("LoRA training of LLaVA-34B by ZeRO-3 on 8*A100 is out of memory\n"), "activations");
  EXPECT_EQ(guess("LoRA training of LLaVA-34B in 4bit on one A100 is out of memory\n"), "activations");
  EXPECT_EQ(guess("LoRA training of LLaVA-7B on one A100 is out of memory\n"), "activations");
}

TEST(SentenceTells, PredictionsThatAnEvaluationKeeps) {
  EXPECT_EQ(guess("the evaluation loop accumulates the predictions on the GPU\n"), "logits");
  EXPECT_NE(guess("training accumulates gradients over the batches of it\n"), "logits");
}

TEST(SentenceTells, InputsThatFailAreToldFromOthers) {
  // By the number of its parameters alone a training of these would be called one of states.
  const std::string run = "we finetune LLaVA-13B with full parameters\n";
  EXPECT_EQ(guess(run), "optimizer_state");
  EXPECT_EQ(guess(run + "it can handle 4 images of a sample but 8 images are out of memory\n"), "vision_tiles");
  EXPECT_EQ(guess(run + "the OOM comes after 40 steps of it\n"), "activations");
  EXPECT_EQ(guess(run + "the OOM comes after a few iterations of it\n"), "activations");
  EXPECT_EQ(guess(run + "the OOM comes after 1 step of it\n"), "optimizer_state");
}

TEST(SentenceTells, OneOfSeveralGpus) {
  EXPECT_EQ(guess("I have 4 x 4090 cards and inference puts it all on the same card, so OOM\n"), "weights");
  EXPECT_EQ(guess("with two GPUs the demo runs out of memory, but only one is used in inference\n"), "weights");
  EXPECT_TRUE(tells(Topic::one_device, "it does not run on the two GPUs but only one of them\n"));
  EXPECT_FALSE(tells(Topic::one_device, "I have only one GPU and no more\n"));
  EXPECT_FALSE(tells(Topic::one_device, "it works on two GPUs and on a single GPU\n"));
}

TEST(SentenceTells, ABatchOfCropsIsNoAnswer) {
  EXPECT_EQ(guess("inference of the detector is out of memory at a batch size of 256\n"), "activations");
  EXPECT_EQ(guess("DETECTOR_BATCH_SIZE is set to `36` here\nthe inference is out of memory\n"), "activations");
  EXPECT_NE(guess("inference with images is out of memory at batch size 1\n"), "activations");
  EXPECT_FALSE(tells(Topic::batches, "with a small batch size the GPU memory is at 24 GB here\n"));
}

TEST(SentenceTells, AGpuThatWorksByTurnsWaits) {
  EXPECT_EQ(guess("the GPU utilization fluctuates and the training takes long\n", {}), "slow_data");
  EXPECT_EQ(guess("the GPU utilization is at 60 % and the training takes long\n", {}), "");
}

TEST(SentenceTells, AServerThatAnswersHasStarted) {
  EXPECT_EQ(guess("sglang.launch_server --model x\nit is out of memory\n"), "weights");
  EXPECT_EQ(guess("sglang.launch_server --model x\nit is out of memory with 8 clients\n"), "engine_budget");
  EXPECT_EQ(guess("sglang.launch_server --model x\none request with 500 images is out of memory\n"), "vision_tiles");
}

TEST(SentenceTells, MemoryThatIsKept) {
  EXPECT_TRUE(tells(Topic::grows, "the converter never really releases its memory again\n"));
  EXPECT_FALSE(tells(Topic::grows, "there is not enough free memory on the device\n"));
}

TEST(SentenceTells, FullParametersAreTrained) {
  EXPECT_EQ(guess("can I run full parameters on one A100\n"), "optimizer_state");
}

TEST(SentenceTells, ABusyCpuAndAnIdleGpuOfTwoSentences) {
  EXPECT_TRUE(tells(Topic::busy_host, "the CPU sits at 100% on one core\nand the GPU usage is only about 20%\n"));
  EXPECT_TRUE(tells(Topic::busy_host, "发现cpu是单线程在跑\n而且显卡一直有所闲置\n"));
  EXPECT_FALSE(tells(Topic::busy_host, "the CPU sits at 100% on one core\nand the GPU usage is about 95%\n"));
  EXPECT_FALSE(tells(Topic::busy_host, "the CPU sits at 100% on one core\nthe GPU memory usage is 20%\n"));
  EXPECT_FALSE(tells(Topic::busy_host, "and the GPU usage is only about 20%\n"));
}

TEST(SentenceTells, OneOfSeveralGpusInChinese) {
  for (const char* text :
       {"我有8张卡，但是模型只用了一张\n", "4卡的机器上只占一张卡\n", "多卡推理时只加载到一块显卡上\n"})
    EXPECT_TRUE(tells(Topic::one_device, text)) << text;
  EXPECT_FALSE(tells(Topic::one_device, "8张图片，我只有一张卡\n"));
  EXPECT_FALSE(tells(Topic::one_device, "8张卡只能跑一半，剩下的时间都在等第一张\n"));
}

TEST(SentenceTells, AGpuThatWaitsForData) {
  EXPECT_TRUE(tells(Topic::slow_data, "my GPU is mostly waiting for data here\n"));
  EXPECT_FALSE(tells(Topic::slow_data, "my GPU waits for nothing\n"));
}

TEST(SentenceTells, LeastPercentages) {
  EXPECT_EQ(story::least_percentage("from 20% to 100%"), 20);
  EXPECT_EQ(story::least_percentage("97.5% or % or 1234%"), 101);
  EXPECT_EQ(story::least_percentage(""), 101);
}

TEST(OneMemory, MachinesAreNamedByWholeWords) {
  EXPECT_EQ(machine_of_one_memory("on my Jetson Orin NX 16G"), "jetson");
  EXPECT_EQ(machine_of_one_memory("mandatory on this UMA kit"), "uma");
  EXPECT_EQ(machine_of_one_memory("humans and a numa node"), "");
  EXPECT_EQ(machine_of_one_memory(""), "");
}

TEST(PublicModels, AreKnownByTheirNames) {
  EXPECT_EQ(public_models::parameters_in(" run.py --model internvl-chat-v1-5 --verbose "), 25.5e9);
  EXPECT_EQ(public_models::parameters_in("the minicpm_v_2_6 here"), 8.1e9);
  EXPECT_EQ(public_models::parameters_in("cogvlm2-llama3"), 19.5e9);
  EXPECT_EQ(public_models::parameters_in("cogvlm25 or acogvlm"), 0);
  EXPECT_EQ(public_models::parameters_in(""), 0);
  // Two bytes for each of them are beyond a card of 24 GB, whatever the request that failed asked for.
  Failure f;
  f.requested = PrintedSize::exactly(Bytes(512 << 20));
  const StoryContext c{.says_memory = true, .failure = &f};
  EXPECT_EQ(guess("Phi-3.5-MoE on a GPU with 24 GB VRAM\n", c), "weights");
  EXPECT_EQ(guess("Phi-3.5-vision on a GPU with 24 GB VRAM\n", c), "vision_tiles");
}

}  // namespace
}  // namespace vlmest::diagnose::sentence_tells_test
