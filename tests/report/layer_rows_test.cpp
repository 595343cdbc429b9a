// SPDX-License-Identifier: Apache-2.0
// Layers that are copies of another have in their rows what their nodes add up to, one after the other.
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/json/device.hpp>
#include <vlmest/json/model.hpp>
#include <vlmest/report/breakdown.hpp>
#include <vlmest/report/estimate.hpp>

namespace vlmest::layer_rows_test {
namespace {

const std::string models = std::string(VLMEST_SOURCE_DIR) + "/models/";

Graph without_copies(Graph g) {
  g.layers.clear();
  return g;
}

/// `work` of the rows of a graph, and of the same graph where no layer is known to be a copy.
void expect_equal(const std::vector<LayerRow>& rows, const std::vector<LayerRow>& each, Work LayerRow::*work) {
  ASSERT_EQ(rows.size(), each.size());
  std::size_t kernels = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].*work, each[i].*work) << i;
    kernels += static_cast<std::size_t>((rows[i].*work).kernels);
  }
  EXPECT_GT(kernels, 0u);
}

/// Towers with stages and windows, layers of several kinds, experts, and an encoder beside a decoder.
class LayerRowsOf : public testing::TestWithParam<const char*> {};

TEST_P(LayerRowsOf, HoldWhatTheirNodesAddUpTo) {
  std::ifstream in(models + "vlm/" + GetParam() + ".json");
  const Vlm vlm = json::read_model(nlohmann::json::parse(in), GetParam());
  const Device device = load_device(models + "device/h200-sxm.json");
  Plan plan;
  plan.gradient_accumulation = 2;
  Estimator estimate;
  estimate(vlm, plan, device, Phases::all);
  const Graph &inference = estimate.graph(), &training = estimate.training_graph();
  const std::vector<Work> works = op_works(inference, device);
  expect_equal(breakdown(inference, estimate.timeline(), {}, works),
               breakdown(without_copies(inference), estimate.timeline(), {}, works), &LayerRow::prefill);
  const Phase &forward = training.phases[2], &backward = training.phases[3];
  const auto rows = [&](const Graph& g) {
    return training_breakdown(g, estimate.training_timeline(), forward, backward, estimate.training_works());
  };
  const std::vector<LayerRow> some = rows(training), each = rows(without_copies(training));
  expect_equal(some, each, &LayerRow::forward);
  expect_equal(some, each, &LayerRow::backward);
}

INSTANTIATE_TEST_SUITE_P(Models, LayerRowsOf,
                         testing::Values("llava-next-7b", "qwen2.5-vl-7b", "gemma-3-4b", "florence-2-base",
                                         "qwen3-vl-30b-a3b", "llama-3.2-11b-vision"),
                         [](const auto& p) {
                           std::string r = p.param;
                           for (char& c : r)
                             if (c == '-' || c == '.') c = '_';
                           return r;
                         });

}  // namespace
}  // namespace vlmest::layer_rows_test
