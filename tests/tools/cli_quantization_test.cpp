// SPDX-License-Identifier: Apache-2.0
// What the program says of the types and the storage that a config.json names.
#include "called.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_quantization_test {
namespace {

Json config(const std::string& name) {
  return Json::parse(slurp(fs::path(VLMEST_SOURCE_DIR) / "tests" / "data" / "configs" / (name + ".json")));
}
const Json awq = {{"quant_method", "awq"}, {"modules_to_not_convert", {"visual"}}};

/// The line with the inputs, from behind the last bracket.
std::string types(const Json& c, const std::string& flags, std::string* err = nullptr) {
  const Called r = run("--config - --phase inference --top 0 " + flags, c.dump());
  EXPECT_EQ(r.code, 0) << r.err;
  if (err) *err = r.err;
  const std::string line = r.out.substr(0, r.out.find("\n\n"));
  const std::size_t at = line.rfind("448x448), ");
  std::string words = at == std::string::npos ? line : line.substr(at + 10);
  if (const std::size_t wrap = words.find("\n  "); wrap != std::string::npos) words.replace(wrap, 3, " ");
  return words;
}

TEST(TypesOfAConfig, AreTheDefaultAndTold) {
  Json c = config("qwen2-vl-2b");
  EXPECT_EQ(types(c, ""), "bf16");
  c["torch_dtype"] = "float16";
  EXPECT_EQ(types(c, ""), "fp16 (config.json)");
  EXPECT_EQ(types(c, "--dtype fp32"), "fp32");
  EXPECT_EQ(types(c, "--amp"), "fp32");
  c["torch_dtype"] = "auto";
  EXPECT_EQ(types(c, ""), "bf16");
}

/// config.json says nothing, a file of the tool that quantised the weights does.
TEST(StorageBesideAConfig, IsReadWhereTheConfigHasNone) {
  Folder folder;
  folder.write("config.json", config("qwen2-vl-2b").dump());
  const auto said = [&](std::string* err) {
    const Called r = run("--config '" + folder.path.string() + "' --phase inference --top 0");
    EXPECT_EQ(r.code, 0) << r.err;
    *err = r.err;
    const std::size_t at = r.out.find(", bf16");
    std::string words = r.out.substr(at + 2, r.out.find("\n\n") - at - 2);
    if (const std::size_t wrap = words.find("\n  "); wrap != std::string::npos) words.replace(wrap, 3, " ");
    return words;
  };
  std::string err;
  EXPECT_EQ(said(&err), "bf16");
  EXPECT_EQ(err, "");
  const std::string file = (folder.path / "quantize_config.json").string();
  folder.write("quantize_config.json", R"({"bits": 4, "group_size": 64, "desc_act": false, "sym": true})");
  EXPECT_EQ(said(&err), "bf16, weights gptq 4 bit in groups of 64 (quantize_config.json)");
  EXPECT_EQ(err, "note: weights stored as " + file + " says; config.json has no quantization_config\n");
  folder.write("quant_config.json", R"({"zero_point": true, "q_group_size": 128, "w_bit": 4, "version": "GEMM"})");
  EXPECT_EQ(said(&err), "bf16, weights awq 4 bit in groups of 128 (quant_config.json)");
  folder.write("hf_quant_config.json",
               R"({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "exclude_modules": []}})");
  EXPECT_EQ(said(&err), "bf16, weights modelopt FP8 as serving engines keep it (hf_quant_config.json)");
  folder.write("hf_quant_config.json", R"({"quantization": {"quant_algo": "INT8"}})");
  refused(
      "--config '" + folder.path.string() + "' --phase inference", 3,
      (folder.path / "hf_quant_config.json").string() + ".quantization.quant_algo: unknown 'INT8'",
      "known: FP8, FP8_PER_CHANNEL_PER_TOKEN, FP8_PB_WO, NVFP4, W4A16_NVFP4, MIXED_PRECISION; or give --weights TYPE");
  folder.write("hf_quant_config.json", "[]");
  EXPECT_EQ(run("--config '" + folder.path.string() + "'").code, 3);
  Json own = config("qwen2-vl-2b");
  own["quantization_config"] = awq;
  folder.write("config.json", own.dump());
  EXPECT_EQ(said(&err), "bf16, weights awq 4 bit in groups of 128 (config.json)");
  EXPECT_EQ(err, "");
}

TEST(StorageOfAConfig, IsToldAndOverridden) {
  Json c = config("qwen2-vl-2b");
  c["quantization_config"] = awq;
  EXPECT_EQ(types(c, ""), "bf16, weights awq 4 bit in groups of 128 (config.json)");
  EXPECT_EQ(types(c, "--weights int8"), "bf16, weights int8 (instead of config.json's awq)");
  std::string err;
  c["quantization_config"]["odd"] = 1;
  types(c, "", &err);
  EXPECT_EQ(err, "note: standard input.quantization_config.odd is not known and changes nothing here\n");
  c["quantization_config"] = {{"quant_method", "aqlm"}};
  const Called r = run("--config - --phase inference", c.dump());
  EXPECT_EQ(r.code, 3);
  EXPECT_EQ(
      r.err.rfind("error: standard input.quantization_config.quant_method: weights stored by 'aqlm' are not known", 0),
      0U)
      << r.err;
  EXPECT_EQ(types(c, "--weights int4"), "bf16, weights int4 (instead of config.json's aqlm)");
  c["quantization_config"] = {{"quant_method", "awq"}, {"bits", 3}};
  EXPECT_EQ(run("--config - --phase inference", c.dump()).code, 3);
  EXPECT_EQ(types(c, "--weights int4"), "bf16, weights int4 (instead of config.json's awq)");
  c["quantization_config"] = {{"quant_method", "awq"}, {"modules_to_not_convert", {"visual", "mlp7"}}};
  types(c, "", &err);
  EXPECT_EQ(err,
            "note: standard input.quantization_config.modules_to_not_convert: 'mlp7' names no module of qwen2_vl and "
            "changes nothing here\n");
}

}  // namespace
}  // namespace cli::cli_quantization_test
#endif
