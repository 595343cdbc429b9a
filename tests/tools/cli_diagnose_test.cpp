// SPDX-License-Identifier: Apache-2.0
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "called.hpp"
#include "schema.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_diagnose_test {
namespace {

const std::string data = std::string(VLMEST_SOURCE_DIR) + "/tests/data/";
const std::string recorded = data + "oom_runs/vision_scores";
const std::string flags =
    "--config " + data +
    "configs/qwen2-vl-2b.json --text 64 --image-size 2044x1372 --attention eager --phase inference";

TEST(CliDiagnose, AMessageAndAModelNameTheTensorAndTheActions) {
  const Called r = run("diagnose " + recorded + ".txt " + flags + " --json");
  ASSERT_EQ(r.code, 0) << r.err;
  const auto j = Json::parse(r.out);
  EXPECT_EQ(j["schema_version"], 1);
  EXPECT_EQ(j["evidence"][0]["kind"], "oom_message");
  EXPECT_EQ(j["verdict"]["cause"], "attention_scores");
  EXPECT_EQ(j["verdict"]["tensor"]["shape"], Json({1, 16, 14308, 14308}));
  EXPECT_EQ(j["verdict"]["tensor"]["bytes"], std::int64_t{16} * 14308 * 14308 * 2);
  bool sdpa = false;
  for (const auto& a : j["actions"]) {
    for (const char* key : {"id", "title", "saves_bytes", "time_cost_pct", "peak_after_bytes", "fits", "how"})
      EXPECT_TRUE(a.contains(key)) << key;
    if (a["id"] == "attention-sdpa")
      sdpa = a["fits"].get<bool>() && a["saves_bytes"].get<std::int64_t>() > 10'000'000'000;
  }
  EXPECT_TRUE(sdpa) << r.out;
}

TEST(CliDiagnose, ASnapshotIsReadAsItIs) {
  const Called r = run("diagnose " + recorded + ".pickle.gz --json");
  ASSERT_EQ(r.code, 0) << r.err;
  const auto j = Json::parse(r.out);
  EXPECT_EQ(j["evidence"][0]["kind"], "snapshot");
  EXPECT_EQ(j["evidence"][0]["facts"]["ooms"], 1);
  EXPECT_EQ(j["verdict"]["cause"], "attention_scores");
}

TEST(CliDiagnose, BytesThatAreNoUtf8ArePrintedAsJsonAllTheSame) {
  const Called r =
      run("diagnose " + std::string(VLMEST_SOURCE_DIR) + "/tests/fuzz/corpus/evidence_file/not_utf8.pickle --json");
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(Json::parse(r.out).dump().find("\uFFFD"), std::string::npos);
}

TEST(CliDiagnose, ALogThatLeaks) {
  const Called r = run("diagnose " + std::string(VLMEST_SOURCE_DIR) + "/docs/examples/leak.log --json");
  ASSERT_EQ(r.code, 0) << r.err;
  const auto j = Json::parse(r.out);
  EXPECT_EQ(j["evidence"][0]["kind"], "training_log");
  EXPECT_EQ(j["verdict"]["cause"], "leak");
}

/// What is printed of a text.
Json of_text(const std::string& text) {
  const std::string path = testing::TempDir() + "/told.txt";
  std::ofstream(path) << text;
  return Json::parse(good("diagnose " + path + " --json"));
}

TEST(CliDiagnose, ATitleGivesWayToTheErrorItself) {
  const std::string error = "failed to allocate buffer of size 137438953504\n";
  const Json j = of_text("Bug: ggml_backend_cpu_buffer_type_alloc_buffer: " + error +
                         "I load a model in ten processes:\n" + "ggml_backend_cpu_buffer_type_alloc_buffer: " + error +
                         "llama_kv_cache_init: failed to allocate buffer for kv cache\n");
  EXPECT_EQ(j["verdict"]["cause"], "kv_cache") << j["verdict"].dump(1);
  // The same figures twice: the stack below them is the message's.
  const std::string message =
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has a total "
      "capacity of 23.64 GiB of which 1.20 GiB is free.\n";
  const Json twice = of_text(message +
                             "my training stops:\nTraceback (most recent call last):\n  File \"/a/adamw.py\", line "
                             "3, in _init_group\n    state[\"exp_avg\"] = torch.zeros_like(p)\n" +
                             message);
  EXPECT_EQ(twice["verdict"]["cause"], "optimizer_state") << twice["verdict"].dump(1);
  EXPECT_EQ(twice["evidence"][0]["facts"]["times"], 2);
  EXPECT_EQ(twice["evidence"][0]["facts"]["line"], 1);
}

// A title's digits allow the error's size, or they do not.
TEST(CliDiagnose, ATitleMayRoundTheErrorsFigure) {
  const auto message = [](const std::string& asked) {
    return "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate " + asked +
           " GiB. GPU 0 has a total capacity of 23.64 GiB of which 1.20 GiB is free.\n";
  };
  const auto line = [&](const std::string& asked) {
    return of_text(message(asked) +
                   "my training stops:\nTraceback (most recent call last):\n  File \"/a/adamw.py\", line 3, in "
                   "_init_group\n    state[\"exp_avg\"] = torch.zeros_like(p)\n" +
                   message("2.32"))["evidence"][0]["facts"]["line"];
  };
  EXPECT_EQ(line("2.3"), 6);
  EXPECT_EQ(line("2.5"), 1);
}

TEST(CliDiagnose, ASizeThatNoDeviceHasIsNoLackOfMemory) {
  const Json j = of_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate more than 1EB memory.\n");
  EXPECT_EQ(j["verdict"]["cause"], "unknown");
  EXPECT_NE(j["verdict"]["why"].get<std::string>().find("exabyte"), std::string::npos) << j["verdict"];
}

TEST(CliDiagnose, AKillOnAMachineOfOneMemoryIsLessSure) {
  const Json other = of_text("loading the model\nKilled\n"),
             jetson = of_text("Jetson Orin NX\nloading the model\nKilled\n");
  EXPECT_EQ(other["verdict"]["cause"], "host_memory");
  EXPECT_EQ(jetson["verdict"]["cause"], "host_memory");
  EXPECT_GE(other["verdict"]["confidence"].get<double>(), 0.5);
  EXPECT_LT(jetson["verdict"]["confidence"].get<double>(), 0.5);
}

TEST(CliDiagnose, ASlowTraceNamesItsCause) {
  const Called r = run("diagnose " + data + "traces_profiler/h200_sync.json.gz --json");
  ASSERT_EQ(r.code, 0) << r.err;
  const auto j = Json::parse(r.out);
  EXPECT_EQ(j["evidence"][0]["kind"], "trace");
  EXPECT_EQ(j["verdict"]["cause"], "host_bound");
  EXPECT_FALSE(j["actions"].empty());
}

TEST(CliDiagnose, HoldsItsSchema) {
  const Json s = Json::parse(slurp(VLMEST_SOURCE_DIR "/docs/reference/diagnosis.schema.json"));
  for (const std::string& arguments :
       {recorded + ".txt", recorded + ".pickle.gz", recorded + ".txt " + recorded + ".pickle.gz " + flags,
        recorded + ".txt --config " + data + "configs/qwen2-vl-2b.json --attention eager --phase inference",
        std::string(VLMEST_SOURCE_DIR) + "/docs/examples/leak.log", data + "traces_profiler/h200_prefill.json.gz"})
    EXPECT_EQ(schema::faults(s, Json::parse(good("diagnose " + arguments + " --json"))), std::vector<std::string>{})
        << arguments;
}

/// Without the picture's size the patches are found that give the size.
TEST(CliDiagnose, AnUnknownPictureIsSolvedFor) {
  const Json j = Json::parse(good("diagnose " + recorded + ".txt --config " + data +
                                  "configs/qwen2-vl-2b.json --text 64 --attention eager --phase inference --json"));
  EXPECT_EQ(j["verdict"]["cause"], "attention_scores");
  bool found = false;
  for (const auto& s : j["verdict"].value("solutions", Json::array()))
    found =
        found || (s["unknown"] == "pixels of an image" && s["vision_patches"] > 14000 && s["vision_patches"] < 14700);
  EXPECT_TRUE(found) << j["verdict"].dump(1);
}

/// A snapshot does not tell how large its GPU is: others' memory is concluded only where the GPU is named.
/// 4,096 rows of 152,064 logits in fp32 are what failed, though adapters on what the text tells would need more memory.
TEST(CliDiagnose, ATensorOfSettingsInSentencesIsNamed) {
  const std::string path = testing::TempDir() + "/sentences.txt";
  std::ofstream(path) << "I fine-tune Qwen2.5-VL-7B-Instruct with LoRA on 2x24GB GPUs, batch size 1, sequence length "
                         "4096, and get\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 "
                         "has a total capacity of 23.64 GiB of which 1.20 GiB is free. Of the allocated memory 21.50 "
                         "GiB is allocated by PyTorch, and 500.00 MiB is reserved by PyTorch but unallocated.\n";
  const auto j = Json::parse(run("diagnose " + path + " --json").out);
  EXPECT_EQ(j["verdict"]["cause"], "logits");
  EXPECT_LT(j["verdict"]["confidence"].get<double>(), 0.6) << "by its size alone";
  EXPECT_NE(j["verdict"]["why"].get<std::string>().find("1x4096x152064 in fp32"), std::string::npos);
}

TEST(CliDiagnose, OnlyANamedDeviceIsFull) {
  const std::string snapshot = "diagnose " + data + "oom_runs/other_process.pickle.gz --config " + data +
                               "configs/qwen2.5-vl-7b.json --text 128 --image-size 448x448 --phase inference --json";
  EXPECT_EQ(Json::parse(good(snapshot))["verdict"]["cause"], "weights");
  EXPECT_EQ(Json::parse(good(snapshot + " --device h200-sxm"))["verdict"]["cause"], "other_process");
}

/// A trace is compared with the shipped device that it was recorded on.
TEST(CliDiagnose, ATraceKnowsItsDevice) {
  const Json j = Json::parse(good("diagnose " + data + "traces_profiler/h200_prefill.json.gz --json"));
  EXPECT_EQ(j["evidence"][0]["facts"]["compared_with"], "h200-sxm");
}

TEST(CliDiagnose, EveryFormat) {
  for (const char* format : {"text", "markdown", "csv"}) {
    const Called r = run("diagnose " + recorded + ".txt " + flags + " --format " + format);
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_NE(r.out.find("attention-sdpa"), std::string::npos) << format;
  }
}

std::string base64(const std::string& bytes) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string r;
  unsigned bits = 0;
  int held = 0;
  for (const char c : bytes) {
    bits = (bits << 8 | static_cast<unsigned char>(c)) & 0xffff;
    for (held += 8; held >= 6; held -= 6) r += letters[bits >> (held - 6) & 63];
  }
  return held > 0 ? r + letters[bits << (6 - held) & 63] : r;
}

