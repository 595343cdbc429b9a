// SPDX-License-Identifier: Apache-2.0
// No flag is dropped: each one, on each command that has it, changes what is written or is refused.
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "called.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_flags_test {
namespace {

const std::string run_of = "--config smolvlm-256m --top 3 ";

/// The flag changes the answer of the command line before it, which is asked once for all flags after it.
void acts(const std::string& before, const std::string& flag) {
  static std::map<std::string, std::string> answers;
  const auto [of_before, is_new] = answers.try_emplace(before);
  if (is_new) of_before->second = good(before);
  EXPECT_NE(good(before + " " + flag), of_before->second) << before << " | " << flag;
}
/// The flag ends with one error line that begins with it, and a hint.
void is_refused(const std::string& before, const std::string& flag, const std::string& input = {}) {
  const Called r = run(before + " " + flag, input);
  EXPECT_EQ(r.code, 2) << before << " | " << flag << "\n" << r.err;
  EXPECT_EQ(r.out, "") << before << " | " << flag;
  EXPECT_EQ(r.err.rfind("error: --", 0), 0u) << before << " | " << flag << "\n" << r.err;
  EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 2) << before << " | " << flag << "\n" << r.err;
  EXPECT_NE(r.err.find("\nhint: "), std::string::npos) << before << " | " << flag << "\n" << r.err;
}

const std::vector<std::string> of_any{"--batch 2",    "--text 50",      "--images 2",        "--image-size 1024x512",
                                      "--dtype fp32", "--amp",          "--attention eager", "--attention flash",
                                      "--device l4",  "--profile fused"};
const std::vector<std::string> of_inference{"--new-tokens 3", "--kv fp8", "--logits all"};
const std::vector<std::string> of_training{"--optimizer sgd",
                                           "--checkpointing full",
                                           "--checkpointing full --checkpoint-layers 2",
                                           "--freeze vision",
                                           "--lora 8",
                                           "--lora 8 --lora-targets q",
                                           "--lora 8 --lora-vision",
                                           "--lora 8 --lora-dropout 0.1",
                                           "--loss chunked",
                                           "--gradient-accumulation 2"};

TEST(Flags, OfAPhaseActInItAndAreRefusedInAnother) {
  const std::string inference = run_of + "--json --phase inference", train = run_of + "--json --phase train",
                    all = run_of + "--json";
  for (const auto& f : of_any) {
    acts(inference, f);
    acts(train, f);
  }
  acts("--config smolvlm-256m --json", "--seq 1400");
  acts(inference, "--weights int8");
  acts(train + " --lora 8", "--weights nf4");
  acts(train + " --checkpointing full --freeze vision", "--input-gradients off");
  for (const auto& f : of_inference) {
    acts(inference, f);
    acts(all, f);
    is_refused(train, f);
  }
  for (const auto& f : of_training) {
    acts(train, f);
    acts(all, f);
    is_refused(inference, f);
  }
  is_refused(inference, "--input-gradients on");
  // A value that is the default says what was not asked for all the same.
  is_refused(inference, "--optimizer adamw");
  is_refused(train, "--logits last");
}

TEST(Flags, ThatNameNothingThereAreRefused) {
  const std::string run = run_of + "--phase inference";
  is_refused(run, "--images 0 --image-size 64x64");
  is_refused(run, "--images 0 --vision-chunk 1");
  is_refused(run, "--profile fused --attention eager");
  is_refused(run, "--profile fused --attention sdpa");
  acts(run, "--profile fused --attention flash");
  is_refused(run_of, "--profile fused --loss unfused");
  is_refused(run, "--amp --dtype fp16");
  acts(run, "--amp --dtype bf16");
  is_refused(run_of, "--lora 8 --lora-vision --freeze vision");
  is_refused(run_of, "--lora-vision");
  is_refused(run_of, "--checkpoint-layers 2");
  is_refused(run_of, "--checkpointing vision --checkpoint-layers 2");
}

/// Only a decoder beside the sequence has a length of its own.
TEST(Flags, ATargetIsForEncodersWithADecoder) {
  const std::string t5 = "--config blip2-flan-t5-xl --text 40 ";
  acts(t5 + "--json", "--target 7");
  acts(t5 + "--json --phase train", "--target 7");
  is_refused(t5 + "--phase inference", "--target 7");
  is_refused(run_of, "--target 7");
  is_refused("plan --config smolvlm-256m", "--target 7");
  acts("plan --config blip2-flan-t5-xl --phase train --gpu-memory 40GiB --json", "--target 700");
  for (const char* flag : {"--checkpointing full", "--weights int8", "--profile fused", "--attention flash"})
    is_refused(t5, flag);
}

