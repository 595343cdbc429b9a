// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/nn/attention.hpp>
#include <vlmest/nn/decoder/deepseek_moe.hpp>
#include <vlmest/nn/grouped_moe.hpp>

namespace vlmest {

/// DeepSeek-V2's language model as the checkpoint deepseek-ai/DeepSeek-OCR brings it (modeling_deepseekv2.py,
/// DeepseekV2Model without latent attention): every expert is a module of its own, called for the rows that it got.
struct ExpertListConfig {
  DeepseekMoeConfig base;
  bool balances = true;  ///< aux_loss_alpha above zero: training adds a loss that evens out the experts' rows
};

struct ExpertListLayer {
  LlamaLayer base;  ///< of a sparse layer its MLP is the shared experts'
  bool sparse = false;
  Moe moe;  ///< its router alone
  std::vector<GatedMlp> experts;
};

struct ExpertListDecoder {
  const ExpertListConfig* config = nullptr;
  ScopeId scope = 0;
  Embedding embed_tokens;
  std::vector<ExpertListLayer> layers;
  RmsNorm norm;
  Rope rope;
};

inline std::int64_t vocabulary(const ExpertListConfig& g) { return vocabulary(g.base); }
inline std::int64_t width(const ExpertListConfig& g) { return width(g.base); }
inline Cache make_cache(const ExpertListConfig& g) { return make_cache(g.base); }

/// DeepseekV2DecoderLayer.__init__ and DeepseekV2MoE.__init__: experts, router, shared experts.
inline ExpertListLayer make_expert_list_layer(Context& c, const ExpertListConfig& config, std::int32_t index) {
  const DeepseekMoeConfig& g = config.base;
  ExpertListLayer l;
  l.sparse = g.sparse[static_cast<std::size_t>(index)];
  if (!l.sparse) {
    l.base = make_llama_layer(c, g.layers, index);
    return l;
  }
  Module m(c, "layers", index);
  l.base.scope = m.scope;
  make_llama_attention(c, g.layers, l.base);
  {
    Module mlp(c, "mlp");
    l.moe = Moe{.config = &g.moe, .scope = mlp.scope};
    l.experts = make_layers(g.moe.experts, [&](std::int32_t i) {
      Module e(c, "experts", i);  // an element of a list, which make_gated_mlp has no name for
      GatedMlp expert{.scope = e.scope, .activation = g.moe.activation};
      expert.gate = make_linear(c, "gate_proj", g.moe.hidden, g.moe.inner, false);
      expert.up = make_linear(c, "up_proj", g.moe.hidden, g.moe.inner, false);
      expert.down = make_linear(c, "down_proj", g.moe.inner, g.moe.hidden, false);
      expert.activation_scope = c.b.child("act_fn");
      for (const Linear* part : {&expert.gate, &expert.up, &expert.down}) routed(c, g.moe, part->weight);
      return expert;
    });
    make_router(c, g.moe, l.moe);
    l.base.mlp = make_gated_mlp(c, "shared_experts", g.layers.hidden, checked_mul(g.moe.inner, g.shared_experts), false,
                                g.layers.activation);
  }
  make_llama_norms(c, g.layers, l.base);
  return l;
}

/// In the order of DeepseekV2Model.__init__.
inline ExpertListDecoder make_decoder(Context& c, const ExpertListConfig& g) {
  ExpertListDecoder d{.config = &g, .scope = c.b.scope()};
  d.embed_tokens = make_embedding(c, "embed_tokens", g.base.layers.vocab, g.base.layers.hidden);
  d.layers = make_layers(g.base.layers.layers, [&](std::int32_t i) { return make_expert_list_layer(c, g, i); });
  d.norm = make_rms_norm(c, "norm", g.base.layers.hidden);
  d.rope = make_rope(c, "rotary_emb", g.base.layers.head_dim);
  return d;
}

/// MoEGate.forward, its auxiliary loss: the mean probability of each expert times the share of the rows that it got,
/// for each sequence (DeepSeek-AI, arXiv:2405.04434, section 2.2.3).
inline Value balance_loss(Context& c, const Value& scores, const Value& chosen, std::int64_t batch) {
  using namespace eager;
  const std::int64_t experts = scores.size(1), tokens = scores.size(0) / batch;
  Value places = view(chosen, {batch, -1});
  const Value by_sequence = view(scores, {batch, tokens, experts});
  Value share = fill(c.b, "zeros", {batch, experts}, DType::fp32);
  {
    Value ones = fill(c.b, "ones", places.shape(), DType::fp32);
    const MemoryOp adds{.read = data_bytes(ones) * 2 + data_bytes(places), .written = data_bytes(ones)};
    share = emit_inplace(c.b, "scatter_add_", adds, {}, share, places, ones);
    share = pointwise_("div_.Scalar", std::move(share));
  }
  Value of_experts = mul(share, mean(by_sequence, 1, false));
  return mul_scalar(mean(sum(std::move(of_experts), 1, false), 0, false));
}

struct ListRouting {
  Routing to;
  Value loss;  ///< of the balance, in training alone
};

/// MoEGate.forward: what deepseek_moe.hpp's router runs, whose logits end with it.
inline ListRouting route(Context& c, const ExpertListConfig& g, const Moe& m, const Value& x) {
  using namespace eager;
  ListRouting r{route_deepseek(c, g.base, m, x), {}};
  if (c.plan.dropout && g.balances) {
    InScope in(c.b, m.router_scope);
    // The class goes on with the scores before any group was left out.
    r.loss = balance_loss(c, softmax(r.to.logits, DType::fp32), r.to.experts, x.size(0));
  }
  r.to.logits.reset();
  return r;
}

/// AddAuxiliaryLoss: the same tensor, in whose backward the loss of the balance begins with a one.
inline Value with_loss(const Value& y, const Value& loss) {
  using namespace eager;
  const GradEdge ey = edge(y), el = edge(loss);
  Value out = y.builder().view(y, y.shape(), y.tensor().strides);
  differentiable(out, "AddAuxiliaryLossBackward", {ey, el}, [type = loss.dtype()](Gradients& g) {
    if (g.wants(0)) g.out[0] = g.in[0];
    if (g.wants(1)) g.out[1] = view(fill(g.in[0].builder(), "ones", {1}, type), Shape{});
  });
  return out;
}

/// DeepseekV2MoE.moe_infer: rows sorted by expert, each expert over its own, and back to their places. The host reads
/// how many each got.
inline Value infer_experts(Context& c, const ExpertListLayer& l, const Value& x, const Routing& r) {
  using namespace eager;
  const NoGrad off(c.b);
  const MoeConfig& g = *l.moe.config;
  const std::int64_t tokens = x.size(0);
  const std::vector<std::int64_t> rows = rows_of_experts(c, l.moe, tokens);
  const Value marks = mark_places(fill(c.b, "new_zeros", {tokens, g.experts}, DType::int64), r.experts);
  Value per_expert = sum(marks, 0, false);
  const Value order = sort(view(r.experts, {-1})).indices;
  const Value sorted = take_rows(x, floor_divide(order));
  to_host(std::move(per_expert));
  std::vector<Value> outputs;
  Value part, of_expert;  // variables of the loop
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] == 0) continue;
    part = slice(sorted, 0, begin, begin + rows[i]);
    of_expert = forward(c, l.experts[i], part);
    outputs.push_back(of_expert);
    begin += rows[i];
  }
  const Value outs = cat(outputs, 0);
  Value back = put_rows(empty_like(outs), order, outs);
  Value y = to(view(back, {tokens, g.top_k, g.hidden}), r.weights.dtype());
  y = sum(mul_(std::move(y), unsqueeze(r.weights, -1)), 1, false);
  return to(std::move(y), x.dtype());
}

