// SPDX-License-Identifier: Apache-2.0
// Training through weights stored in 4 bits: QLoRA, and a frozen quantised language model.
#include <gtest/gtest.h>

#include "training_support.hpp"

namespace vlmest::test::quantized_training_test {
namespace {

Plan qlora(std::vector<std::string> targets = Lora{}.targets) {
  Plan p = lora_plan(std::move(targets));
  p.weights = DType::nf4;
  return p;
}
/// There a few rows alone are multiplied by stored weights.
constexpr Gpu few_rows{.sm = 86, .multiprocessors = 132};
Graph step(const Plan& p, bool copy = true) { return training(llava(), p, copy, few_rows); }
Graph run(const Plan& p) { return inference(llava(), p, make_sequences(llava(), p), 1, few_rows); }
/// What a module holds besides its weight, by name.
std::vector<std::string> buffers(const Graph& g, const std::string& module) {
  std::vector<std::string> r;
  for (const Tensor& t : g.loaded())
    if (t.role == Role::buffer && path(g, t.scope) == module)
      r.push_back(std::string(t.name) + " " + std::string(name(t.dtype)) + " " + to_string(t.shape));
  return r;
}

TEST(Qlora, ScalesAreQuantisedTwice) {
  const Graph g = step(qlora());
  // 256 x 256 values: 1,024 blocks of 64, whose scales make 4 blocks of 256.
  const std::vector<std::string> expected{"quant_map fp32 16", "nested_offset fp32 ", "absmax uint8 1024",
                                          "nested_absmax fp32 4", "nested_quant_map fp32 256"};
  std::vector<std::string> found = buffers(g, "model.language_model.layers.0.self_attn.q_proj.base_layer");
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].substr(0, expected[i].size()), expected[i]);
  for (const Tensor& t : g.loaded()) {
    const std::string at = path(g, t.scope);
    if (t.role != Role::weight || at.find("lora_") != std::string::npos) continue;
    const bool stored = at.find("language_model.layers") != std::string::npos && at.find("norm") == std::string::npos;
    EXPECT_EQ(t.dtype, stored ? DType::nf4 : DType::bf16) << at;
  }
}

TEST(Qlora, InferenceWithoutAdaptersHasPlainScales) {
  Plan p = qlora();
  p.lora.rank = 0;
  p.new_tokens = 1;
  const Graph g = run(p);
  const auto found = buffers(g, "model.language_model.layers.0.self_attn.q_proj");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].substr(0, 16), "absmax fp32 1024");
}

TEST(Qlora, FewRowsAreMultipliedByTheStoredWeight) {
  Plan p = qlora();
  p.lora.rank = 0;
  p.batch = 2;
  const Graph g = run(p);
  constexpr int prefill = 0, decode = 1;
  EXPECT_EQ(count(g, prefill, "dequantize"), 7 * 3);
  EXPECT_EQ(count(g, decode, "gemm_4bit"), 6 * 3);
  EXPECT_EQ(count(g, decode, "dequantize", "down_proj"), 3);  // its inputs are no whole blocks
  // Of a weight[out, in], by the waves that its tiles fill.
  const auto hopper = [](std::int64_t out, std::int64_t in) {
    return rows_of_4bit_kernel(out, in, DType::bf16, Gpu{90, 132});
  };
  EXPECT_EQ(hopper(28672, 4096), 64);
  EXPECT_EQ(hopper(16384, 2048), 32);
  EXPECT_EQ(hopper(5120, 3584), 16);
  EXPECT_EQ(hopper(4096, 14336), 7);
  EXPECT_EQ(hopper(1024, 1024), 32);
  EXPECT_EQ(hopper(2048, 512), 512);
  EXPECT_EQ(hopper(4096, 512), 320);
  EXPECT_EQ(hopper(4096, 1000), 0);
  EXPECT_EQ(rows_of_4bit_kernel(28672, 4096, DType::fp32, Gpu{90, 132}), 7);
  EXPECT_EQ(rows_of_4bit_kernel(28672, 4096, DType::bf16, Gpu{86, 84}), 7);
}