/// The page of python -m torch.cuda._memory_viz trace_plot.
TEST(CliDiagnose, APageHoldsItsSnapshot) {
  const Folder folder;
  const std::string page =
      folder.write("memory.html",
                   "\n<!DOCTYPE html>\n<html>\n<head>\n</head>\n<body>\n<script type=\"module\">\n"
                   "import {add_local_files} from "
                   "\"https://cdn.jsdelivr.net/gh/pytorch/pytorch@main/torch/utils/viz/MemoryViz.js\"\n"
                   "const local_files = [{\"name\": \"snapshot.pickle\", \"base64\": \"" +
                       base64(slurp(data + "snapshots/training_protocol4.pickle")) +
                       "\"}]\nadd_local_files(local_files, 'Active Memory Timeline')\n</script>\n</body>\n");
  const Json seen = Json::parse(good("diagnose " + page + " --json"));
  const Json same = Json::parse(good("diagnose " + data + "snapshots/training_protocol4.pickle --json"));
  EXPECT_EQ(seen["evidence"][0]["kind"], "snapshot");
  EXPECT_EQ(seen["evidence"][0]["facts"], same["evidence"][0]["facts"]);
  EXPECT_EQ(seen["verdict"], same["verdict"]);
}

/// Memory that grows is a leak before it has killed the run.
TEST(CliDiagnose, GrowthWithoutAFailureIsALeak) {
  const Json j = Json::parse(good("diagnose " + data + "snapshots/leak.pickle --json"));
  EXPECT_EQ(j["evidence"][0]["facts"]["ooms"], 0);
  EXPECT_EQ(j["verdict"]["cause"], "leak");
  EXPECT_EQ(j["verdict"]["why"].get<std::string>().find("failed"), std::string::npos) << j["verdict"]["why"];
}

