// SPDX-License-Identifier: Apache-2.0
// A language model alone runs what it runs inside a vision-language model: the same ops in the same modules, the same
// bytes alive; in training its copied layers give the step of layers that were run one by one.
#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/family/internlm2/family.hpp>
#include <vlmest/family/llava/family.hpp>
#include <vlmest/json/device.hpp>
#include <vlmest/nn/family/causal_lm.hpp>
#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/report/estimate.hpp>

#include "training_support.hpp"

namespace vlmest::causal_lm_family_test {
namespace {

using test::count;

struct Named {
  const char* name;
  DecoderConfig config;
};
void PrintTo(const Named& n, std::ostream* out) { *out << n.name; }

/// Five layers each, some of which slide, so that there are copies of every kind.
std::vector<Named> decoders() {
  const LlamaConfig llama{
      .vocab = 100, .hidden = 64, .intermediate = 96, .layers = 5, .heads = 4, .kv_heads = 2, .head_dim = 16};
  const std::vector<bool> slides{true, false, true, true, false};
  std::vector<Named> r{{"llama", llama}};
  LlamaConfig g = llama;
  g.window = 8;
  g.sliding.assign(5, true);
  r.push_back({"mistral", g});
  g.sliding = slides;
  g.qkv_bias = true;
  r.push_back({"qwen2", g});
  g = llama;
  g.qk_norm = true;
  r.push_back({"qwen3", g});
  GemmaConfig gemma{
      .vocab = 100, .hidden = 64, .intermediate = 96, .layers = 5, .heads = 4, .kv_heads = 2, .head_dim = 16};
  r.push_back({"gemma", gemma});
  gemma.sandwich = gemma.softcap = true;
  gemma.window = 8;
  gemma.sliding = slides;
  r.push_back({"gemma2", gemma});
  gemma.softcap = false;
  gemma.qk_norm = gemma.rope_by_type = true;
  r.push_back({"gemma3_text", gemma});
  CohereConfig cohere{
      .vocab = 100, .hidden = 64, .intermediate = 96, .layers = 5, .heads = 4, .kv_heads = 2, .head_dim = 16};
  r.push_back({"cohere", cohere});
  cohere.window = 8;
  cohere.sliding = slides;
  r.push_back({"cohere2", cohere});
  GlmConfig glm{.vocab = 100,
                .hidden = 64,
                .intermediate = 96,
                .layers = 5,
                .heads = 4,
                .kv_heads = 2,
                .head_dim = 16,
                .rotary_dim = 8};
  r.push_back({"glm", glm});
  glm.sandwich = true;
  r.push_back({"glm4", glm});
  QwenMoeConfig moe{.layers = llama, .moe = {.hidden = 64, .inner = 32, .experts = 8, .top_k = 2}, .sparse = slides};
  moe.layers.qk_norm = true;
  r.push_back({"qwen3_moe", moe});
  moe.layers.window = 8;
  moe.layers.sliding.assign(5, true);
  r.push_back({"qwen3_moe sliding", moe});
  moe.layers = llama;
  moe.layers.qkv_bias = true;
  moe.moe.shared = 48;
  moe.moe.normalised = false;
  moe.spare_mask = true;
  r.push_back({"qwen2_moe", moe});
  return r;
}

Vlm alone(const DecoderConfig& g, bool tied = false, LogitStep step = LogitStep::as_is) {
  Vlm m;
  m.family = CausalLmFamily{.language = g, .tied = tied, .logits = step};
  m.image_processor = image_processor::TextOnly{};
  return m;
}
Vlm alone(const Family& family) {
  Vlm m;
  m.family = family;
  m.image_processor = image_processor::TextOnly{};
  return m;
}
Vlm inside(const DecoderConfig& g, bool tied = false) {
  Vlm m = test::llava();
  auto& f = get<LlavaFamily>(m.family);
  f.projector.out = width(g);
  f.language = g;
  f.tied = tied;
  return m;
}

Plan text_plan(std::int64_t text = 40) {
  Plan p;
  p.batch = 2;
  p.images = 0;
  p.text = text;
  return p;
}

/// Every node: its module as a language model alone names it, its op, its results, and the bytes alive beyond those at
/// the first node.
std::vector<std::string> relative_rows(const Graph& g) {
  std::vector<std::int64_t> change(g.nodes.size() + 1);
  for (const Tensor& t : g.tensors) {
    if (t.alias_of != none || t.dies == t.born) continue;
    const auto born = static_cast<std::size_t>(t.born);
    change[born] += requested_bytes(t).value();
    if (t.dies != none) change[std::max(born, static_cast<std::size_t>(t.dies))] -= requested_bytes(t).value();
  }
  std::vector<std::string> r;
  std::int64_t live = 0, first = 0;
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    live += change[n];
    if (n == 0) first = live;
    std::string module = path(g, g.nodes[n].scope);
    const std::string part = "model.language_model";
    if (module.rfind(part, 0) == 0) module = "model" + module.substr(part.size());
    module += std::string(" ") + g.nodes[n].name;
    for (const TensorId t : g.outputs(g.nodes[n])) module += " " + to_string(g.tensor(t).shape);
    r.push_back(module + " " + std::to_string(live - first));
  }
  return r;
}

void expect_equal(const Graph& a, const Graph& b) {
  const auto x = relative_rows(a), y = relative_rows(b);
  ASSERT_EQ(x.size(), y.size());
  ASSERT_GT(x.size(), 50u);
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(x[i], y[i]) << "node " << i;
}

bool slides(const DecoderConfig& g) {
  const Cache cache = make_cache(g);
  return std::any_of(cache.layers.begin(), cache.layers.end(),
                     [](const CacheLayer& l) { return l.window.has_value(); });
}

class DecoderAlone : public testing::TestWithParam<Named> {};

TEST_P(DecoderAlone, RunsWhatItRunsInsideAModel) {
  const DecoderConfig& g = GetParam().config;
  std::vector<Plan> plans(8, text_plan());
  plans[1].attention = AttentionKind::eager;
  plans[2].attention = AttentionKind::flash;
  plans[3].runtime = runtime_id("fused");
  plans[4].amp = true;
  plans[5].weights = DType::nf4;
  plans[6].kv.dtype = slides(g) ? plans[6].dtype : DType::int8;  // transformers quantises no sliding cache
  plans[7].logits = Logits::all;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    SCOPED_TRACE(i);
    const bool tied = i % 2 == 1;
    expect_equal(test::inference(alone(g, tied), plans[i]), test::inference(inside(g, tied), plans[i]));
  }
}

