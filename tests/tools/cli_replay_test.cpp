// SPDX-License-Identifier: Apache-2.0
// A recorded memory snapshot through the command: exact, what its peak was, other settings, and files that are none.
#include <algorithm>

#include "called.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_replay_test {
namespace {

const std::string recorded = VLMEST_SOURCE_DIR "/docs/examples/memory_snapshot.json";

TEST(Replay, ReproducesEveryBlock) {
  const Json r = Json::parse(good("replay " + recorded + " --json"));
  EXPECT_TRUE(r["exact"]);
  const Json segments = Json::parse(slurp(recorded))["segments"];
  ASSERT_EQ(r["segments"].size(), segments.size());
  for (std::size_t i = 0; i < segments.size(); ++i) {
    for (const char* key : {"address", "total_size", "allocated_size", "active_size", "segment_type", "stream"})
      EXPECT_EQ(r["segments"][i][key], segments[i][key]) << key;
    ASSERT_EQ(r["segments"][i]["blocks"].size(), segments[i]["blocks"].size());
    for (std::size_t k = 0; k < segments[i]["blocks"].size(); ++k)
      for (const char* key : {"address", "size", "requested_size", "state"})
        EXPECT_EQ(r["segments"][i]["blocks"][k][key], segments[i]["blocks"][k][key]) << key;
  }
  EXPECT_EQ(r["peak"]["reserved_bytes"].get<std::int64_t>(), r["peak"]["allocated_bytes"].get<std::int64_t>() +
                                                                 r["peak"]["releasable_bytes"].get<std::int64_t>() +
                                                                 r["peak"]["split_bytes"].get<std::int64_t>());
}

TEST(Replay, TriesOtherSettings) {
  const Json r = Json::parse(
      good("replay " + recorded + " --json --alloc-conf expandable_segments:True --alloc-conf max_split_size_mb:64"));
  ASSERT_EQ(r["with_settings"].size(), 2u);
  EXPECT_LT(r["with_settings"][0]["peak_reserved_bytes"], r["with_settings"][1]["peak_reserved_bytes"]);
  EXPECT_NE(good("replay " + recorded + " --alloc-conf expandable_segments:True").find("every block as recorded"),
            std::string::npos);
}

TEST(Replay, TellsWhatDiffersOrIsWrong) {
  Json other = Json::parse(slurp(recorded));
  Json& events = other["device_traces"][0];
  const auto last = std::find_if(events.rbegin(), events.rend(), [](const Json& e) { return e["action"] == "alloc"; });
  ASSERT_NE(last, events.rend());
  (*last)["size"] = (*last)["size"].get<std::int64_t>() + (4 << 20);
  const Called r = run("replay -", other.dump());
  EXPECT_EQ(r.code, 3) << r.out;
  EXPECT_EQ(r.err.rfind("error: event ", 0), 0u) << r.err;
  EXPECT_EQ(run("replay -", "[]").code, 3);
  refused("replay -", 3, "standard input: the file is empty", "write it with torch.cuda.memory._dump_snapshot()");
  EXPECT_EQ(run("replay " + recorded + " --alloc-conf nonsense:1").code, 2);
  EXPECT_EQ(run("replay").code, 2);
}

}  // namespace
}  // namespace cli::cli_replay_test
#endif
