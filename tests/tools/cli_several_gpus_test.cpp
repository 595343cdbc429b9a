// SPDX-License-Identifier: Apache-2.0
// estimate on several GPUs: the flags, one GPU as the limit of several, and training steps recorded on two.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <vector>

#include "../sanitizer.hpp"
#include "called.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_several_gpus_test {
namespace {

const std::string small = "--config smolvlm-256m ";

Json several(const std::string& flags) { return Json::parse(good(small + flags + " --json")); }

TEST(SeveralGpus, OneGpuIsTheEstimateOfOne) {
  for (const char* format : {"text", "json", "markdown", "csv"}) {
    const std::string one = small + "--verbose --format " + std::string(format);
    if (std::string(format) != "text" && one.find("verbose") == std::string::npos) continue;
    EXPECT_EQ(good(one), good(one + " --gpus 1")) << format;
    EXPECT_EQ(good(one), good(one + " --parallel dp=1,tp=1,pp=1,cp=1,ep=1")) << format;
  }
}

/// With a network that has no time and no buffers a rank of fully divided states would be nearly an N-th; with all it
/// holds at least that.
TEST(SeveralGpus, DividedStatesAddUpToTheWhole) {
  const Json one = several("--phase train");
  const auto whole = one["training"]["optimizer_bytes"].get<std::int64_t>();
  for (const int n : {2, 4, 8}) {
    const Json e = several("--phase train --shard fsdp2 --gpus " + std::to_string(n));
    const Json& rank = e["parallel"]["ranks"][0];
    EXPECT_EQ(e["parallel"]["ranks"].size(), 1u);
    EXPECT_EQ(rank["ranks"], n);
    const auto share = rank["optimizer_bytes"].get<std::int64_t>();
    EXPECT_GE(share * n, whole);
    EXPECT_LE(share * n, whole + whole / 50) << "uneven shards are padded";
    EXPECT_EQ(rank["peak_bytes"], e["training"]["peak_bytes"]);
  }
}

TEST(SeveralGpus, EachStageOfZeroKeepsLess) {
  const auto rank = [](const char* shard) {
    return several("--phase train --gpus 4 --shard " + std::string(shard))["parallel"]["ranks"][0];
  };
  const Json ddp = rank("none"), first = rank("zero1"), second = rank("zero2"), third = rank("zero3");
  // bf16 weights: fp32 weights and two fp32 moments, of a quarter, against two bf16 moments of all.
  const auto trained = ddp["gradients_bytes"].get<std::int64_t>() / 2;
  for (const Json* r : {&first, &second})
    EXPECT_NEAR((*r)["optimizer_bytes"].get<double>(), 12.0 * static_cast<double>(trained) / 4, 4096);
  EXPECT_LE(second["backward"]["peak_bytes"], first["backward"]["peak_bytes"]);
  EXPECT_LT(third["weights_bytes"], second["weights_bytes"]);
}

TEST(SeveralGpus, CollectivesCarryWhatTheyMust) {
  const Json e = several("--phase train --gpus 2")["parallel"];
  ASSERT_EQ(e["communication"].size(), 1u);
  EXPECT_EQ(e["communication"][0]["op"], "all_reduce");
  EXPECT_EQ(e["communication"][0]["bytes"], e["ranks"][0]["gradients_bytes"]);
  const Json f = several("--phase train --gpus 2 --shard fsdp2")["parallel"]["communication"];
  ASSERT_EQ(f.size(), 3u);
  EXPECT_EQ(f[0]["bytes"], f[1]["bytes"]) << "weights are gathered again for the backward";
  EXPECT_EQ(
      several("--phase train --gpus 2 --shard fsdp2 --reshard-after-forward off")["parallel"]["communication"].size(),
      2u);
  const Json wide = several("--phase train --gpus 2 --shard fsdp2 --reduce-dtype fp32")["parallel"]["communication"];
  EXPECT_EQ(wide[2]["bytes"].get<std::int64_t>(), 2 * f[2]["bytes"].get<std::int64_t>());
}

/// fp32 shards that are gathered, run and differentiated in bf16: states of the one run, layers of the other.
TEST(SeveralGpus, WeightsAreGatheredInAnotherTypeThanTheyAreKept) {
  const auto parts = [](const std::string& flags) {
    return several("--phase train --gpus 4 --shard fsdp2 " + flags)["parallel"];
  };
  const Json kept = parts("--dtype fp32"), run = parts("--dtype bf16");
  const Json mixed = parts("--dtype fp32 --param-dtype bf16 --reduce-dtype fp32");
  EXPECT_EQ(mixed["param_dtype"], "bf16");
  const Json &rank = mixed["ranks"][0], &in_bf16 = run["ranks"][0];
  for (const char* states : {"weights_bytes", "gradients_bytes", "optimizer_bytes"})
    EXPECT_EQ(rank[states], kept["ranks"][0][states]) << states;
  const auto bytes = [](const Json& of, std::size_t i) { return of["communication"][i]["bytes"].get<std::int64_t>(); };
  EXPECT_EQ(bytes(mixed, 0), bytes(run, 0)) << "gathered";
  EXPECT_EQ(bytes(mixed, 1), bytes(run, 1)) << "gathered again";
  EXPECT_EQ(bytes(mixed, 2), bytes(kept, 2)) << "reduced";
  EXPECT_EQ(bytes(parts("--dtype fp32 --param-dtype bf16"), 2), bytes(run, 2)) << "gradients are of what ran";
  // The forward holds wider shards and moments, and a unit's part in bf16 while it is gathered.
  const auto number = [](const Json& of, const char* key) { return of[key].get<std::int64_t>(); };
  const auto forward = [](const Json& of) { return of["forward"]["peak_bytes"].get<std::int64_t>(); };
  const std::int64_t wider = number(rank, "weights_bytes") - number(in_bf16, "weights_bytes") +
                             number(rank, "optimizer_bytes") - number(in_bf16, "optimizer_bytes");
  EXPECT_GE(forward(rank) - forward(in_bf16), wider);
  EXPECT_LE(forward(rank) - forward(in_bf16), wider + bytes(run, 0) / 4);
  // Adafactor works in fp32, which it finds: no copies of its own.
  const auto more_than_sgd = [&](const std::string& flags) {
    const auto stepped = [&](const char* optimizer) {
      return parts("--dtype fp32 --optimizer " + (optimizer + flags))["ranks"][0]["step"]["peak_bytes"]
          .get<std::int64_t>();
    };
    return stepped("adafactor") - stepped("sgd");
  };
  EXPECT_EQ(more_than_sgd(" --param-dtype bf16"), more_than_sgd(""));
}

/// Each block of a vision tower casts the rotations that it is called with, and its fp32 copies of them stay for its
/// backward; in bf16 all blocks save the same two.
TEST(SeveralGpus, LayersCastWhatTheyAreCalledWith) {
  const auto saved = [](const std::string& flags) {
    const std::string run = "--config qwen2-vl-2b --image-size 448x448 --phase train --gpus 2 --shard fsdp2 ";
    return Json::parse(good(run + flags + " --json"))["training"]["saved_activations_bytes"].get<std::int64_t>();
  };
  constexpr std::int64_t blocks = 32, patches = 1024, channels = 80;
  EXPECT_EQ(saved("--dtype fp32 --param-dtype bf16") - saved("--dtype bf16"),
            (blocks - 1) * patches * channels * 2 * 4);
}

TEST(SeveralGpus, StagesAreGatheredInAnotherTypeThanTheyAreKept) {
  const auto ranks = [](const std::string& flags) {
    return several("--phase train --parallel dp=2,pp=2 --shard fsdp2 " + flags)["parallel"]["ranks"];
  };
  const Json kept = ranks("--dtype fp32"), run = ranks("--dtype bf16");
  const Json mixed = ranks("--dtype fp32 --param-dtype bf16 --reduce-dtype fp32");
  ASSERT_EQ(mixed.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    for (const char* states : {"gradients_bytes", "optimizer_bytes"})
      EXPECT_EQ(mixed[i][states], kept[i][states]) << i << states;
    EXPECT_LT(mixed[i]["peak_bytes"], kept[i]["peak_bytes"]);
    EXPECT_GT(mixed[i]["peak_bytes"], run[i]["peak_bytes"]);
  }
}

TEST(SeveralGpus, WhatCannotBeGatheredInAnotherTypeIsRefused) {
  const auto error = [](const std::string& flags) { return run("estimate --config " + flags).err; };
  EXPECT_EQ(error("qwen2-vl-2b --phase train --gpus 2 --shard fsdp2 --param-dtype bf16"),
            "error: --param-dtype: the weights are in bf16 already\n"
            "hint: give weights of another type, such as --dtype fp32, or leave it out\n");
  EXPECT_EQ(error("qwen2-vl-2b --phase train --gpus 2 --shard zero2 --dtype fp32 --param-dtype bf16"),
            "error: --param-dtype: has no effect without --shard fsdp2\n"
            "hint: leave it out, or take --shard fsdp2\n");
  EXPECT_EQ(error("qwen2-vl-2b --phase train --dtype fp32 --param-dtype bf16"),
            "error: --param-dtype: has no effect without data parallelism\n"
            "hint: leave it out, or give --parallel dp=N\n");
  EXPECT_NE(error("qwen2-vl-2b --phase train --gpus 2 --shard fsdp2 --amp --param-dtype bf16").find("autocast"),
            std::string::npos);
  EXPECT_NE(error("ernie-4.5-vl-28b --phase train --gpus 2 --shard fsdp2 --dtype fp32 --param-dtype bf16")
                .find("which a model of bf16 has in fp32"),
            std::string::npos);
}

TEST(SeveralGpus, StagesOfAPipelineHoldTheModelTogether) {
  const Json one = several("--phase train --gradient-accumulation 8");
  for (const char* schedule : {"1f1b", "gpipe", "zb", "interleaved:2"}) {
    const Json p =
        several("--phase train --parallel pp=2 --micro-batches 8 --schedule " + std::string(schedule))["parallel"];
    ASSERT_EQ(p["ranks"].size(), 2u) << schedule;
    std::int64_t optimizer = 0;
    for (const Json& r : p["ranks"]) optimizer += r["optimizer_bytes"].get<std::int64_t>();
    EXPECT_EQ(optimizer, one["training"]["optimizer_bytes"].get<std::int64_t>()) << schedule;
    EXPECT_GT(p["bubble_share"].get<double>(), 0) << schedule;
    EXPECT_LT(p["bubble_share"].get<double>(), 0.7) << schedule;
  }
  const auto first = [](const char* schedule) {
    return several("--phase train --parallel pp=2 --micro-batches 8 --schedule " +
                   std::string(schedule))["parallel"]["ranks"][0]["peak_bytes"]
        .get<std::int64_t>();
  };
  EXPECT_LT(first("1f1b"), first("gpipe")) << "two micro-batches in flight against eight";
}

TEST(SeveralGpus, WhatDoesNothingIsRefused) {
  for (const char* flags : {"--shard zero2",
                            "--network nvlink4",
                            "--gpus 2 --sequence-parallel",
                            "--gpus 2 --schedule gpipe",
                            "--gpus 2 --shard zero1 --ddp-bucket-view",
                            "--gpus 2 --shard zero1 --reshard-after-forward off",
                            "--gpus 2 --tower data",
                            "--gpus 2 --phase inference --shard fsdp2",
                            "--gpus 2 --parallel dp=2",
                            "--parallel dp=2,dp=2",
                            "--parallel xp=2",
                            "--parallel dp",
                            "--parallel pp=2 --schedule interleaved:1",
                            "--parallel pp=2 --phase train --gradient-accumulation 4",
                            "--gpus 2 --network nvlnk4",
                            "--parallel pp=2 --phase train --stages 1,1",
                            "--parallel pp=2 --phase train --stages 14,x",
                            "--parallel pp=2",
                            "--gpus 16 --network pcie4",
                            "--parallel pp=2,dp=2 --phase train --shard zero1",
                            "--parallel pp=2,dp=2 --phase train --shard fsdp2 --schedule interleaved:2",
                            "--parallel pp=2,dp=2,tp=2 --phase train --shard fsdp2"}) {
    const Called c = run(small + std::string(flags));
    EXPECT_GE(c.code, 2) << flags;
    EXPECT_LE(c.code, 3) << flags;
    EXPECT_TRUE(c.out.empty()) << flags;
    EXPECT_NE(c.err.find("error: "), std::string::npos) << flags;
    EXPECT_NE(c.err.find("hint: "), std::string::npos) << flags;
  }
}

/// A pipeline sends hidden states alone: what reads something else of another stage is refused, and so are two stacks.
TEST(SeveralGpus, PipelinesThatSendMoreAreRefused) {
  for (const char* model : {"llama-3.2-11b-vision", "gemma-4-e2b", "blip2-flan-t5-xl"}) {
    const Called c = run("estimate --phase train --parallel pp=2 --config " + std::string(model));
    EXPECT_EQ(c.code, 2) << model;
    EXPECT_NE(c.err.find("error: --parallel: pp=2: "), std::string::npos) << c.err;
    EXPECT_NE(c.err.find("not modelled"), std::string::npos) << c.err;
  }
  // Its first three layers take pictures' features too.
  EXPECT_EQ(run("estimate --phase train --parallel pp=2 --stages 2,26 --config qwen3-vl-2b").code, 2);
  good("estimate --phase train --parallel pp=2 --stages 3,25 --config qwen3-vl-2b");
}

/// LLaVA-NeXT does not use its tower's last layer and norm; torch named these 13 parameters when it failed.
TEST(SeveralGpus, UnusedParametersAreTold) {
  const std::string granite = std::string("estimate --phase train --gpus 2 --config ") + VLMEST_SOURCE_DIR +
                              "/tests/data/configs/granite-vision-3.2-2b.json";
  const std::string says = "13 trained parameters get no gradient";
  EXPECT_NE(good(granite).find(says), std::string::npos);
  EXPECT_EQ(good(granite + " --shard fsdp2").find(says), std::string::npos);
  EXPECT_EQ(good(granite + " --freeze vision").find(says), std::string::npos);
}

/// The flags of a recorded run, its model as a file.
std::string flags_of(const Json& run, const std::string& data) {
  std::string flags;
  for (const char* part : {"flags", "parallel"})
    for (const std::string f : run[part]) flags += " " + f;
  const std::string model = run["flags"][1];
  return flags.replace(flags.find(model), model.size(), data + "configs/" + model + ".json");
}

/// An estimate of a recorded run. Its text is every token that is no image's feature: the recorder writes no markers
/// around images, which an estimate otherwise adds to the text.
Json of_recorded(std::string flags) {
  const auto estimate = [](const std::string& f) { return Json::parse(good("estimate --device h100-sxm --json" + f)); };
  const Json e = estimate(flags);
  const auto markers = e["inputs"]["marker_tokens"].get<std::int64_t>();
  if (markers == 0) return e;
  const std::string text = "--text ";
  const std::size_t at = flags.find(text) + text.size(), end = flags.find(' ', at);
  return estimate(flags.replace(at, end - at, std::to_string(std::stoll(flags.substr(at, end - at)) - markers)));
}

/// The flags of a recorded rank; a model that is cut, one of `configs`, as a file.
std::string written_out(const Json& run, const Json& configs) {
  std::string flags;
  for (const char* part : {"flags", "parallel"})
    for (const std::string f : run[part]) flags += " " + f;
  if (!run["cut"].get<bool>()) return flags;
  const std::string model = run["flags"][1], file = ::testing::TempDir() + "several_gpus_" + model + ".json";
  std::ofstream(file) << configs.at(model);
  return flags.replace(flags.find(model), model.size(), file);
}

double median(std::vector<double>& all) {
  std::sort(all.begin(), all.end());
  return (all[all.size() / 2] + all[(all.size() - 1) / 2]) / 2;
}

/// Training steps on two GPUs (tests/data/several_gpus): peaks of every phase and, as they are of steps that follow
/// each other, what a loop reserves. docs/howto/several-gpus.md says the same.
TEST(SeveralGpus, StepsOnTwoGpus) {
  const std::string root = std::string(VLMEST_SOURCE_DIR) + "/tests/data/";
  std::vector<double> peaks, reserved;
  const Json recorded = Json::parse(slurp(root + "several_gpus/data_parallel.json"));
  for (const Json& r : recorded["runs"]) {
    if (!r.contains("phases") || !r.contains("parallel")) continue;
    const std::string flags = flags_of(r, root);
    const Json e = of_recorded(flags);
    for (std::size_t phase = 0; phase < 3; ++phase) {
      double most = 0;
      for (const Json& rank : r["phases"]) most = std::max(most, rank[phase].get<double>());
      static constexpr const char* names[]{"forward", "backward", "step"};
      const double estimate = e["training"][names[phase]]["peak_bytes"].get<double>();
      EXPECT_NEAR(estimate / most, 1, 0.006) << flags << " " << names[phase];
      peaks.push_back(std::abs(estimate / most - 1));
    }
    reserved.push_back(
        std::abs(e["training"]["reserved_in_loop_bytes"].get<double>() / r["reserved"].get<double>() - 1));
    EXPECT_LT(reserved.back(), r["mode"].get<std::string>().starts_with("ddp") ? 0.009 : 0.037) << flags;
    if (e.contains("parallel")) {
      EXPECT_NEAR(e["parallel"]["outside_bytes"].get<double>() / r["outside"].get<double>(), 1, 0.02) << flags;
    }
  }
  EXPECT_EQ(reserved.size(), 31u);
  EXPECT_LT(median(peaks), 0.001);
  EXPECT_LT(median(reserved), 0.002);
}

/// Weights that are gathered in another type than they are kept in: every phase of both ranks.
/// docs/howto/several-gpus.md says the same.
TEST(SeveralGpus, GatheredInAnotherType) {
  const std::string root = std::string(VLMEST_SOURCE_DIR) + "/tests/data/several_gpus/";
  const Json recorded = Json::parse(slurp(root + "gathered_types.json"));
  std::vector<double> held_out, others;
  for (std::size_t i = 0; i < recorded["runs"].size(); i += one_in(5)) {
    const Json& run = recorded["runs"][i];
    std::string flags;
    for (const char* part : {"flags", "parallel"})
      for (const std::string f : run[part]) flags += " " + f;
    const Called answered = cli::run("estimate --device h100-sxm --json" + flags);  // LFM2 notes which packages lack
    ASSERT_EQ(answered.code, 0) << answered.err;
    const Json answer = Json::parse(answered.out), &rank = answer["parallel"]["ranks"][0];
    static constexpr const char* names[]{"forward", "backward", "step"};
    for (const Json& measured : run["phases"])
      for (std::size_t phase = 0; phase < 3; ++phase) {
        const double off = rank[names[phase]]["peak_bytes"].get<double>() / measured[phase].get<double>() - 1;
        EXPECT_NEAR(off, 0, 0.0065) << flags << " " << names[phase];
        (run["held_out"].get<bool>() ? held_out : others).push_back(std::abs(off));
      }
    if (run.contains("reserved")) {
      EXPECT_NEAR(rank["reserved_in_loop_bytes"].get<double>() / run["reserved"].get<double>(), 1, 0.0015) << flags;
    }
    EXPECT_NEAR(answer["parallel"]["outside_bytes"].get<double>() / run["outside"].get<double>(), 1, 0.002) << flags;
  }
  if (one_in(2) > 1) return;
  EXPECT_EQ(held_out.size() + others.size(), 60u);
  EXPECT_LT(median(held_out), 0.0020);
  EXPECT_LT(median(others), 0.0016);
}

/// Steps of one rank of two to eight, of models and layouts that were chosen before one was compared: fully_shard,
/// replicas of divided layers, and stages of a pipeline, of whole and of divided layers.
TEST(SeveralGpus, RanksOfMeshes) {
  const std::string root = std::string(VLMEST_SOURCE_DIR) + "/tests/data/several_gpus/";
  const Json recorded = Json::parse(slurp(root + "ranks.json"));
  const Json configs = Json::parse(slurp(root + "divided_layers.json"))["configs"];
  std::vector<double> peaks, reserved;
  for (std::size_t i = 0; i < recorded["runs"].size(); i += one_in(8)) {
    const Json& run = recorded["runs"][i];
    const std::string flags = written_out(run, configs);
    const Json e = of_recorded(flags);
    const Json& rank = e["parallel"]["ranks"][run.value("stage", 0)];
    const auto bytes = [&](const char* phase) { return rank[phase]["peak_bytes"].get<double>(); };
    const auto compare = [&](double estimate, const char* name) {
      peaks.push_back(std::abs(estimate / run[name].get<double>() - 1));
      EXPECT_LT(peaks.back(), 0.011) << flags << " " << name;
    };
    if (run.contains("passes"))
      compare(std::max(bytes("forward"), bytes("backward")), "passes");
    else
      for (const char* phase : {"forward", "backward"}) compare(bytes(phase), phase);
    compare(bytes("step"), "step");
    for (const char* states : {"gradients", "optimizer"})
      if (run.contains(states)) {
        EXPECT_NEAR(rank[std::string(states) + "_bytes"].get<double>() / run[states].get<double>(), 1, 0.001) << flags;
      }
    // Of divided layers the model was made whole, which from_pretrained never does: what that leaves is not estimated.
    if (flags.find("tp=") != std::string::npos) continue;
    reserved.push_back(std::abs(rank["reserved_in_loop_bytes"].get<double>() / run["reserved"].get<double>() - 1));
    EXPECT_LT(reserved.back(), 0.025) << flags;
  }
  EXPECT_LT(median(peaks), 0.002);
  EXPECT_LT(median(reserved), 0.005);
}

/// Pipelines whose replicas divide their states: every phase of each stage that was recorded. What
/// docs/howto/several-gpus.md says of them.
TEST(SeveralGpus, ShardedStages) {
  const std::string root = std::string(VLMEST_SOURCE_DIR) + "/tests/data/";
  const Json recorded = Json::parse(slurp(root + "several_gpus/sharded_stages.json"));
  const Json configs = Json::parse(slurp(root + "several_gpus/divided_layers.json"))["configs"];
  std::vector<double> held_out, unchanged, others, reserved;
  for (std::size_t i = 0; i < recorded["runs"].size(); i += one_in(6)) {
    const Json& run = recorded["runs"][i];
    const std::string flags = run["cut"].get<bool>() ? written_out(run, configs) : flags_of(run, root);
    const Json rank = of_recorded(flags)["parallel"]["ranks"][run["stage"].get<std::size_t>()];
    const bool after = run.value("code_unchanged", false);
    for (const char* phase : {"forward", "backward", "step"}) {
      const double off = std::abs(rank[phase]["peak_bytes"].get<double>() / run[phase].get<double>() - 1);
      EXPECT_LT(off, after ? 0.0125 : 0.021) << flags << " " << phase;
      (after ? unchanged : run["held_out"].get<bool>() ? held_out : others).push_back(off);
    }
    for (const char* states : {"gradients", "optimizer"})
      EXPECT_NEAR(rank[std::string(states) + "_bytes"].get<double>() / run[states].get<double>(), 1, 0.001) << flags;
    reserved.push_back(std::abs(rank["reserved_in_loop_bytes"].get<double>() / run["reserved"].get<double>() - 1));
    // The last stage of SmolVLM 2.2B reserves 11 % less than is said: why is not known.
    const bool unexplained = run["flags"][1] == "smolvlm-2.2b" && run["stage"] == 1;
    EXPECT_LT(reserved.back(), unexplained ? 0.115 : 0.045) << flags;
  }
  if (one_in(2) == 1) {
    EXPECT_EQ(held_out.size(), 45u);
    EXPECT_EQ(unchanged.size(), 42u);
    EXPECT_EQ(others.size(), 12u);
    EXPECT_LT(median(unchanged), 0.0012);
    EXPECT_LT(median(held_out), 0.0012);
    EXPECT_LT(median(others), 0.0012);
    EXPECT_LT(median(reserved), 0.02);
  }
}

/// Experts divided within groups, and states among replicas of that. What docs/howto/several-gpus.md says of them.
TEST(SeveralGpus, ReplicasOfDividedExperts) {
  const std::string root = std::string(VLMEST_SOURCE_DIR) + "/tests/data/several_gpus/";
  const Json recorded = Json::parse(slurp(root + "experts.json"));
  const Json configs = Json::parse(slurp(root + "divided_layers.json"))["configs"];
  EXPECT_EQ(recorded["runs"].size(), 5u);
  for (const Json& run : recorded["runs"]) {
    const std::string flags = written_out(run, configs);
    const Json rank = of_recorded(flags)["parallel"]["ranks"][0];
    for (const char* phase : {"forward", "backward", "step"})
      EXPECT_NEAR(rank[phase]["peak_bytes"].get<double>() / run[phase].get<double>(), 1, 0.0004) << flags << phase;
    for (const char* states : {"weights", "gradients", "optimizer"})
      EXPECT_NEAR(rank[std::string(states) + "_bytes"].get<double>() / run[states].get<double>(), 1, 0.002) << flags;
  }
}

/// DeepSpeed's stages on two GPUs: every phase of each rank. The largest error is 0.54 %, in forwards of Qwen2-VL. What
/// docs/howto/several-gpus.md says of these runs: the medians, how far reserved bytes are off, how much longer steps
/// take. What lies outside of the allocator is 0.2 GiB more with stages 1 and 2 and 0.5 with 3, which nobody models.
TEST(SeveralGpus, DeepSpeedsStepsOnTwoGpus) {
  const std::string root = std::string(VLMEST_SOURCE_DIR) + "/tests/data/";
  const Json recorded = Json::parse(slurp(root + "several_gpus/deepspeed.json"));
  EXPECT_EQ(recorded["runs"].size(), 11u);
  std::vector<double> held_out, others;
  for (const Json& r : recorded["runs"]) {
    const std::string flags = flags_of(r, root);
    const Json e = Json::parse(good("estimate --device h100-sxm --json" + flags));
    EXPECT_NEAR(e["training"]["forward"]["start_bytes"].get<double>() / r["start"].get<double>(), 1, 0.004) << flags;
    EXPECT_TRUE(e["parallel"]["step_is_lower_bound"].get<bool>());
    const double longer = r["ms"].get<double>() / e["parallel"]["step_ms"].get<double>();
    EXPECT_GT(longer, 1.15) << flags;
    EXPECT_LT(longer, 3.15) << flags;
    const double reserved = e["training"]["reserved_bytes"].get<double>() / r["reserved"].get<double>();
    EXPECT_GT(reserved, 0.94) << flags;
    EXPECT_LT(reserved, 1.265) << flags;
    for (std::size_t rank = 0; rank < 2; ++rank)
      for (std::size_t phase = 0; phase < 3; ++phase) {
        static constexpr const char* names[]{"forward", "backward", "step"};
        const double estimate = e["parallel"]["ranks"][rank][names[phase]]["peak_bytes"].get<double>();
        const double off = std::abs(estimate / r["phases"][rank][phase].get<double>() - 1);
        EXPECT_LT(off, 0.006) << flags << " " << names[phase];
        (r["held_out"].get<bool>() ? held_out : others).push_back(off);
      }
  }
  EXPECT_LT(median(held_out), 0.0003);
  EXPECT_LT(held_out.back(), 0.0055);
  EXPECT_LT(median(others), 0.0001);
  EXPECT_LT(others.back(), 0.0038);
}

/// Pipelines of two stages: peaks of forwards and backwards, and of the optimizer, of each rank. What
/// docs/howto/several-gpus.md says of them.
TEST(SeveralGpus, PipelinesOfTwoStages) {
  const Json recorded = Json::parse(slurp(std::string(VLMEST_SOURCE_DIR) + "/tests/data/several_gpus/pipeline.json"));
  const auto estimate = [](const Json& run) {
    std::string flags;
    for (const char* part : {"flags", "parallel"})
      for (const std::string f : run[part]) flags += " " + f;
    return of_recorded(flags)["parallel"];
  };
  std::vector<double> reserved;
  std::vector<double> held_out, others;
  for (std::size_t i = 0; i < recorded["runs"].size(); i += one_in(4)) {
    const Json& run = recorded["runs"][i];
    const Json p = estimate(run);
    for (std::size_t rank = 0; rank < 2; ++rank) {
      const Json &e = p["ranks"][rank], &m = run["ranks"][rank];
      const double passes =
          std::max(e["forward"]["peak_bytes"].get<double>(), e["backward"]["peak_bytes"].get<double>());
      for (const auto& [name, bytes] : {std::pair{"passes", passes}, {"step", e["step"]["peak_bytes"].get<double>()}}) {
        const double off = std::abs(bytes / m[name].get<double>() - 1);
        EXPECT_LT(off, 0.009) << run << " " << name;
        (run["held_out"].get<bool>() ? held_out : others).push_back(off);
      }
      reserved.push_back(std::abs(e["reserved_in_loop_bytes"].get<double>() / m["reserved"].get<double>() - 1));
      EXPECT_LT(reserved.back(), 0.105) << run;
    }
  }
  EXPECT_LT(median(held_out), 0.001);
  EXPECT_LT(median(others), 0.001);
  EXPECT_LT(median(reserved), 0.004);
  EXPECT_LT(reserved[reserved.size() - 2], 0.03) << "all but one";
  if (one_in(2) == 1) {
    EXPECT_EQ(held_out.size(), 44u);
    EXPECT_EQ(others.size(), 20u);
  }
  for (std::size_t i = 0; i < recorded["returning_outputs"].size(); i += one_in(4)) {
    const Json& run = recorded["returning_outputs"][i];
    EXPECT_NEAR(estimate(run)["outside_bytes"].get<double>() / run["ranks"][0]["outside"].get<double>(), 1, 0.01);
  }
}

}  // namespace
}  // namespace cli::cli_several_gpus_test
#endif