TEST_P(DecoderAlone, TrainsAsInsideAModelWhoseTowerIsFrozen) {
  Plan plan = text_plan();
  plan.input_gradients = false;
  for (const Checkpointing how : {Checkpointing::off, Checkpointing::full, Checkpointing::selective}) {
    plan.checkpointing = how;
    Plan frozen = plan;
    frozen.trainable.vision = frozen.trainable.projector = false;
    expect_equal(test::training(alone(GetParam().config), plan), test::training(inside(GetParam().config), frozen));
  }
}

/// Equal layers are recorded once and copied.
TEST_P(DecoderAlone, CopiedLayersGiveTheSameStep) {
  std::vector<Plan> plans(5, text_plan());
  plans[1].checkpointing = Checkpointing::full;
  plans[2].checkpointing = Checkpointing::selective;
  plans[3].checkpointing = Checkpointing::full;
  plans[3].checkpointed.layers = 2;
  plans[4].lora.rank = 4;
  for (const Plan& plan : plans)
    EXPECT_EQ(test::rows(test::training(alone(GetParam().config), plan, true)),
              test::rows(test::training(alone(GetParam().config), plan, false)));
}

INSTANTIATE_TEST_SUITE_P(Decoders, DecoderAlone, testing::ValuesIn(decoders()), [](const auto& i) {
  std::string s = i.param.name;
  std::replace(s.begin(), s.end(), ' ', '_');
  return s;
});

/// What the report says of each layer: parameters, weights, cache, activations, FLOPs.
TEST(CausalLm, LayersTakeWhatTheyTakeInsideAModel) {
  const Device device = load_device(VLMEST_SOURCE_DIR "/models/device/h200-sxm.json");
  for (const Named& n : decoders()) {
    SCOPED_TRACE(n.name);
    Estimator estimate;
    const auto layers = [&](const Vlm& vlm, const std::string& prefix) {
      std::vector<LayerRow> r;
      for (const LayerRow& row : estimate(vlm, text_plan(), device, Phases::all).layers)
        if (path(estimate.graph(), row.scope).rfind(prefix + ".layers.", 0) == 0) r.push_back(row);
      return r;
    };
    const auto a = layers(alone(n.config), "model"), b = layers(inside(n.config), "model.language_model");
    ASSERT_EQ(a.size(), 5u);
    ASSERT_EQ(b.size(), 5u);
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].params, b[i].params);
      EXPECT_EQ(a[i].weights, b[i].weights);
      EXPECT_EQ(a[i].kv, b[i].kv);
      EXPECT_EQ(a[i].activations, b[i].activations);
      EXPECT_EQ(a[i].saved, b[i].saved);
      EXPECT_EQ(a[i].prefill.flops, b[i].prefill.flops);
      EXPECT_EQ(a[i].backward.flops, b[i].backward.flops);
      EXPECT_GT(a[i].prefill.flops, Flops{});
      EXPECT_EQ(a[i].part, Part::language);
    }
  }
}

