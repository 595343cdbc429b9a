// SPDX-License-Identifier: Apache-2.0
#include "calibrate_network.hpp"

#include <cmath>
#include <set>

#include <bench/fit/fit_network.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <vlmest/json/benchmark.hpp>
#include <vlmest/json/network.hpp>

#include "command.hpp"
#include "files.hpp"
#include "output/table.hpp"
#include "units.hpp"

namespace vlmest::tool {
namespace {

using parallel::MeasuredCollective;

struct Measured {
  std::vector<MeasuredCollective> collectives;
  std::set<std::string> machines;  ///< "2 NVIDIA H100, NCCL 2.28.9"
};

std::string machine(const nlohmann::json& context) {
  const auto say = [&](const char* key) {
    return context.is_object() && context.contains(key) && context[key].is_string() ? context[key].get<std::string>()
                                                                                    : "?";
  };
  return say("ranks") + " " + say("device") + ", NCCL " + say("nccl");
}

void read(const std::string& file, Measured& out) {
  const std::string where = file == "-" ? "standard input" : file;
  const nlohmann::json results = json::parse(read_file(file), where);
  const char* hint = "vlmest bench --suite nccl --output nccl.json writes them";
  if (!results.is_object() || !results.contains("benchmarks") || !results["benchmarks"].is_array())
    throw Error(where, "holds no benchmark results", hint);
  const std::size_t before = out.collectives.size();
  std::size_t i = 0;
  for (const auto& entry : results["benchmarks"]) {
    const std::string at = where + ".benchmarks[" + std::to_string(i++) + "]";
    if (json::nothing_measured(entry, at)) continue;
    if (!json::is_collective(entry)) throw Error(at, "is no collective", hint);
    out.collectives.push_back(json::read_collective(entry, at));
  }
  if (out.collectives.size() == before) throw Error(where, "no benchmark in it measured a collective", hint);
  out.machines.insert(machine(results.contains("context") ? results["context"] : nlohmann::json()));
}

/// Puts the curves into the first domain with room for their ranks.
void describe(const std::vector<fit::FittedCurve>& curves, const Measured& measured, nlohmann::ordered_json& network) {
  std::set<std::size_t> changed;
  for (const fit::FittedCurve& f : curves) {
    std::size_t of = 0;
    while (network["domains"][of]["gpus"].get<int>() < f.curve.ranks) ++of;
    nlohmann::ordered_json& domain = network["domains"][of];
    nlohmann::ordered_json kept = nlohmann::ordered_json::array();
    if (domain.contains("curves"))
      for (const auto& c : domain["curves"])
        if (c["op"] != name(f.curve.kind) || c["ranks"] != f.curve.ranks) kept.push_back(c);
    auto points = nlohmann::ordered_json::array();
    for (const auto& p : f.curve.points) points.push_back({p.bytes.value(), std::round(p.time.us() * 10) / 10});
    kept.push_back({{"op", name(f.curve.kind)}, {"ranks", f.curve.ranks}, {"bytes_us", points}});
    domain["curves"] = kept;
    changed.insert(of);
  }
  for (const std::size_t of : changed) {
    nlohmann::ordered_json& source = network["domains"][of]["source"];
    source = fmt::format("curves: vlmest bench --suite nccl on {}; before: {}", fmt::join(measured.machines, " and "),
                         source.get<std::string>());
  }
}

std::string percent(const fit::MeanError& e) { return e.points == 0 ? "" : fmt::format("{:.1f} %", e.mean() * 100); }
nlohmann::ordered_json json_of(const fit::NetworkError& e) {
  const auto one = [](const fit::MeanError& m) -> nlohmann::ordered_json {
    return {{"points", m.points}, {"mape_pct", std::round(m.mean() * 1e4) / 100}};
  };
  return {{"below_1_mib", one(e.small)}, {"from_1_mib", one(e.large)}};
}

}  // namespace

int calibrate_network(const NetworkCalibration& o, const Output& output) {
  Measured measured;
  for (const std::string& f : o.files) read(f, measured);
  const std::string file = network_file(o.network).string(), description = read_file(file);
  const parallel::Network before = json::parse_network(description, file);
  const std::vector<fit::FittedCurve> curves = fit::curves(measured.collectives, before);
  if (curves.empty())
    throw Error("calibrate",
                "none of the " + std::to_string(measured.collectives.size()) +
                    " collectives has a power of two of bytes, which curves are fitted to",
                "measure all points of vlmest bench --suite nccl");
  Table t{.head = {"collective", "ranks", "fitted", "least", "most", "held out below 1 MiB", "from 1 MiB",
                   before.name + " below 1 MiB", "from 1 MiB"},
          .rows = {}};
  auto list = nlohmann::ordered_json::array();
  for (const fit::FittedCurve& f : curves) {
    const auto& p = f.curve.points;
    t.rows.push_back({std::string(name(f.curve.kind)), std::to_string(f.curve.ranks), std::to_string(p.size()),
                      fmt::format("{:.3g} us", p.front().time.us()), fmt::format("{:.3g} GB/s", f.most.value * 1e-9),
                      percent(f.held_out.small), percent(f.held_out.large), percent(f.before.small),
                      percent(f.before.large)});
    list.push_back({{"op", name(f.curve.kind)},
                    {"ranks", f.curve.ranks},
                    {"fitted", p.size()},
                    {"least_us", significant(p.front().time.us())},
                    {"most_bytes_per_s", significant(f.most.value)},
                    {"held_out", json_of(f.held_out)},
                    {"network", json_of(f.before)}});
  }
  if (!o.save.empty()) {
    auto network = nlohmann::ordered_json::parse(description);
    if (!o.name.empty()) network["name"] = o.name;
    describe(curves, measured, network);
    Output{.file = o.save, .flag = "--save"}.write(network.dump(1) + "\n");
  }
  switch (output.format) {
    case Format::text: output.write(text(t)); break;
    case Format::markdown: output.write(markdown(t)); break;
    case Format::csv: output.write(csv(t)); break;
    case Format::json:
      output.write(nlohmann::ordered_json{{"schema_version", 1}, {"network", before.name}, {"curves", list}}.dump(2) +
                   "\n");
      break;
  }
  return Exit::done;
}

}  // namespace vlmest::tool
