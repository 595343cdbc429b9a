// SPDX-License-Identifier: Apache-2.0
// Prints docs/reference/validation.md: the error of every measured run, and its time beside the roofline's.
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "../../tests/validation/measured.hpp"

namespace {

struct Row {
  std::string name;
  std::map<std::string, double> error;
};

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v.empty() ? 0 : (v[v.size() / 2] + v[(v.size() - 1) / 2]) / 2;
}

void errors(const nlohmann::json& file) {
  std::vector<validation::Pair> pairs;
  validation::Comparison(".").add(file, pairs);
  std::vector<Row> rows;
  for (const auto& p : pairs) {
    // A row begins with its parameters; two runs may have the same name.
    if (rows.empty() || p.quantity == "parameters") rows.push_back({p.row, {}});
    rows.back().error[p.quantity] = 100 * p.error();
  }
  static constexpr std::array columns{"KV bytes",    "prefill FLOPs",  "prefill peak", "prefill peak - weights",
                                      "decode peak", "prefill kernels"};
  std::printf("\n| run |");
  for (const char* c : columns) std::printf(" %s |", c);
  std::printf("\n|---|---:|---:|---:|---:|---:|---:|\n");
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
        "\n## Wall time of a prefill\n\nThe runs above, whose times are medians. The estimate is a lower bound.\n");
    times(shared);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}
