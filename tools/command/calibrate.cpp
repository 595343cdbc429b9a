// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <memory>
#include <optional>
#include <string_view>

#include <bench/fit/fit_ceilings.hpp>
#include <bench/fit/fit_device.hpp>
#include <bench/fit/fit_host.hpp>
#include <fmt/core.h>

#include <vlmest/json/benchmark.hpp>
#include <vlmest/json/efficiency.hpp>
#include <vlmest/json/measured_file.hpp>
#include <vlmest/json/network.hpp>

#include "args.hpp"
#include "calibrate_network.hpp"
#include "command.hpp"
#include "files.hpp"
#include "flag_rules.hpp"
#include "output/table.hpp"
#include "units.hpp"

namespace vlmest::tool {
namespace {

struct CalibrateOptions {
  std::vector<std::string> files, hosts;
  std::string device = "h200-sxm", network, name, save;
  Output output;
};

/// The operations of one file of benchmark results. Throws Error where it holds none.
void read(const std::string& file, const Device& device, std::vector<MeasuredOp>& out) {
  const std::string where = file == "-" ? "standard input" : file;
  const nlohmann::json results = json::parse(read_file(file), where);
  if (!results.is_object() || !results.contains("benchmarks") || !results.at("benchmarks").is_array())
    throw Error(where, "holds no benchmark results",
                "vlmest bench --suite calibrate --output results.json writes them");
  const std::size_t before = out.size();
  std::size_t i = 0;
  for (const auto& entry : results.at("benchmarks")) {
    const std::string at = where + ".benchmarks[" + std::to_string(i++) + "]";
    if (json::is_collective(entry)) throw Error(at, "is a collective", "give --network NAME|FILE to fit its curves");
    if (!json::nothing_measured(entry, at)) out.push_back(json::read_benchmark(entry, at, device.sm));
  }
  if (out.size() == before)
    throw Error(where, "no benchmark in it measured an operation", "see the errors in its entries");
}

/// No kernel beats the datasheet of its own device: then the description is another's, and its peaks would cut off
/// every fit.
void expect_possible(const MeasuredCeilings& c, const Device& device) {
  const auto check = [&](auto measured, auto peak, const char* what, const char* unit) {
    if (measured && *measured > peak)
      throw Error("--device",
                  fmt::format("{} has {:.4g} {}, but {:.4g} were measured", device.name, peak.value * 1e-12, unit,
                              measured->value * 1e-12),
                  fmt::format("give the description of the measured GPU, or correct its {}", what));
  };
  check(c.dram_copy, device.dram, "dram_bytes_per_s", "TB/s of memory bandwidth");
  check(c.bf16, peak(device, DType::bf16, true), "peak_flops_per_s", "TFLOP/s in bf16");
}

/// Puts what was measured beside what the description had measured already.
void describe(const MeasuredCeilings& c, nlohmann::ordered_json& description) {
  const auto put = [&](const char* key, auto rate) {
    if (rate) description["measured"][key] = significant(rate->value);
  };
  if (!c.dram_copy && !c.l2 && !c.bf16) return;
  put("dram_copy_bytes_per_s", c.dram_copy);
  put("l2_bytes_per_s", c.l2);
  put("bf16_flops_per_s", c.bf16);
  auto& source = description["sources"]["measured"];
  const std::string own = "vlmest bench on this device: copies and large bf16 products";
  const std::string before = source.is_string() ? source.get<std::string>() : "";
  if (!before.starts_with(own)) source = own + (before.empty() ? "" : "; what it did not measure: " + before);
}

/// A host's times of runs that bench/recorder measured. Throws Error where they tell none.
fit::HostTimes read_host(const std::vector<std::string>& files, const Device& device) {
  std::vector<MeasuredRun> runs;
  for (const std::string& file : files) {
    const std::string where = file == "-" ? "standard input" : file;
    const json::MeasuredFile f = json::read_measured(read_file(file), where, device.sm);
    if (!f.problems.empty()) throw f.problems.front();
    for (const auto& r : f.runs) runs.push_back(r.row);
  }
  const fit::HostTimes t = fit::host_times(runs);
  if (!t.launch && !t.forward_launch && !t.backward_launch)
    throw Error("--host", "none of the " + std::to_string(runs.size()) + " runs tells what a launch costs",
                "record a small model with few tokens, so that the GPU waits for the host: decode steps with attn "
                "eager, training steps without checkpointing");
  return t;
}

struct HostKey {
  const char *key, *spread;
  std::optional<fit::HostTime> fit::HostTimes::*time;
};
constexpr std::array<HostKey, 4> host_keys{{{"launch_us", "launch", &fit::HostTimes::launch},
                                            {"forward_launch_us", "forward_launch", &fit::HostTimes::forward_launch},
                                            {"backward_launch_us", "backward_launch", &fit::HostTimes::backward_launch},
                                            {"attention_plan_us", "attention_plan", &fit::HostTimes::attention_plan}}};

/// Puts a host's times into a description; those that no run tells stay.
void describe(const fit::HostTimes& t, nlohmann::ordered_json& description) {
  auto& source = description["sources"]["measured"];
  const std::string own = "times of this host by vlmest calibrate --host";
  for (const HostKey& k : host_keys) {
    const auto& time = t.*k.time;
    if (!time) continue;
    (std::string_view(k.key) == "launch_us" ? description : description["measured"])[k.key] =
        significant(time->middle.us());
    description["measured"]["spread"][k.spread] = {significant(time->spread.low), significant(time->spread.high)};
  }
  if (t.launch) description["sources"]["launch_us"] = own + ": eager decode steps in which the GPU waits";
  const std::string before = source.is_string() ? source.get<std::string>() : "";
  if (!before.starts_with(own)) source = own + (before.empty() ? "" : "; what it did not measure: " + before);
}

/// The table of a host's times, and where they go.
int calibrate_host(const CalibrateOptions& o, const Device& device) {
  const fit::HostTimes t = read_host(o.hosts, device);
  Table table{.head = {"host time", "runs", "us", "lowest", "highest"}, .rows = {}};
  auto list = nlohmann::ordered_json::array();
  for (const HostKey& k : host_keys) {
    const auto& time = t.*k.time;
    if (!time) continue;
    const double us = time->middle.us();
    table.rows.push_back({k.key, std::to_string(time->runs), fmt::format("{:.3g}", us),
                          fmt::format("{:.3g}", us * time->spread.low), fmt::format("{:.3g}", us * time->spread.high)});
    list.push_back({{"key", k.key},
                    {"runs", time->runs},
                    {"us", significant(us)},
                    {"spread", {significant(time->spread.low), significant(time->spread.high)}}});
  }
  if (!o.save.empty()) {
    auto description = nlohmann::ordered_json::parse(read_file(device_file(o.device).string()));
    if (!o.name.empty()) description["name"] = o.name;
    describe(t, description);
    Output{.file = o.save, .flag = "--save"}.write(description.dump(2) + "\n");
  }
  switch (o.output.format) {
    case Format::text: o.output.write(text(table)); break;
    case Format::markdown: o.output.write(markdown(table)); break;
    case Format::csv: o.output.write(csv(table)); break;
    case Format::json:
      o.output.write(nlohmann::ordered_json{{"schema_version", 1}, {"device", device.name}, {"host", list}}.dump(2) +
                     "\n");
      break;
  }
  return Exit::done;
}

int calibrate(const CalibrateOptions& o) {
  if (!o.network.empty()) {
    if (o.files.empty()) throw CLI::RequiredError("files");
    return calibrate_network({.files = o.files, .network = o.network, .save = o.save, .name = o.name}, o.output);
  }
  if (o.device == "-") throw Error("--device", "is standard input", "give a shipped device or a file");
  const Device device = find_device(o.device);
  if (!o.hosts.empty()) {
    if (!o.files.empty())
      throw CLI::ValidationError("--host", "stands alone: give the results of vlmest bench to a call of their own");
    return calibrate_host(o, device);
  }
  if (o.files.empty()) throw CLI::RequiredError("files");
  std::vector<MeasuredOp> measured;
  for (const std::string& f : o.files) read(f, device, measured);
  const MeasuredCeilings ceilings = fit::ceilings(measured, device);
  expect_possible(ceilings, device);
  const fit::Calibration c = fit::calibrate(measured, device);
  if (c.errors.empty())
    throw Error("calibrate", "none of the " + std::to_string(measured.size()) + " measured operations can be fitted",
                "measure products, attention and memory-bound operations: vlmest bench --suite calibrate");
  Table t{.head = {"kind of kernel", "fitted", "mean error", "held out", "mean error of these"}, .rows = {}};
  auto errors = nlohmann::ordered_json::array();
  for (const fit::FitError& e : c.errors) {
    t.rows.push_back({e.kind, std::to_string(e.fitted), fmt::format("{:.1f} %", e.fitted_error * 100),
                      std::to_string(e.held_out), fmt::format("{:.1f} %", e.held_out_error * 100)});
    errors.push_back({{"kind", e.kind},
                      {"fitted", e.fitted},
                      {"fitted_mape_pct", std::round(e.fitted_error * 1e4) / 100},
                      {"held_out", e.held_out},
                      {"held_out_mape_pct", std::round(e.held_out_error * 1e4) / 100}});
  }
  if (!o.save.empty()) {
    auto description = nlohmann::ordered_json::parse(read_file(device_file(o.device).string()));
    if (!o.name.empty()) description["name"] = o.name;
    describe(ceilings, description);
    description["efficiency"] = efficiency_json::write(c.efficiency);
    description["sources"]["efficiency"] =
        "fitted by vlmest calibrate to " + std::to_string(measured.size()) + " operations measured on this device";
    Output{.file = o.save, .flag = "--save"}.write(description.dump(2) + "\n");
  }
  switch (o.output.format) {
    case Format::text: o.output.write(text(t)); break;
    case Format::markdown: o.output.write(markdown(t)); break;
    case Format::csv: o.output.write(csv(t)); break;
    case Format::json:
      o.output.write(nlohmann::ordered_json{{"schema_version", 1}, {"device", device.name}, {"kinds", errors}}.dump(2) +
                     "\n");
      break;
  }
  return Exit::done;
}

}  // namespace

void add_calibrate(CLI::App& app, Action& action) {
  auto o = std::make_shared<CalibrateOptions>();
  CLI::App* sub = app.add_subcommand("calibrate", "fit a device's time model to measured operations");
  sub->add_option("files", o->files, "results of vlmest bench, or - for standard input")->type_name("FILE");
  sub->add_option("--host", o->hosts, "instead of these: runs of bench/recorder, of which the host's times are taken")
      ->type_name("FILE")
      ->allow_extra_args(false);
  sub->add_option("--device", o->device, "the device that they were measured on: a shipped one or a file [h200-sxm]")
      ->type_name("NAME|FILE");
  sub->add_option("--network", o->network,
                  "the files are collectives (vlmest bench --suite nccl): fit the curves of this network")
      ->type_name("NAME|FILE")
      ->excludes("--host")
      ->excludes("--device");
  sub->add_option("--save", o->save, "write the description with what was fitted")->type_name("FILE");
  sub->add_option("--name", o->name, "its name in that description")->type_name("NAME");
  o->output.add_to(*sub);
  sub->callback([o, sub, &action] {
    o->output.resolve(*sub);
    if (o->save.empty()) GivenFlags(*sub).no_effect({"--name"}, "without --save", "leave it out, or give --save FILE");
    action = [o] { return calibrate(*o); };
  });
}

}  // namespace vlmest::tool