/// DeepseekV2MoE.forward in training: each token's row is there once for each of its experts, and every expert picks
/// its rows by a mask, also where there are none.
inline Value train_experts(Context& c, const ExpertListLayer& l, Value arg, const Routing& r) {
  using namespace eager;
  const MoeConfig& g = *l.moe.config;
  const std::int64_t tokens = arg.size(0);
  const std::vector<std::int64_t> rows = rows_of_experts(c, l.moe, tokens);
  const Value places = view(r.experts, {-1});
  const Value x = repeat_interleave(std::move(arg), g.top_k, 0);
  Value y;
  {
    const NoGrad fresh(c.b);
    y = empty_like(x);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Value of_expert = forward(c, l.experts[i], masked_index(x, compare_scalar("eq.Scalar", places), rows[i]));
    y = masked_index_put_(std::move(y), compare_scalar("eq.Scalar", places), std::move(of_expert), rows[i]);
  }
  y = sum(mul(view(y, {tokens, g.top_k, g.hidden}), unsqueeze(r.weights, -1)), 1, false);
  return to(std::move(y), x.dtype());
}

/// DeepseekV2MoE.forward: experts, then the shared ones over the same input.
inline Value sparse_forward(Context& c, const ExpertListConfig& g, const ExpertListLayer& l, Value arg) {
  using namespace eager;
  const Value identity = std::move(arg);
  InScope in(c.b, l.moe.scope);
  const Shape s = identity.shape();
  const ListRouting r = route(c, g, l.moe, identity);
  const Value rows = view(identity, {-1, g.base.moe.hidden});
  Value y;
  if (c.plan.dropout) {
    y = view(train_experts(c, l, rows, r.to), s);
    if (r.loss) y = with_loss(y, r.loss);
  } else {
    y = view(infer_experts(c, l, rows, r.to), s);
  }
  Value shared = forward(c, l.base.mlp, identity);
  return add(y, std::move(shared));
}

/// DeepseekV2Model.forward: embeddings[B, S, hidden] -> normed hidden states. Attention is Llama's, and eager where the
/// run asks for torch's fused one, which the class has no version for.
inline Value forward(Context& caller, const ExpertListDecoder& d, Value arg, const Value& attention_mask,
                     Cache& cache) {
  const ExpertListConfig& config = *d.config;
  const LlamaConfig& g = config.base.layers;
  const Plan plan = without_sdpa(caller.plan);
  Context c = with_plan(caller, plan);
  Value embeds = std::move(arg);
  InScope in(c.b, d.scope);
  const std::int64_t batch = embeds.size(0), tokens = embeds.size(1);
  const Value position_ids = text_positions(c, tokens);
  const Value mask = causal_mask(c, mask_shape(cache, batch, tokens), attention_mask);
  Value x = embeds;
  const CosSin positions = forward(c, d.rope, position_ids);
  DecoderStack stack(c, position_ids);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    const ExpertListLayer& l = d.layers[i];
    CacheLayer& entry = cache.layers[i];
    const auto feed_forward = [&](const Value& h) {
      return l.sparse ? sparse_forward(c, config, l, h) : forward(c, l.base.mlp, h);
    };
    // Of a recorded run every layer's tokens go elsewhere.
    const int kind = !l.sparse ? 0 : c.routed_rows ? static_cast<int>(i) : 1;
    x = stack({kind, l.base.scope, l.base.attention.first()}, x, entry,
              [&](const Value& h) { return llama_layer(c, g, l.base, h, mask, positions, entry, feed_forward); });
  }
  return forward(c, d.norm, x);
}

}  // namespace vlmest
