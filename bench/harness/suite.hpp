// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <bench/op/attention_points.hpp>
#include <bench/op/fft_points.hpp>
#include <bench/op/linear_points.hpp>
#include <bench/op/memory_points.hpp>
#include <bench/op/table.hpp>

/// Lists of points for a purpose. The same name and seed give the same list everywhere.
namespace vlmest::bench {

enum class Suite { quick, ceilings, calibrate, heldout };

inline constexpr std::array<std::pair<std::string_view, Suite>, 4> suite_names{{{"quick", Suite::quick},
                                                                                {"ceilings", Suite::ceilings},
                                                                                {"calibrate", Suite::calibrate},
                                                                                {"heldout", Suite::heldout}}};

inline constexpr std::uint64_t calibration_seed = 1;
inline constexpr std::uint64_t heldout_seed = 2;

namespace suites {

/// Points in order, each once.
class List {
 public:
  void add(const OpJson& op, Cache cache = Cache::cold, const std::string& variant = {}) {
    Point p = make_point(op, "suite", variant, cache);
    if (seen_.insert(name(p)).second) points_.push_back(std::move(p));
  }
  void add_all(const std::vector<OpJson>& ops, Cache cache = Cache::cold) {
    for (const OpJson& op : ops) add(op, cache);
  }
  /// These are in the list already, so to speak.
  void exclude(const std::vector<Point>& points) {
    for (const Point& p : points) seen_.insert(name(p));
  }
  std::vector<Point> take() { return std::move(points_); }

 private:
  std::vector<Point> points_;
  std::set<std::string> seen_;
};

/// A point or two of each kind of op: does everything run, and how far off is the estimate?
inline std::vector<Point> quick() {
  List l;
  for (const std::int64_t m : {1, 576, 4096}) l.add(linear_points::linear(m, 11008, 4096, "bf16"));
  l.add(linear_points::linear(4096, 3420, 1280, "bf16"));
  l.add(attention_points::sdpa(1, 16, 16, 576, 576, 64, false));
  l.add(attention_points::sdpa(1, 32, 32, 4096, 4096, 128, true));
  l.add(attention_points::sdpa(16, 32, 8, 1, 8192, 128, false));
  l.add(fft_points::grid("rfft2", 4096, 24, 24));
  l.add(fft_points::row("fft", 4096, 4096));
  for (const char* op : {"copy", "read", "write", "add", "silu_mul"})
    l.add(memory_points::stream(op, std::int64_t{1} << 27));
  for (const char* op : {"rmsnorm", "layernorm", "softmax"}) l.add(memory_points::rows(op, 16384, 4096));
  l.add({{"op", "rope"}, {"rows", 4096}, {"heads", 32}, {"kv_heads", 8}, {"head_dim", 128}, {"dtype", "bf16"}});
  l.add({{"op", "embedding"}, {"rows", 16384}, {"width", 4096}, {"vocab", 152064}, {"dtype", "bf16"}});
  l.add({{"op", "cross_entropy"}, {"rows", 4096}, {"vocab", 152064}, {"dtype", "fp32"}});
  l.add(OpJson{{"op", "launch"}}, Cache::hot, "graph");
  return l.take();
}

/// What the device can do at best: streams far larger than the L2 cache and well inside it, large products in each
/// type, and the cost of launches.
inline std::vector<Point> ceilings() {
  List l;
  for (const char* op : {"copy", "read", "write"})
    for (const std::int64_t n : {std::int64_t{1} << 29, std::int64_t{1} << 31}) l.add(memory_points::stream(op, n));
  l.add(memory_points::stream("copy", std::int64_t{1} << 31), Cache::cold, "memcpy");
  l.add(memory_points::stream("write", std::int64_t{1} << 31), Cache::cold, "memset");
  for (const char* op : {"copy", "read", "write"})
    for (const std::int64_t mib : {4, 8, 16, 24}) {
      // A copy touches two tensors, so that each gets half.
      const bool copies = std::string_view(op) == "copy";
      l.add(memory_points::stream(op, (mib << 20) / (copies ? 4 : 2)), Cache::hot);
    }
  for (const char* dtype : {"bf16", "fp16", "tf32", "fp8"}) {
    l.add(linear_points::linear(8192, 8192, 8192, dtype));
    l.add(linear_points::linear(4096, 8192, 16384, dtype));
  }
  l.add(linear_points::linear(16384, 16384, 16384, "bf16"));
  l.add(OpJson{{"op", "launch"}}, Cache::hot, "graph");
  l.add(OpJson{{"op", "launch"}}, Cache::hot, "stream");
  l.add(OpJson{{"op", "launch"}}, Cache::hot, "host");
  return l.take();
}

/// The sweep that efficiency curves are fitted to, after the ceilings.
inline std::vector<Point> sweep() {
  Dice dice(calibration_seed);
  List l;
  l.exclude(ceilings());
  l.add_all(linear_points::grid());
  l.add_all(linear_points::waves());
  l.add_all(linear_points::misaligned());
  l.add_all(linear_points::types());
  l.add_all(linear_points::batched());
  l.add_all(linear_points::random(dice, 1500));
  l.add_all(attention_points::prefill());
  l.add_all(attention_points::decode());
  l.add_all(attention_points::random(dice, 200));
  l.add_all(fft_points::sweep());
  l.add_all(fft_points::random(dice, 150));
  l.add_all(memory_points::streams());
  l.add_all(memory_points::normalisations());
  l.add_all(memory_points::model_ops());
  l.add_all(memory_points::random(dice, 100));
  l.add_all(linear_points::random(dice, 4000));  // products have the most kinds of kernels to tell apart
  l.add_all(memory_points::cached(), Cache::hot);
  std::vector<Point> r = l.take();
  // In random order, so that a drift of the clock is no trend over sizes and a spent budget leaves no class out.
  for (std::size_t i = r.size(); i > 1; --i)
    std::swap(r[i - 1], r[static_cast<std::size_t>(dice.uniform() * static_cast<double>(i))]);
  return r;
}

inline std::vector<Point> calibrate() {
  std::vector<Point> r = ceilings();
  for (Point& p : sweep()) r.push_back(std::move(p));
  return r;
}

/// Random points, none of them in the calibration, to tell what the fit is worth.
inline std::vector<Point> heldout(std::uint64_t seed = heldout_seed) {
  if (seed == calibration_seed)
    throw Error("--seed", "is that of the calibration, so that nothing would be held out",
                "give any number but " + std::to_string(calibration_seed));
  Dice dice(seed);
  List l;
  l.exclude(calibrate());
  l.add_all(linear_points::random(dice, 1000));
  l.add_all(attention_points::random(dice, 200));
  l.add_all(fft_points::random(dice, 200));
  l.add_all(memory_points::random(dice, 200));
  return l.take();
}

}  // namespace suites

/// Throws Error for a held-out list with the calibration's own seed.
inline std::vector<Point> points(Suite suite, std::uint64_t seed) {
  switch (suite) {
    case Suite::quick: return suites::quick();
    case Suite::ceilings: return suites::ceilings();
    case Suite::calibrate: return suites::calibrate();
    case Suite::heldout: return suites::heldout(seed);
  }
  return {};
}

}  // namespace vlmest::bench
