// SPDX-License-Identifier: Apache-2.0
// Sound on the command line: what the flags count, what the files beside config.json set, and what is refused.
#include "called.hpp"
#include "schema.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_audio_test {
namespace {

/// A folder with nothing but its type, whose class has a config of its own for everything else.
struct Model {
  explicit Model(const std::string& config) { folder.write("config.json", config); }
  std::string operator()(const std::string& arguments) const {
    return "--config '" + folder.path.string() + "' " + arguments;
  }
  Folder folder;
};

const char* const qwen2_audio = R"({"model_type": "qwen2_audio", "torch_dtype": "bfloat16"})";
const char* const thinker = R"({"model_type": "qwen2_5_omni_thinker", "torch_dtype": "bfloat16"})";

/// Notes on standard error may be there.
Json estimate(const std::string& arguments) {
  const Called r = run(arguments + " --phase inference --top 0 --json");
  EXPECT_EQ(r.code, 0) << r.err;
  return Json::parse(r.out);
}

TEST(CliAudio, SecondsAreTokens) {
  const Model m(qwen2_audio);
  const Json i = estimate(m("--audio-seconds 7.31 --audio-clips 2 --text 10"))["inputs"];
  EXPECT_EQ(i["images"], 0);
  EXPECT_EQ(i["audio"]["clips"], 2);
  EXPECT_EQ(i["audio"]["samples"], 116960);
  EXPECT_EQ(i["audio"]["frames"], 731);
  EXPECT_EQ(i["audio"]["tokens"], 2 * 183);
  EXPECT_EQ(i["seq"], 10 + 2 * 183);
  EXPECT_FALSE(estimate(m("--text 10"))["inputs"].contains("audio"));
}

TEST(CliAudio, StandsBesideImages) {
  const Model m(thinker);
  const Json alone = estimate(m("--audio-seconds 12.34"))["inputs"];
  EXPECT_EQ(alone["images"], 0);
  const Json both = estimate(m("--audio-seconds 12.34 --images 1 --image-size 224x280"))["inputs"];
  EXPECT_EQ(both["image_tokens"], 80);
  EXPECT_EQ(both["audio"]["tokens"], alone["audio"]["tokens"]);
  EXPECT_EQ(both["seq"], alone["seq"].get<int>() + 80);
}

TEST(CliAudio, EncoderIsAPart) {
  const Model m(qwen2_audio);
  const auto model = [&](const std::string& flags) -> Json {
    return Json::parse(good(m("--audio-seconds 5 --phase train --top 0 --json" + flags)))["model"];
  };
  const Json all = model(""), frozen = model(" --freeze audio");
  EXPECT_GT(all["params"]["audio"], 600'000'000);
  EXPECT_EQ(all["trainable"].get<std::int64_t>() - frozen["trainable"].get<std::int64_t>(), all["params"]["audio"]);
}

TEST(CliAudio, HoldsTheSchema) {
  const Json s = Json::parse(slurp(VLMEST_SOURCE_DIR "/docs/reference/estimate.schema.json"));
  const Model audio(qwen2_audio), omni(thinker);
  for (const std::string& arguments :
       {audio("--audio-seconds 3"), omni("--audio-seconds 3 --images 1"), omni("--audio-seconds 0.5 --audio-clips 3")})
    EXPECT_EQ(schema::faults(s, Json::parse(good(arguments + " --json"))), std::vector<std::string>{}) << arguments;
}

TEST(CliAudio, RefusesWhatWouldDoNothing) {
  const Model m(qwen2_audio);
  const std::string leave =
      "leave it out, or name a model that does: Qwen2-Audio, Qwen2.5-Omni, Qwen3-Omni, Qwen3-ASR, Voxtral, GLM-ASR, "
      "Gemma 3n, Gemma 4 E2B or E4B, Phi-4-multimodal";
  refused("--config llava-1.5-7b --audio-seconds 4", 2, "--audio-seconds: llava takes no audio", leave);
  refused(m("--audio-clips 2"), 2, "--audio-clips: has no effect without a length of the clips",
          "leave it out, or give --audio-seconds S");
  refused(m("--images 1 --audio-seconds 4"), 2,
          "--images: qwen2_audio is a model of sound and text: it takes no images", "leave --images out");
  refused("--config llava-1.5-7b --freeze audio", 2, "--freeze: llava has no audio tower", "leave audio out");
}

TEST(CliAudio, FilesSetTheProcessor) {
  const Model m(R"({"model_type": "qwen2_5_omni_thinker", "torch_dtype": "bfloat16"})");
  const auto padded = [&] { return estimate(m("--audio-seconds 4"))["inputs"]["audio"]["padded_frames"]; };
  EXPECT_EQ(padded(), 30000);
  m.folder.write("preprocessor_config.json",
                 R"({"feature_extractor_type": "WhisperFeatureExtractor", "chunk_length": 30, "n_samples": 480000})");
  EXPECT_EQ(padded(), 3000);
}

}  // namespace
}  // namespace cli::cli_audio_test
#endif
