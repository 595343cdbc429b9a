// SPDX-License-Identifier: Apache-2.0
// Parameters that a token goes through: every weight of experts is told apart, in every model that is shipped or held
// in the tests.
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>

#include <gtest/gtest.h>

#include <vlmest/analysis/params.hpp>
#include <vlmest/json/model.hpp>
#include <vlmest/nn/inference.hpp>
#include <vlmest/nn/stack/registry.hpp>

namespace vlmest::active_params_test {
namespace {

namespace fs = std::filesystem;

Graph declared(const fs::path& file) {
  std::ifstream in(file);
  const Vlm vlm = json::read_model(nlohmann::json::parse(in), file.string());
  Builder b;
  {
    const Plan plan;
    Context c{b, plan, stack_of(plan)};
    declare_parameters(c, vlm);
  }
  return std::move(b.graph);
}

/// Whether a weight belongs to a module of an expert's own, which a list of experts holds, and not to all in one
/// tensor.
bool is_of_one_expert(const Graph& g, TensorId weight) {
  ScopeId s = g.scopes[static_cast<std::size_t>(g.tensor(weight).scope)].parent;
  while (s > 0 && g.scopes[static_cast<std::size_t>(s)].name != std::string_view("experts"))
    s = g.scopes[static_cast<std::size_t>(s)].parent;
  return s > 0;
}

TEST(ActiveParameters, WeightsOfExpertsAreNotedAsRouted) {
  const fs::path root = VLMEST_SOURCE_DIR;
  int sparse = 0;
  for (const char* folder : {"models/vlm", "tests/data/configs", "tests/data/language_models"})
    for (const auto& file : fs::directory_iterator(root / folder)) {
      if (file.path().filename() == "aya-var.json") continue;  // its list of layers is that of the recorded cut
      const Graph g = declared(file.path());
      std::set<TensorId> routed;
      for (const RoutedWeight& r : g.routed) {
        routed.insert(r.weight);
        if (!is_of_one_expert(g, r.weight)) {
          EXPECT_EQ(g.tensor(r.weight).shape[0], r.experts) << file.path();
        }
        EXPECT_LT(r.top_k, r.experts) << file.path();
      }
      for (std::size_t t = 0; t < g.tensors.size(); ++t)
        if (g.tensors[t].role == Role::weight &&
            std::string_view(g.scopes[static_cast<std::size_t>(g.tensors[t].scope)].name) == "experts") {
          EXPECT_TRUE(routed.contains(static_cast<TensorId>(t))) << file.path() << " " << g.tensors[t].name;
        }
      const Parameters p = parameters(g);
      EXPECT_EQ(p.active() < p.total(), !routed.empty()) << file.path();
      sparse += !routed.empty();
    }
  EXPECT_GE(sparse, 5);
}

/// 94 layers of 128 experts, 8 of which a token sees, three matrices of 4096 x 1536 each.
TEST(ActiveParameters, OfALargeVisionLanguageModel) {
  const Parameters p = parameters(declared(fs::path(VLMEST_SOURCE_DIR) / "models/vlm/qwen3-vl-235b-a22b.json"));
  EXPECT_EQ((p.total() - p.active()).value(), std::int64_t{94} * 120 * 3 * 4096 * 1536);
}

}  // namespace
}  // namespace vlmest::active_params_test
