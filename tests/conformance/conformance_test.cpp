// SPDX-License-Identifier: Apache-2.0
// Every family's graph against recorded runs: the same ops in the same order and modules, the same outputs, the same
// bytes alive before, after and inside each op, as many kernels. tests/data/traces/index.json says how each trace was
// taken and lists what is not explained; a difference that comes or goes fails.
#include <map>
#include <ostream>

#include <gtest/gtest.h>

#include "compact_trace.hpp"
#include "compare.hpp"
#include "recorded_model.hpp"

namespace conformance {
namespace {

const std::string data = VLMEST_SOURCE_DIR "/tests/data/";

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
    k.config = data + "configs/" + e.at("config").get<std::string>() + ".json";
    k.batch = e.at("batch");
    k.text = e.at("text");
    k.dtype = vlmest::parse_dtype(e.at("dtype").get<std::string>());
    k.eager = e.at("attention") == "eager";
    k.all_logits = e.at("logits") == "all";
    k.layers = e.contains("layers") ? std::optional<int>(e.at("layers").get<int>()) : std::nullopt;
    k.dropout = e.value("dropout", false);
    k.tile_several = e.value("tile_several", true);
    k.sequences.clear();
    auto sizes = [](const nlohmann::json& list) {
      std::vector<vlmest::ImageSize> s;
      for (const auto& i : list) s.push_back({i.at(0), i.at(1)});
      return s;
    };
    if (e.contains("sequences"))
      for (const auto& s : e.at("sequences")) k.sequences.push_back(sizes(s));
    else k.sequences.push_back(sizes(e.at("images")));
    for (const auto& phase : e.at("phases")) {
      c.phase = phase;
      c.known.clear();
      if (e.contains("known"))
        for (const auto& d : e.at("known"))
          if (d.at("phase") == phase) c.known[d.at("kind").get<std::string>() + " " + d.at("op").get<std::string>()] = d.at("count");
      r.push_back(c);
    }
  }
  return r;
}

class Conformance : public testing::TestWithParam<Case> {};

TEST_P(Conformance, GraphRunsWhatWasRecorded) {
  const Case& c = GetParam();
  vlmest::Builder b;
  build(b, c.recording);
  std::vector<TraceRow> trace;
  for (auto& t : read_compact_trace(data + "traces/" + c.name + ".tsv"))
    if (t.phase == c.phase) trace.push_back(std::move(t));
  ASSERT_FALSE(trace.empty());
  const Comparison found = compare(rows_of(b.graph, c.phase.c_str()), trace);
  std::map<std::string, std::size_t> differences;
  std::string text;
  for (const auto& m : found.mismatches) {
    ++differences[m.kind + " " + m.op];
    if (text.size() < 3000) text += m.text() + "\n";
  }
  EXPECT_EQ(differences, c.known) << found.mismatches.size() << " differences in " << found.ops << " ops:\n" << text;
  EXPECT_GE(found.matched, trace.size() / 2);
}

INSTANTIATE_TEST_SUITE_P(Traces, Conformance, testing::ValuesIn(cases()), [](const auto& i) {
  std::string s = i.param.name + "_" + i.param.phase;
  for (char& ch : s)
    if (!std::isalnum(static_cast<unsigned char>(ch))) ch = '_';
  return s;
});

}  // namespace
}  // namespace conformance