TEST(CausalLm, TakesNoImages) {
  Plan plan = text_plan();
  plan.images = 1;
  try {
    make_sequences(alone(decoders().front().config), plan);
    ADD_FAILURE() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.where, "plan.images");
    EXPECT_EQ(e.what_happened, "a model without a vision tower takes no images");
  }
  EXPECT_FALSE(takes_images(alone(decoders().front().config)));
  EXPECT_TRUE(takes_images(test::llava()));
  EXPECT_TRUE(takes_images(test::blip2()));
}

/// Ops of the class itself, beside its decoder and its head.
std::vector<std::string> own_ops(const Graph& g) {
  std::vector<std::string> r;
  for (const Node& n : g.nodes)
    if (n.scope == 0) r.emplace_back(n.name);
  return r;
}

TEST(CausalLm, LogitsAreScaledOrCapped) {
  const DecoderConfig g = decoders().front().config;
  const auto ops = [&](LogitStep step) { return own_ops(test::inference(alone(g, false, step), text_plan())); };
  using List = std::vector<std::string>;
  EXPECT_EQ(ops(LogitStep::as_is), List{});
  EXPECT_EQ(ops(LogitStep::scale), (List{"mul.Tensor", "mul.Tensor"}));
  EXPECT_EQ(ops(LogitStep::softcap), (List{"div.Tensor", "tanh", "mul.Tensor", "div.Tensor", "tanh", "mul.Tensor"}));
  const Graph trained = test::training(alone(g, false, LogitStep::softcap), text_plan());
  EXPECT_EQ(count(trained, "tanh_backward"), 1);
  const Graph scaled = test::training(alone(g, false, LogitStep::scale), text_plan());
  EXPECT_EQ(count(scaled, "tanh_backward"), 0);
}

TEST(CausalLm, TheChunkedLossHasNoLogitsToChange) {
  const DecoderConfig g = decoders().front().config;
  Plan plan = text_plan();
  plan.loss = Loss::chunked;
  EXPECT_GT(test::training(alone(g), plan).nodes.size(), 50u);
  for (const LogitStep step : {LogitStep::scale, LogitStep::softcap}) try {
      test::training(alone(g, false, step), plan);
      ADD_FAILURE() << "accepted";
    } catch (const Error& e) {
      EXPECT_EQ(e.where, "plan.loss");
    }
}

QwenMoeConfig moe(bool shared, bool normalised) {
  QwenMoeConfig g = std::get<QwenMoeConfig>(decoders().back().config);
  if (!shared) g.moe.shared = 0;
  g.moe.normalised = normalised;
  g.spare_mask = shared;
  return g;
}

/// Three of five layers have experts.
TEST(CausalLm, ExpertsAreNormalisedAndSharedAsTheConfigSays) {
  const auto ops = [](const QwenMoeConfig& g, const char* name) {
    return count(test::inference(alone(DecoderConfig(g)), text_plan()), 0, name);
  };
  EXPECT_EQ(ops(moe(false, true), "div_.Tensor"), 3);
  EXPECT_EQ(ops(moe(false, false), "div_.Tensor"), 0);
  EXPECT_EQ(ops(moe(true, false), "sigmoid"), 3);
  EXPECT_EQ(ops(moe(false, false), "sigmoid"), 0);
  EXPECT_EQ(ops(moe(false, false), "grouped_mm"), ops(moe(true, false), "grouped_mm"));
}

/// Qwen2-MoE writes a mask of sliding layers out that no layer uses: [B, 1, S, S].
TEST(CausalLm, ASpareMaskIsWrittenOut) {
  const auto masks = [](const QwenMoeConfig& g) {
    const Graph built = test::inference(alone(DecoderConfig(g)), text_plan());
    int n = 0;
    for (const Node& node : built.nodes)
      for (const TensorId t : built.outputs(node))
        n += built.tensor(t).dtype == DType::boolean && built.tensor(t).shape == Shape{2, 1, 40, 40};
    return n;
  };
  EXPECT_EQ(masks(moe(false, false)), 0);
  EXPECT_GT(masks(moe(true, false)), 0);
}

/// Half of cos and of sin, each entry twice, made in every layer.
TEST(CausalLm, GlmRepeatsItsAnglesInEveryLayer) {
  for (const Named& n : decoders()) {
    if (!std::holds_alternative<GlmConfig>(n.config)) continue;
    const Graph g = test::inference(alone(n.config), text_plan());
    const Phase& prefill = g.phases[0];
    int repeated = 0;
    for (NodeId i = prefill.first; i < prefill.last; ++i)
      for (const TensorId t : g.outputs(g.node(i))) repeated += g.tensor(t).shape == Shape{1, 1, 40, 4, 2};
    EXPECT_EQ(repeated, 2 * 5);
  }
}

