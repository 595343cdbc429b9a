// SPDX-License-Identifier: Apache-2.0
// What runs die of without a message of an allocator, and the settings that their texts name.
#include <vlmest/diagnose/advise/action/sign_actions.hpp>
#include <vlmest/diagnose/evidence/oom/reader.hpp>
#include <vlmest/diagnose/evidence/stack/cut_stack.hpp>
#include <vlmest/diagnose/evidence/text/run_settings.hpp>
#include <vlmest/diagnose/evidence/text/run_signs.hpp>
#include <vlmest/diagnose/evidence/text/training_words.hpp>
#include <vlmest/diagnose/verdict/judge_signs.hpp>

#include "read_data.hpp"

namespace vlmest::run_signs_test {
namespace {

using namespace diagnose;

Verdict verdict(std::string_view text) {
  return judge_signs(find_run_signs(text), {}, says_out_of_memory(text), trains_with_engine(text)).value_or(Verdict{});
}
std::string cause(std::string_view text) { return std::string(name(verdict(text).cause)); }

TEST(RunSigns, Causes) {
  EXPECT_EQ(cause("return code is -9, maybe OUT OF MEMORY\n"), "host_memory");
  EXPECT_EQ(cause("  exitcode  : -9 (pid: 1)\n"), "host_memory");
  EXPECT_EQ(cause(" 75%|##| 3/4 [01:34<00:31, 31.54s/it]Killed\n"), "host_memory");
  EXPECT_EQ(cause("> Killed\n"), "host_memory");
  EXPECT_EQ(cause("DataLoader worker (pid(s) 1, 2) exited unexpectedly\n"), "host_memory");
  EXPECT_EQ(cause("ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared "
                  "memory (shm).\n"),
            "host_memory");
  EXPECT_EQ(cause("CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62\n"), "engine_budget");
  EXPECT_EQ(cause("[torch_memory_saver.cpp] cudaError error: 2 (out of memory)  func=resume\n"), "engine_budget");
  EXPECT_EQ(cause("  File \"/x/sglang/srt/a.py\", line 1, in f\nNot enough memory\n"), "engine_budget");
  EXPECT_EQ(cause("INFO Starting profile run for multi-modal models.\n"), "profile_run");
  EXPECT_EQ(cause("  File \"/vllm/worker.py\", line 249, in determine_num_available_blocks\n"), "profile_run");
  EXPECT_EQ(cause("CUDA error: out of memory\n  in function ggml_cuda_pool_malloc_vmm at x.cu:1\n"), "activations");
}

TEST(RunSigns, NoSigns) {
  for (const char* text :
       {"", "Epoch 3: 10%|# | 1/10 [00:01<00:09, 1.0s/it]\n", "Killed time with tests\n", "exit code 13\nexitcode: 1\n",
        "step 1 loss 0.3 tokens 1024 learning_rate 1e-5\n", "image item with length 100\n",
        "Map: 50%|# | 5/10 [00:01<00:01, 5.00 examples/s]\n", "time: 1.0 data_time: 0.01\n",
        // Rows that give the model's time but no data's, or nothing at all, speak of no other row.
        "data_times=0.0, model_times=0.0\n", "data_times=-1, model_times=2\ntime: 1.0 data_time: 0.01\n",
        "data_times=nan, model_times=nan\n", "data_times=0.0, model_times=0.0\ntime: 1.0 data_time: 0.01\n"})
    EXPECT_TRUE(find_run_signs(text).empty()) << text;
}

TEST(RunSigns, FiguresOfTheirLines) {
  const auto image = verdict(
      "contains a(n) image item with length 6132, which exceeds the pre-allocated encoder cache size 6084. Please\n");
  EXPECT_EQ(name(image.cause), "encoder_cache");
  EXPECT_NE(image.why.find("6132"), std::string::npos) << image.why;
  EXPECT_NE(image.why.find("6084"), std::string::npos) << image.why;
  const auto host = verdict("model requires more system memory (9.4 GiB) than is available (4.8 GiB)\n");
  EXPECT_NE(host.why.find("4.60 GiB are missing"), std::string::npos) << host.why;
  const auto ray =
      verdict("was running was 243.20GB / 256.00GB (0.95), which exceeds the memory usage threshold of 0.95.\n");
  EXPECT_NE(ray.why.find("were used"), std::string::npos) << ray.why;
  EXPECT_NE(verdict("12 1.50 ray::A\n13 2.50 ray::B\n").why.find("4.00 GiB"), std::string::npos);
  const auto map = verdict("Map (num_proc=96): 8%|x| 8/10 [38:04<7:24:20, 379.39 examples/s]\n");
  EXPECT_EQ(name(map.cause), "slow_data");
  EXPECT_NE(map.why.find("7.4 hours"), std::string::npos) << map.why;
  EXPECT_EQ(cause("Epoch [1] time: 1.2, data_time: 0.9, memory: 4000\n"), "slow_data");
  EXPECT_EQ(cause("7/9 [51:19<36:27, 7.65s/it, data_times=0.006, model_times=7.688]\n"), "compute_bound");
  EXPECT_EQ(cause("7/9 [51:19<36:27, 7.65s/it, data_times=7.688, model_times=0.006]\n"), "slow_data");
}

/// A kill where the host has room is no sure sign of its memory.
TEST(RunSigns, AKillWithRoom) {
  const std::string kill = "Signal 9 (SIGKILL) received by PID 1\n";
  EXPECT_GT(verdict(kill).confidence, 0.5);
  EXPECT_LT(
      verdict(kill + "Mem:      2338463892   291123840  1426862688      555420   632218352  2047340052\n").confidence,
      0.5);
}

TEST(RunSigns, RemediesHaveLinesToType) {
  const std::string text = "image item with length 6132, which exceeds the pre-allocated encoder cache size 6084.\n";
  const auto signs = find_run_signs(text);
  const auto actions = sign_actions(verdict(text), signs);
  ASSERT_FALSE(actions.empty());
  EXPECT_EQ(name(actions[0].id), "encoder-cache");
  EXPECT_NE(actions[0].how.find("--max-num-batched-tokens 6144"), std::string::npos) << actions[0].how;
}

/// The newer wording names what it is of, and counts "embedding tokens".
TEST(RunSigns, AVideoBeyondTheEncoderCache) {
  const std::string text =
      "The decoder prompt contains a(n) video item with 21504 embedding tokens, which exceeds the pre-allocated "
      "encoder "
      "cache size 16384. Please reduce the input size.\n";
  const auto actions = sign_actions(verdict(text), find_run_signs(text));
  ASSERT_EQ(actions.size(), 2u);
  EXPECT_NE(actions[0].how.find("--max-num-batched-tokens 21504"), std::string::npos) << actions[0].how;
  EXPECT_NE(actions[1].how.find("76 %"), std::string::npos) << actions[1].how;
  EXPECT_NE(verdict(text).why.find("a video of 21504 tokens"), std::string::npos) << verdict(text).why;
}

/// What is first is what the line asks for.
TEST(RunSigns, TheFirstActionIsOfTheLine) {
  const auto first = [](const std::string& text) {
    const auto actions = sign_actions(verdict(text), find_run_signs(text));
    return actions.empty() ? std::string_view() : name(actions[0].id);
  };
  EXPECT_EQ(first("RuntimeError: DataLoader worker (pid(s) 4711) exited unexpectedly\n"), "shared-memory");
  EXPECT_EQ(first("Loading checkpoint shards:  75%|####  | 3/4 [00:30<00:10]Killed\n"), "load-once");
}

TEST(RunSettings, OfCommandLinesAndFiles) {
  const auto value = [](std::string_view text, std::string_view flag) -> std::string {
    for (const ReadSetting& s : read_settings(text))
      if (s.flag == flag) return s.value;
    return "";
  };
  EXPECT_EQ(value("--per_device_train_batch_size 4 \\\n", "--batch"), "4");
  EXPECT_EQ(value("per_device_train_batch_size: 16\n", "--batch"), "16");
  EXPECT_EQ(value("    \"per_device_train_batch_size\": 16,\n", "--batch"), "16");
  EXPECT_EQ(value("batch_size=1000\n", "--batch"), "");
  EXPECT_EQ(value("# --per_device_train_batch_size 4\n", "--batch"), "");
  EXPECT_EQ(value("deepspeed: examples/deepspeed/ds_z3_offload_config.json\n", "sharding"), "zero-3");
  EXPECT_EQ(value("deepspeed: examples/deepspeed/ds_z3_offload_config.json\n", "offload"), "parameters");
  // deepspeed/launcher/launch.py names the command that failed as a list.
  EXPECT_EQ(value("['python', '-u', 'train.py', '--deepspeed', 'scripts/zero3.json', '--bf16', 'True']\n", "sharding"),
            "zero-3");
  EXPECT_EQ(value("['train.py', '--deepspeed', '--per_device_train_batch_size', '4']\n", "--batch"), "4");
  EXPECT_EQ(value("stage: sft\n", "sharding"), "");
  EXPECT_EQ(value("finetuning_type: lora\nlora_rank: 64\n", "--lora"), "64");
  EXPECT_EQ(value("--limit-mm-per-prompt '{\"image\":3}'\n", "--images"), "3");
  EXPECT_EQ(value("LLM(m, limit_mm_per_prompt={\"image\": 20})\n", "--images"), "20");
  EXPECT_EQ(value("CUDA_VISIBLE_DEVICES=0,1,2 swift sft\n", "--gpus"), "3");
  EXPECT_EQ(value("--flash_attn fa2\n", "--attention"), "flash");
  EXPECT_EQ(value("uma: 1 | fp16: 1 | warp size: 64\n", "--dtype"), "");
  EXPECT_EQ(training_words("vllm serve /model\n").says, -1);
  EXPECT_EQ(training_words("do_train: true\n").says, 1);
  EXPECT_EQ(training_words("hello\n").says, 0);
}

TEST(CutStack, EndsInAnotherException) {
  const std::string frame =
      "Traceback (most recent call last):\n  File \"/a/b.py\", line 3, in forward\n    x = f(x)\n";
  const auto other = find_cut_stack(frame + "KeyError: 'image'\n");
  ASSERT_TRUE(other);
  EXPECT_EQ(other->ended_by, "KeyError: 'image'");
  const auto cut = find_cut_stack(frame);
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->ended_by, "");
  EXPECT_EQ(cut->line, 2);
  const auto glued = find_cut_stack(
      "[rank0]: File \"/x/a.py\", line 1, in forward [rank0]: y = g( [rank0]: File \"/x/b.py\", line 2, in g\n");
  ASSERT_TRUE(glued);
  EXPECT_EQ(glued->frames.size(), 2u);
  EXPECT_FALSE(find_cut_stack("no stack\n"));
}

/// llama.cpp's line without the function that it names before it.
TEST(CutStack, AFigureOfGgml) {
  const auto m = find_oom_messages("allocating 114296.55 MiB on device 0: cudaMalloc failed: out of memory\n");
  ASSERT_EQ(m.size(), 1u);
  ASSERT_TRUE(m[0].requested);
  EXPECT_TRUE(m[0].has_numbers);
}

TEST(SecondRemarks, PiecesAndOtherProcesses) {
  const auto size = [](double gib) { return PrintedSize::exactly(Bytes(static_cast<std::int64_t>(gib * (1 << 30)))); };
  Failure f{.requested = size(2), .unallocated = size(1.5), .free = size(1)};
  Verdict v{.cause = Cause::activations};
  ASSERT_EQ(second_remarks(v, f).size(), 1u);
  EXPECT_NE(second_remarks(v, f)[0].find("fragmentation"), std::string::npos);
  f.unallocated = size(0.5);
  EXPECT_TRUE(second_remarks(v, f).empty());
  f.others = size(10);
  ASSERT_EQ(second_remarks(v, f).size(), 1u);
  EXPECT_NE(second_remarks(v, f)[0].find("other processes"), std::string::npos);
  v.cause = Cause::other_process;
  EXPECT_TRUE(second_remarks(v, f).empty());
}

}  // namespace
}  // namespace vlmest::run_signs_test
