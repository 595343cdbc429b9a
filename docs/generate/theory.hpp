// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <vlmest/analysis/published_formulas.hpp>
#include <vlmest/nn/stack/registry.hpp>

#include "../../tests/validation/measured.hpp"

/// Rules of thumb for training memory beside measured steps.
namespace theory {

using vlmest::Bytes;
using vlmest::published::Transformer;

/// The two stacks of a VLM as the formulas see them.
struct Stacks {
  Transformer vision, language;
  template <class F>
  Bytes layers(F of) const {
    return of(vision) * vision.layers + of(language) * language.layers;
  }
};

inline std::int64_t first_of(const nlohmann::json& d, std::initializer_list<const char*> keys) {
  for (const char* k : keys)
    if (d.contains(k)) return d.at(k).get<std::int64_t>();
  throw std::runtime_error("the config lacks a size");
}

/// Widths, heads and layers from the config; the tower's tokens are those that its first layer attends over.
inline Stacks stacks(const std::string& root, const vlmest::MeasuredRun& run, const vlmest::Vlm& vlm,
                     vlmest::Estimator& estimate, const vlmest::Device& device) {
  const auto config = nlohmann::json::parse(validation::read_text(root + "/tests/data/configs/" + run.model + ".json"));
  const auto& t = config.contains("text_config") ? config.at("text_config") : config;
  const auto& v = config.at("vision_config");
  vlmest::Plan plan = run.plan;
  plan.attention = vlmest::AttentionKind::sdpa;
  const vlmest::Sequences s = estimate(vlm, plan, device).sequences;
  Stacks r;
  r.language = {.tokens = s.batch * s.seq,
                .sequence = s.seq,
                .hidden = first_of(t, {"hidden_size"}),
                .heads = first_of(t, {"num_attention_heads"}),
                .layers = first_of(t, {"num_hidden_layers"}),
                .vocab = first_of(t, {"vocab_size"})};
  r.vision = {.hidden = first_of(v, {"embed_dim", "hidden_size"}),
              .heads = first_of(v, {"num_heads", "num_attention_heads"}),
              .layers = first_of(v, {"depth", "num_hidden_layers"})};
  const vlmest::Graph& g = estimate.graph();
  const auto rows = vlmest::row_scopes(g);
  vlmest::ScopeId first = vlmest::none;
  for (const auto& n : g.nodes) {
    const auto* a = std::get_if<vlmest::Attention>(&g.op(n));
    const vlmest::ScopeId layer = rows[static_cast<std::size_t>(n.scope)];
    if (!a || g.scopes[static_cast<std::size_t>(n.scope)].part != vlmest::Part::vision) continue;
    if (first == vlmest::none) first = layer;
    if (layer != first) continue;
    r.vision.tokens += a->batch * a->q_len;
    r.vision.sequence = std::max(r.vision.sequence, a->q_len);
  }
  return r;
}

/// A predicted figure by the name of its rule; rules that do not speak of a run are left out.
struct Prediction {
  const char* rule = "";
  double bytes = 0;
};

struct Compared {
  std::string name;
  double measured = 0;
  std::vector<Prediction> predictions;
  std::optional<double> error(const std::string& rule) const {
    for (const auto& p : predictions)
      if (p.rule == rule) return 100 * (p.bytes / measured - 1);
    return std::nullopt;
  }
};

inline constexpr std::array activation_rules{"sbh(34+5as/h)", "34sbh", "2sbh", "sqrt(L)", "fused profile", "vlmest"};
inline constexpr std::array peak_rules{"16 B + activations", "18 B + activations", "fused profile", "vlmest"};

/// Activations that the forward leaves: what is allocated at its end and was not at its begin.
struct Comparison {
  std::vector<Compared> activations, peaks;
};

inline Comparison compare(const std::string& root) {
  using namespace vlmest;
  Comparison r;
  const char* file = "h200-training.json";
  const Device device = validation::device(root, file);
  Estimator estimate;
  validation::Models models(root);
  const auto number = [](Bytes b) { return static_cast<double>(b.value()); };
  const json::MeasuredFile rows = validation::rows(root, file);
  for (const auto& placed : rows.runs) {
    const MeasuredRun& run = placed.row;
    if (run.out_of_memory) continue;
    const Vlm& vlm = models[run];
    const Stacks s = stacks(root, run, vlm, estimate, device);
    const Estimate estimated = estimate(vlm, run.plan, device, Phases::train);
    const TrainingEstimate& own = estimated.training;
    const double others = held_for_others(run, own.tensors);
    const auto measured = [&](const char* figure) { return run.figure(figure).value() - others; };
    const Bytes output = published::output_activations(s.language);
    const Bytes every = s.layers(published::layer_activations) + output,
                selective = s.layers(published::layer_activations_selective) + output,
                full = s.layers(published::layer_activations_full) + output,
                sublinear =
                    published::sublinear_activations(s.vision) + published::sublinear_activations(s.language) + output;
    const bool checkpointing = run.plan.checkpointing == Checkpointing::full;

    std::optional<TrainingEstimate> fused;
    Plan plan = run.plan;
    plan.runtime = runtime_id("fused");
    plan.attention = AttentionKind::flash;
    try {
      fused = estimate(vlm, plan, device, Phases::train).training;
    } catch (const Error&) {
      // Not every option is known in that profile.
    }

    Compared a{name(run), measured("alloc_after_forward") - measured("alloc_start"), {}};
    if (checkpointing) {
      a.predictions.push_back({"2sbh", number(full)});
      a.predictions.push_back({"sqrt(L)", number(sublinear)});
    } else {
      a.predictions.push_back({"sbh(34+5as/h)", number(every)});
      a.predictions.push_back({"34sbh", number(selective)});
    }
    if (fused) a.predictions.push_back({"fused profile", number(fused->forward_end - fused->forward.before)});
    a.predictions.push_back({"vlmest", number(own.forward_end - own.forward.before)});
    r.activations.push_back(std::move(a));

    // The rule that its authors mean for the run: recomputed, kernels that keep no scores, or written-out scores.
    const Bytes kept = checkpointing ? full : run.plan.attention == AttentionKind::eager ? every : selective;
    const Bytes frozen =
        published::frozen_weights(estimated.params.total() - (run.plan.lora.rank > 0 ? Elements{} : own.trainable));
    Compared p{name(run),
               std::max({measured("forward_peak"), measured("backward_peak"), measured("step_peak")}),
               {{"16 B + activations", number(published::zero_states(own.trainable) + frozen + kept)},
                {"18 B + activations", number(published::megatron_states(own.trainable) + frozen + kept)}}};
    if (fused) p.predictions.push_back({"fused profile", number(fused->peak)});
    p.predictions.push_back({"vlmest", number(own.peak)});
    r.peaks.push_back(std::move(p));
  }
  return r;
}

}  // namespace theory
