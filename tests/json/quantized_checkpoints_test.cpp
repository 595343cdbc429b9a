// SPDX-License-Identifier: Apache-2.0
// The storage of released quantised checkpoints, against counts of their tensors that are written out here and against
// sizes that others published.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include <vlmest/json/device.hpp>
#include <vlmest/nn/inference.hpp>
#include <vlmest/nn/sequence_layout.hpp>
#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/report/estimate.hpp>

#include "config_support.hpp"

namespace vlmest::test::quantized_checkpoints_test {
namespace {

using nlohmann::json;
using I = std::int64_t;

json load(const std::string& path) {
  std::ifstream in(std::string(VLMEST_SOURCE_DIR) + "/" + path);
  return json::parse(in);
}

/// The checkpoint's config.json: its section inside the config that it stands in.
json config_of(const std::string& name) {
  const json q = load("tests/data/quantization/" + name + ".json");
  json c = load("tests/data/configs/" + q["base"].get<std::string>() + ".json");
  c["quantization_config"] = q["quantization_config"];
  for (const char* part : {"text_config", "vision_config"})
    if (q.contains(part)) c[part].update(q[part]);
  for (const char* key : {"torch_dtype", "tie_word_embeddings"})
    if (q.contains(key)) c[key] = q[key];
  return c;
}

Graph loaded(const Vlm& vlm, Plan plan = {}) {
  Builder b;
  Context c{b, plan, stack_of(plan)};
  c.loads = true;
  declare_parameters(c, vlm);
  return std::move(b.graph);
}

/// Bytes of the tensors of modules that `within` is part of the path of; those of views and of what is dropped not.
I bytes(const Graph& g, std::string_view within, bool biases = true) {
  Bytes n{};
  for (const Tensor& t : g.tensors)
    if ((t.role == Role::weight || t.role == Role::buffer) && t.dies == none &&
        path(g, t.scope).find(within) != std::string::npos && (biases || std::string_view(t.name) != "bias"))
      n += requested_bytes(t);
  return n.value();
}
I all_bytes(const Graph& g) { return bytes(g, ""); }

struct Layer {
  I in, out;
};
/// The linears of one decoder layer of a gated model: q, k, v, o, gate, up, down.
std::vector<Layer> layer(I hidden, I kv, I inner, I q = 0) {
  if (q == 0) q = hidden;
  return {{hidden, q}, {hidden, kv}, {hidden, kv}, {q, hidden}, {hidden, inner}, {hidden, inner}, {inner, hidden}};
}

TEST(QuantizedCheckpoints, QwenAwqTensorByTensor) {
  const Vlm vlm = read(config_of("qwen2.5-vl-7b-awq").dump());
  const Graph g = loaded(vlm);
  I expected = 0;
  for (const auto& [in, out] : layer(3584, 512, 18944))
    expected += in * out / 8 * 4 + in / 128 * out / 8 * 4 + in / 128 * out * 2 + 132 * 4;
  const std::string first = "language_model.layers.0.";
  EXPECT_EQ(bytes(g, first + "self_attn", false) + bytes(g, first + "mlp"), expected);
  const Graph wide = loaded(read(load("tests/data/configs/qwen2.5-vl-7b.json").dump()));
  EXPECT_EQ(bytes(g, "visual"), bytes(wide, "visual"));
  EXPECT_EQ(bytes(g, "lm_head"), bytes(wide, "lm_head"));
  const double gb = static_cast<double>(all_bytes(g)) / 1e9;
  EXPECT_NEAR(gb, load("tests/data/quantization/qwen2.5-vl-7b-awq.json")["published"]["download_gb"].get<double>(),
              0.05);  // as far as it is given
  EXPECT_EQ(vlmest::parameters(g).total(), vlmest::parameters(wide).total());
}

/// What the allocator holds once a checkpoint is loaded, in GiB.
double loaded_gib(const std::string& name) {
  const Vlm vlm = read(config_of(name).dump());
  Plan plan;
  plan.dtype = vlm.dtype.value_or(DType::bf16);
  plan.runtime = runtime_id("fused");  // as an engine runs it
  const Device device = parse_device(load("models/device/h200-sxm.json").dump(), "h200-sxm");
  const Bytes b = inference_estimate::loaded_weights(vlm, plan, device, {.total_memory = device.memory_bytes});
  return static_cast<double>(b.value()) / 1073741824.0;
}

TEST(QuantizedCheckpoints, AsServingEnginesLoadedThem) {
  for (const char* name : {"llava-1.5-7b-awq", "qwen2.5-vl-72b-bnb-4bit"}) {
    const double measured =
        load(std::string("tests/data/quantization/") + name + ".json")["published"]["loaded_gib"].get<double>();
    EXPECT_NEAR(loaded_gib(name) / measured, 1, 0.01) << name << " " << loaded_gib(name);
  }
}

/// The weights' file of a checkpoint is as large as its tensors and their header: less than 200 bytes a tensor for a
/// name, a type, a shape and two offsets.
TEST(QuantizedCheckpoints, PackedIntegersBesideLinearAttention) {
  const Graph g = loaded(read(config_of("qwen3.5-9b-w4a16").dump()));
  I expected = 0;
  // The queries carry their gates; linear attention is left as it is.
  for (const auto& [in, out] : std::vector<Layer>{{4096, 2 * 4096}, {4096, 1024}, {4096, 1024}, {4096, 4096}})
    expected += in * out / 2 + in / 128 * out * 2;
  EXPECT_EQ(bytes(g, "language_model.layers.3.self_attn") - 2 * 256 * 2, expected + 4 * 2 * 8);
  const I file = load("tests/data/quantization/qwen3.5-9b-w4a16.json")["published"]["model_safetensors_bytes"];
  const auto tensors = std::count_if(g.tensors.begin(), g.tensors.end(),
                                     [](const Tensor& x) { return x.role == Role::weight && x.alias_of == none; });
  EXPECT_LT(all_bytes(g), file);
  EXPECT_LT(file - all_bytes(g), 200 * tensors);
}

/// AutoAWQ skips whatever has one of the texts anywhere in its name: every attention, the shared experts, their gates,
/// and the first layer.
TEST(QuantizedCheckpoints, AwqSkipsByPartsOfNames) {
  const Vlm vlm = read(config_of("qwen3.6-35b-a3b-awq").dump());
  const Graph g = loaded(vlm), wide = loaded(read(load("tests/data/configs/qwen3.5-35b-a3b.json").dump()));
  for (const char* part : {"visual", "layers.0.", "layers.3.self_attn", "layers.1.linear_attn",
                           "layers.1.mlp.shared_expert", "layers.1.mlp.gate", "lm_head"})
    EXPECT_EQ(bytes(g, part), bytes(wide, part)) << part;
  EXPECT_LT(bytes(g, "layers.1.mlp.experts"), bytes(wide, "layers.1.mlp.experts") / 3);
  // The multi-token-prediction layer, which transformers leaves out, is in the download too: its attention, its
  // experts and what joins it, in bf16.
  const I h = 2048, mtp = 2 * h * h + h * 2 * 4096 + 2 * h * 512 + 4096 * h + (256 + 1) * 3 * h * 512 + 257 * h;
  const double gb = static_cast<double>(all_bytes(g) + 2 * mtp) / 1e9;
  EXPECT_NEAR(gb / load("tests/data/quantization/qwen3.6-35b-a3b-awq.json")["published"]["download_gb"].get<double>(),
              1, 0.005);
}

TEST(QuantizedCheckpoints, GptqLeavesTowerAndHead) {
  const Graph g = loaded(read(config_of("qwen2-vl-2b-gptq-int4").dump()));
  const Graph wide = loaded(read(load("tests/data/configs/qwen2-vl-2b.json").dump()));
  I expected = 0;
  for (const auto& [in, out] : layer(1536, 256, 8960))
    expected += in / 8 * out * 4 + in / 128 * out * 2 + 132 * 4;  // Marlin keeps no zero points of symmetric weights
  const std::string first = "language_model.layers.0.";
  EXPECT_EQ(bytes(g, first + "self_attn", false) + bytes(g, first + "mlp"), expected);
  EXPECT_EQ(bytes(g, "visual"), bytes(wide, "visual"));
  EXPECT_EQ(vlmest::parameters(g).total(), vlmest::parameters(wide).total());
}

TEST(QuantizedCheckpoints, Fp8BlocksWithFp32Scales) {
  const Graph g = loaded(read(config_of("qwen3-vl-8b-fp8").dump()));
  I expected = 0;
  for (const auto& [in, out] : layer(4096, 1024, 12288)) expected += in * out + in / 128 * (out / 128) * 4;
  I found = 0;
  for (const char* m : {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"})
    found += bytes(g, std::string("language_model.layers.3.") + (m[1] == '_' ? "self_attn." : "mlp.") + m);
  EXPECT_EQ(found, expected);
  EXPECT_EQ(bytes(g, "lm_head"), I{151936} * 4096 * 2);
}

TEST(QuantizedCheckpoints, Fp8WithOneScaleForAWeight) {
  const Graph g = loaded(read(config_of("devstral-small-2-24b-fp8").dump()));
  const Graph wide = loaded(read(load("tests/data/configs/ministral-3-8b.json").dump()));
  I expected = 0;
  for (const auto& [in, out] : layer(4096, 1024, 14336)) expected += in * out + 4 + 4;  // of the weight, of the input
  const std::string first = "language_model.layers.0.";
  EXPECT_EQ(bytes(g, first + "self_attn") + bytes(g, first + "mlp"), expected);
  for (const char* m : {"vision_tower", "multi_modal_projector", "lm_head"})
    EXPECT_EQ(bytes(g, m), bytes(wide, m)) << m;
}

TEST(QuantizedCheckpoints, Fp8ExpertsAreStoredSoToo) {
  const Graph g = loaded(read(config_of("qwen3-vl-30b-a3b-fp8").dump()));
  const I hidden = 2048, inner = 768, experts = 128;
  const I one = 3 * hidden * inner + (2 * inner / 128 * (hidden / 128) + hidden / 128 * (inner / 128)) * 4;
  EXPECT_EQ(bytes(g, "language_model.layers.0.mlp.experts"), experts * one);
  EXPECT_EQ(bytes(g, "language_model.layers.0.mlp.gate"), experts * hidden * 2);  // the router is no nn.Linear
}

TEST(QuantizedCheckpoints, BitsandbytesLeavesFusedExperts) {
  json c = load("tests/data/configs/qwen3-vl-30b-a3b.json");
  c["quantization_config"] = {{"load_in_4bit", true}, {"quant_method", "bitsandbytes"}};
  const Graph g = loaded(read(c.dump()));
  EXPECT_EQ(bytes(g, "language_model.layers.0.mlp.experts"), I{128} * 3 * 2048 * 768 * 2);
  EXPECT_LT(bytes(g, "language_model.layers.0.self_attn.q_proj"), I{2048} * 4096);
}

TEST(QuantizedCheckpoints, Mxfp4ExpertsAlone) {
  const Graph g = loaded(read(config_of("gpt-oss").dump()));
  const Graph wide = loaded(read(load("tests/data/configs/qwen3-vl-30b-a3b.json").dump()));
  EXPECT_EQ(bytes(g, "language_model.layers.0.mlp.experts"), I{128} * 3 * 2048 * 768 / 32 * 17);
  EXPECT_EQ(bytes(g, "self_attn"), bytes(wide, "self_attn"));
  for (const Tensor& t : g.tensors)
    if (std::string_view(t.name) == "down_proj_blocks") {
      EXPECT_EQ(to_string(t.shape), "128x2048x24x16");
    }
}

/// transformers keeps the biases of experts in mxfp4 in fp32, engines as the file has them; nothing else gets wider.
TEST(QuantizedCheckpoints, BiasesOfMxfp4Experts) {
  json c = load("tests/data/language_models/gpt-oss-20b.json")["model"];
  c["quantization_config"] = load("tests/data/quantization/gpt-oss.json")["quantization_config"];
  const Vlm vlm = read(c.dump());
  Plan plan;
  const auto of_experts = [&] {
    I n = 0;
    for (const Graph g = loaded(vlm, plan); const Tensor& t : g.tensors)
      if (path(g, t.scope) == "model.layers.0.mlp.experts" && std::string_view(t.name).ends_with("_bias"))
        n += requested_bytes(t).value();
    return n;
  };
  EXPECT_EQ(of_experts(), I{32} * 3 * 2880 * 4);
  plan.runtime = runtime_id("fused");
  EXPECT_EQ(of_experts(), I{32} * 3 * 2880 * 2);
  plan = {};
  plan.text = 64;
  plan.images = 0;
  Builder b;
  Context context{b, plan, stack_of(plan)};
  build_inference(context, vlm, make_sequences(vlm, plan), 64);
  for (const Tensor& t : b.graph.tensors) {
    if (t.role == Role::activation && std::string_view(t.name) == "grouped_mm") {
      EXPECT_EQ(t.dtype, DType::bf16);
    }
  }
}

TEST(QuantizedCheckpoints, PackedIntegersAndWhatUnpackingLeaves) {
  const Vlm vlm = read(config_of("qwen2.5-vl-7b-w4a16").dump());
  const Graph g = loaded(vlm);
  I expected = 0, left = 0;
  for (const auto& [in, out] : layer(3584, 512, 18944)) {
    expected += in / 8 * out * 4 + in / 128 * out * 2 + 16;
    left += in * out * 2 + in / 128 * out * 2 + 16;
  }
  const std::string first = "language_model.layers.0.";
  EXPECT_EQ(bytes(g, first + "self_attn", false) + bytes(g, first + "mlp"), expected);
  // transformers computes with what the first forward unpacked.
  Builder b;
  const Plan plan;
  Context c{b, plan, stack_of(plan)};
  declare_parameters(c, vlm);
  EXPECT_EQ(bytes(b.graph, first + "self_attn", false) + bytes(b.graph, first + "mlp"), left);
  EXPECT_EQ(vlmest::parameters(g).total(), vlmest::parameters(b.graph).total());
}

TEST(QuantizedCheckpoints, Fp8WithAScaleForEachOutput) {
  const Graph g = loaded(read(config_of("llama-3.2-11b-vision-fp8-dynamic").dump()));
  const Graph wide = loaded(read(load("tests/data/configs/llama-3.2-11b-vision.json").dump()));
  I expected = 0;
  for (const auto& [in, out] : layer(4096, 1024, 14336)) expected += in * out + out * 2;
  EXPECT_EQ(bytes(g, "language_model.layers.0.self_attn") + bytes(g, "language_model.layers.0.mlp"), expected);
  EXPECT_EQ(bytes(g, "vision_model"), bytes(wide, "vision_model"));
  EXPECT_EQ(bytes(g, "multi_modal_projector"), bytes(wide, "multi_modal_projector"));
}

TEST(QuantizedCheckpoints, Nvfp4OfModelopt) {
  const Graph g = loaded(read(config_of("qwen2.5-vl-7b-nvfp4").dump()));
  I expected = 0;
  for (const auto& [in, out] : layer(3584, 512, 18944)) expected += in * out / 2 + in / 16 * out + 4 + 4;
  const std::string first = "language_model.layers.0.";
  EXPECT_EQ(bytes(g, first + "self_attn", false) + bytes(g, first + "mlp"), expected);
  const Graph wide = loaded(read(load("tests/data/configs/qwen2.5-vl-7b.json").dump()));
  EXPECT_EQ(bytes(g, "visual"), bytes(wide, "visual"));
}

/// An algorithm for each module: attention of both kinds in fp8, MLPs and the head in 4 bits, the tower as it was.
TEST(QuantizedCheckpoints, ModeloptByModule) {
  const Vlm vlm = read(config_of("qwen3.6-27b-nvfp4").dump());
  const Graph g = loaded(vlm);
  const auto fp8 = [](I in, I out) { return in * out + 4 + 4; };
  const auto fp4 = [](I in, I out) { return in * out / 2 + in / 16 * out + 4 + 4; };
  const I h = 5120, inner = 17408, state = 48 * 128;
  EXPECT_EQ(bytes(g, "language_model.layers.3.self_attn") - 2 * 256 * 2,
            fp8(h, 2 * 24 * 256) + 2 * fp8(h, 4 * 256) + fp8(24 * 256, h));
  const I beside = 2 * (2 * h * 48 + 4 * (2 * 16 * 128 + state) + 2 * 48 + 128);  // gates, convolution, decays, norm
  EXPECT_EQ(bytes(g, "language_model.layers.0.linear_attn"),
            fp8(h, 2 * 16 * 128 + state) + fp8(h, state) + fp8(state, h) + beside);
  EXPECT_EQ(bytes(g, "language_model.layers.63.mlp"), 2 * fp4(h, inner) + fp4(inner, h));
  EXPECT_EQ(bytes(g, "lm_head"), fp4(h, 248320));
  const json published = load("tests/data/quantization/qwen3.6-27b-nvfp4.json")["published"];
  const double gib = 1073741824.0, tower = static_cast<double>(bytes(g, "visual")) / gib;
  EXPECT_NEAR(tower, published["vision_gib"].get<double>(), 0.0005);  // as far as they are given
  EXPECT_NEAR(static_cast<double>(all_bytes(g)) / gib - tower, published["language_gib"].get<double>(), 0.0005);
}

/// A weight's scale and its input's, 4 bytes each; what the pattern names and the head are as they were.
TEST(QuantizedCheckpoints, ModeloptFp8) {
  const Graph g = loaded(read(config_of("qwen2.5-vl-3b-modelopt-fp8").dump()));
  I expected = 0;
  for (const auto& [in, out] : layer(2048, 256, 11008)) expected += in * out + 4 + 4;
  const std::string first = "language_model.layers.0.";
  EXPECT_EQ(bytes(g, first + "self_attn", false) + bytes(g, first + "mlp"), expected);
  const Graph wide = loaded(read(load("tests/data/configs/qwen2.5-vl-3b.json").dump()));
  EXPECT_EQ(bytes(g, "visual"), bytes(wide, "visual"));
  const json published = load("tests/data/quantization/qwen2.5-vl-3b-modelopt-fp8.json")["published"];
  EXPECT_NEAR(static_cast<double>(all_bytes(g)) / 1073741824.0, published["file_gib"].get<double>(),
              0.1);  // given as about that, with the files beside it
}

TEST(QuantizedCheckpoints, EightBitWithAScaleForEachOutput) {
  const Graph g = loaded(read(config_of("qwen2.5-vl-7b-bnb-8bit").dump()));
  I expected = 0;
  for (const auto& [in, out] : layer(3584, 512, 18944)) expected += in * out + out * 4;
  const std::string first = "language_model.layers.0.";
  EXPECT_EQ(bytes(g, first + "self_attn", false) + bytes(g, first + "mlp"), expected);
  EXPECT_EQ(bytes(g, "lm_head"), I{152064} * 3584 * 2);
}

TEST(QuantizedCheckpoints, EveryConfigRuns) {
  const Device device = parse_device(load("models/device/h200-sxm.json").dump(), "h200-sxm");
  for (const auto& e :
       std::filesystem::directory_iterator(std::string(VLMEST_SOURCE_DIR) + "/tests/data/quantization")) {
    if (e.path().extension() != ".json" || e.path().stem() == "device_bytes") continue;
    const Vlm vlm = read(config_of(e.path().stem().string()).dump());
    for (const std::string& note : vlm.quantization->notes)
      EXPECT_NE(note.find("plan.kv says what the cache is kept in"), std::string::npos) << e.path() << note;
    Vlm plain = vlm;
    plain.quantization.reset();
    for (const Runtime runtime : runtimes) {
      if (runtime == runtime_id("fused") && vlm.type.starts_with("qwen3_5")) continue;  // refused, quantised or not
      Plan plan;
      plan.runtime = runtime;
      plan.text = 16;
      plan.new_tokens = 1;
      Estimator estimator;
      estimator.allocator.total_memory = device.memory_bytes;
      const Estimate stored = estimator(vlm, plan, device), wide = estimator(plain, plan, device);
      EXPECT_EQ(stored.params.total(), wide.params.total()) << e.path();
      EXPECT_EQ(stored.inference.decode.work.flops, wide.inference.decode.work.flops) << e.path();
      EXPECT_LT(stored.inference.weights, wide.inference.weights) << e.path();
      if (runtime == runtime_id("fused")) {
        EXPECT_LT(stored.inference.decode.gpu, wide.inference.decode.gpu) << e.path();
      }
    }
  }
}

}  // namespace
}  // namespace vlmest::test::quantized_checkpoints_test
