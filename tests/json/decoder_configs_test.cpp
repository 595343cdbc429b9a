// SPDX-License-Identifier: Apache-2.0
// Released models with these language models, by the values of their config.json (huggingface.co: mistralai/
// Ministral-3-{3B,8B,14B}-Instruct-2512, mistralai/Mistral-Small-4-119B-2603, ibm-granite/granite-vision-3.2-2b,
// xtuner/llava-phi-3-mini-hf, OpenGVLab/InternVL3_5-GPT-OSS-20B-A4B-Preview and OpenGVLab/InternVL2-8B, the last two
// under the keys of transformers' own InternVL).
#include <fstream>

#include <gtest/gtest.h>

#include <vlmest/family/llava/family.hpp>
#include <vlmest/json/model.hpp>
#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/transform/training_step.hpp>

#include "config_support.hpp"

namespace vlmest::decoder_configs_test {
namespace {

using test::parameters;
using test::read;
using test::refused_at;

Vlm released(const std::string& name) {
  const std::string path = VLMEST_SOURCE_DIR "/tests/data/configs/" + name + ".json";
  std::ifstream in(path);
  return json::hf::read(nlohmann::json::parse(in), path);
}
std::int64_t language_parameters(const Vlm& vlm) {
  Builder b;
  const Plan plan;
  Context c{b, plan, stack_of(plan)};
  vlm.family.make_model(c);
  Elements n{};
  for (const auto& t : b.graph.tensors)
    if (t.role == Role::weight && b.graph.scopes[static_cast<std::size_t>(t.scope)].part == Part::language)
      n += t.storage;
  return n.value();
}

constexpr std::int64_t pixtral_tower = 403305472;
/// Mistral3MultiModalProjector: a norm, squares of two by two features merged, two layers without biases.
constexpr std::int64_t mistral3_projector(std::int64_t hidden) {
  return 1024 + 4 * 1024 * 1024 + 1024 * hidden + hidden * hidden;
}

TEST(DecoderConfigs, Ministral3CountsAsItsShapes) {
  const auto language = [](std::int64_t h, std::int64_t inner, std::int64_t layers, int tables) {
    const std::int64_t attention = h * 32 * 128 + 2 * h * 8 * 128 + 32 * 128 * h;
    return tables * 131072 * h + layers * (attention + 3 * h * inner + 2 * h) + h;
  };
  EXPECT_EQ(language(3072, 9216, 26, 1), 3429006336);  // the model card: 3.4 B beside a tower of 0.4 B
  EXPECT_EQ(parameters(released("ministral-3-3b")), 3429006336 + pixtral_tower + mistral3_projector(3072));
  EXPECT_EQ(parameters(released("ministral-3-8b")),
            language(4096, 14336, 34, 2) + pixtral_tower + mistral3_projector(4096));
  EXPECT_EQ(language(5120, 16384, 40, 2), 13506073600);  // the model card: 13.5 B
  EXPECT_EQ(parameters(released("ministral-3-14b")), 13506073600 + pixtral_tower + mistral3_projector(5120));
}

TEST(DecoderConfigs, Mistral4CountsAsItsShapes) {
  constexpr std::int64_t h = 4096, heads = 32;
  const std::int64_t attention =
      h * 1024 + 1024 + 1024 * heads * 128 + h * (256 + 64) + 256 + 256 * heads * (64 + 128) + heads * 128 * h;
  const std::int64_t expert = 3 * h * 2048;
  const std::int64_t layer = attention + 128 * h + 128 * expert + expert + 2 * h;
  const std::int64_t all = 36 * layer + 2 * 131072 * h + h;
  EXPECT_EQ(all, 118972826624);  // published: 119 B
  EXPECT_EQ(language_parameters(released("mistral-small-4-119b")), all);
  EXPECT_EQ(parameters(released("mistral-small-4-119b")), all + pixtral_tower + mistral3_projector(h));
}

TEST(DecoderConfigs, GptOssCountsAsItsShapes) {
  constexpr std::int64_t h = 2880, E = 32;
  const std::int64_t attention = (h * 4096 + 4096) + 2 * (h * 512 + 512) + (4096 * h + h) + 64;
  const std::int64_t expert = h * 2 * h + 2 * h + h * h + h;
  const std::int64_t all = 24 * (attention + E * h + E + E * expert + 2 * h) + 2 * 201088 * h + h;
  EXPECT_EQ(all, 20914757184);                                      // published: 20.9 B
  EXPECT_EQ(all - 24 * (E - 4) * expert - 201088 * h, 3608307264);  // active, without the embedding: 3.6 B
  EXPECT_EQ(language_parameters(released("internvl3.5-gpt-oss-20b")), all);
  const std::int64_t projector = 2 * 4096 + 4096 * h + h + h * h + h;
  EXPECT_EQ(parameters(released("internvl3.5-gpt-oss-20b")), all + projector + 304012288);  // published: 21.2 B
}

TEST(DecoderConfigs, GraniteVisionLlavaPhi3AndInternVl2CountAsPublished) {
  EXPECT_EQ(parameters(released("granite-vision-3.2-2b")), 2975396928);
  EXPECT_EQ(language_parameters(released("llava-phi-3-mini")), 3821079552);  // Phi-3-mini
  EXPECT_EQ(parameters(released("internvl2-8b")), 8075365376);
}

/// The tower's pooling head, whose probe is repeated for every tile, runs and is not trained: the loss does not see it.
TEST(DecoderConfigs, GraniteVisionTrainsThroughSeveralStatesOfATowerWithAHead) {
  std::ifstream in(VLMEST_SOURCE_DIR "/tests/data/configs/granite-vision-3.2-2b.json");
  nlohmann::json d = nlohmann::json::parse(in);
  d["text_config"]["num_hidden_layers"] = 2;
  d["vision_config"]["num_hidden_layers"] = 3;
  d["vision_feature_layer"] = {-3, -2};
  const Vlm vlm = json::hf::read(d, "config.json");
  Plan plan;
  plan.text = 20;
  plan.image_height = plan.image_width = 384;
  Builder b;
  Context c{b, plan, stack_of(plan)};
  build_training(c, vlm, make_sequences(vlm, plan));
  Elements states{}, trained{};
  bool repeated = false;
  for (const Node& n : b.graph.nodes) repeated = repeated || std::string_view(n.name) == "repeat";
  for (const Tensor& t : b.graph.tensors) {
    const std::string module = path(b.graph, t.scope);
    // Behind the last state that is used: a layer, the norm and the head.
    const bool unseen = module.find("vision_tower.head") != std::string::npos ||
                        module.find("vision_tower.post_layernorm") != std::string::npos ||
                        module.find("encoder.layers.2") != std::string::npos;
    if (t.role == Role::weight && t.alias_of == none && !unseen) trained += t.storage;
    if (t.role == Role::optimizer_state && t.shape.rank() > 0) states += t.storage;
  }
  EXPECT_TRUE(repeated);
  EXPECT_EQ(states.value(), 2 * trained.value());
}

DecoderConfig text(const std::string& keys) {
  const Vlm v = read(R"({"model_type": "llava", "text_config": {)" + keys + "}}");
  return get<LlavaFamily>(v.family).language;
}
std::string refused(const std::string& keys) {
  return refused_at(R"({"model_type": "llava", "text_config": {)" + keys + "}}");
}

TEST(DecoderConfigs, AbsentKeysAreTheClassesDefaults) {
  const auto ministral = std::get<LlamaConfig>(text(R"("model_type": "ministral3")"));
  EXPECT_EQ(ministral.layers, 34);
  EXPECT_EQ(ministral.kv_heads, 8);
  EXPECT_EQ(ministral.head_dim, 128);
  EXPECT_FALSE(ministral.window);
  EXPECT_TRUE(ministral.query_scale);
  const auto granite = std::get<LlamaConfig>(text(R"("model_type": "granite", "attention_dropout": 0.1)"));
  EXPECT_EQ(granite.kv_heads, 32);
  EXPECT_TRUE(granite.multipliers && granite.attention_dropout && !granite.qkv_bias);
  const auto phi3 = std::get<LlamaConfig>(text(R"("model_type": "phi3")"));
  EXPECT_EQ(phi3.vocab, 32064);
  EXPECT_EQ(phi3.rotary_dim, 96);
  EXPECT_TRUE(phi3.packed && !phi3.longrope && !phi3.window);
  const auto gpt_oss = std::get<GptOssConfig>(text(R"("model_type": "gpt_oss", "num_hidden_layers": 3)"));
  EXPECT_EQ(gpt_oss.sliding, (std::vector<bool>{true, false, true}));
  EXPECT_EQ(gpt_oss.moe.experts, 128);
  EXPECT_EQ(gpt_oss.window, 128);
  const auto internlm2 = std::get<InternLm2Config>(text(R"("model_type": "internlm2")"));
  EXPECT_EQ(internlm2.vocab, 103168);
  EXPECT_EQ(internlm2.positions, 2048);
  EXPECT_TRUE(internlm2.bias);
  const auto mistral4 = std::get<DeepseekConfig>(text(R"("model_type": "mistral4")"));
  EXPECT_EQ(mistral4.attention.q_rank, 1024);
  EXPECT_EQ(mistral4.moe.experts.experts, 128);
  EXPECT_EQ(std::get<DeepseekConfig>(text(R"("model_type": "mistral4", "q_lora_rank": null)")).attention.q_rank, 0);
  const auto deepseek = std::get<DeepseekConfig>(text(R"("model_type": "deepseek_v3")"));
  EXPECT_EQ(deepseek.attention.q_rank, 1536);
  EXPECT_EQ(deepseek.moe.experts.experts, 256);
  EXPECT_EQ(deepseek.moe.groups, 8);
  EXPECT_EQ(deepseek.dense_layers, 3);
}

TEST(DecoderConfigs, RopeOfPhi3StandsInEitherPlace) {
  const auto phi3 = [](const std::string& keys) {
    return std::get<LlamaConfig>(
        text(R"("model_type": "phi3", "hidden_size": 3072, "num_attention_heads": 24, )" + keys));
  };
  EXPECT_EQ(phi3(R"("partial_rotary_factor": 0.75)").rotary_dim, 96);
  const auto longrope = phi3(R"("rope_parameters": {"rope_type": "longrope", "partial_rotary_factor": 0.75})");
  EXPECT_EQ(longrope.rotary_dim, 96);
  EXPECT_EQ(longrope.longrope, 4096);
  EXPECT_EQ(phi3(R"("rope_scaling": {"type": "su"})").longrope, 4096);
  EXPECT_EQ(phi3(R"("rope_scaling": {"type": "su"}, "rope_parameters": {"rope_type": "default"})").longrope, 4096)
      << "the older name decides where both are given";
  EXPECT_FALSE(phi3(R"("rope_scaling": {}, "rope_parameters": {"rope_type": "default"})").longrope);
  const std::string inside = R"("rope_parameters": {"rope_type": "longrope", "original_max_position_embeddings": 512})";
  EXPECT_EQ(phi3(inside).longrope, 4096) << "the config's own decides, whatever the rope parameters say";
  EXPECT_EQ(phi3(R"("original_max_position_embeddings": 2048, )" + inside).longrope, 2048);
}

TEST(DecoderConfigs, LaterLayersOfQwenSlide) {
  for (const std::string type : {"qwen2", "qwen3"}) {
    const auto qwen = [&](const std::string& keys) {
      return std::get<LlamaConfig>(
          text(R"("model_type": ")" + type + R"(", "num_hidden_layers": 3, "max_window_layers": 1)" + keys));
    };
    EXPECT_TRUE(qwen("").sliding.empty()) << type;
    const LlamaConfig slides = qwen(R"(, "use_sliding_window": true, "sliding_window": 512)");
    EXPECT_EQ(slides.window, 512) << type;
    EXPECT_EQ(slides.sliding, (std::vector<bool>{false, true, true})) << type;
    EXPECT_EQ(qwen(R"(, "use_sliding_window": true)").window, 4096) << type;
    EXPECT_TRUE(qwen(R"(, "use_sliding_window": true, "sliding_window": null)").sliding.empty()) << type;
  }
}

TEST(DecoderConfigs, LatentCachesAreThoseOfPlainLlamaDecoders) {
  const auto described = [](const std::string& type) {
    const std::string text = R"({"name": "x", "source": "x", "expect": {}, "model": {"model_type": "llava",
      "text_config": {"model_type": ")" +
                             type + R"("}}, "kv": {"layout": "mla", "latent_dim": 64, "rope_dim": 16}})";
    try {
      json::read_model(nlohmann::json::parse(text), "x");
    } catch (const Error& e) {
      return e.where;
    }
    return std::string("accepted");
  };
  EXPECT_EQ(described("granite"), "accepted");
  EXPECT_EQ(described("phi3"), "x.kv.layout");
  EXPECT_EQ(described("ministral3"), "x.kv.layout");
  EXPECT_EQ(described("gpt_oss"), "x.kv.layout");
}

