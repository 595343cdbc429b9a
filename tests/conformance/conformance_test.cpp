// SPDX-License-Identifier: Apache-2.0
// Every family's graph against recorded runs: the same ops in the same order and modules, the same outputs, the same
// bytes alive before, after and inside each op, as many kernels. tests/data/traces/index.json says how each trace was
// taken and lists what is not explained; a difference that comes or goes fails.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <ostream>

#include <gtest/gtest.h>

#include <vlmest/analysis/work.hpp>
#include <vlmest/json/device.hpp>

#include "../asked_for.hpp"
#include "compact_trace.hpp"
#include "compare.hpp"
#include "recorded_model.hpp"

namespace conformance::conformance_test {
namespace {

const std::string data = VLMEST_SOURCE_DIR "/tests/data/";

const std::map<std::string, vlmest::Optimizer> optimizers{{"adamw", vlmest::Optimizer::adamw},
                                                          {"adamw-fused", vlmest::Optimizer::adamw_fused},
                                                          {"sgd-momentum", vlmest::Optimizer::sgd_momentum},
                                                          {"adafactor", vlmest::Optimizer::adafactor}};

struct Case {
  std::string name, phase;
  Recording recording;
  std::map<std::string, std::size_t> known;  ///< "kind op" -> how often
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name << " " << c.phase; }

std::vector<Case> cases() {
  std::vector<Case> r;
  for (const auto& e : read_json(data + "traces/index.json")) {
    Case c{.name = e.at("trace")};
    Recording& k = c.recording;
    const bool alone = e.contains("language_model");
    k.config = data +
               (alone ? "language_models/" + e.at("language_model").get<std::string>()
                      : "configs/" + e.at("config").get<std::string>()) +
               ".json";
    k.part = e.value("part", "");
    k.batch = e.at("batch");
    k.text = e.at("text");
    k.new_tokens = e.value("new_tokens", 2);
    k.target = e.value("target", 0);
    k.instruction = e.value("instruction", 0);
    k.tied_head = e.value("tied_head", false);
    k.dtype = vlmest::parse_dtype(e.at("dtype").get<std::string>());
    k.eager = e.at("attention") == "eager";
    k.all_logits = e.at("logits") == "all";
    k.layers = e.contains("layers") ? std::optional<int>(e.at("layers").get<int>()) : std::nullopt;
    k.dropout = e.value("dropout", false);
    k.training = e.contains("optimizer");
    if (k.training) k.optimizer = optimizers.at(e.at("optimizer").get<std::string>());
    k.vision_frozen = e.value("freeze", "") == "vision";
    k.checkpointing = e.value("checkpointing", "none") == "full";
    k.lora_rank = e.value("lora", 0);
    k.lora_targets = e.value("lora_targets", std::vector<std::string>{});
    if (e.contains("packages"))
      for (const auto& package : e.at("packages"))
        k.packages.add(vlmest::value_of<vlmest::KernelPackage>(package.get<std::string>()).value());
    k.tile_several = e.value("tile_several", true);
    k.whole_images = e.value("tiling", "automatic") == "never";
    k.cut_images = e.value("tiling", "") == "automatic";
    k.square = e.value("max_image_size", 0);
    k.num_crops = e.value("num_crops", 0);
    if (e.contains("pixel_mask")) k.pixel_mask = vlmest::parse_dtype(e.at("pixel_mask").get<std::string>());
    k.frames = e.value("frames", 0);
    if (k.frames > 0) k.frame = {e.at("frame").at(0), e.at("frame").at(1)};
    k.audio_seconds = e.value("audio_seconds", 0.0);
    k.clips = e.value("clips", 1);
    k.sequences.clear();
    auto sizes = [](const nlohmann::json& list) {
      std::vector<vlmest::ImageSize> s;
      for (const auto& i : list) s.push_back({i.at(0), i.at(1)});
      return s;
    };
    if (e.contains("sequences"))
      for (const auto& s : e.at("sequences")) k.sequences.push_back(sizes(s));
    else
      k.sequences.push_back(sizes(e.at("images")));
    for (const auto& phase : e.at("phases")) {
      c.phase = phase;
      c.known.clear();
      if (e.contains("known"))
        for (const auto& d : e.at("known"))
          if (d.at("phase") == phase)
            c.known[d.at("kind").get<std::string>() + " " + d.at("op").get<std::string>()] = d.at("count");
      r.push_back(c);
    }
  }
  return r;
}

/// A trace, and the graph of what it was taken of: the recording is told where the trace's router sent tokens.
struct Recorded {
  std::string name;
  std::vector<TraceRow> rows;
  vlmest::Builder b;

