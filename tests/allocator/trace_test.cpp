// SPDX-License-Identifier: Apache-2.0
// The allocator against what torch 2.11 really handed out, request by request.
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include <vlmest/allocator/caching_allocator.hpp>

namespace vlmest::trace_test {
namespace {
using namespace allocator;

struct Event {
  std::string kind, id;
  std::int64_t bytes = 0;
};

std::vector<Event> read(const std::string& name) {
  std::ifstream in(std::string(VLMEST_SOURCE_DIR) + "/tests/allocator/data/" + name);
  std::vector<Event> events;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    Event e;
    words >> e.kind;
    if (e.kind != "weight" && e.kind != "scratch") words >> e.id;
    if (e.kind != "free") words >> e.bytes;
    EXPECT_FALSE(words.fail()) << line;
    events.push_back(e);
  }
  return events;
}

TEST(Trace, EveryResultOccupiesWhatItOccupiedInTorch) {
  const auto events = read("glm-4.1v-9b_prefill.txt");
  CachingAllocator a;
  for (const auto& e : events)
    if (e.kind == "weight") a.alloc(Bytes(e.bytes));
  int rows = 0, unsplit = 0;
  for (const bool recorded : {false, true}) {  // the record was taken at the second run
    std::map<std::string, Block> live;
    Bytes before = a.allocated(), rounded;
    for (const auto& e : events) {
      if (e.kind == "alloc") {
        ASSERT_TRUE(live.emplace(e.id, a.alloc(Bytes(e.bytes))).second) << e.id << " is live";
        rounded += round_size(a.config(), Bytes(e.bytes));
      } else if (e.kind == "scratch") {
        a.free(a.alloc(Bytes(e.bytes)));
      } else if (e.kind == "free") {
        ASSERT_EQ(live.count(e.id), 1u) << e.id;
        a.free(live.at(e.id));
        live.erase(e.id);
        before = a.allocated();
      } else if (e.kind == "occupied") {
        if (recorded) {
          EXPECT_EQ(a.allocated() - before, Bytes(e.bytes)) << "op " << e.id;
          ++rows;
          unsplit += rounded != Bytes(e.bytes);
        }
        before = a.allocated();
        rounded = Bytes();
      }
    }
    for (const auto& [id, block] : live) a.free(block);
  }
  EXPECT_EQ(rows, 412);
  EXPECT_EQ(unsplit, 5) << "rows where torch left a remainder unsplit, which rounding alone would miss";
}
}  // namespace
}  // namespace vlmest::trace_test
