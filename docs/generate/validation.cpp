// SPDX-License-Identifier: Apache-2.0
// Prints docs/reference/validation.md: the error of every measured run, and its time beside the estimated one.
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <span>

#include "../../tests/validation/measured.hpp"

namespace {

using vlmest::Comparison;

struct Row {
  std::string name;
  std::map<std::string, double> error;
};

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v.empty() ? 0 : (v[v.size() / 2] + v[(v.size() - 1) / 2]) / 2;
}

/// A run begins with its parameters; two runs may have the same name.
bool begins_run(const Comparison& c) { return c.quantity == "params"; }

void table(const std::vector<Comparison>& all, std::span<const char* const> columns) {
  std::vector<Row> rows;
  for (const auto& c : all) {
    if (begins_run(c)) rows.push_back({c.row, {}});
    rows.back().error[c.quantity] = c.error();
  }
  std::printf("\n| run |");
  for (const char* c : columns) std::printf(" %s |", c);
  std::printf("\n|---|");
  for (std::size_t i = 0; i < columns.size(); ++i) std::printf("---:|");
  std::printf("\n");
  for (const auto& r : rows) {
    if (std::none_of(columns.begin(), columns.end(), [&](const char* c) { return r.error.contains(c); })) continue;
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

void inference(const std::vector<Comparison>& all) {
  static constexpr std::array columns{"kv_bytes",    "prefill_flops",  "prefill_peak", "prefill_above_weights",
                                      "decode_peak", "prefill_kernels"};
  table(all, columns);
}

void training(const std::vector<Comparison>& all) {
  static constexpr std::array columns{"optimizer_bytes",     "train_flops",   "alloc_start", "forward_peak",
                                      "alloc_after_forward", "backward_peak", "step_peak",   "reserved_peak"};
  table(all, columns);
  for (const auto& c : all)
    if (c.quantity == "fits" && c.measured == 0)
      std::printf("\n`%s` ran out of memory; its estimate %s.\n", c.row.c_str(),
                  c.predicted == 0 ? "says so" : "says that it fits");
}

void times(const std::vector<Comparison>& all) {
  std::vector<double> ratios;
  std::printf("\n| run | estimated ms | measured ms | ratio |\n|---|---:|---:|---:|\n");
  for (const auto& c : all) {
    if (c.quantity != "prefill_ms") continue;
    ratios.push_back(c.measured / c.predicted);
    std::printf("| %s | %.2f | %.2f | %.2f |\n", c.row.c_str(), c.predicted, c.measured, ratios.back());
  }
  const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
  std::printf("\nMeasured over estimated: median %.2f, from %.2f to %.2f.\n", median(ratios), *low, *high);
}

}  // namespace

int main() {
  try {
    const auto fresh = validation::compare(".", {"h200-inference-fresh.json"}),
               shared = validation::compare(".", {"h200-inference.json"});
    std::printf(
        "# Validation\n\nEvery measured run of a whole model beside its estimate. This page is printed by "
        "`docs/generate/validation.cpp`\nout of [tests/validation/rows](../../tests/validation/rows); "
        "[accuracy](../explanation/accuracy.md) says how the runs were\nmeasured, [measured rows](measured-rows.md) "
        "what "
        "the quantities are. Signed errors in percent of the measured value;\nempty where a run did not record it. A "
        "name is `model b<batch> text <tokens> images <number> <height>x<width> options`.\n\n"
        "## A process for each model\n");
    inference(fresh);
    std::printf("\n## Several models in one process\n");
    inference(shared);
    std::printf(
        "\n## Training steps\n\nThe second step of each run, absolute bytes, against "
        "[h200-training.json](../../tests/validation/rows/h200-training.json). Reserved bytes of the first\nrun alone, "
        "whose process had trained no other model.\n");
    training(validation::compare(".", {"h200-training.json"}));
    std::printf(
        "\n## Wall time of a prefill\n\nThe runs above, whose times are medians. The estimate is the larger of the "
        "expected GPU time and the launches of an idle host.\n");
    times(shared);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}