OptLmFamily opt(std::int64_t embedding) {
  return {.language = {.vocab = 100,
                       .hidden = 64,
                       .intermediate = 96,
                       .layers = 5,
                       .heads = 4,
                       .positions = 128,
                       .embedding = embedding},
          .tied = true};
}

TEST(CausalLm, OptsEmbeddingsMayBeNarrower) {
  const Graph same = test::inference(alone(opt(0)), text_plan()), narrow = test::inference(alone(opt(32)), text_plan());
  for (int phase : {0, 1}) {
    EXPECT_EQ(count(same, phase, "mm", "project_"), 0);
    EXPECT_EQ(count(narrow, phase, "mm", "model.decoder.project_in"), 1);
    EXPECT_EQ(count(narrow, phase, "mm", "model.decoder.project_out"), 1);
    EXPECT_EQ(count(narrow, phase, "mm", "lm_head"), 1);
  }
  EXPECT_GT(count(same, "addmm", "model.decoder.layers.4.self_attn"), 0);
}

MllamaTextFamily mllama() {
  MllamaTextFamily f;
  f.language.base = std::get<LlamaConfig>(decoders().front().config);
  f.language.cross = {false, true, false, false, true};
  return f;
}

TEST(CausalLm, MllamasCrossAttentionHasWeightsAndDoesNotRun) {
  const Graph g = test::inference(alone(mllama()), text_plan());
  int weights = 0;
  for (const Tensor& t : g.tensors) weights += path(g, t.scope).find("layers.1.cross_attn") != std::string::npos;
  EXPECT_EQ(weights, 6);
  for (const Node& n : g.nodes) EXPECT_EQ(path(g, n.scope).find("layers.1."), std::string::npos);
  EXPECT_GT(count(g, "mm", "model.layers.3.self_attn"), 0);
}

InternLm2Family internlm2() {
  return {.language = {.vocab = 100,
                       .hidden = 64,
                       .intermediate = 96,
                       .layers = 5,
                       .heads = 4,
                       .kv_heads = 2,
                       .head_dim = 16,
                       .positions = 64,
                       .bias = false}};
}

/// Two sequences of S tokens: the head runs over all of them, the loss over a copy of all but the last.
TEST(CausalLm, InternLm2WidensTheLogitsOfEveryPosition) {
  Plan plan = text_plan();
  const Vlm vlm = alone(internlm2());
  const Sequences s = make_sequences(vlm, plan);
  const auto wide = [&](const Graph& g, std::int64_t tokens) {
    int n = 0;
    for (const Tensor& t : g.tensors)
      n += t.dtype == DType::fp32 && t.alias_of == none && t.storage == Elements(s.batch * tokens * 100);
    return n;
  };
  for (const Logits logits : {Logits::last, Logits::all}) {
    plan.logits = logits;
    const Graph g = test::inference(vlm, plan);
    EXPECT_EQ(wide(g, s.seq), 1);
    EXPECT_EQ(count(g, 0, "mm", "output"), 1);
  }
  const Graph g = test::training(vlm, plan);
  EXPECT_GE(wide(g, s.seq - 1), 3) << "the copy, its log softmax and their gradients";
  plan.loss = Loss::chunked;
  EXPECT_THROW(test::training(vlm, plan), Error);
}

/// Its head is called otherwise, and is the head all the same.
TEST(CausalLm, InternLm2sHeadStaysWideAndWithoutAdapter) {
  Plan plan = text_plan();
  plan.lora.rank = 4;
  plan.lora.targets = {"all-linear"};
  plan.weights = DType::nf4;
  const Graph g = test::training(alone(internlm2()), plan);
  ASSERT_NE(g.head, none);
  EXPECT_EQ(path(g, g.head), "output");
  for (const Tensor& t : g.tensors)
    if (t.scope == g.head && t.role == Role::weight) {
      EXPECT_EQ(t.dtype, DType::bf16);
    }
  EXPECT_EQ(count(g, "mm", "output.lora_A"), 0);
  EXPECT_GT(count(g, "mm", "wqkv.lora_A"), 0);
}

TEST(CausalLm, TheOthersCopiedLayersGiveTheSameStep) {
  for (const Vlm& v : {alone(opt(0)), alone(opt(32)), alone(mllama()), alone(internlm2())})
    for (const Checkpointing how : {Checkpointing::off, Checkpointing::full, Checkpointing::selective}) {
      Plan plan = text_plan();
      plan.checkpointing = how;
      EXPECT_EQ(test::rows(test::training(v, plan, true)), test::rows(test::training(v, plan, false)));
    }
}

}  // namespace
}  // namespace vlmest::causal_lm_family_test
