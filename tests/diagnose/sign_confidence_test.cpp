// SPDX-License-Identifier: Apache-2.0
// The counts that the confidence of signs is taken from are those of the open half of the public failures.
#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <vlmest/diagnose/evidence/oom/reader.hpp>
#include <vlmest/diagnose/evidence/text/run_signs.hpp>
#include <vlmest/diagnose/verdict/confidence.hpp>
#include <vlmest/diagnose/verdict/judge_signs.hpp>

namespace vlmest::diagnose::sign_confidence_test {
namespace {

/// Words of the collection for vlmest's own.
std::string ours(const std::string& truth) {
  static const std::map<std::string, std::string> words{{"vision_tokens", "vision_tiles"},
                                                        {"optimizer_states", "optimizer_state"},
                                                        {"dataloader", "host_memory"},
                                                        {"rollout_engine", "engine_budget"}};
  const auto found = words.find(truth);
  return found == words.end() ? truth : found->second;
}

TEST(SignConfidence, IsCountedOnTheOpenHalf) {
  std::array<Counted, oom_confidence::signs.size()> counts{};
  std::set<RunSign> known;  // the first text of a sign is what its rule was read off
  const auto texts = [](const std::string& name) {
    std::ifstream in(std::string(VLMEST_SOURCE_DIR) + "/tests/data/corpus/" + name);
    return nlohmann::json::parse(in);
  };
  const auto count = [&](const nlohmann::json& c, bool reasons) {
    if (!reasons && c.at("true_cause") == "unknown") return;
    std::string text;
    for (const auto& line : c.at("evidence")) text += line.get<std::string>() + "\n";
    const auto messages = find_oom_messages(text);
    if (std::any_of(messages.begin(), messages.end(), [](const OomMessage& m) { return m.has_numbers; })) return;
    const auto signs = find_run_signs(text);
    if (signs.empty()) return;
    const auto failed = std::find_if(signs.begin(), signs.end(), [](const auto& f) { return tells_failure(f.sign); });
    const FoundSign& first = failed == signs.end() ? signs.front() : *failed;
    if ((traits(first.sign).tells == SignTells::reasons) != reasons) return;
    if (!reasons && known.insert(first.sign).second) return;
    const auto v = judge_signs(signs, {}, true, trains_with_engine(text));
    ASSERT_TRUE(v);
    Counted& n = counts[static_cast<std::size_t>(traits(first.sign).tells)];
    ++n.of;
    n.right += name(v->cause) == ours(c.at("true_cause"));
  };
  for (const auto& c : texts("open.json")) count(c, false);
  for (const auto& c : texts("open_3.json")) count(c, true);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    EXPECT_EQ(oom_confidence::signs[i].right, counts[i].right) << i;
    EXPECT_EQ(oom_confidence::signs[i].of, counts[i].of) << i;
  }
}

}  // namespace
}  // namespace vlmest::diagnose::sign_confidence_test
