// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <vlmest/analysis/peak.hpp>
#include <vlmest/json/device.hpp>
#include <vlmest/json/hf/read.hpp>
#include <vlmest/report/estimate.hpp>

/// Measured runs of whole models (rows/*.json) and what the library says of them.
namespace validation {

inline nlohmann::json read_json(const std::filesystem::path& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return nlohmann::json::parse(in);
}

/// One quantity of one run.
struct Pair {
  std::string row, quantity;
  double predicted = 0, measured = 0;
  double error() const { return measured == 0 ? (predicted == 0 ? 0 : 1) : predicted / measured - 1; }
};

/// What every row says of its run.
inline vlmest::Plan scenario(const nlohmann::json& row) {
  vlmest::Plan p;
  p.batch = row.at("batch");
  p.text = row.at("text");
  p.images = row.at("images");
  p.image_height = row.at("hw").at(0);
  p.image_width = row.at("hw").at(1);
  p.dtype = vlmest::parse_dtype(row.at("dtype").get<std::string>());
  p.attention = row.at("attn") == "eager" ? vlmest::AttentionKind::eager : vlmest::AttentionKind::sdpa;
  return p;
}

/// Everything that a row says, beside the estimate for the same run.
class Comparison {
 public:
  explicit Comparison(std::string root)
      : root_(std::move(root)), device_(vlmest::load_device(root_ + "/models/device/h200-sxm.json")) {}

  void add(const nlohmann::json& file, std::vector<Pair>& out) {
    const bool after_step = file.at("decode_kv_len") == "tokens in the cache after the step";
    for (const auto& row : file.at("rows")) add(row, after_step, out);
  }

 private:
  static vlmest::Plan plan(const nlohmann::json& row, bool after_step) {
    vlmest::Plan p = scenario(row);
    p.logits = row.at("logits") == "all" ? vlmest::Logits::all : vlmest::Logits::last;
    if (row.contains("decode_kv_len")) {
      const std::int64_t after = row.at("decode_kv_len").get<std::int64_t>() + (after_step ? 0 : 1);
      p.new_tokens = after - row.at("seq").get<std::int64_t>();
    }
    return p;
  }

  void add(const nlohmann::json& row, bool after_step, std::vector<Pair>& out) {
    const std::string model = row.at("model");
    const vlmest::Vlm vlm = vlmest::json::hf::read(read_json(root_ + "/tests/data/configs/" + model + ".json"), model);
    vlmest::Plan p = plan(row, after_step);
    const vlmest::Estimate e = estimator_(vlm, p, device_);
    const auto& r = e.inference;
    const std::string name = model + " b" + std::to_string(p.batch) + " text " + std::to_string(p.text) + " images " +
                             std::to_string(p.images) + " " + std::to_string(p.image_height) + "x" +
                             std::to_string(p.image_width) +
                             (p.attention == vlmest::AttentionKind::eager ? " eager" : "");
    auto pair = [&](const char* quantity, double predicted, std::optional<double> measured) {
      if (measured) out.push_back({name, quantity, predicted, *measured});
    };
    auto number = [&](const char* key) {
      return row.contains(key) ? std::optional<double>(row.at(key).get<double>()) : std::nullopt;
    };
    auto bytes = [](vlmest::Bytes b) { return static_cast<double>(b.value()); };
    const double base = row.at("alloc_base");
    const bool fresh = base == 0;
    // The estimate is a fresh process's. One that has run before already holds the workspaces of the math libraries,
    // which a fresh one takes for this model; what is beyond them belongs to others.
    const double workspaces = bytes(vlmest::cublas_workspace(device_.sm) + vlmest::cublaslt_workspace());
    const double others = std::max(0.0, base - workspaces);
    auto own = [&](const char* key) {
      auto v = number(key);
      if (v) *v -= others;
      return v;
    };
    const double weights = row.at("alloc_weights");

    pair("parameters", static_cast<double>(e.params.total().value()), number("params"));
    pair("image tokens", static_cast<double>(e.sequences.image_tokens), number("image_tokens"));
    pair("sequence", static_cast<double>(e.sequences.seq), number("seq"));
    pair("input bytes", bytes(r.inputs), number("input_bytes"));
    pair("KV bytes", bytes(r.kv_cache), number("kv_bytes"));
    if (fresh) pair("weights", bytes(r.weights), weights);
    pair("prefill FLOPs", static_cast<double>(r.prefill.work.flops.value()), number("prefill_flops"));
    pair("decode FLOPs", static_cast<double>(r.decode.work.flops.value()), number("decode_flops"));
    if (fresh) pair("before prefill", bytes(r.prefill.memory.before), number("alloc_before_prefill"));
    pair("prefill peak", bytes(r.prefill.memory.peak), own("prefill_peak"));
    pair("prefill peak - weights", bytes(r.prefill.memory.peak - r.weights), *own("prefill_peak") - weights);
    if (row.contains("prefill_requested_peak")) {
      vlmest::Bytes libraries{};
      for (const auto& t : r.tensors)
        if (t.tensor == vlmest::none && t.node == vlmest::none) libraries += t.bytes;
      const vlmest::Graph& g = estimator_.graph();
      const auto& phase = g.phases.front();
      pair("prefill requested peak", bytes(vlmest::requested_peak(g, phase.first, phase.last).bytes + libraries),
           number("prefill_requested_peak"));
    }
    if (fresh) pair("prefill reserved", bytes(r.prefill.memory.reserved), number("prefill_reserved"));
    pair("prefill kernels", static_cast<double>(r.prefill.work.kernels), number("prefill_kernels"));
    pair("decode peak", bytes(r.decode.memory.peak), own("decode_peak"));
    pair("decode peak - before", bytes(r.decode.memory.peak - r.decode.memory.before), number("decode_peak_delta"));
    if (row.contains("prefill_full_logits_peak") && p.logits == vlmest::Logits::last) {
      p.logits = vlmest::Logits::all;
      const vlmest::Estimate full = estimator_(vlm, p, device_);
      pair("prefill peak, all logits", bytes(full.inference.prefill.memory.peak), own("prefill_full_logits_peak"));
    }
  }

  std::string root_;
  vlmest::Device device_;
  vlmest::Estimator estimator_;
};

}  // namespace validation
