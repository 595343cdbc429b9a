// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <iterator>

#include <bench/harness/predict.hpp>
#include <bench/harness/select.hpp>
#include <gtest/gtest.h>

#include <vlmest/json/device.hpp>

namespace vlmest::bench::points_test {
namespace {

std::vector<std::string> names(const std::vector<Point>& points) {
  std::vector<std::string> r;
  for (const Point& p : points) r.push_back(name(p));
  return r;
}
std::set<std::string> labels(const std::vector<Point>& points) {
  std::set<std::string> r;
  for (const Point& p : points) r.insert(label(p));
  return r;
}

TEST(Point, NameAndLabel) {
  const Point p = make_point(OpJson::parse(R"({"k":4096,"op":"linear","m":4096,"dtype":"bf16","n":11008,"time_us":9})"),
                             "list", {}, Cache::cold);
  EXPECT_EQ(name(p), "linear/cublaslt/m:4096/n:11008/k:4096/dtype:bf16/cold");
  EXPECT_EQ(label(p), R"({"op":"linear","m":4096,"n":11008,"k":4096,"dtype":"bf16"})");
  const Point q = make_point(attention_points::sdpa(1, 32, 8, 64, 64, 128, true), "list", "flash", Cache::hot);
  EXPECT_EQ(name(q),
            "sdpa/flash/batch:1/heads:32/kv_heads:8/q_len:64/kv_len:64/head_dim:128/causal:true/dtype:bf16/hot");
}

/// Every point of every suite can be read back from its label, and costs the same as before.
TEST(Point, LabelsAreOpsOfTheLibrary) {
  for (const auto& [word, suite] : suite_names)
    for (const Point& p : points(suite, heldout_seed)) {
      if (is_launch(p)) continue;
      const Point again = make_point(OpJson::parse(label(p)), "label", p.variant, p.cache);
      EXPECT_EQ(again, p);
      const json::SingleOp op = json::read_op(nlohmann::json::parse(label(p)), name(p));
      const Cost c = cost(op.op);
      EXPECT_GT(c.read + c.written, Bytes{}) << name(p);
    }
}

TEST(Suite, EachPointOnceAndAlwaysTheSame) {
  for (const auto& [word, suite] : suite_names) {
    const auto first = names(points(suite, heldout_seed));
    EXPECT_EQ(first, names(points(suite, heldout_seed))) << word;
    EXPECT_EQ(std::set<std::string>(first.begin(), first.end()).size(), first.size()) << word;
  }
}

/// The generator's numbers themselves, so that a change of points is seen: they decide what is held out.
TEST(Suite, RandomPointsAreThoseOfTheSeed) {
  Dice dice(1);
  EXPECT_EQ(dice.size(1, 33000), 4);
  EXPECT_NE(names(points(Suite::heldout, 2)), names(points(Suite::heldout, 3)));
}

TEST(Suite, NothingHeldOutIsInTheCalibration) {
  const auto calibrated = labels(points(Suite::calibrate, heldout_seed));
  for (const std::uint64_t seed : {2, 3, 77})
    for (const std::string& held : labels(points(Suite::heldout, seed)))
      EXPECT_FALSE(calibrated.contains(held)) << held;
  EXPECT_THROW(points(Suite::heldout, calibration_seed), Error);
}

TEST(Suite, HeldOutProductsCoverTheirRange) {
  std::int64_t least = INT64_MAX, most = 0, odd = 0, count = 0;
  for (const Point& p : points(Suite::heldout, heldout_seed)) {
    if (op_name(p) != "linear") continue;
    ++count;
    const auto m = p.op["m"].get<std::int64_t>(), n = p.op["n"].get<std::int64_t>(), k = p.op["k"].get<std::int64_t>();
    least = std::min(least, m);
    most = std::max(most, m);
    odd += n % 8 != 0 || k % 8 != 0;
    for (const std::int64_t x : {n, k}) {
      EXPECT_GE(x, 64);
      EXPECT_LE(x, 19000);
    }
  }
  EXPECT_EQ(count, 1000);
  EXPECT_LE(least, 2);
  EXPECT_GT(most, 30000);
  EXPECT_GT(odd, 150);
}

/// Five minutes is what calibrating may take.
TEST(Duration, CalibrationFitsIntoFiveMinutes) {
  const Device d = load_device(std::string(VLMEST_SOURCE_DIR) + "/models/device/h200-sxm.json");
  const StopRule rule;
  const Seconds calibration = expected_duration(points(Suite::calibrate, 0), d, rule);
  EXPECT_LT(calibration, Seconds{300});
  EXPECT_GT(calibration, expected_duration(points(Suite::quick, 0), d, rule));
  const Point one = points(Suite::quick, 0).front();
  const Seconds once = expected_duration({one}, d, rule);
  EXPECT_NEAR(expected_duration({one, one}, d, rule).value, 2 * once.value, 1e-12);
  EXPECT_GT(once, point_overhead(one));
}

TEST(Select, OpsVariantsCachesAndFilter) {
  const auto of = [](Selection s) { return names(select(s)); };
  EXPECT_EQ(of({.ops = {"add"}}), std::vector<std::string>{"add/own/elements:134217728/dtype:bf16/cold"});
  EXPECT_EQ(of({.ops = {"add"}, .cold = true, .hot = true}).size(), 2u);
  EXPECT_EQ(of({.ops = {"copy", "copy/memcpy"}}),
            (std::vector<std::string>{"copy/own/elements:134217728/dtype:bf16/cold",
                                      "copy/memcpy/elements:134217728/dtype:bf16/cold"}));
  for (const std::string& n : of({.filter = "^linear/.*/n:3420/"})) EXPECT_NE(n.find("n:3420"), std::string::npos);
  EXPECT_THROW(of({.ops = {"conv"}}), Error);
  EXPECT_THROW(of({.ops = {"linear/flash"}}), Error);
  EXPECT_THROW(of({.filter = "("}), Error);
  EXPECT_THROW(of({.filter = "nothing is called so"}), Error);
}

TEST(Select, ListsAsVlmestOpReadsThem) {
  const Selection s{.list = R"([{"op":"linear","m":8,"n":16,"k":32},{"op":"softmax","elements":8192}])"};
  EXPECT_EQ(names(select(s)),
            (std::vector<std::string>{"linear/cublaslt/m:8/n:16/k:32/cold", "softmax/own/elements:8192/cold"}));
  const auto refused = [](const char* list) { EXPECT_THROW(select({.list = list}), Error) << list; };
  refused("[");
  refused("[1]");
  refused(R"([{"op":"conv"}])");
  refused(R"([{"op":"linear","m":0,"n":1,"k":1}])");
}

std::vector<Point> shipped_list(const std::string& name) {
  std::ifstream in(std::string(VLMEST_SOURCE_DIR) + "/bench/points/" + name);
  return read_points(std::string(std::istreambuf_iterator<char>(in), {}), name);
}

/// Counted bytes are compared where no cache of 60 MiB can hide them.
TEST(ShippedLists, TrafficIsFourTimesTheCache) {
  for (const Point& p : shipped_list("traffic.json"))
    EXPECT_GE(predict(p, 90, nullptr).operands, Bytes(std::int64_t{4} * 60 << 20)) << name(p);
}

TEST(ShippedLists, AttentionAndDecodingAreWhatTheirNamesSay) {
  for (const Point& p : shipped_list("attention.json")) EXPECT_GT(p.op["q_len"].get<std::int64_t>(), 1) << name(p);
  for (const Point& p : shipped_list("decode.json")) EXPECT_EQ(p.op["q_len"].get<std::int64_t>(), 1) << name(p);
}

/// The variant that a table's row begins with is the one that `vlmest validate` takes for torch's.
TEST(Table, VariantsAndKeysAreThere) {
  for (const OpEntry& e : op_table) {
    EXPECT_FALSE(e.variants.front().empty()) << e.name;
    EXPECT_EQ(find_entry(e.name), &e) << "named twice";
    EXPECT_EQ(read_choice(std::string(e.name)).op, e.name);
  }
}

}  // namespace
}  // namespace vlmest::bench::points_test
