// SPDX-License-Identifier: Apache-2.0
// quantization_config and torch_dtype: what is read, what is refused, which modules it is for.
#include <gtest/gtest.h>

#include <vlmest/nn/inference.hpp>
#include <vlmest/nn/quantization/unused_rules.hpp>
#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/transform/training_step.hpp>

#include "config_support.hpp"

namespace vlmest::test::quantization_config_test {
namespace {

using nlohmann::json;

/// A small LLaVA: a tower of 64 channels, two decoder layers of 256, whose gates' 320 outputs are no multiple of 128.
json model(const json& quantization, json more = json::object()) {
  json c = {{"model_type", "llava"},
            {"vision_config",
             {{"model_type", "clip_vision_model"},
              {"hidden_size", 64},
              {"intermediate_size", 128},
              {"num_hidden_layers", 2},
              {"num_attention_heads", 2},
              {"image_size", 28},
              {"patch_size", 14}}},
            {"text_config",
             {{"model_type", "llama"},
              {"vocab_size", 512},
              {"hidden_size", 256},
              {"intermediate_size", 320},
              {"num_hidden_layers", 2},
              {"num_attention_heads", 4},
              {"num_key_value_heads", 2}}}};
  if (!quantization.is_null()) c["quantization_config"] = quantization;
  c.update(more);
  return c;
}
Vlm vlm_of(const json& quantization) { return read(model(quantization).dump()); }
Graph loaded(const Vlm& vlm, Plan plan = {}, Gpu gpu = {}) {
  Builder b;
  b.gpu = gpu;
  Context c{b, plan, stack_of(plan)};
  c.loads = true;
  declare_parameters(c, vlm);
  return std::move(b.graph);
}
Graph stored_as(const json& quantization) { return loaded(vlm_of(quantization)); }

/// "weight bf16 256x256" of one module, a line each.
std::vector<std::string> tensors(const Graph& g, std::string_view module) {
  std::vector<std::string> r;
  for (const Tensor& t : g.tensors)
    if (path(g, t.scope) == module)
      r.push_back(std::string(t.name) + " " + std::string(name(t.dtype)) + " " + to_string(t.shape));
  return r;
}
using Lines = std::vector<std::string>;
constexpr const char* q_proj = "model.language_model.layers.0.self_attn.q_proj";
constexpr const char* gate = "model.language_model.layers.0.mlp.gate_proj";
constexpr const char* down = "model.language_model.layers.0.mlp.down_proj";
constexpr const char* fc1 = "model.vision_tower.encoder.layers.0.mlp.fc1";

std::string first_of(const Graph& g, std::string_view module) {
  const Lines l = tensors(g, module);
  return l.empty() ? "" : l.front();
}

TEST(QuantizationConfig, TensorsOfEachMethod) {
  const json only = json::array({"vision_tower", "multi_modal_projector"});
  EXPECT_EQ(tensors(stored_as({{"quant_method", "awq"}, {"modules_to_not_convert", only}, {"group_size", 64}}), q_proj),
            (Lines{"qweight int32 256x32", "qzeros int32 4x32", "scales bf16 4x256", "workspace int32 132"}));
  EXPECT_EQ(
      tensors(stored_as(
                  {{"quant_method", "awq"}, {"version", "gemv"}, {"modules_to_not_convert", only}, {"group_size", 64}}),
              q_proj),
      (Lines{"qweight int32 256x32", "qzeros int32 256x2", "scales fp16 256x16"}));
  EXPECT_EQ(tensors(stored_as({{"quant_method", "gptq"}, {"bits", 4}, {"sym", true}, {"desc_act", true}}), down),
            (Lines{"qweight int32 40x256", "scales bf16 3x256", "g_idx int32 320", "g_idx_sort_indices int32 320",
                   "workspace int32 132"}));  // 320 inputs: two groups and a half
  EXPECT_EQ(tensors(stored_as({{"quant_method", "gptq"}, {"bits", 3}, {"sym", false}}), q_proj),
            (Lines{"qweight int32 24x256", "qzeros int32 2x24", "scales bf16 2x256", "g_idx int32 256"}));
  EXPECT_EQ(tensors(stored_as({{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}}), gate),
            (Lines{"weight fp8 320x256", "weight_scale_inv fp32 3x2"}));
  EXPECT_EQ(tensors(stored_as({{"quant_method", "fp8"}}), gate),
            (Lines{"weight fp8 320x256", "weight_scale_inv fp32 3x2"}));  // the default of the config's class
  EXPECT_EQ(
      tensors(stored_as({{"quant_method", "fp8"}, {"activation_scheme", "static"}, {"weight_block_size", nullptr}}),
              gate),
      (Lines{"weight fp8 320x256", "weight_scale_inv fp32 1", "activation_scale fp32 1"}));
  EXPECT_EQ(tensors(stored_as({{"quant_method", "fbgemm_fp8"}}), gate),
            (Lines{"weight fp8 320x256", "weight_scale fp32 320x1", "input_scale_ub fp32 1"}));
  EXPECT_EQ(tensors(stored_as({{"load_in_4bit", true}, {"bnb_4bit_use_double_quant", true}}), q_proj),
            (Lines{"weight nf4 256x256", "quant_map fp32 16", "nested_offset fp32 1", "absmax uint8 1024",
                   "nested_absmax fp32 4", "nested_quant_map fp32 256"}));
  EXPECT_EQ(tensors(stored_as({{"load_in_8bit", true}}), q_proj), (Lines{"weight int8 256x256", "SCB fp32 256"}));
  EXPECT_EQ(tensors(stored_as({{"quant_method", "eetq"}}), gate),
            (Lines{"weight int8 256x320", "weight_scales fp16 320"}));
}

json compressed(json weights, std::string format, json activations = nullptr, json ignore = json::array()) {
  return {{"quant_method", "compressed-tensors"},
          {"format", format},
          {"ignore", ignore},
          {"config_groups",
           {{"group_0", {{"targets", {"Linear"}}, {"weights", weights}, {"input_activations", activations}}}}}};
}

TEST(QuantizationConfig, TensorsOfCompressedTensors) {
  const json asymmetric = {
      {"num_bits", 4}, {"type", "int"}, {"symmetric", false}, {"strategy", "group"}, {"group_size", 128}};
  EXPECT_EQ(tensors(stored_as(compressed(asymmetric, "pack-quantized")), down),
            (Lines{"weight_packed int32 256x40", "weight_scale bf16 256x3", "weight_zero_point int32 32x3",
                   "weight_shape int64 2"}));
  const json eight = {{"num_bits", 8}, {"type", "int"}, {"strategy", "channel"}};
  EXPECT_EQ(tensors(stored_as(compressed(eight, "int-quantized", {{"num_bits", 8}, {"dynamic", true}})), gate),
            (Lines{"weight int8 320x256", "weight_scale bf16 320x1"}));
  const json fp4 = {{"num_bits", 4}, {"type", "float"}, {"strategy", "tensor_group"}, {"group_size", 16}};
  EXPECT_EQ(tensors(stored_as(compressed(fp4, "nvfp4-pack-quantized", {{"num_bits", 4}, {"dynamic", "local"}})), gate),
            (Lines{"weight_packed uint8 320x128", "weight_scale fp8 320x16", "weight_global_scale fp32 1",
                   "input_global_scale fp32 1"}));
  const json mx = {{"num_bits", 4}, {"type", "float"}, {"strategy", "group"}, {"group_size", 32}};
  EXPECT_EQ(tensors(stored_as(compressed(mx, "mxfp4-pack-quantized")), gate),
            (Lines{"weight_packed uint8 320x128", "weight_scale uint8 320x8"}));
  const json block = {{"num_bits", 8}, {"type", "float"}, {"strategy", "block"}, {"block_structure", {128, 128}}};
  EXPECT_EQ(tensors(stored_as(compressed(block, "float-quantized")), gate),
            (Lines{"weight fp8 320x256", "weight_scale bf16 3x2"}));
}

TEST(QuantizationConfig, HeadsAndTowersPerMethod) {
  const std::string wide_head = "weight bf16 512x256", wide_tower = "weight bf16 128x64";
  // Without a list the head stays wide; with one it must be in it, but for AWQ.
  const Graph none = stored_as({{"load_in_4bit", true}});
  EXPECT_EQ(first_of(none, "lm_head"), wide_head);
  EXPECT_EQ(first_of(none, fc1), "weight nf4 128x64");
  const Graph list = stored_as({{"load_in_4bit", true}, {"llm_int8_skip_modules", {"vision_tower"}}});
  EXPECT_EQ(first_of(list, "lm_head"), "weight nf4 512x256");
  EXPECT_EQ(first_of(list, fc1), wide_tower);
  const Graph awq = stored_as({{"quant_method", "awq"}, {"group_size", 64}, {"modules_to_not_convert", {"visual"}}});
  EXPECT_EQ(first_of(awq, "lm_head"), wide_head);
  EXPECT_EQ(first_of(awq, fc1), wide_tower);  // a tower by any of its names
  const Graph gptq = stored_as({{"quant_method", "gptq"}, {"bits", 4}, {"lm_head", true}, {"group_size", 64}});
  EXPECT_EQ(first_of(gptq, "lm_head"), "qweight int32 32x512");
  EXPECT_EQ(first_of(gptq, fc1), wide_tower);
  // A tied head is the embedding.
  const Vlm tied =
      read(model({{"load_in_4bit", true}, {"llm_int8_skip_modules", {"x"}}}, {{"tie_word_embeddings", true}}).dump());
  EXPECT_EQ(tensors(loaded(tied), "lm_head"), (Lines{"weight before tying bf16 512x256"}));
}

TEST(QuantizationConfig, ModulesByTheNamesOfOlderCheckpoints) {
  for (const char* skip :
       {"model.language_model.layers.0.self_attn.q_proj", "language_model.model.layers.0.self_attn.q_proj",
        "model.layers.0.self_attn", "layers.0", "q_proj", "model.layers.0.*", "self_attn"}) {
    const Graph g = stored_as({{"load_in_8bit", true}, {"llm_int8_skip_modules", {skip}}});
    EXPECT_EQ(first_of(g, q_proj), "weight bf16 256x256") << skip;
    EXPECT_EQ(first_of(g, down).substr(0, 11), std::string_view(skip).find("layers.0") == std::string::npos ||
                                                       std::string_view(skip).ends_with("q_proj") ||
                                                       std::string_view(skip).ends_with("attn")
                                                   ? "weight int8"
                                                   : "weight bf16")
        << skip;
  }
}

TEST(QuantizationConfig, SkipsAreReadAsTransformersReadsThem) {
  const auto wide = [](const char* skip, std::string_view module) {
    const Graph g = stored_as({{"load_in_8bit", true}, {"llm_int8_skip_modules", {skip}}});
    return first_of(g, module).starts_with("weight bf16");
  };
  // A name begins so, however its parts are divided: a router's name is the beginning of a gate's.
  EXPECT_TRUE(wide("model.language_model.layers.0.mlp.gate", gate));
  EXPECT_TRUE(wide("model.language_model.layers.0.self_attn.q", q_proj));
  EXPECT_TRUE(wide("model.language.model.layers.0", q_proj));  // a dot is any character
  // Or it ends so.
  EXPECT_TRUE(wide("_proj", q_proj));
  EXPECT_TRUE(wide("mlp.fc1", fc1));
  EXPECT_FALSE(wide("mlp.fc", fc1));
  // Signs make it a pattern, from the beginning on.
  EXPECT_TRUE(wide("model\\.language_model\\.layers\\.[0-9]+\\.mlp", gate));
  EXPECT_FALSE(wide("language_model\\.layers\\.[1-9]+\\.mlp", gate));
  EXPECT_FALSE(wide("attn\\..*", q_proj));
  // What lies between is no match, nor is more than the name.
  for (const char* skip : {"layers.00", "self_attn.q", "anguage_mode", "q_proj_"})
    EXPECT_FALSE(wide(skip, q_proj)) << skip;
  // An older name of a module skips what is in it, by its end too.
  EXPECT_TRUE(wide("odel.layers.0", q_proj));
  EXPECT_FALSE(wide("odel.layers.1", q_proj));
}

TEST(QuantizationConfig, EnginesIgnoreLayersByWholeNames) {
  const auto first = [](const char* layer) {
    return first_of(stored_as({{"quant_method", "fp8"}, {"ignored_layers", {layer}}}), gate);
  };
  EXPECT_EQ(first("model.language_model.layers.0.mlp.gate_proj"), "weight bf16 320x256");
  EXPECT_EQ(first("model.language_model.layers.0.mlp.gate"), "weight fp8 320x256");
}

TEST(QuantizationConfig, LayersOfTheirOwn) {
  const Graph g = stored_as({{"quant_method", "gptq"},
                             {"bits", 4},
                             {"group_size", 64},
                             {"dynamic",
                              {{"+:.*\\.0\\.mlp\\..*", {{"bits", 8}, {"group_size", 32}}},
                               {"-:.*layers\\.1\\.self_attn\\.(?!q_proj).*", json::object()}}}});
  EXPECT_EQ(first_of(g, gate), "qweight int32 64x320");
  EXPECT_EQ(first_of(g, q_proj), "qweight int32 32x256");
  EXPECT_EQ(first_of(g, "model.language_model.layers.1.self_attn.o_proj"), "weight bf16 256x256");
  EXPECT_EQ(first_of(g, "model.language_model.layers.1.self_attn.q_proj"), "qweight int32 32x256");
  json two = compressed({{"num_bits", 4}, {"type", "int"}, {"strategy", "group"}, {"group_size", 64}}, "", nullptr,
                        {"re:.*lm_head", "re:vision_tower.*", "re:multi_modal.*"});
  two["config_groups"]["group_1"] = {{"targets", {"re:.*down_proj$"}},
                                     {"weights", {{"num_bits", 8}, {"type", "float"}, {"strategy", "channel"}}},
                                     {"input_activations", {{"num_bits", 8}, {"type", "float"}, {"dynamic", true}}}};
  const Graph mixed = stored_as(two);
  EXPECT_EQ(first_of(mixed, down), "weight fp8 256x320");
  EXPECT_EQ(first_of(mixed, gate), "weight_packed int32 320x32");
  EXPECT_EQ(first_of(mixed, fc1), "weight bf16 128x64");
}

/// What is wrong with a section: where, and what.
std::string fault(const json& quantization) {
  try {
    stored_as(quantization);
  } catch (const Error& e) {
    EXPECT_FALSE(e.hint.empty());
    return e.where.substr(std::min(e.where.size(), e.where.rfind('.') + 1)) + ": " + e.what_happened;
  }
  return "accepted";
}

json mixed(const json& layers) {
  return {{"quant_method", "modelopt"}, {"quant_algo", "MIXED_PRECISION"}, {"quantized_layers", layers}};
}

TEST(QuantizationConfig, WhatIsNotKnownIsNamed) {
  EXPECT_EQ(fault({{"quant_method", "aqlm"}}), "quant_method: weights stored by 'aqlm' are not known");
  EXPECT_EQ(fault({{"bits", 4}}), "quant_method: missing");
  EXPECT_EQ(fault({{"quant_method", 4}}), "quant_method: expected a string");
  EXPECT_EQ(fault({{"quant_method", "awq"}, {"bits", 3}}), "bits: 3 bits are not known");
  EXPECT_EQ(fault({{"quant_method", "awq"}, {"group_size", 0}}), "group_size: a group of 0 inputs");
  EXPECT_EQ(fault({{"quant_method", "awq"}, {"group_size", -7}}), "group_size: must lie between -1 and 16777216");
  EXPECT_EQ(fault({{"quant_method", "awq"}, {"group_size", "128"}}), "group_size: expected an integer");
  EXPECT_EQ(fault({{"quant_method", "awq"}, {"version", "gemv_fast"}}), "version: the layout 'gemv_fast' is not known");
  EXPECT_EQ(fault({{"quant_method", "gptq"}, {"bits", 5}}), "bits: 5 bits are not known");
  EXPECT_EQ(fault({{"quant_method", "fp8"}, {"weight_block_size", {128, 0}}}),
            "weight_block_size: expected two positive integers");
  EXPECT_EQ(fault({{"quant_method", "fp8"}, {"weight_block_size", 128}}),
            "weight_block_size: expected two positive integers");
  EXPECT_EQ(fault({{"quant_method", "bitsandbytes"}}), "load_in_4bit: neither 4 nor 8 bits are asked for");
  EXPECT_EQ(fault({{"load_in_4bit", true}, {"bnb_4bit_quant_type", "nf5"}}), "bnb_4bit_quant_type: unknown 'nf5'");
  EXPECT_EQ(fault({{"load_in_4bit", true}, {"llm_int8_skip_modules", {1, 2}}}),
            "llm_int8_skip_modules: expected a list of names");
  EXPECT_EQ(fault({{"quant_method", "modelopt"}, {"quant_algo", "W4A8_AWQ"}}), "quant_algo: unknown 'W4A8_AWQ'");
  EXPECT_EQ(fault({{"quant_method", "modelopt"}, {"quant_algo", "MIXED_PRECISION"}}),
            "quantized_layers: missing, but MIXED_PRECISION means what each module of it has");
  EXPECT_EQ(fault(mixed({{q_proj, {{"quant_algo", "MIXED_PRECISION"}}}})), "quant_algo: unknown 'MIXED_PRECISION'");
  EXPECT_EQ(fault(mixed({{q_proj, {{"quant_algo", "NVFP4"}, {"group_size", 32}}}})),
            "group_size: groups of NVFP4 are of 16 inputs");
  EXPECT_EQ(fault(compressed({{"num_bits", 4}}, "marlin-24")), "format: the format 'marlin-24' is not known");
  EXPECT_EQ(fault(compressed({{"num_bits", 4}, {"strategy", "group"}}, "pack-quantized")),
            "group_size: groups without a size");
  // A pattern that cannot be, and one that never ends.
  EXPECT_NE(fault({{"load_in_4bit", true}, {"llm_int8_skip_modules", {"(layers"}}}).find("is no pattern"),
            std::string::npos);
  EXPECT_NE(fault({{"load_in_4bit", true}, {"llm_int8_skip_modules", {"(([a-z._0-9]*)*)*!"}}}).find("too long"),
            std::string::npos);
  // The tower's 128 x 64 weights cannot be grouped so.
  EXPECT_EQ(fault({{"quant_method", "awq"}, {"group_size", 128}})
                .find("quantization_config: model.vision_tower.encoder.layers.0.self_attn"),
            0U);
}

/// A refused setting is told where the storage is asked for, and another type can stand in for it.
TEST(QuantizationConfig, TypesOfThePlanStandInForRefusedSettings) {
  const Vlm vlm = vlm_of({{"quant_method", "awq"}, {"bits", 3}});
  ASSERT_TRUE(vlm.quantization->refused);
  EXPECT_NE(vlm.quantization->refused->hint.find("plan.weights"), std::string::npos);
  EXPECT_THROW(loaded(vlm), Error);
  Plan plan;
  plan.weights = DType::int8;
  EXPECT_EQ(first_of(loaded(vlm, plan), q_proj), "weight int8 256x256");
}

/// What is said of a section's rules.
std::vector<std::string> unused(const json& quantization, json more = json::object()) {
  return unused_rules(read(model(quantization, std::move(more)).dump()), {});
}

TEST(QuantizationConfig, RulesThatNameNoModuleAreNoted) {
  EXPECT_EQ(unused({{"load_in_4bit", true}, {"llm_int8_skip_modules", {"vision_tower", "lm_head", "mlp1"}}}), Lines{});
  EXPECT_EQ(
      unused({{"load_in_4bit", true}, {"llm_int8_skip_modules", {"visual", "merger", "lm_head"}}}),
      (Lines{"config.json.quantization_config.llm_int8_skip_modules: 'merger' names no module of llava and changes "
             "nothing here"}));
  const Lines many = unused({{"load_in_8bit", true}, {"llm_int8_skip_modules", {"a7", "b7", "c7", "d7", "e7", "f7"}}});
  ASSERT_EQ(many.size(), 1U);
  EXPECT_NE(many[0].find("'a7', 'b7', 'c7', 'd7' and 2 more name no module of llava"), std::string::npos) << many[0];
  // Experts alone, of which there are none.
  EXPECT_EQ(unused({{"quant_method", "mxfp4"}}),
            (Lines{"quantization_config: mxfp4 experts is for no module of llava: every weight is as wide as without "
                   "it"}));
  EXPECT_EQ(unused({{"quant_method", "mxfp4"}, {"dequantize", true}}), Lines{});
  Plan plan;
  plan.weights = DType::int8;
  EXPECT_EQ(unused_rules(vlm_of({{"load_in_8bit", true}, {"llm_int8_skip_modules", {"a1"}}}), plan), Lines{});
}

/// modelopt's names are whole ones; one of the experts stands for all of them, which are one tensor.
TEST(QuantizationConfig, AlgorithmsByModule) {
  const json fp8 = {{"quant_algo", "FP8"}}, fp4 = {{"quant_algo", "NVFP4"}, {"group_size", 16}};
  json c = mixed({{q_proj, fp8}, {"lm_head", fp4}, {"model.language_model.layers.0.self_attn.q", fp8}});
  const Graph g = stored_as(c);
  EXPECT_EQ(first_of(g, q_proj), "weight fp8 256x256");
  EXPECT_EQ(first_of(g, "lm_head").substr(0, 12), "weight uint8");
  EXPECT_EQ(first_of(g, "model.language_model.layers.0.self_attn.k_proj").substr(0, 11), "weight bf16");
  EXPECT_EQ(unused(c),
            (Lines{"config.json.quantization_config.quantized_layers: "
                   "'model.language_model.layers.0.self_attn.q' names no module of llava and changes nothing "
                   "here"}));
  c["ignore"] = {"lm_head*", "mtp*"};
  EXPECT_EQ(first_of(stored_as(c), "lm_head").substr(0, 11), "weight bf16");
  EXPECT_EQ(unused(c).at(0),
            "config.json.quantization_config.ignore: 'mtp*' names no module of llava and changes "
            "nothing here");
}

TEST(QuantizationConfig, ClassesAsTargets) {
  json c = compressed({{"num_bits", 8}, {"type", "float"}}, "float-quantized");
  json& targets = c["config_groups"]["group_0"]["targets"];
  targets = {"Linear", "Embedding"};
  EXPECT_EQ(fault(c), "targets: embeddings in fewer bits are not known");
  targets = {"FusedMoE"};
  const Lines said = unused(c);
  ASSERT_EQ(said.size(), 2U);
  EXPECT_NE(said[0].find("targets: 'FusedMoE' names no module"), std::string::npos) << said[0];
  EXPECT_NE(said[1].find("is for no module of llava"), std::string::npos) << said[1];
  targets = {"Linear"};
  c["ignore"] = {"Conv2d"};
  EXPECT_EQ(unused(c), Lines{});
  c["ignore"] = {"Linear"};
  EXPECT_EQ(first_of(stored_as(c), q_proj), "weight bf16 256x256");
}

TEST(QuantizationConfig, InternVlsProjectorByItsOlderName) {
  const Graph g = stored_as({{"load_in_8bit", true}, {"llm_int8_skip_modules", {"mlp1"}}});
  EXPECT_EQ(first_of(g, "model.multi_modal_projector.linear_1"), "weight bf16 256x64");
}

TEST(QuantizationConfig, KeysWithoutEffectAreNoted) {
  const Vlm known = vlm_of({{"quant_method", "awq"}, {"zero_point", true}, {"do_fuse", false}});
  EXPECT_TRUE(known.quantization->notes.empty());
  // As modelopt wrote it before it named a quant_method.
  const Vlm early = vlm_of({{"quant_algo", "FP8"}, {"ignore", {"lm_head"}}, {"quant_library", "modelopt"}});
  EXPECT_EQ(early.quantization->method, "modelopt");
  EXPECT_TRUE(early.quantization->notes.empty());
  const Vlm odd = vlm_of({{"quant_method", "awq"}, {"scale_bits", 8}});
  ASSERT_EQ(odd.quantization->notes.size(), 1U);
  EXPECT_NE(odd.quantization->notes[0].find("quantization_config.scale_bits"), std::string::npos);
}

TEST(QuantizationConfig, IsFoundWhereCheckpointsPutIt) {
  json c = model(nullptr);
  c["text_config"]["quantization_config"] = {{"load_in_8bit", true}};
  EXPECT_EQ(read(c.dump()).quantization->method, "bitsandbytes");
  c = model(nullptr, {{"compression_config", compressed({{"num_bits", 8}, {"type", "float"}}, "float-quantized")}});
  EXPECT_EQ(read(c.dump()).quantization->method, "compressed-tensors");
  EXPECT_FALSE(read(model(nullptr).dump()).quantization);
  EXPECT_FALSE(read(model(json::object()).dump()).quantization);
}

/// Below 8.9 transformers makes bf16 of fp8 as it loads it; Marlin needs 8.0.
TEST(QuantizationConfig, TheGpuDecidesToo) {
  Plan plan;
  const Gpu ampere{.sm = 80}, turing{.sm = 75};
  const Vlm fp8 = vlm_of({{"quant_method", "fp8"}});
  EXPECT_EQ(tensors(loaded(fp8, plan, ampere), gate), (Lines{"weight bf16 320x256"}));
  plan.runtime = runtime_id("fused");
  EXPECT_EQ(first_of(loaded(fp8, plan, ampere), gate), "weight fp8 320x256");
  EXPECT_EQ(tensors(loaded(vlm_of({{"quant_method", "gptq"}, {"bits", 4}, {"sym", true}}), {}, turing), q_proj),
            (Lines{"qweight int32 32x256", "qzeros int32 2x32", "scales bf16 2x256", "g_idx int32 256"}));
}

TEST(QuantizationConfig, ScalesMayBePowersOfTwo) {
  EXPECT_EQ(tensors(stored_as({{"quant_method", "fp8"}, {"scale_fmt", "ue8m0"}}), gate),
            (Lines{"weight fp8 320x256", "weight_scale_inv uint8 3x2"}));
}

TEST(QuantizationConfig, OfTheLanguageModelLeavesTheTowerAlone) {
  json c = model(nullptr);
  c["text_config"]["quantization_config"] = {{"load_in_8bit", true}};
  const Graph g = loaded(read(c.dump()));
  EXPECT_EQ(first_of(g, fc1), "weight bf16 128x64");
  EXPECT_EQ(first_of(g, q_proj), "weight int8 256x256");
}

/// transformers keeps compressed fp8 weights for its own kernels where it is asked to, and the GPU has them; otherwise
/// it unpacks them and rounds their inputs.
TEST(QuantizationConfig, CompressedFp8MayStayAsItIs) {
  json c = compressed({{"num_bits", 8}, {"type", "float"}, {"strategy", "channel"}}, "float-quantized",
                      {{"num_bits", 8}, {"type", "float"}, {"dynamic", true}, {"strategy", "token"}}, {"lm_head"});
  const auto computes = [](const json& section, int capability, Runtime runtime = {}) {
    const Vlm vlm = vlm_of(section);
    Plan plan;
    plan.runtime = runtime;
    Builder b;
    b.gpu.sm = capability;
    Context context{b, plan, stack_of(plan)};
    declare_parameters(context, vlm);
    return tensors(b.graph, gate);
  };
  EXPECT_EQ(computes(c, 90), (Lines{"weight bf16 320x256", "weight_scale bf16 320x1"}));
  c["use_optimized_inference"] = true;
  EXPECT_EQ(computes(c, 90), (Lines{"weight fp8 320x256", "weight_scale fp32 1x320"}));
  EXPECT_EQ(computes(c, 80), (Lines{"weight bf16 320x256", "weight_scale bf16 320x1"}));
  EXPECT_EQ(computes(c, 90, runtime_id("fused")), (Lines{"weight fp8 320x256", "weight_scale bf16 320x1"}));
  c["run_compressed"] = false;  // transformers: dequantize
  EXPECT_EQ(computes(c, 90), (Lines{"weight bf16 320x256"}));
}

TEST(QuantizationConfig, EveryTensorOfExpertsHasAName) {
  const auto of_experts = [](const json& section) {
    const Graph g = loaded(read(json{
        {"model_type", "qwen3_moe"},
        {"hidden_size", 256},
        {"intermediate_size", 512},
        {"moe_intermediate_size", 128},
        {"num_hidden_layers", 1},
        {"num_attention_heads", 4},
        {"num_key_value_heads", 2},
        {"num_experts", 4},
        {"num_experts_per_tok", 2},
        {"vocab_size", 512},
        {"quantization_config",
         section}}.dump()));
    return tensors(g, "model.layers.0.mlp.experts");
  };
  EXPECT_EQ(
      of_experts({{"quant_method", "fp8"}, {"activation_scheme", "static"}}),
      (Lines{"gate_up_proj fp8 4x256x256", "gate_up_proj_scale_inv fp32 4x2x2", "gate_up_proj_activation_scale fp32 4",
             "down_proj fp8 4x256x128", "down_proj_scale_inv fp32 4x2x1", "down_proj_activation_scale fp32 4"}));
  EXPECT_EQ(
      of_experts({{"quant_algo", "NVFP4"}, {"quant_method", "modelopt"}}),
      (Lines{"gate_up_proj uint8 4x256x128", "gate_up_proj_scales fp8 4x256x16", "gate_up_proj_global_scale fp32 4x1",
             "gate_up_proj_input_scale fp32 4x1", "down_proj uint8 4x256x64", "down_proj_scales fp8 4x256x8",
             "down_proj_global_scale fp32 4x1", "down_proj_input_scale fp32 4x1"}));
}

/// Nothing repeated is nothing, however often.
TEST(QuantizationConfig, PatternsOfNothingEnd) {
  for (const char* pattern : {"((){256}){256}", "((((m?){200}){200}){200})z"}) {
    const json c = {{"load_in_4bit", true}, {"llm_int8_skip_modules", {pattern}}};
    try {
      loaded(vlm_of(c));
    } catch (const Error& e) {
      EXPECT_FALSE(e.what_happened.empty());
    }
  }
}

TEST(QuantizationConfig, ThePlanOverridesIt) {
  Plan plan;
  plan.weights = DType::bf16;
  EXPECT_EQ(first_of(loaded(vlm_of({{"load_in_4bit", true}}), plan), q_proj), "weight bf16 256x256");
  plan.weights = DType::int8;
  EXPECT_EQ(first_of(loaded(vlm_of({{"quant_method", "aqlm"}}), plan), q_proj), "weight int8 256x256");
}

TEST(QuantizationConfig, TrainsBelowAdaptersWhereTheGradientIsKnown) {
  const auto train = [](const json& quantization, std::int64_t rank) -> std::string {
    Plan plan;
    plan.text = 8;
    plan.lora.rank = rank;
    const Vlm vlm = vlm_of(quantization);
    Builder b;
    Context c{b, plan, stack_of(plan)};
    try {
      build_training(c, vlm, make_sequences(vlm, plan));
    } catch (const Error& e) {
      return e.what_happened;
    }
    return "trains";
  };
  EXPECT_EQ(train({{"load_in_4bit", true}, {"bnb_4bit_compute_dtype", "bfloat16"}}, 8), "trains");
  EXPECT_EQ(train({{"quant_method", "fp8"}, {"dequantize", true}}, 8), "trains");
  EXPECT_EQ(train({{"load_in_4bit", true}}, 0), "4-bit weights cannot be trained themselves");
  EXPECT_EQ(train({{"load_in_8bit", true}}, 8), "training through bitsandbytes weights is not known");
  EXPECT_EQ(train({{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 64}}, 8),
            "training through gptq weights is not known");
}

TEST(TorchDtype, IsTheModelsOwnType) {
  const auto type = [](json more) { return read(model(nullptr, std::move(more)).dump()).dtype; };
  EXPECT_EQ(type(json::object()), std::nullopt);
  EXPECT_EQ(type({{"torch_dtype", "float16"}}), DType::fp16);
  EXPECT_EQ(type({{"dtype", "bfloat16"}, {"torch_dtype", "float16"}}), DType::bf16);
  EXPECT_EQ(type({{"torch_dtype", "auto"}}), std::nullopt);
  EXPECT_EQ(type({{"torch_dtype", nullptr}}), std::nullopt);
  json c = model(nullptr);
  c["text_config"]["torch_dtype"] = "torch.float32";
  EXPECT_EQ(read(c.dump()).dtype, DType::fp32);
  EXPECT_EQ(refused_at(model(nullptr, {{"torch_dtype", "float8_e4m3fn"}}).dump()), "config.json.torch_dtype");
  EXPECT_EQ(refused_at(model(nullptr, {{"dtype", 16}}).dump()), "config.json.dtype");
}

TEST(StoredProducts, HaveTheFlopsOfProducts) {
  const StoredMatmul stored{.m = 3, .n = 64, .k = 128, .stored = Bytes(64 * 64)};
  const Cost c = cost(stored), wide = cost(Matmul{.m = 3, .n = 64, .k = 128});
  EXPECT_EQ(c.flops, wide.flops);
  EXPECT_LT(c.read, wide.read);
  EXPECT_EQ(c.written, wide.written);
}

}  // namespace
}  // namespace vlmest::test::quantization_config_test
