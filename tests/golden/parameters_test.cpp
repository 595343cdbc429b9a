// SPDX-License-Identifier: Apache-2.0
// Parameters against the models that transformers 5.17 builds: tensor by tensor for the configs of tests/data/configs,
// by module for the released checkpoints of models.json.
#include "parameters.hpp"

#include <ostream>

#include <gtest/gtest.h>

#include "../asked_for.hpp"

namespace golden::parameters_test {
namespace {

const std::string root = VLMEST_SOURCE_DIR;

std::vector<nlohmann::json> list(const char* file) {
  std::vector<nlohmann::json> r;
  for (const auto& e : read_json(root + "/tests/golden/" + file)) r.push_back(e);
  return r;
}
std::string test_name(const testing::TestParamInfo<nlohmann::json>& i) {
  std::string s = i.param.at("name");
  for (char& c : s)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return s;
}

class Config : public testing::TestWithParam<nlohmann::json> {};
class Checkpoint : public testing::TestWithParam<nlohmann::json> {};

void expect_totals(const Model& m, const nlohmann::json& expected) {
  EXPECT_EQ(m.totals.total().value(), expected.at("params").get<std::int64_t>());
  std::int64_t all = 0;
  for (const auto& [module, n] : expected.at("params_by").items()) {
    EXPECT_EQ(below(m, module), n.get<std::int64_t>()) << module;
    all += n.get<std::int64_t>();
  }
  EXPECT_EQ(all, expected.at("params").get<std::int64_t>());
}
/// The components of the report: everything of a tower is vision's, the head is the language model's.
void expect_components(const Model& m, const nlohmann::json& expected) {
  std::int64_t vision = 0, language = 0;
  for (const auto& [module, n] : expected.at("params_by").items()) {
    if (module.find("vis") != std::string::npos) vision += n.get<std::int64_t>();
    if (module.find("language_model") != std::string::npos || module.find("text_model") != std::string::npos ||
        module == "lm_head")
      language += n.get<std::int64_t>();
  }
  EXPECT_EQ(m.totals.vision.value(), vision);
  EXPECT_EQ(m.totals.language.value(), language);
}

TEST_P(Config, HasTheseTensors) {
  const std::string name = GetParam().at("name");
  const Model m = build(read_json(root + "/tests/data/configs/" + name + ".json"), name);
  const auto expected = read_tensors(root + "/tests/golden/tensors/" + name + ".txt");
  ASSERT_GT(expected.size(), 100U);
  for (const auto& [tensor, shape] : expected) {
    const auto found = m.tensors.find(tensor);
    if (found == m.tensors.end())
      ADD_FAILURE() << "missing: " << tensor << " " << shape;
    else
      EXPECT_EQ(found->second.shape, shape) << tensor;
  }
  for (const auto& [tensor, p] : m.tensors)
    EXPECT_TRUE(expected.contains(tensor)) << "too many: " << tensor << " " << p.shape;
  expect_totals(m, GetParam());
  expect_components(m, GetParam());
}
INSTANTIATE_TEST_SUITE_P(Golden, Config,
                         testing::ValuesIn(parameters_of("Golden/Config", [] { return list("totals.json"); })),
                         test_name);

TEST_P(Checkpoint, HasThisManyParameters) {
  if (GetParam().contains("refused_at")) {  // a part that the library does not have
    try {
      build(GetParam().at("config"), "config.json");
      ADD_FAILURE() << "it can be built now";
    } catch (const vlmest::Error& e) {
      EXPECT_EQ(e.where, GetParam().at("refused_at").get<std::string>());
    }
    return;
  }
  const Model m = build(GetParam().at("config"), GetParam().at("name"));
  expect_totals(m, GetParam());
  expect_components(m, GetParam());
}
INSTANTIATE_TEST_SUITE_P(Golden, Checkpoint,
                         testing::ValuesIn(parameters_of("Golden/Checkpoint", [] { return list("models.json"); })),
                         test_name);

TEST(Golden, NothingIsMissing) {
  EXPECT_EQ(list("totals.json").size(), 24U);
  EXPECT_EQ(list("models.json").size(), 60U);
}

}  // namespace
}  // namespace golden::parameters_test