TEST(CliDiagnose, ARefusalSaysWhatToDo) {
  using namespace std::string_literals;
  const Folder folder;
  for (const auto& [bytes, hint] : std::vector<std::pair<std::string, std::string>>{
           {"\xfd\x37zXZ\0\0\4"s, "xz -d"},
           {"\x28\xb5\x2f\xfd\4\0"s, "zstd -d"},
           {"PK\x03\x04\x14\0\0\0snapshot/data.pkl\x80\2}"s, "pickle.dump(torch.load(FILE)"},
           {"PK\x03\x04\x14\0\0\0snapshot.pickle"s, "unpack it"},
           {"\x80\2\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19."s, "pickle.dump(torch.load(FILE)"},
           {R"({"traceEvents": [{"ph": "X", "pid": 1, "tid": 2, "ts": 1.5, "dur": 2, "name": "fusion.12"}]})",
            "export_chrome_trace"},
           {R"({"schema": "1.1.1-chakra.0.0.4", "pid": 7, "nodes": []})", "export_chrome_trace"}}) {
    const Called r = run("diagnose " + folder.write("file", bytes));
    EXPECT_EQ(r.code, 3) << hint;
    EXPECT_EQ(r.out, "");
    EXPECT_NE(r.err.find(hint), std::string::npos) << r.err;
  }
}