TEST(DecoderConfigs, WrongValuesAreRefusedWhereTheyStand) {
  const std::string at = "config.json.text_config.";
  EXPECT_EQ(refused(R"("model_type": "ministral3", "rope_parameters": {"rope_type": "yarn"})"),
            at + "rope_parameters.llama_4_scaling_beta");
  EXPECT_EQ(refused(R"("model_type": "phi3", "rope_scaling": {"type": "linear"})"), at + "rope_scaling.rope_type");
  EXPECT_EQ(refused(R"("model_type": "phi3", "partial_rotary_factor": 0.01)"), at + "partial_rotary_factor");
  EXPECT_EQ(refused(R"("model_type": "gpt_oss", "sliding_window": null)"), at + "sliding_window");
  EXPECT_EQ(refused(R"("model_type": "gpt_oss", "num_hidden_layers": 1, "layer_types": ["chunked_attention"])"),
            at + "layer_types");
  EXPECT_EQ(refused(R"("model_type": "gpt_oss", "num_experts_per_tok": 200)"), at + "num_experts_per_tok");
  EXPECT_EQ(refused(R"("model_type": "internlm2", "rope_pos_id_version": "v2pe")"), at + "rope_pos_id_version");
  EXPECT_EQ(refused(R"("model_type": "internlm2", "head_dim": 64)"), at + "head_dim");
  EXPECT_EQ(refused(R"("model_type": "mistral4", "num_key_value_heads": 8)"), at + "num_key_value_heads");
  EXPECT_EQ(refused(R"("model_type": "mistral4", "n_group": 128)"), at + "n_group");
  EXPECT_EQ(refused(R"("model_type": "deepseek_v3", "num_key_value_heads": 64)"), at + "num_key_value_heads");
  EXPECT_EQ(refused(R"("model_type": "deepseek_v3", "topk_group": 9)"), at + "n_group");
  EXPECT_EQ(refused(R"("model_type": "deepseek_v3", "qk_rope_head_dim": 63)"), at + "qk_rope_head_dim");
  EXPECT_EQ(refused(R"("model_type": "granite", "attention_dropout": 2)"), at + "attention_dropout");
}

}  // namespace
}  // namespace vlmest::decoder_configs_test