TEST(StoredWeights, OfOtherKindsAreNotBitsandbytes) {
  Plan p = qlora();
  p.lora.rank = 0;
  constexpr int decode = 1;
  const auto counts = [&](DType t, std::int64_t batch) {
    p.weights = t;
    p.batch = batch;
    const Graph g = run(p);
    return std::pair(count(g, decode, "gemm_4bit"), count(g, decode, "dequantize"));
  };
  EXPECT_EQ(counts(DType::int4, 1), std::pair(7 * 3, 0));
  EXPECT_EQ(counts(DType::int4, 2), std::pair(0, 7 * 3));
  EXPECT_EQ(counts(DType::fp16, 1), std::pair(0, 7 * 3));
}

TEST(Qlora, WeightsAreDequantisedForEachProduct) {
  const Graph g = step(qlora({"q_proj"}));
  constexpr int forward = 0, backward = 1;
  EXPECT_EQ(count(g, forward, "dequantize"), 7 * 3);
  EXPECT_EQ(count(g, forward, "dequantize_blockwise"), 7 * 3);
  // Of the first layer, q, k and v hand no gradient on.
  EXPECT_EQ(count(g, backward, "dequantize"), 7 * 3 - 3);
  EXPECT_EQ(count(g, backward, "mm", "layers.1.mlp.gate_proj"), 1);
  // bitsandbytes' adapter layer copies the base result and casts the adapter's.
  EXPECT_EQ(count(g, forward, "clone", "layers.0.self_attn.q_proj"), 1);
  EXPECT_EQ(count(g, forward, "_to_copy", "layers.0.self_attn.q_proj"), 2);
}

TEST(Qlora, KeepsNoDequantisedWeight) {
  const Graph g = step(qlora());
  for (const Tensor& t : g.tensors) {
    if (std::string_view(t.name) != "dequantized weight" && std::string_view(t.name) != "scales") continue;
    ASSERT_NE(t.dies, none);
    EXPECT_LE(t.dies - t.born, 4) << path(g, t.scope);  // itself, the product, or the ops on scales between them
  }
}

TEST(Qlora, SavesAsMuchAsPlainWeightsDo) {
  // The same activations wait for the backward, whatever the weights are stored in.
  const auto saved = [](const Graph& g) {
    Bytes r{};
    for (const Tensor& t : g.tensors)
      if (t.alias_of == none && t.role == Role::activation && t.born < g.phases[0].last &&
          (t.dies == none || t.dies > g.phases[0].last))
        r += requested_bytes(t);
    return r;
  };
  Plan plain = qlora();
  plain.weights.reset();
  EXPECT_EQ(saved(step(qlora())), saved(step(plain)));
}

TEST(Qlora, CopiedLayersAreWhatEveryLayerRuns) {
  for (const Checkpointing k : {Checkpointing::off, Checkpointing::full, Checkpointing::selective}) {
    Plan p = qlora({"all-linear"});
    p.checkpointing = k;
    EXPECT_EQ(rows(step(p)), rows(step(p, false)));
  }
}

TEST(Qlora, UnderAutocastTheModuleCastsByItself) {
  Plan p = qlora({"q_proj"});
  p.amp = true;
  const Graph g = step(p);
  for (const Node& n : g.nodes)
    if (std::string_view(n.name) == "dequantize") {
      EXPECT_EQ(g.tensor(g.outputs(n)[0]).dtype, DType::bf16);
    }
  EXPECT_EQ(count(g, 0, "_to_copy", "layers.0.mlp.up_proj"), 2);  // in, and back to the type of the norm's result
}

TEST(StoredWeights, TrainOnlyWhereTheGradientIsKnown) {
  Plan p = qlora();
  for (const DType t : {DType::int4, DType::int8, DType::fp8}) {
    p.weights = t;
    EXPECT_THROW(step(p), Error) << name(t);
  }
  p.weights = DType::nf4;
  p.lora.rank = 0;
  EXPECT_THROW(step(p), Error);  // they are not trained themselves
  p.trainable.language = false;
  const Graph g = step(p);  // but a projector below them is
  EXPECT_EQ(count(g, 1, "mm", "language_model.layers.0.self_attn.q_proj"), 1);
  p.trainable.language = true;
  p.weights = p.dtype;  // no storage type of its own
  EXPECT_NO_THROW(step(p));
}

}  // namespace
}  // namespace vlmest::test::quantized_training_test
