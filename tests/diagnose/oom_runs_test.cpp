// SPDX-License-Identifier: Apache-2.0
// Runs that went out of memory on an H200, with message, traceback and snapshot. Of tests/data/oom_runs the cause must
// be right from each alone, and the memory that the estimate has allocated at that point must be the memory that was.
// tests/data/oom_held_out was provoked afterwards by a script that knew nothing of the library; verdicts that differ
// from the cause are listed, and one that comes or goes fails.
#include <fstream>
#include <map>
#include <sstream>

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <vlmest/diagnose/evidence/oom/reader.hpp>
#include <vlmest/diagnose/evidence/snapshot/read.hpp>
#include <vlmest/diagnose/failure/from_snapshot.hpp>
#include <vlmest/diagnose/verdict/judge.hpp>
#include <vlmest/diagnose/verdict/judge_run.hpp>
#include <vlmest/json/image_processor.hpp>
#include <vlmest/json/model.hpp>

#include "args.hpp"
#include "evidence/gzip_source.hpp"
#include "files.hpp"

namespace vlmest::diagnose::oom_runs_test {
namespace {

const std::string data = std::string(VLMEST_SOURCE_DIR) + "/tests/data/";

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream s;
  s << in.rdbuf();
  return s.str();
}

struct Run {
  std::string name, cause;
  std::vector<std::string> flags;
  std::string folder = data + "oom_runs/", configs = data + "configs/";
  std::map<std::string, std::string> says;  ///< by evidence, where it is not the cause
  nlohmann::json entry = {};                ///< of the index: "image" is what the image processor was set to
  std::string path() const { return folder + name; }
  std::string verdict(const std::string& evidence) const {
    const auto other = says.find(evidence);
    return other == says.end() ? cause : other->second;
  }
  friend void PrintTo(const Run& r, std::ostream* out) { *out << r.name; }
};
std::vector<Run> runs() {
  std::vector<Run> r;
  const auto index = nlohmann::json::parse(read(data + "oom_runs/index.json"));
  for (const auto& j : index.at("runs"))
    r.push_back({.name = j.at("case"), .cause = j.at("cause"), .flags = j.at("flags"), .says = {}, .entry = j});
  return r;
}
std::vector<Run> held_out() {
  std::vector<Run> r;
  const std::string folder = data + "oom_held_out/";
  const auto index = nlohmann::json::parse(read(folder + "index.json"));
  for (const auto& j : index.at("runs"))
    r.push_back({j.at("case"), j.at("cause"), j.at("flags").get<std::vector<std::string>>(), folder,
                 folder + "configs/", j.value("says", std::map<std::string, std::string>()), j});
  return r;
}

std::optional<Settings> settings(const Run& run, std::optional<Mode>& mode) {
  if (run.flags.empty()) return std::nullopt;
  tool::EstimateArgs args;
  CLI::App app;
  args.add_to(app);
  std::vector<std::string> flags = run.flags;
  for (std::size_t i = 0; i + 1 < flags.size(); ++i)
    if (flags[i] == "--config") flags[i + 1] = run.configs + flags[i + 1] + ".json";
  std::reverse(flags.begin(), flags.end());
  app.parse(flags);
  mode = args.phase == "train" ? Mode::training : Mode::inference;
  Settings s{.vlm = tool::find_model(args.config), .plan = args.make_plan(), .allocator = {}, .placement = {}};
  s.plan.markers = false;  // the ids that ran had none
  json::read_image(json::Reader(run.entry, run.name), s.vlm);
  return s;
}

Failure from_message(const Run& run) {
  const auto messages = find_oom_messages(read(run.path() + ".txt"));
  EXPECT_EQ(messages.size(), 1u) << run.name;
  return messages.empty() ? Failure{} : failure_of(messages.front());
}
Failure from_snapshot(const Run& run) {
  tool::FileSource file(run.path() + ".pickle.gz");
  ByteSource bytes([&] { return file(); });
  const RecordedSnapshot s = read_recorded_snapshot(bytes, run.name);
  return failure_of(s, analyse(s, device_of_interest(s)));
}

const Device& device() {
  static const Device d = tool::find_device("h200-sxm");
  return d;
}

class OomRun : public testing::TestWithParam<Run> {};

TEST_P(OomRun, TheMessageAndTheModelGiveTheCause) {
  std::optional<Mode> mode;
  const auto s = settings(GetParam(), mode);
  if (!s) GTEST_SKIP() << "no model";
  Estimator e;
  const Verdict v = judge(from_message(GetParam()), *s, device(), mode, e);
  EXPECT_EQ(name(v.cause), GetParam().cause) << v.why;
  EXPECT_FALSE(v.why.empty());
}

TEST_P(OomRun, TheEstimateHasAllocatedWhatTheRunHad) {
  std::optional<Mode> mode;
  const auto s = settings(GetParam(), mode);
  if (!s || GetParam().cause == "leak" || GetParam().cause == "fragmentation") GTEST_SKIP() << "not the settings' own";
  Estimator e;
  const Failure f = from_message(GetParam());
  const Verdict v = judge(f, *s, device(), mode, e);
  ASSERT_FALSE(v.hypotheses.empty());
  const double was = static_cast<double>(f.allocated->value.value());
  // A cache that grew by tokens that the settings do not know of holds less than at its end.
  const double off = GetParam().name == "decode_cache" ? 0.1 : 0.01;
  EXPECT_NEAR(static_cast<double>(v.hypotheses.front().before.value()) / was, 1, off) << v.why;
}

TEST_P(OomRun, TheSnapshotAloneGivesTheCause) {
  const Failure f = from_snapshot(GetParam());
  const Verdict v = judge(f);
  // Of a graph that autograd keeps, or of other processes, a snapshot does not know.
  if (GetParam().cause == "other_process") {
    EXPECT_EQ(v.cause, Cause::weights) << v.why;
  } else if (GetParam().name == "prefill_pieces") {
    EXPECT_EQ(v.cause, Cause::kv_cache) << v.why;  // whether it would have fit in one piece, the model knows
  } else {
    EXPECT_EQ(name(v.cause), GetParam().cause) << v.why;
  }
}

TEST_P(OomRun, SnapshotAndMessageAndModelAgree) {
  std::optional<Mode> mode;
  const auto s = settings(GetParam(), mode);
  if (!s) GTEST_SKIP() << "no model";
  Estimator e;
  const Verdict v = judge(merged(from_snapshot(GetParam()), from_message(GetParam())), *s, device(), mode, e);
  EXPECT_EQ(name(v.cause), GetParam().cause) << v.why;
}

class HeldOutRun : public testing::TestWithParam<Run> {};

TEST_P(HeldOutRun, EachEvidenceGivesItsVerdict) {
  const auto& run = GetParam();
  std::optional<Mode> mode;
  const auto s = settings(run, mode);
  ASSERT_TRUE(s);
  Estimator e;
  const Failure message = from_message(run), snapshot = from_snapshot(run);
  const auto check = [&](const Verdict& v, const std::string& evidence) {
    EXPECT_EQ(name(v.cause), run.verdict(evidence)) << evidence << ": " << v.why;
  };
  check(judge(message, *s, device(), mode, e), "message");
  check(judge(snapshot), "snapshot");
  check(judge(merged(snapshot, message), *s, device(), mode, e), "both");
}

INSTANTIATE_TEST_SUITE_P(HeldOut, HeldOutRun, testing::ValuesIn(held_out()),
                         [](const auto& p) { return p.param.name; });
INSTANTIATE_TEST_SUITE_P(Recorded, OomRun, testing::ValuesIn(runs()), [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace vlmest::diagnose::oom_runs_test
