// SPDX-License-Identifier: Apache-2.0
// A checkpoint's folder: the processor's files beside config.json, and the tokens around images.
#include "called.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_processor_test {
namespace {

const std::string configs = VLMEST_SOURCE_DIR "/tests/data/configs/";

/// A folder with the config of a model as config.json.
struct Checkpoint : Folder {
  explicit Checkpoint(const std::string& name) { write("config.json", slurp(configs + name + ".json")); }
  std::string at(const std::string& file) const { return (path / file).string(); }
};
Json inputs(const std::string& arguments) {
  const Called r = run(arguments + " --phase inference --top 0 --json");
  EXPECT_EQ(r.code, 0) << r.err;
  return Json::parse(r.out)["inputs"];
}

TEST(CliProcessor, FolderAndFile) {
  const Checkpoint c("qwen2.5-vl-3b");
  const std::string size = " --image-size 1000x1000";
  EXPECT_EQ(inputs("--config '" + c.path.string() + "'" + size)["image_tokens"], 36 * 36);
  c.write("preprocessor_config.json", R"({"min_pixels": 3136, "max_pixels": 200704, "zoom": 2})");
  for (const std::string& config : {c.path.string(), c.at("config.json")}) {
    EXPECT_EQ(inputs("--config '" + config + "'" + size)["image_tokens"], 256);
    const Called r = run("--config '" + config + "' --phase inference");
    EXPECT_EQ(r.err, "note: image processor as " + c.at("preprocessor_config.json") + " sets it\nnote: " +
                         c.at("preprocessor_config.json") + ": not understood and not used: zoom\n");
  }
  c.write("processor_config.json", R"({"image_processor": {"size": {"shortest_edge": 3136, "longest_edge": 100352}}})");
  c.write("video_preprocessor_config.json", "{}");
  EXPECT_EQ(inputs("--config '" + c.path.string() + "'" + size)["image_tokens"], 121);
  const std::string err = run("--config '" + c.path.string() + "' --phase inference").err;
  EXPECT_NE(err.find("preprocessor_config.json was not read: processor_config.json holds"), std::string::npos) << err;
  EXPECT_NE(err.find("video processor as " + c.at("video_preprocessor_config.json") + " sets it"), std::string::npos);
}

TEST(CliProcessor, KeysThatNobodyKnows) {
  const Checkpoint c("qwen2.5-vl-3b");
  Json config = Json::parse(slurp(c.at("config.json")));
  config["text_config"]["mixture_layers"] = {1, 2};
  config["vision_config"]["registers"] = 4;
  c.write("config.json", config.dump());
  const Called r = run("--config '" + c.path.string() + "' --phase inference --top 0 --json");
  EXPECT_EQ(r.err,
            "note: config.json has what is not known here and not used: text_config.mixture_layers, "
            "vision_config.registers\n");
  EXPECT_EQ(Json::parse(r.out)["model"]["unread_keys"],
            (Json{"text_config.mixture_layers", "vision_config.registers"}));
}

TEST(CliProcessor, BadFiles) {
  const Checkpoint c("qwen2.5-vl-3b");
  const std::string file = c.at("preprocessor_config.json"), model = "--config '" + c.path.string() + "'";
  const std::string hint = "compare with the checkpoint's published file, or remove the file to use the family's own";
  c.write("preprocessor_config.json", "{\"min_pixels\": 3136");
  refused(model, 3, file + ": not JSON at line 1, column 20", hint);
  c.write("preprocessor_config.json", R"({"max_pixels": 99999999999999999999})");
  refused(model, 3, file + ".max_pixels: expected an integer", hint);
  c.write("preprocessor_config.json", R"({"patch_size": 16})");
  refused(model, 3, file + ".patch_size: 16, but vision_config.patch_size of config.json makes it 14",
          "use the two files of one checkpoint");
  c.write("preprocessor_config.json", std::string((1u << 20) + 1, ' '));
  refused(model, 3, file + ": larger than 1 MiB", hint);
}

/// seq = text + images + what the processor writes around them, in each of the three ways to say a length.
TEST(CliProcessor, Markers) {
  const Json given = inputs("--config idefics3-8b --text 100 --image-size 364x364");
  EXPECT_EQ(given["text_tokens"], 100);
  EXPECT_EQ(given["image_tokens"], 2873);
  EXPECT_EQ(given["marker_tokens"], 39);
  EXPECT_EQ(given["seq"], 100 + 2873 + 39);
  const Json whole = inputs("--config internvl3-2b --seq 1000 --images 2 --image-size 448x448");
  EXPECT_EQ(whole["marker_tokens"], 4);
  EXPECT_EQ(whole["text_tokens"], 1000 - 4 - 512);
  EXPECT_EQ(inputs("--config llava-1.5-7b")["marker_tokens"], 0);
  for (const auto& [name, markers] :
       {std::pair{"qwen2-vl-2b", 0}, {"qwen3-vl-4b", 0}, {"glm-4.1v-9b", 0}, {"gemma-3-4b", 4}, {"aya-vision-8b", 3}})
    EXPECT_EQ(inputs("--config " + configs + name + ".json --image-size 336x336")["marker_tokens"], markers) << name;
  refused("--config internvl3-2b --seq 257 --image-size 448x448", 2, "--seq: 257 tokens, but the images alone need 258",
          "raise --seq, or give fewer or smaller images");
}

TEST(CliProcessor, SizesThatTheProcessorRefuses) {
  refused("--config qwen2.5-vl-7b --image-size 10x3000", 3,
          "image size: 10x3000 has an aspect ratio above 200, which the processor refuses", "crop or pad the picture");
  refused("--config pixtral-12b --image-size 1x5000", 3,
          "image size: the short side vanishes when the long one is shrunk to 1024",
          "use a picture with a less extreme aspect ratio");
}

TEST(CliProcessor, SeveralImagesOfOnevision) {
  const std::string model = "--config llava-onevision-0.5b --image-size 768x768 --images ";
  EXPECT_EQ(inputs(model + "1")["image_tokens"], 3699);
  EXPECT_EQ(inputs(model + "2")["image_tokens"], 2 * 730);
}

}  // namespace
}  // namespace cli::cli_processor_test
#endif