/// A server's refusal and the host's memory are no tensors, whatever model is named.
TEST(CliDiagnose, MessagesOfNoTensor) {
  const std::string model = " --config " + data + "configs/qwen2-vl-2b.json --json";
  const Json kv = Json::parse(good("diagnose " + data + "oom/server_kv_cache.txt" + model));
  EXPECT_EQ(kv["evidence"][0]["kind"], "oom_message");
  EXPECT_EQ(kv["evidence"][0]["facts"]["reason"], "kv_cache_too_small");
  EXPECT_EQ(kv["verdict"]["cause"], "kv_cache");
  EXPECT_TRUE(kv["verdict"]["hypotheses"].empty());
  const Json in_use = Json::parse(good("diagnose " + data + "oom/server_device_in_use.txt --json"));
  EXPECT_EQ(in_use["verdict"]["cause"], "other_process");
  EXPECT_EQ(in_use["actions"][0]["id"], "free-the-gpu");
  const Json host = Json::parse(good("diagnose " + data + "oom/slurm.txt" + model));
  EXPECT_EQ(host["verdict"]["cause"], "host_memory");
  EXPECT_NE(host["verdict"]["why"].get<std::string>().find("host's memory"), std::string::npos);
}

/// What Windows PowerShell's ">" writes.
TEST(CliDiagnose, Utf16) {
  const std::string path = testing::TempDir() + "/utf16.txt";
  std::string text = slurp(data + "oom/v5_alloc_conf.txt"), wide = "\xff\xfe";
  for (const char c : text) wide += std::string{c, '\0'};
  std::ofstream(path, std::ios::binary) << wide;
  const Json j = Json::parse(good("diagnose " + path + " --json"));
  EXPECT_EQ(j["evidence"][0]["facts"],
            Json::parse(good("diagnose " + data + "oom/v5_alloc_conf.txt --json"))["evidence"][0]["facts"]);
}

TEST(CliDiagnose, WhatIsShortOrFailedOtherwiseIsSaid) {
  const Json table = Json::parse(good("diagnose " + data + "logs/smi_410.txt --json"));
  EXPECT_EQ(table["evidence"][0]["facts"]["memory"]["last_bytes"], std::int64_t{12799} << 20);
  EXPECT_EQ(table["evidence"][0]["facts"]["memory"]["total_bytes"], std::int64_t{16280} << 20);
  EXPECT_FALSE(table["verdict"]["why"].get<std::string>().empty());
  const Json apps = Json::parse(good("diagnose " + data + "logs/compute_apps.csv --json"));
  EXPECT_EQ(apps["evidence"][0]["facts"]["gpu_processes"].size(), 2u);
  const std::string path = testing::TempDir() + "/other.txt";
  std::ofstream(path) << "x\nRuntimeError: CUDA error: an illegal memory access was encountered\n";
  const Json illegal = Json::parse(good("diagnose " + path + " --json"))["verdict"];
  EXPECT_EQ(illegal["cause"], "unknown");
  EXPECT_NE(illegal["why"].get<std::string>().find("not memory but: a kernel"), std::string::npos) << illegal;
  EXPECT_NE(illegal["why"].get<std::string>().find("at line 2"), std::string::npos) << illegal;
  std::ofstream(path) << "Epoch 3\nKilled\n";
  EXPECT_NE(Json::parse(good("diagnose " + path + " --json"))["verdict"]["why"].get<std::string>().find("signal 9"),
            std::string::npos);
}