  std::vector<TraceRow> of(const std::string& phase) const {
    std::vector<TraceRow> r;
    for (const TraceRow& t : rows)
      if (t.phase == phase) r.push_back(t);
    return r;
  }
};

/// That of a case. The phases of a trace follow each other, and one graph does for all.
const Recorded& recorded(const Case& c) {
  static std::unique_ptr<Recorded> last;
  if (last && last->name == c.name) return *last;
  last = nullptr;
  auto r = std::make_unique<Recorded>();
  r->name = c.name;
  r->rows = read_compact_trace(data + "traces/" + c.name + ".tsv.gz");
  Recording recording = c.recording;
  recording.routed = routed_rows(r->rows);
  build(r->b, recording);
  last = std::move(r);
  return *last;
}

class Conformance : public testing::TestWithParam<Case> {};

TEST_P(Conformance, GraphRunsWhatWasRecorded) {
  const Case& c = GetParam();
  const Recorded& r = recorded(c);
  const vlmest::Graph& graph = r.b.graph;
  const std::vector<TraceRow> trace = r.of(c.phase);
  ASSERT_FALSE(trace.empty());
  const Comparison found = compare(rows_of(graph, c.phase), trace);
  std::map<std::string, std::size_t> differences;
  std::string text;
  for (const auto& m : found.mismatches) {
    // A backward and a step run outside of modules: the recorder has no module for their ops.
    if (m.kind == "module" && (c.phase == "backward" || c.phase == "step")) continue;
    ++differences[m.kind + " " + m.op];
    if (text.size() < 20000) text += m.text() + "\n";
  }
  EXPECT_EQ(differences, c.known) << found.mismatches.size() << " differences in " << found.ops << " ops:\n" << text;
  EXPECT_GE(found.matched, trace.size() / 2);
}

// Allocated bytes hold each request rounded up to 512 and, above 1 MiB, up to 1 MiB of a block that was not worth
// splitting. Older traces have no requested bytes: for them this is the check of what is alive.
TEST_P(Conformance, AllocatedBytesHoldWhatIsAlive) {
  const Case& c = GetParam();
  if (c.phase != "prefill") return;  // a decode step frees what the recorder's prefill left, at unknown sizes
  const Recorded& r = recorded(c);
  const vlmest::Graph& graph = r.b.graph;
  const std::vector<TraceRow> trace = r.of(c.phase);
  ASSERT_FALSE(trace.empty());
  constexpr std::int64_t mib = 1 << 20;
  const auto rounded = [](vlmest::Bytes n) { return (n.value() + 511) / 512 * 512; };
  const auto unsplit = [&](vlmest::Bytes n) { return rounded(n) + (rounded(n) > mib ? mib : 0); };
  const auto low = rows_of(graph, c.phase, rounded), high = rows_of(graph, c.phase, unsplit);
  const std::int64_t begin = trace.front().before;
  std::size_t checked = 0;
  for (const auto& [i, j] : align(low, trace)) {
    if (i < 0 || j < 0) continue;
    const auto& l = low[static_cast<std::size_t>(i)];
    const auto& h = high[static_cast<std::size_t>(i)];
    const auto& t = trace[static_cast<std::size_t>(j)];
    // Its scratch is named, or that it comes in another order.
    if (c.known.contains("bytes " + l.op) || c.known.contains("graph " + l.op)) continue;
    const auto within = [&](std::int64_t at_least, std::int64_t measured, std::int64_t at_most) {
      EXPECT_LE(at_least, measured - begin) << l.module << " " << l.op << ", trace row " << t.index;
      EXPECT_GE(at_most, measured - begin) << l.module << " " << l.op << ", trace row " << t.index;
    };
    within(l.before, t.before, h.before);
    within(l.after, t.after, h.after);
    within(l.peak - 512, t.peak, h.peak);  // two pieces of scratch may share what is rounded up here
    if (HasFailure()) return;
    ++checked;
  }
  EXPECT_GE(checked, trace.size() / 2);
}

INSTANTIATE_TEST_SUITE_P(Traces, Conformance, testing::ValuesIn(parameters_of("Traces/Conformance", cases)),
                         [](const auto& i) {
                           std::string s = i.param.name + "_" + i.param.phase;
                           for (char& ch : s)
                             if (!std::isalnum(static_cast<unsigned char>(ch))) ch = '_';
                           return s;
                         });

/// The times that a device's file predicts for these layers, against the kernels that ran (gpu_time.json says how they
/// were recorded). The file's parameters were fitted to the single kernels of these runs, not to their sums.
TEST(GpuTime, OfTheRecordedLayersIsPredicted) {
  const nlohmann::json recorded = read_json(data + "traces/gpu_time.json");
  const std::string name = recorded.at("device");
  const vlmest::Device device = vlmest::load_device(VLMEST_SOURCE_DIR "/models/device/" + name + ".json");
  std::vector<double> errors;
  for (const Case& c : cases()) {
    const auto& times = recorded.at("us");
    if (!times.contains(c.name) || !times.at(c.name).contains(c.phase)) continue;
    vlmest::Builder b;
    build(b, c.recording);
    const vlmest::Graph& g = b.graph;
    const auto of_ops = vlmest::op_works(g, device);
    for (const vlmest::Phase& p : g.phases) {
      if (vlmest::name(p.kind) != c.phase) continue;
      const double us = vlmest::work(g, p.first, p.last, of_ops).time.us();
      const double error = us / times.at(c.name).at(c.phase).get<double>() - 1;
      EXPECT_LT(std::abs(error), 0.2) << c.name << " " << c.phase << ": " << us << " us";
      errors.push_back(std::abs(error));
    }
  }
  ASSERT_GE(errors.size(), 60u);
  std::nth_element(errors.begin(), errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2), errors.end());
  EXPECT_LT(errors[errors.size() / 2], 0.05);
}

}  // namespace
}  // namespace conformance::conformance_test
