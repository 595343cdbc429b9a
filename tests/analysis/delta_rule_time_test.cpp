// SPDX-License-Identifier: Apache-2.0
// Times of fla's kernels against those measured on an H100, apart for rows that the parameters were fitted to and the
// others.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <vlmest/analysis/op_time.hpp>
#include <vlmest/json/device.hpp>

namespace vlmest::delta_rule_time_test {
namespace {

/// In percent.
struct Errors {
  int rows = 0;
  double mean = 0, worst = 0;
};

Errors errors(bool fitted) {
  const Device h100 = load_device(VLMEST_SOURCE_DIR "/models/device/h100-sxm.json");
  std::ifstream in(VLMEST_SOURCE_DIR "/tests/data/delta_rule_kernels.json");
  const auto document = nlohmann::json::parse(in);
  Errors r;
  for (const auto& row : document.at("rows")) {
    if (row.at("fitted") != fitted) continue;
    const DeltaRule o{.kind = value_of<DeltaRule::Kind>(row.at("kind").get<std::string>()).value(),
                      .batch = row.at("batch"),
                      .tokens = row.at("tokens"),
                      .heads = row.at("heads")};
    const double error = std::abs(op_time(o, h100).time.us() / row.at("us").get<double>() - 1) * 100;
    r.mean += error;
    r.worst = std::max(r.worst, error);
    ++r.rows;
  }
  r.mean /= r.rows;
  return r;
}

TEST(DeltaRuleTime, OfRowsThatWereFitted) {
  const Errors e = errors(true);
  EXPECT_EQ(e.rows, 126);
  EXPECT_LT(e.mean, 6);
  EXPECT_LT(e.worst, 20);
}

// The worst are a state or a solve of few heads: its blocks hide less of each other there than the form says.
TEST(DeltaRuleTime, OfRowsThatWereNot) {
  const Errors e = errors(false);
  EXPECT_EQ(e.rows, 90);
  EXPECT_LT(e.mean, 9);
  EXPECT_LT(e.worst, 40);
}

}  // namespace
}  // namespace vlmest::delta_rule_time_test