/// Only InstructBLIP's Q-Former reads the text.
TEST(Flags, AnInstructionIsForModelsWhoseFeaturesDependOnTheText) {
  const std::string blip = "--config instructblip-vicuna-7b --text 40 ";
  acts(blip + "--json", "--instruction 7");
  is_refused(blip, "--instruction 513");
  is_refused(run_of, "--instruction 7");
  is_refused(blip, "--images 2");
}

/// Rates of canvases count with the steps that each one takes.
TEST(Flags, DenoisingStepsAreForModelsThatDenoiseCanvases) {
  const std::string canvases = "--config diffusiongemma-26b-a4b ";
  const Called most = run(canvases + "--json"), fewer = run(canvases + "--json --denoising-steps 12");
  EXPECT_EQ(most.code, 0) << most.err;
  EXPECT_EQ(fewer.code, 0) << fewer.err;
  EXPECT_NE(fewer.out, most.out);
  is_refused(canvases + "--phase train", "--denoising-steps 12");
  is_refused(run_of, "--denoising-steps 12");
  // What such a model's step is comes first.
  for (const char* flag : {"--logits all", "--phase train"}) {
    const Called r = run(canvases + flag);
    EXPECT_EQ(r.code, 2) << flag;
    EXPECT_EQ(r.out, "") << flag;
    EXPECT_NE(r.err.find("error: --"), std::string::npos) << r.err;
  }
}

TEST(Flags, OfAReportAreRefusedWhereItHasNoSuchThing) {
  const std::string bare = "--config smolvlm-256m --text 40 --phase inference";
  for (const char* f : {"--top 3", "--per-layer"}) {
    acts(bare, f);
    acts(bare + " --json", f);
    acts(bare + " --format markdown", f);
    is_refused(bare + " --format csv", f);
    is_refused(bare + " --timeline -", f);
  }
  is_refused(bare, "--timeline-min 2MiB");
  is_refused(bare + " --timeline /tmp/x.csv", "--timeline-min 2MiB");
  is_refused(bare + " --timeline -", "--json");
  is_refused(bare, "--json --format csv");
  is_refused(bare, "--format text --json");
  EXPECT_EQ(good(bare + " --format json --json"), good(bare + " --json"));
  for (const char* format : {"json", "markdown", "csv"}) is_refused(bare + " --format " + format, "--color always");
  acts(bare, "--color always");
  EXPECT_EQ(good(bare + " --color never"), good(bare));
}

TEST(Flags, TheNameOfTheOutputDecidesTheFormat) {
  const Folder f;
  const std::string bare = "--config smolvlm-256m --text 40 --phase inference";
  for (const auto& [name, format] : std::vector<std::pair<std::string, std::string>>{
           {"x.json", "json"}, {"x.md", "markdown"}, {"x.csv", "csv"}, {"x.txt", "text"}, {"x", "text"}}) {
    const std::string file = (f.path / name).string();
    EXPECT_EQ(good(bare + " --output '" + file + "'"), "");
    EXPECT_EQ(slurp(file), good(bare + " --format " + format)) << name;
  }
  is_refused(bare, "--format text --output '" + (f.path / "y.json").string() + "'");
  is_refused(bare, "--json --output '" + (f.path / "y.csv").string() + "'");
  is_refused(bare, "--output '" + (f.path / "y.html").string() + "'");
  is_refused("models", "--output '" + (f.path / "y.svg").string() + "'");
  is_refused("roofline " + bare.substr(0, bare.find(" --phase")),
             "--format svg --output '" + (f.path / "y.html").string() + "'");
  EXPECT_FALSE(fs::exists(f.path / "y.json"));
}