/// Ranks whose lines alternate are series of their own.
TEST(CliDiagnose, ALeakOfOneRank) {
  const std::string path = testing::TempDir() + "/ranks.txt";
  std::ofstream out(path);
  for (int i = 0; i < 40; ++i)
    out << "[rank0]: step " << i << " memory allocated: 60.0 GiB\n[rank1]: step " << i
        << " memory allocated: " << 10 + 0.5 * i << " GiB\n";
  out.close();
  const Json j = Json::parse(good("diagnose " + path + " --json"));
  EXPECT_EQ(j["verdict"]["cause"], "leak");
  EXPECT_EQ(j["evidence"][0]["facts"]["memory"]["rank"], 1);
}

TEST(CliDiagnose, WhatIsNoEvidenceIsRefusedWithAHint) {
  for (const auto& [file, code] :
       std::vector<std::pair<std::string, int>>{{"/nonexistent", 3},
                                                {data + "configs/qwen2-vl-2b.json", 3},
                                                {std::string(VLMEST_SOURCE_DIR) + "/LICENSE", 3}}) {
    const Called r = run("diagnose " + file);
    EXPECT_EQ(r.code, code) << file;
    EXPECT_EQ(r.out, "");
    EXPECT_NE(r.err.find("error: "), std::string::npos);
    EXPECT_NE(r.err.find("hint: "), std::string::npos);
  }
}

/// DeepSpeed's states are 12 bytes a parameter in 16 bits, torch's 4: a seventh of a 7B run on four GPUs.
TEST(CliDiagnose, CountsTheFp32CopiesOfDeepspeed) {
  const std::string common = "--model Qwen/Qwen2.5-VL-7B-Instruct --torch_dtype bfloat16 swift sft NPROC_PER_NODE=4\n";
  const auto states = [&](const std::string& sharding) {
    const auto j = nlohmann::json::parse(
        good("diagnose - --json --phase train --gpus 4 --device a100-80", common + sharding + "it is out of memory\n"));
    EXPECT_TRUE(j["verdict"].contains("live_bytes")) << j;
    return j["verdict"]["live_bytes"]["optimizer_state"].get<double>();
  };
  const double deepspeed = states("--deepspeed zero3\n"), fsdp = states("--fsdp full_shard\n");
  EXPECT_NEAR(deepspeed, 12 * 8.292166656e9 / 4, 1e8);
  EXPECT_NEAR(fsdp, deepspeed / 3, 1e9);
}

/// A call that failed in scaled_dot_product_attention is not helped by it.
TEST(CliDiagnose, OffersNoSdpaWhereItFailed) {
  const std::string message =
      "Traceback (most recent call last):\n  File \"/py/transformers/models/qwen2_5_vl/modeling_qwen2_5_vl.py\", line "
      "320, in forward\n    attn_output = F.scaled_dot_product_attention(q, k, v, attention_mask, dropout_p=0.0)\n"
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 131.22 GiB. GPU 0 has a total capacity of 79.33 "
      "GiB "
      "of which 1.27 GiB is free.\n";
  const std::string out = good("diagnose - --format csv", message);
  EXPECT_NE(out.find("\nattention-flash,"), std::string::npos) << out;
  EXPECT_EQ(out.find("\nattention-sdpa,"), std::string::npos) << out;
}

// Metal's message is of all that is wired: beside talk of pictures it is no more than that.
TEST(CliDiagnose, MetalsLimitGivesWayToPictures) {
  const std::string metal = "[METAL] Command buffer execution failed: Insufficient Memory (00000008:kIOGPU)\n";
  const Folder f;
  const auto verdict = [&](const std::string& text) {
    return Json::parse(run("diagnose '" + f.write("text", text) + "' --phase inference --json").out)["verdict"];
  };
  EXPECT_EQ(verdict(metal)["cause"], "engine_budget");
  EXPECT_LT(verdict(metal)["confidence"], 0.5);
  const auto pictures = verdict("memory spikes as soon as I add an image to it\n" + metal);
  EXPECT_EQ(pictures["cause"], "vision_tiles");
  EXPECT_NE(pictures["why"].get<std::string>().find("Metal"), std::string::npos);
}

}  // namespace
}  // namespace cli::cli_diagnose_test
#endif
