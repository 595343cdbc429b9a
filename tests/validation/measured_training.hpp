// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include "measured.hpp"

/// Measured training steps (rows/h200-training.json) and what the library says of them.
namespace validation {

/// One measured step with its estimate.
struct TrainingRow {
  std::string name;
  nlohmann::json measured;
  vlmest::Plan plan;
  vlmest::Estimate estimate;
  /// Allocated before the model in excess of what a fresh process takes for it in the end: the recorded process had run
  /// other models, whose library workspaces stay.
  double others = 0;

  bool ran() const { return !measured.contains("oom"); }
  double bytes(const char* key) const { return measured.at(key).get<double>() - others; }
};

inline vlmest::Plan training_plan(const nlohmann::json& row) {
  static const std::map<std::string, vlmest::Optimizer> optimizers{{"adamw", vlmest::Optimizer::adamw},
                                                                   {"adamw_fused", vlmest::Optimizer::adamw_fused},
                                                                   {"sgd", vlmest::Optimizer::sgd},
                                                                   {"sgdm", vlmest::Optimizer::sgd_momentum},
                                                                   {"adafactor", vlmest::Optimizer::adafactor}};
  vlmest::Plan p = scenario(row);
  p.optimizer = optimizers.at(row.value("optim", "adamw"));
  p.amp = row.value("amp", false);
  if (row.value("ckpt", false)) p.checkpointing = vlmest::Checkpointing::full;
  p.lora.rank = row.value("lora", 0);
  p.trainable.vision = !row.value("freeze_vision", false);
  return p;
}

inline std::string training_name(const nlohmann::json& row) {
  std::string s = row.at("model").get<std::string>() + " b" + std::to_string(row.at("batch").get<int>()) + " text " +
                  std::to_string(row.at("text").get<int>()) + " " + std::to_string(row.at("hw").at(0).get<int>()) +
                  "x" + std::to_string(row.at("hw").at(1).get<int>());
  if (row.at("attn") == "eager") s += " eager";
  if (row.at("dtype") == "float32") s += row.value("amp", false) ? " amp" : " fp32";
  if (row.contains("optim")) s += " " + row.at("optim").get<std::string>();
  if (row.value("ckpt", false)) s += " checkpointing";
  if (row.contains("lora")) s += " lora " + std::to_string(row.at("lora").get<int>());
  if (row.value("freeze_vision", false)) s += " vision frozen";
  return s;
}

/// Every row of the file with its estimate.
inline std::vector<TrainingRow> training_rows(const std::string& root) {
  const vlmest::Device device = vlmest::load_device(root + "/models/device/h200-sxm.json");
  vlmest::Estimator estimator;
  std::vector<TrainingRow> r;
  const nlohmann::json file = read_json(root + "/tests/validation/rows/h200-training.json");
  for (const auto& row : file.at("rows")) {
    const std::string model = row.at("model");
    const vlmest::Vlm vlm = vlmest::json::hf::read(read_json(root + "/tests/data/configs/" + model + ".json"), model);
    TrainingRow t{.name = training_name(row), .measured = row, .plan = training_plan(row)};
    t.estimate = estimator(vlm, t.plan, device, vlmest::Phases::train);
    vlmest::Bytes workspaces{};
    for (const auto& x : t.estimate.training.tensors)
      if (x.tensor == vlmest::none && x.node == vlmest::none) workspaces += x.bytes;
    t.others = std::max(0.0, row.at("alloc_base").get<double>() - static_cast<double>(workspaces.value()));
    r.push_back(std::move(t));
  }
  return r;
}

inline void add(const TrainingRow& t, std::vector<Pair>& out) {
  const vlmest::TrainingEstimate& e = t.estimate.training;
  const auto pair = [&](const char* quantity, vlmest::Bytes predicted, double measured) {
    out.push_back({t.name, quantity, static_cast<double>(predicted.value()), measured});
  };
  const auto count = [&](const char* quantity, double predicted, const char* key) {
    out.push_back({t.name, quantity, predicted, t.measured.at(key).get<double>()});
  };
  count("parameters", static_cast<double>(t.estimate.params.total().value()), "params");
  count("trainable", static_cast<double>(e.trainable.value()), "trainable");
  count("sequence", static_cast<double>(t.estimate.sequences.seq), "seq");
  if (!t.ran()) return;
  count("optimizer bytes", static_cast<double>(e.optimizer.value()), "optimizer_bytes");
  count("training FLOPs", static_cast<double>(e.work.flops.value()), "train_flops");
  pair("before the step", e.forward.before, t.bytes("alloc_start"));
  pair("forward peak", e.forward.peak, t.bytes("forward_peak"));
  pair("forward end", e.forward_end, t.bytes("alloc_after_forward"));
  pair("backward peak", e.backward.peak, t.bytes("backward_peak"));
  pair("step peak", e.step.peak, t.bytes("step_peak"));
  pair("training reserved", e.reserved, t.bytes("reserved_peak"));
}

}  // namespace validation