TEST(Flags, OfFlashAttentionNeedADeviceThatHasIt) {
  for (const char* device : {"v100", "t4"}) {
    const std::string sm = device == std::string("t4") ? "7.5" : "7.0";
    const std::string error =
        "--attention: FlashAttention-2 needs compute capability 8.0, and " + std::string(device) + " has " + sm;
    const std::string hint = "give --attention sdpa, which takes a memory-efficient kernel there, or eager";
    for (const std::string command : {"", "plan ", "roofline "})
      refused(command + "--config smolvlm-256m --attention flash --device " + device, 2, error, hint);
    refused("watch --once - --config smolvlm-256m --attention flash --device " + std::string(device), 2, error, hint,
            "step 1 memory 3 GiB\n");
    refused("diagnose - --config smolvlm-256m --attention flash --device " + std::string(device), 2, error, hint,
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 6.10 GiB.\n");
  }
  EXPECT_EQ(run(run_of + "--attention flash --device a10g").code, 0);
  const std::string plan = "plan --config smolvlm-256m --goal fastest --phase inference --json --attention eager ";
  EXPECT_EQ(good(plan + "--device v100 --dtype fp16").find("attention-flash"), std::string::npos);
  EXPECT_NE(good(plan + "--device l4").find("attention-flash"), std::string::npos);
}

TEST(Flags, OfAPlan) {
  const std::string plan = "plan --config smolvlm-256m --goal fastest --json";
  const std::string inference = plan + " --phase inference";
  for (const auto& f : of_inference) is_refused(plan, f);
  for (const auto& f : of_training) is_refused(inference, f);
  is_refused(inference, "--gpus 8");
  acts(inference, "--gpu-memory 3GiB");
  acts(inference, "--results 1");
  EXPECT_EQ(run(plan + " --gpus 2 --results 1").code, 0);
  acts(inference, "--new-tokens 3000");
  refused("plan --config smolvlm-256m --gpu-memory 100TiB", 2,
          "--gpu-memory: 100 TiB are more than the 139 GiB that h200-sxm has",
          "leave it out for all of them, or name a larger --device");
}

TEST(Flags, OfARoofline) {
  const std::string r = "roofline --config smolvlm-256m --text 40";
  for (const auto& f : of_training) is_refused(r, f);
  for (const auto& f : of_training) is_refused(r + " --phase decode", f);
  for (const auto& f : of_inference) is_refused(r + " --phase train", f);
  is_refused(r, "--new-tokens 3");
  is_refused(r + " --phase decode", "--logits all");
  acts(r, "--logits all");
  acts(r + " --phase decode", "--new-tokens 3000");
  acts(r, "--top 2");
  for (const char* format : {"json", "csv", "html", "svg"}) is_refused(r + " --format " + format, "--top 2");
}

TEST(Flags, ThatDescribeARunNeedItsModel) {
  const std::string message = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 6.10 GiB.\n";
  const std::string log = "step 1 memory 3 GiB\nstep 2 memory 3.1 GiB\n";
  // They bound what a request can be, or say which actions are in force.
  const std::set<std::string> acting{"--phase",   "--seq",       "--images",        "--image-size", "--dtype",
                                     "--weights", "--attention", "--checkpointing", "--lora",       "--optimizer"};
  for (const auto* flags : {&of_any, &of_inference, &of_training})
    for (const auto& f : *flags) {
      if (f == "--device l4") continue;  // it says where memory ends
      is_refused("watch --once -", f, log);
      // diagnose may read the model from the text: what it has no use for is named in the answer.
      const std::string word = f.substr(f.rfind("--"), f.find(' ', f.rfind("--")) - f.rfind("--"));
      const std::string out = good("diagnose - " + f, message);
      const auto at = out.find("not used: ");
      const std::string unused = at == std::string::npos ? "" : out.substr(at, out.find('\n', at) - at);
      EXPECT_EQ(unused.find(word) == std::string::npos, acting.contains(word)) << f << '\n' << out;
    }
  // In every format: as a key, and beside a table of actions.
  const Called json = run("diagnose --json - --batch 2 --seq 64 --kv fp8", message);
  const auto unused = nlohmann::json::parse(json.out).at("unused_flags");
  EXPECT_EQ(unused, (nlohmann::json{"--batch", "--kv"}));
  const Called csv = run("diagnose --format csv - --batch 2", message);
  EXPECT_EQ(csv.code, 0);
  EXPECT_NE(csv.err.find("note: not used: --batch: no model is named"), std::string::npos) << csv.err;
  EXPECT_EQ(csv.out.find("not used"), std::string::npos) << csv.out;
  for (const char* f : {"--batch 2", "--kv fp8", "--lora 8"})
    EXPECT_EQ(run("diagnose - --config smolvlm-256m --text 40 " + std::string(f), message).code, 0) << f;
  is_refused("diagnose - --format csv", "--top 2", message);
  is_refused("diagnose - --json", "--actions 2", message);
  is_refused("diagnose - --config smolvlm-256m --phase train", "--new-tokens 2", message);
  // Of an inference the count of GPUs tells what the settings' figures are not of.
  EXPECT_NE(run("diagnose - --config smolvlm-256m --phase inference --gpus 2", message).out.find("of 2 GPUs"),
            std::string::npos);
  is_refused("watch --once -", "--interval 2", log);
}

TEST(Flags, OfOtherCommands) {
  const std::string rows = "validate '" VLMEST_SOURCE_DIR "/tests/validation/rows/h200-inference.json'";
  is_refused(rows + " --json", "--top 2");
  is_refused(rows + " --format csv", "--rows");
  is_refused(rows, "--rows --top 2");
  is_refused("calibrate /nowhere", "--name x");
  is_refused("bench", "--seed 3");
  is_refused("bench --list", "--warm-up 3");
  is_refused("replay /nowhere", "--format csv");
  is_refused("models", "--json --format csv");
}

}  // namespace
}  // namespace cli::cli_flags_test
#endif
