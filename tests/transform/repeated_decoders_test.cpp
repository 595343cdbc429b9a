// SPDX-License-Identifier: Apache-2.0
// The layers of DeepSeek-V3, GPT-OSS, InternLM2, Mistral 4, Ministral 3, Granite and Phi-3 copied and run one by one:
// the same modules, ops, results and live bytes, in prefill, decode and training.
#include <gtest/gtest.h>

#include <vlmest/nn/decoder/decoder.hpp>
#include <vlmest/nn/stack/registry.hpp>

#include "../nn/new_decoders_support.hpp"

namespace vlmest::repeated_decoders_test {
namespace {

using namespace test;

struct Case {
  const char* name;
  DecoderConfig language;
};
std::vector<Case> cases() {
  LlamaConfig phi3 = small_phi3(4);
  phi3.longrope = 4;  // prompts are longer
  phi3.residual_dropout = true;
  phi3.rotary_dim = 12;
  phi3.window = 6;
  phi3.sliding.assign(4, true);
  DeepseekConfig plain = small_mistral4(4, 1);
  plain.attention.q_rank = 0;
  plain.attention.interleaved = plain.moe.experts.normalised = false;
  return {{"deepseek_v3", small_deepseek_v3(4, 1)},
          {"gpt_oss", small_gpt_oss(5, {true, false, true, false, true})},
          {"internlm2", small_internlm2(4)},
          {"mistral4", small_mistral4(4)},
          {"mistral4, plain", plain},
          {"ministral3", small_ministral3(4)},
          {"granite", small_granite(4)},
          {"phi3", phi3}};
}

std::vector<std::string> run(const Vlm& v, const Plan& plan, bool copy) {
  Builder b;
  {
    Context c{b, plan, stack_of(plan)};
    b.copy_layers = copy;
    const Sequences s = make_sequences(v, plan);
    build_inference(c, v, s, s.seq + 5);
  }
  return rows(b.graph);
}

TEST(RepeatedDecoders, GiveTheSamePrefillAndDecode) {
  for (const Case& k : cases())
    for (const AttentionKind attention : {AttentionKind::sdpa, AttentionKind::eager})
      for (const Runtime runtime : runtimes) {
        Plan plan = text_plan(attention);
        plan.runtime = runtime;
        const Vlm v = around(k.language);
        EXPECT_EQ(run(v, plan, true), run(v, plan, false)) << k.name;
      }
}

TEST(RepeatedDecoders, GiveTheSameStep) {
  for (const Case& k : cases()) {
    const Vlm v = around(k.language);
    std::vector<Plan> plans(6, text_plan());
    plans[1].attention = AttentionKind::eager;
    plans[2].checkpointing = Checkpointing::full;
    plans[3].checkpointing = Checkpointing::selective;
    plans[4].runtime = runtime_id("fused");
    plans[5].lora.rank = 4;
    plans[5].lora.targets = {std::string(all_linear)};
    for (const Plan& plan : plans) EXPECT_EQ(rows(training(v, plan, true)), rows(training(v, plan, false))) << k.name;
  }
}

TEST(RepeatedDecoders, CheckpointingSavesLess) {
  for (const Case& k : cases()) {
    const Vlm v = around(k.language);
    const auto live = [&](Checkpointing how) {
      Plan plan = text_plan();
      plan.checkpointing = how;
      const Graph g = training(v, plan);
      Bytes n{};
      for (const Tensor& t : g.tensors)
        if (t.alias_of == none && t.role == Role::activation && t.born < g.phases[0].last && t.dies >= g.phases[0].last)
          n += requested_bytes(t);
      return n;
    };
    EXPECT_LT(live(Checkpointing::full), live(Checkpointing::selective)) << k.name;
    EXPECT_LT(live(Checkpointing::selective), live(Checkpointing::off)) << k.name;
  }
}

}  // namespace
}  // namespace vlmest::repeated_decoders_test
