// SPDX-License-Identifier: Apache-2.0
// Settings changed one at a time on an H200, and batches around the largest that fits: tests/data/settings_runs. An
// action's bytes are the difference of two estimates, so the estimates of both must be right.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <vlmest/diagnose/advise/planner/planner.hpp>
#include <vlmest/diagnose/inversion/run/outcome.hpp>
#include <vlmest/json/image_processor.hpp>

#include "args.hpp"
#include "files.hpp"

namespace vlmest::diagnose::settings_runs_test {
namespace {

nlohmann::json recorded(const std::string& name) {
  std::ifstream in(std::string(VLMEST_SOURCE_DIR) + "/tests/data/settings_runs/" + name);
  return nlohmann::json::parse(in).at("runs");
}

/// Where the config of a model lies below tests/data.
std::string folder_of(const std::string& model) {
  return model == "qwen3-vl-2b" ? "settings_runs/configs/" : "configs/";
}

struct Asked {
  Settings settings;
  Mode mode = Mode::inference;
};
/// What was run had ids without the processor's markers.
Asked asked(std::vector<std::string> flags, const std::string& configs = "configs/") {
  tool::EstimateArgs args;
  CLI::App app;
  args.add_to(app);
  for (std::size_t i = 0; i + 1 < flags.size(); ++i)
    if (flags[i] == "--config")
      flags[i + 1] = std::string(VLMEST_SOURCE_DIR) + "/tests/data/" + configs + flags[i + 1] + ".json";
  std::reverse(flags.begin(), flags.end());
  app.parse(flags);
  Asked a{{.vlm = tool::find_model(args.config), .plan = args.make_plan(), .allocator = {}, .placement = {}},
          args.phase == "train" ? Mode::training : Mode::inference};
  a.settings.plan.markers = false;
  return a;
}
/// The flags of a recorded run, and what its image processor was set to.
Asked asked_as(const nlohmann::json& run, const std::string& configs = "configs/") {
  Asked a = asked(run.at("flags").get<std::vector<std::string>>(), configs);
  json::read_image(json::Reader(run, "run"), a.settings.vlm);
  return a;
}

const Device& device() {
  static const Device d = tool::find_device("h200-sxm");
  return d;
}

/// A change of settings, as it ran and as it is estimated.
struct Change {
  std::string name;
  bool base = false;
  double measured = 0, predicted = 0;             ///< bytes of the peak
  double saved = 0, predicted_saved = 0;          ///< of the measured peak before it
  double time_cost = 0, predicted_time_cost = 0;  ///< percent
};
std::vector<Change> changes(const std::string& file, const std::string& configs) {
  struct Run {
    double bytes = 0, predicted = 0, ms = 0, predicted_ms = 0;
  };
  std::map<std::string, Run> bases;
  std::vector<Change> r;
  Estimator e;
  Device large = device();
  large.usable_bytes = large.memory_bytes = Bytes(std::int64_t{1} << 40);
  for (const auto& j : recorded(file)) {
    const Asked a = asked_as(j, configs);
    const Estimate estimate =
        e(a.settings.vlm, a.settings.plan, large, a.mode == Mode::training ? Phases::train : Phases::inference);
    const bool training = a.mode == Mode::training;
    const Bytes peak = training ? estimate.training.peak : estimate.inference.prefill.memory.peak;
    const Run run{j.at("peak_bytes").get<double>(), static_cast<double>(peak.value()), j.at("ms").get<double>(),
                  (training ? estimate.training.wall : estimate.inference.prefill.wall).ms()};
    Change c{.name = j.at("base").get<std::string>() + " " + j.at("change").get<std::string>(),
             .base = j.at("change") == "base",
             .measured = run.bytes,
             .predicted = run.predicted};
    if (c.base) {
      bases[j.at("base")] = run;
    } else {
      const Run& base = bases.at(j.at("base"));
      c.saved = (base.bytes - run.bytes) / base.bytes;
      c.predicted_saved = (base.predicted - run.predicted) / base.bytes;
      c.time_cost = (run.ms / base.ms - 1) * 100;
      c.predicted_time_cost = (run.predicted_ms / base.predicted_ms - 1) * 100;
    }
    r.push_back(c);
  }
  return r;
}

struct Recorded {
  const char *file, *configs;
  int pairs, within_ten_points;
};
class SettingsChanges : public testing::TestWithParam<Recorded> {};

/// What each change saves is within 3 % of the peak; the largest error is 0.14 % of the 29 that came first, 0.59 % of
/// the 42 of other models.
TEST_P(SettingsChanges, SaveTheBytesOfTheDevice) {
  int compared = 0;
  for (const Change& c : changes(GetParam().file, GetParam().configs)) {
    EXPECT_NEAR(c.predicted / c.measured, 1, 0.01) << c.name;
    EXPECT_NEAR(c.predicted_saved, c.saved, 0.01) << c.name;
    compared += c.base ? 0 : 1;
  }
  EXPECT_EQ(compared, GetParam().pairs);
}

/// Three changes in four cost what was said, within ten points. Most others set the pace on the host, which is itself
/// that unsteady: the same step took 179 ms in one process and 211 in the next.
TEST_P(SettingsChanges, CostTheTimeOfTheDevice) {
  int within = 0;
  for (const Change& c : changes(GetParam().file, GetParam().configs))
    within += !c.base && std::abs(c.predicted_time_cost - c.time_cost) <= 10 ? 1 : 0;
  EXPECT_GE(within, GetParam().within_ten_points);
}

INSTANTIATE_TEST_SUITE_P(Recorded, SettingsChanges,
                         testing::Values(Recorded{"changes.json", "configs/", 29, 23},
                                         Recorded{"changes_held_out.json", "settings_runs/configs/", 42, 31}),
                         [](const auto& p) { return p.index == 0 ? std::string("First") : std::string("HeldOut"); });

/// What loops reserve that never empty the cache: within half a percent in most of the held-out runs, though a single
/// block that lands elsewhere can cost a tenth. Nothing in the replay was chosen by them.
TEST(SettingsRuns, LoopsReserve) {
  Estimator e;
  int runs = 0, close = 0;
  for (const auto& r : recorded("changes_held_out.json")) {
    const Asked a = asked_as(r, "settings_runs/configs/");
    if (a.mode != Mode::training) continue;
    const TrainingEstimate t = e(a.settings.vlm, a.settings.plan, device(), Phases::train).training;
    const double off = static_cast<double>(t.reserved_in_loop.value()) / r.at("reserved_bytes").get<double>() - 1;
    ++runs;
    close += std::abs(off) < 0.005 ? 1 : 0;
    EXPECT_LT(std::abs(off), 0.11) << r.at("base") << " " << r.at("change");
  }
  EXPECT_EQ(runs, 44);
  EXPECT_GE(close, 34);
}

/// Peaks with what other libraries do: FlashAttention, bitsandbytes' optimizer and weights, Liger Kernel's losses,
/// peft; and batches with images of two sizes. The largest error is 0.7 %; 2.1 % where weights were quantised in place.
TEST(SettingsRuns, PeaksWithOtherLibraries) {
  Estimator e;
  int runs = 0;
  for (const auto& r : recorded("libraries.json")) {
    const auto flags = r.at("flags").get<std::vector<std::string>>();
    const std::string name = r.at("case");
    const Asked a = asked_as(r, folder_of(flags[1]));
    const bool training = a.mode == Mode::training, quantised = a.settings.plan.weights.has_value();
    const Estimate estimate =
        e(a.settings.vlm, a.settings.plan, device(), training ? Phases::train : Phases::inference);
    const Bytes peak = training ? estimate.training.peak : estimate.inference.peak;
    EXPECT_NEAR(static_cast<double>(peak.value()) / r.at("peak_bytes").get<double>(), 1, quantised ? 0.025 : 0.01)
        << name;
    ++runs;
    if (!training) continue;
    EXPECT_EQ(estimate.training.optimizer.value(), r.at("optimizer_bytes").get<std::int64_t>()) << name;
    EXPECT_EQ(estimate.training.trainable.value(), r.at("trainable").get<std::int64_t>()) << name;
  }
  EXPECT_EQ(runs, 58);
}

/// Two GPUs that train together. The largest error of a peak is 1.1 %, of fully_shard; of what is reserved 11 %, with
/// states on the host. Times are the host's, which differ by a third from one day to the next; from those of the last
/// eleven rows its parameters were taken.
TEST(SettingsRuns, DataParallelGpus) {
  const std::map<std::string, parallel::Strategy> placements{
      {"single", {}},
      {"ddp", {.gpus = 2}},
      {"ddp_views", {.gpus = 2, .bucket_views = true}},
      {"zero1", {.gpus = 2, .sharding = Sharding::optimizer}},
      {"fsdp2_keep", {.gpus = 2, .sharding = Sharding::gradients}},
      {"fsdp2", {.gpus = 2, .sharding = Sharding::parameters}},
      {"fsdp2_offload", {.gpus = 2, .sharding = Sharding::parameters, .offload = Offload::parameters}}};
  Estimator e;
  for (const auto& r : recorded("data_parallel.json")) {
    const std::string side = std::to_string(r.at("side").get<int>());
    Asked a = asked({"--config", r.at("model"), "--batch", std::to_string(r.at("batch").get<int>()), "--text",
                     std::to_string(r.at("text").get<int>()), "--image-size", side + "x" + side, "--phase", "train"},
                    folder_of(r.at("model")));
    a.settings.placement = placements.at(r.at("mode"));
    const Outcome o = evaluate(a.settings, device(), a.mode, e);
    const std::string name = r.at("model").get<std::string>() + " " + r.at("mode").get<std::string>();
    EXPECT_NEAR(static_cast<double>(o.peak.value()) / r.at("peak").get<double>(), 1, 0.02) << name;
    EXPECT_NEAR(static_cast<double>(o.reserved.value()) / r.at("reserved").get<double>(), 1, 0.12) << name;
    if (r.at("quiet").get<bool>()) {
      EXPECT_NEAR(o.time.ms() / r.at("ms").get<double>(), 1, 0.25) << name;
    }
  }
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
    Asked a = asked_as(r);
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
