// SPDX-License-Identifier: Apache-2.0
// Videos on the command line: what the flags count, what the files beside config.json set, and what is refused.
#include "called.hpp"
#include "schema.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_video_test {
namespace {

/// Notes on standard error may be there.
Json inputs(const std::string& arguments) {
  const Called r = run(arguments + " --phase inference --top 0 --json");
  EXPECT_EQ(r.code, 0) << r.err;
  return Json::parse(r.out)["inputs"];
}

TEST(CliVideo, FramesAreTokens) {
  const Json i = inputs("--config qwen2.5-vl-7b --frames 7 --video-size 360x640 --text 10");
  EXPECT_EQ(i["images"], 0);
  EXPECT_EQ(i["video"]["frames"], 7);
  EXPECT_EQ(i["video"]["grids"], 4);  // the last one is doubled
  EXPECT_EQ(i["video"]["resized"], Json({364, 644}));
  EXPECT_EQ(i["video"]["tokens"], 4 * 13 * 23);
  EXPECT_EQ(i["seq"], 10 + 4 * 13 * 23);
  EXPECT_FALSE(inputs("--config qwen2.5-vl-7b").contains("video"));
}

TEST(CliVideo, TimestampsAreMarkers) {
  const Json i = inputs("--config qwen3-vl-8b --video-seconds 10 --video-size 320x320 --text 10");
  EXPECT_EQ(i["video"]["frames"], 20);
  EXPECT_EQ(i["video"]["tokens"], 10 * 100);
  EXPECT_EQ(i["video"]["marker_tokens"], 10 * 8);  // "<0.3 seconds>" between two tokens
  EXPECT_EQ(i["marker_tokens"], 80);
  EXPECT_EQ(i["seq"], 10 + 1000 + 80);
}

TEST(CliVideo, StandsBesideImages) {
  const Json both = inputs("--config internvl3-8b --frames 4 --images 1 --image-size 448x448");
  EXPECT_EQ(both["image_tokens"], 256);
  EXPECT_EQ(both["video"]["tokens"], 4 * 256);
  EXPECT_EQ(both["marker_tokens"], 2 + 4 * 6 + 3);
  refused(
      "--config glm-4.1v-9b --frames 4 --images 1", 2,
      "--frames: pictures beside a video: modeling_glm4v.py, get_placeholder_mask, counts the placeholders of both, "
      "and fails",
      "give --images 0");
  refused(
      "--config smolvlm2-2.2b --frames 4 --images 1", 2,
      "--frames: pictures beside a video: processing_smolvlm.py hands over the pixels of one of them, as pixel_values",
      "give --images 0");
}

TEST(CliVideo, HoldsTheSchema) {
  const Json s = Json::parse(slurp(VLMEST_SOURCE_DIR "/docs/reference/estimate.schema.json"));
  for (const char* arguments :
       {"--config qwen2-vl-2b --frames 4", "--config llava-onevision-0.5b --frames 2 --images 1",
        "--config smolvlm2-2.2b --video-seconds 5"})
    EXPECT_EQ(schema::faults(s, Json::parse(good(std::string(arguments) + " --json"))), std::vector<std::string>{})
        << arguments;
}

TEST(CliVideo, RefusesWhatWouldDoNothing) {
  const std::string model = "--config qwen2.5-vl-7b ";
  const auto wrong = [&](const std::string& flags, const std::string& error, const std::string& hint) {
    refused(model + flags, 2, error, hint);
  };
  wrong("--fps 2", "--fps: has no effect without a video", "leave it out, or give --frames N or --video-seconds S");
  wrong("--video-size 224x224", "--video-size: has no effect without a video",
        "leave it out, or give --frames N or --video-seconds S");
  wrong("--frames 4 --image-size 224x224", "--image-size: has no effect on a video, which comes without images",
        "give --images N, or --video-size");
  refused(model + "--video-seconds 4", 2, "--fps: is needed: this processor has no rate of its own", "give 2, say");
  refused(model + "--frames 4 --fps 2 --video-seconds 2", 2,
          "--video-seconds: frames and their rate say the length already",
          "leave one of --frames, --fps and --video-seconds out");
  refused(model + "--frames 4 --vision-chunk 2", 2,
          "--vision-chunk: the frames of a video are one call of this model's tower", "leave it out");
  refused("--config llava-1.5-7b --frames 4", 2, "--frames: llava takes no videos",
          "leave it out, or name a model that does: Qwen-VL, GLM-4V, InternVL, SmolVLM2, LLaVA-OneVision, "
          "LLaVA-NeXT-Video, Video-LLaVA, InstructBLIP-Video, VideoLLaMA 3, MiniCPM-V 4.6, EXAONE 4.5, Cosmos 3, "
          "Cohere Compass, Muse Glimmer, ERNIE 4.5 VL, MiniMax-M3 or PerceptionLM");
  refused("--config qwen3-vl-8b --frames 1", 2,
          "--frames: 1 is less than a temporal patch holds, which the processor refuses", "give 2 or more");
  refused(model + "--frames 16 --seq 100", 2, "--seq: 100 tokens, but the frames alone need 2048",
          "raise --seq, or give fewer or smaller frames");
}

TEST(CliVideo, FilesSetTheProcessor) {
  Folder f;
  f.write("config.json", slurp(VLMEST_SOURCE_DIR "/tests/data/configs/qwen3-vl-4b.json"));
  const std::string run_it = "--config '" + f.path.string() + "' --video-seconds 10 --video-size 640x640";
  EXPECT_EQ(inputs(run_it)["video"]["frames"], 20);
  f.write("video_preprocessor_config.json",
          R"({"size": {"shortest_edge": 4096, "longest_edge": 1048576}, "fps": 1, "max_frames": 8})");
  const Json set = inputs(run_it)["video"];
  EXPECT_EQ(set["frames"], 8);
  EXPECT_EQ(set["resized"], Json({352, 352}));
  f.write("processor_config.json",
          R"({"video_processor": {"size": {"shortest_edge": 4096, "longest_edge": 1048576}}})");
  EXPECT_EQ(inputs(run_it)["video"]["frames"], 20);  // the class's own rate and limit
}

TEST(CliVideo, PlansForMostFrames) {
  const std::string arguments =
      "plan --config qwen2-vl-2b --goal max-frames --phase inference --gpu-memory 6GiB --video-size 224x224 --results "
      "1";
  const Json p = Json::parse(good(arguments + " --json"));
  const Json s = Json::parse(slurp(VLMEST_SOURCE_DIR "/docs/reference/plan.schema.json"));
  EXPECT_EQ(schema::faults(s, p), std::vector<std::string>{});
  ASSERT_FALSE(p["plans"].empty());
  const Json& best = p["plans"][0];
  EXPECT_GT(best["frames"], 16);
  EXPECT_LE(best["reserved_bytes"], p["device"]["limit_bytes"]);
  std::string command = best["estimate"];
  const Json e = Json::parse(good(command.substr(std::string("vlmest ").size()) + " --json"));
  EXPECT_EQ(e["inference"]["peak"]["bytes"], best["peak_bytes"]) << command;
  refused("plan --config llava-1.5-7b --goal max-frames --gpu-memory 24GiB", 2, "--frames: llava takes no videos",
          "leave it out, or name a model that does: Qwen-VL, GLM-4V, InternVL, SmolVLM2, LLaVA-OneVision, "
          "LLaVA-NeXT-Video, Video-LLaVA, InstructBLIP-Video, VideoLLaMA 3, MiniCPM-V 4.6, EXAONE 4.5, Cosmos 3, "
          "Cohere Compass, Muse Glimmer, ERNIE 4.5 VL, MiniMax-M3 or PerceptionLM");
}

TEST(CliVideo, IsOfferedFewerFrames) {
  const Folder f;
  const std::string log =
      f.write("oom.txt",
              "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 0 has a "
              "total capacity of 23.50 GiB of which 1.10 GiB is free. Including non-PyTorch memory, "
              "this process has 22.30 GiB memory in use. Of the allocated memory 21.50 GiB is "
              "allocated by PyTorch, and 300.00 MiB is reserved by PyTorch but unallocated.\n");
  const Json d = Json::parse(
      good("diagnose '" + log + "' --config qwen2-vl-2b --phase train --frames 16 --video-size 448x448 --json"));
  bool offered = false;
  for (const auto& a : d["actions"]) offered = offered || a["id"] == "fewer-frames";
  EXPECT_TRUE(offered) << d["actions"];
}

}  // namespace
}  // namespace cli::cli_video_test
#endif
