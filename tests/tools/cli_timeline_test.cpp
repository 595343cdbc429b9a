// SPDX-License-Identifier: Apache-2.0
// --timeline: a trace whose counters add up and reach the peak, and the same as rows.
#include <map>

#include "called.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_timeline_test {
namespace {

const std::string small = "--config smolvlm-256m ";

struct Exported {
  Json estimate, trace;
};
Exported exported(const std::string& flags) {
  const Folder f;
  const std::string file = (f.path / "trace.json").string();
  Exported r;
  r.estimate = Json::parse(good(small + "--json " + flags + " --timeline '" + file + "'"));
  r.trace = Json::parse(slurp(file));
  return r;
}

TEST(Timeline, CountersReachThePeakOfEveryPhase) {
  for (const std::string flags : {"", "--phase train --lora 4", "--phase inference --batch 3", "--phase train --amp"}) {
    const Exported x = exported(flags);
    std::map<int, std::string> process;
    std::map<std::pair<int, std::string>, std::pair<double, double>> phases;
    std::map<int, std::vector<std::pair<double, std::int64_t>>> allocated;
    for (const auto& e : x.trace["traceEvents"]) {
      if (e["name"] == "process_name") process[e["pid"]] = e["args"]["name"];
      if (e["ph"] == "X" && e["tid"] == 1)
        phases[{e["pid"], e["name"]}] = {e["ts"], e["ts"].get<double>() + e["dur"].get<double>()};
      if (e["ph"] == "C" && e["name"] == "allocated") allocated[e["pid"]].emplace_back(e["ts"], e["args"]["bytes"]);
    }
    EXPECT_EQ(phases.size(), flags.empty() ? 5u : flags.find("train") != std::string::npos ? 3u : 2u);
    for (const auto& [key, span] : phases) {
      std::int64_t most = 0;
      for (const auto& [at, bytes] : allocated[key.first])
        if (at >= span.first && at < span.second) most = std::max(most, bytes);
      EXPECT_EQ(x.estimate[process[key.first]][key.second]["peak_bytes"], most) << flags << " " << key.second;
    }
  }
}

TEST(Timeline, RolesAddUpAtAllTimes) {
  const Exported x = exported("");
  std::map<int, std::map<std::string, std::int64_t>> now;
  std::map<int, std::map<double, std::vector<Json>>> changes;
  for (const auto& e : x.trace["traceEvents"])
    if (e["ph"] == "C") changes[e["pid"]][e["ts"]].push_back(e);
  for (const auto& [pid, at] : changes)
    for (const auto& [ts, events] : at) {
      // Ops without time share a time stamp; the last of each counter is what holds from there on.
      for (const auto& e : events) now[pid][e["name"]] = e["args"]["bytes"];
      std::int64_t sum = 0;
      for (const auto& [name, bytes] : now[pid])
        if (name != "allocated" && name != "reserved") sum += bytes;
      EXPECT_EQ(sum, now[pid]["allocated"]) << pid << " at " << ts;
      EXPECT_LE(now[pid]["allocated"], now[pid]["reserved"]);
    }
  EXPECT_EQ(now.size(), 2u);
}

TEST(Timeline, SlicesNestAndNameTheirTensors) {
  const Exported x = exported("--phase train --timeline-min 4MiB");
  std::map<int, std::vector<std::pair<double, double>>> tracks;
  std::set<std::string> roles;
  int tensors = 0;
  for (const auto& e : x.trace["traceEvents"]) {
    if (e["ph"] != "X") continue;
    tracks[e["tid"]].emplace_back(e["ts"], e["ts"].get<double>() + e["dur"].get<double>());
    if (e["tid"] < 10) continue;
    has(e["args"], "/scope:string /role:string /shape:array /dtype:string /bytes:int");
    EXPECT_GE(e["args"]["bytes"], 4 << 20);
    roles.insert(e["args"]["role"]);
    ++tensors;
  }
  EXPECT_GT(tensors, 100);
  for (const char* r : {"weight", "activation", "gradient", "optimizer_state"}) EXPECT_TRUE(roles.contains(r)) << r;
  for (auto& [track, slices] : tracks) {
    std::stable_sort(slices.begin(), slices.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : a.second > b.second;
    });
    std::vector<double> open;
    for (const auto& [from, to] : slices) {
      while (!open.empty() && open.back() <= from + 1e-6) open.pop_back();
      if (!open.empty()) {
        EXPECT_LE(to, open.back() + 1e-6) << "track " << track;
      }
      open.push_back(to);
    }
  }
}

TEST(Timeline, AsRows) {
  const Folder f;
  const std::string file = (f.path / "memory.csv").string();
  const Json e = Json::parse(good(small + "--json --timeline '" + file + "'"));
  std::istringstream lines(slurp(file));
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line,
            "node,time_us,duration_us,phase,scope,op,allocated_bytes,reserved_bytes,weight_bytes,buffer_bytes,"
            "input_bytes,activation_bytes,kv_cache_bytes,workspace_bytes,gradient_bytes,optimizer_state_bytes");
  std::map<std::string, std::int64_t> most;
  while (std::getline(lines, line)) {
    std::vector<std::string> cells;
    std::istringstream row(line);
    for (std::string c; std::getline(row, c, ',');) cells.push_back(c);
    ASSERT_EQ(cells.size(), 16u) << line;
    std::int64_t sum = 0;
    for (std::size_t i = 8; i < 16; ++i) sum += std::stoll(cells[i]);
    EXPECT_EQ(sum, std::stoll(cells[6])) << line;
    most[cells[3]] = std::max(most[cells[3]], sum);
  }
  for (const auto& [phase, bytes] : most) {
    const char* part = phase == "prefill" || phase == "decode" ? "inference" : "training";
    EXPECT_EQ(e[part][phase]["peak_bytes"], bytes) << phase;
  }
  EXPECT_EQ(most.size(), 5u);
}

TEST(Timeline, GoesWhereItIsSent) {
  const Folder f;
  const Json alone = Json::parse(good(small + "--phase inference --timeline -"));
  EXPECT_TRUE(alone.contains("traceEvents"));
  const std::string report = (f.path / "report").string();
  EXPECT_EQ(Json::parse(good(small + "--phase inference --timeline - --output '" + report + "'")), alone);
  EXPECT_EQ(slurp(report), good(small + "--phase inference"));
  const Called r = run(small + "--timeline /nowhere/at/all.json");
  EXPECT_EQ(r.code, 3);
  EXPECT_EQ(r.err.rfind("error: --timeline: cannot write ", 0), 0u);
}

}  // namespace
}  // namespace cli::cli_timeline_test
#endif
