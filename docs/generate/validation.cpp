// SPDX-License-Identifier: Apache-2.0
// Prints docs/reference/validation.md: the error of every measured run, and its time beside the roofline's.
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <span>

#include "../../tests/validation/measured_training.hpp"

namespace {

struct Row {
  std::string name;
  std::map<std::string, double> error;
};

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v.empty() ? 0 : (v[v.size() / 2] + v[(v.size() - 1) / 2]) / 2;
}

void table(const std::vector<validation::Pair>& pairs, std::span<const char* const> columns) {
  std::vector<Row> rows;
  for (const auto& p : pairs) {
    // A row begins with its parameters; two runs may have the same name.
    if (rows.empty() || p.quantity == "parameters") rows.push_back({p.row, {}});
    rows.back().error[p.quantity] = 100 * p.error();
  }
  std::printf("\n| run |");
  for (const char* c : columns) std::printf(" %s |", c);
  std::printf("\n|---|");
  for (std::size_t i = 0; i < columns.size(); ++i) std::printf("---:|");
  std::printf("\n");
  for (const auto& r : rows) {
    std::printf("| %s |", r.name.c_str());
    for (const char* c : columns)
      if (const auto e = r.error.find(c); e == r.error.end())
        std::printf(" |");
      else if (e->second == 0)
        std::printf(" 0 |");
      else
        std::printf(" %+.4f |", e->second);
    std::printf("\n");
  }
}

void errors(const nlohmann::json& file) {
  std::vector<validation::Pair> pairs;
  validation::Comparison(".").add(file, pairs);
  static constexpr std::array columns{"KV bytes",    "prefill FLOPs",  "prefill peak", "prefill peak - weights",
                                      "decode peak", "prefill kernels"};
  table(pairs, columns);
}

void training(const std::vector<validation::TrainingRow>& rows) {
  std::vector<validation::Pair> pairs;
  for (const auto& t : rows)
    if (t.ran()) validation::add(t, pairs);
  static constexpr std::array columns{"optimizer bytes", "training FLOPs", "before the step", "forward peak",
                                      "forward end",     "backward peak",  "step peak",       "training reserved"};
  table(pairs, columns);
  for (const auto& t : rows)
    if (!t.ran())
      std::printf("\n`%s` ran out of memory; its estimate %s.\n", t.name.c_str(),
                  t.estimate.training.fits ? "says that it fits" : "says so");
}

void times(const nlohmann::json& file) {
  const vlmest::Device device = vlmest::load_device("models/device/h200-sxm.json");
  vlmest::Estimator estimate;
  std::vector<double> ratios;
  std::printf("\n| run | estimated ms | measured ms | ratio |\n|---|---:|---:|---:|\n");
  for (const auto& row : file.at("rows")) {
    const std::string model = row.at("model");
    const vlmest::Vlm vlm =
        vlmest::json::hf::read(validation::read_json("tests/data/configs/" + model + ".json"), model);
    const vlmest::Plan plan{
        .batch = row.at("batch"),
        .images = row.at("images"),
        .image_height = row.at("hw").at(0),
        .image_width = row.at("hw").at(1),
        .text = row.at("text"),
        .dtype = vlmest::parse_dtype(row.at("dtype").get<std::string>()),
        .attention = row.at("attn") == "eager" ? vlmest::AttentionKind::eager : vlmest::AttentionKind::sdpa,
        .logits = row.at("logits") == "all" ? vlmest::Logits::all : vlmest::Logits::last};
    const double least = estimate(vlm, plan, device).inference.prefill.wall.ms();
    const double measured = row.at("prefill_ms").get<double>();
    ratios.push_back(measured / least);
    std::printf("| %s b%lld text %lld%s | %.2f | %.2f | %.2f |\n", model.c_str(), static_cast<long long>(plan.batch),
                static_cast<long long>(plan.text), plan.attention == vlmest::AttentionKind::eager ? " eager" : "",
                least, measured, ratios.back());
  }
  const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
  std::printf("\nMeasured over estimated: median %.2f, from %.2f to %.2f.\n", median(ratios), *low, *high);
}

}  // namespace

int main() {
  try {
    const auto fresh = validation::read_json("tests/validation/rows/h200-inference-fresh.json");
    const auto shared = validation::read_json("tests/validation/rows/h200-inference.json");
    std::printf(
        "# Validation\n\nEvery measured run of a whole model beside its estimate. This page is printed by "
        "`docs/generate/validation.cpp`\nout of [tests/validation/rows](../../tests/validation/rows); "
        "[accuracy](../explanation/accuracy.md) says how the runs were\nmeasured. Signed errors in percent of the "
        "measured value; empty where a run did not record it. A name is\n`model b<batch> text <tokens> images "
        "<number> <height>x<width>`.\n\n## A process for each model\n");
    errors(fresh);
    std::printf("\n## Several models in one process\n");
    errors(shared);
    std::printf(
        "\n## Training steps\n\nThe second step of each run, absolute bytes, against "
        "[h200-training.json](../../tests/validation/rows/h200-training.json). Reserved bytes of the first\nrun alone, "
        "whose process had trained no other model. A name is `model b<batch> text <tokens> "
        "<height>x<width>\noptions`.\n");
    training(validation::training_rows("."));
    std::printf(
        "\n## Wall time of a prefill\n\nThe runs above, whose times are medians. The estimate is a lower bound.\n");
    times(shared);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}
