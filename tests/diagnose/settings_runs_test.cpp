// SPDX-License-Identifier: Apache-2.0
// Settings changed one at a time on an H200, and batches around the largest that fits: tests/data/settings_runs. An
// action's bytes are the difference of two estimates, so the estimates of both must be right.
#include <algorithm>
#include <fstream>
#include <map>

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <vlmest/diagnose/action/outcome.hpp>
#include <vlmest/diagnose/planner/planner.hpp>

#include "args.hpp"
#include "files.hpp"

namespace vlmest::diagnose::settings_runs_test {
namespace {

nlohmann::json recorded(const std::string& name) {
  std::ifstream in(std::string(VLMEST_SOURCE_DIR) + "/tests/data/settings_runs/" + name);
  return nlohmann::json::parse(in).at("runs");
}

struct Asked {
  Settings settings;
  Mode mode = Mode::inference;
};
Asked asked(std::vector<std::string> flags) {
  tool::EstimateArgs args;
  CLI::App app;
  args.add_to(app);
  for (std::size_t i = 0; i + 1 < flags.size(); ++i)
    if (flags[i] == "--config")
      flags[i + 1] = std::string(VLMEST_SOURCE_DIR) + "/tests/data/configs/" + flags[i + 1] + ".json";
  std::reverse(flags.begin(), flags.end());
  app.parse(flags);
  return {{.vlm = tool::find_model(args.config), .plan = args.make_plan(), .allocator = {}, .placement = {}},
          args.phase == "train" ? Mode::training : Mode::inference};
}

const Device& device() {
  static const Device d = tool::find_device("h200-sxm");
  return d;
}

/// What each change saves is within 3 % of the peak; the largest error of the 29 is 0.14 %.
TEST(SettingsRuns, SavedBytesAreThoseOfTheDevice) {
  struct Pair {
    double measured = 0, predicted = 0;
  };
  std::map<std::string, Pair> bases;
  Estimator e;
  int compared = 0;
  for (const auto& r : recorded("changes.json")) {
    const Asked a = asked(r.at("flags").get<std::vector<std::string>>());
    Device large = device();
    large.usable_bytes = large.memory_bytes = Bytes(std::int64_t{1} << 40);
    const Outcome o = evaluate(a.settings, large, a.mode, e);
    const Pair p{r.at("peak_bytes").get<double>(), static_cast<double>(o.peak.value())};
    EXPECT_NEAR(p.predicted / p.measured, 1, 0.01) << r.at("base") << " " << r.at("change");
    if (r.at("change") == "base") {
      bases[r.at("base")] = p;
      continue;
    }
    const Pair& base = bases.at(r.at("base"));
    EXPECT_NEAR((base.predicted - p.predicted) / base.measured, (base.measured - p.measured) / base.measured, 0.01)
        << r.at("base") << " " << r.at("change");
    ++compared;
  }
  EXPECT_GE(compared, 25);
}

/// The largest batch that the estimate lets through is the largest that ran, or one below. Two of the eight are further
/// off, both at batches where one sequence is 1 % of the memory; why is not known.
TEST(SettingsRuns, LargestBatches) {
  std::map<std::string, std::int64_t> ran, failed;
  std::map<std::string, nlohmann::json> any;
  for (const auto& r : recorded("batches.json")) {
    const std::string name = r.at("case");
    const auto batch = r.at("batch").get<std::int64_t>();
    any[name] = r;
    if (r.at("fits").get<bool>())
      ran[name] = std::max(ran[name], batch);
    else
      failed[name] = failed.contains(name) ? std::min(failed[name], batch) : batch;
  }
  int right = 0;
  Estimator e;
  for (const auto& [name, r] : any) {
    Asked a = asked(r.at("flags").get<std::vector<std::string>>());
    const Device limited = within_memory(device(), Bytes(r.at("limit_bytes").get<std::int64_t>()));
    const auto fits = [&](std::int64_t batch) {
      a.settings.plan.batch = batch;
      return evaluate(a.settings, limited, a.mode, e).fits;
    };
    const std::int64_t most = ran.at(name);
    // One below the largest that ran must pass, the one above it must not.
    const bool good = fits(most - 1) && !fits(most + 1);
    right += good ? 1 : 0;
    if (most > 2) {
      EXPECT_TRUE(fits(most - 2)) << name;
    }
  }
  EXPECT_GE(right, 6) << "of " << any.size();
}

}  // namespace
}  // namespace vlmest::diagnose::settings_runs_test
