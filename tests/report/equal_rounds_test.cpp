// SPDX-License-Identifier: Apache-2.0
// A training loop is left where its next round is known to be equal: it then reserves what the loop does that runs all
// rounds, and each storage lies where the next round puts it.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/allocator/run_script.hpp>
#include <vlmest/json/model.hpp>
#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/transform/training_step.hpp>

#include "../block_places.hpp"
#include "../sanitizer.hpp"

namespace vlmest::equal_rounds_test {
namespace {

using allocator::AllocatorConfig;
using allocator::Process;
using namespace literals;

/// All but a classifier and DiffusionGemma, which return no loss, and Moondream, whose training is its own.
std::vector<Vlm> models() {
  std::vector<Vlm> r;
  for (const auto& f : std::filesystem::directory_iterator(std::string(VLMEST_SOURCE_DIR) + "/models/vlm")) {
    const std::string name = f.path().stem().string();
    std::ifstream in(f.path());
    if (name != "shieldgemma-2-4b" && name != "moondream2" && !name.starts_with("diffusiongemma-"))
      r.push_back(json::read_model(nlohmann::json::parse(in), name));
  }
  return r;
}

const auto unmeasured = [](const allocator::PhaseMemory&) {};
const allocator::Unobserved unobserved;

/// What a loop reserves until a round adds nothing, and how many of all the rounds that there may be were said to be
/// equal to the one behind them.
struct Loop {
  Bytes reserved{};
  int said = 0;
};
Loop all_rounds(const Graph& g, const Timeline& timeline, const AllocatorConfig& config) {
  Process process(g, timeline, 90, config);
  allocator::Walk walk(g);
  walk.take(walk.steps(g.loop.once), process, unobserved, unmeasured);
  const auto round = walk.steps(g.loop.round);
  Loop r;
  bool equal = false, ended = false;
  for (int i = 1; i <= g.loop.most_rounds; ++i) {
    const auto before = block_places(process);
    const Bytes reserved = walk.reserved();
    process.begin_round();
    walk.take(round, process, unobserved, unmeasured);
    if (equal) {
      EXPECT_EQ(block_places(process), before);
      EXPECT_EQ(walk.reserved(), reserved);
    }
    equal = i > 1 && process.next_round_is_equal();
    r.said += equal;
    if (!ended) r.reserved = walk.reserved();
    ended = ended || (i >= g.loop.least_rounds && walk.reserved() == reserved);
  }
  return r;
}

TEST(EqualRounds, ReserveWhatAllDo) {
  int said = 0;
  for (const Vlm& vlm : some_of(models(), 4)) {
    SCOPED_TRACE(vlm.name);
    Builder b;
    const Plan plan;
    Context c{b, plan, stack_of(plan)};
    build_training(c, vlm, make_sequences(vlm, plan));
    const Timeline timeline(b.graph);
    for (const AllocatorConfig& config :
         {AllocatorConfig{}, AllocatorConfig{.total_memory = Bytes(std::int64_t{1} << 50), .expandable_segments = true},
          AllocatorConfig{.max_split_size = 64_MiB}}) {
      const Loop all = all_rounds(b.graph, timeline, config);
      Process process(b.graph, timeline, 90, config);
      EXPECT_EQ(allocator::walk(b.graph.loop, b.graph, process, unobserved, unmeasured), all.reserved);
      said += all.said;
    }
  }
  EXPECT_GT(said, 0);
}

}  // namespace
}  // namespace vlmest::equal_rounds_test
