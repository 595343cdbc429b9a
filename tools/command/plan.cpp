// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <optional>

#include <fmt/core.h>
#include <unistd.h>

#include "args.hpp"
#include "command.hpp"
#include "files.hpp"
#include "flag_rules.hpp"
#include "options.hpp"
#include "output/json_document.hpp"
#include "output/plan_report.hpp"
#include "streams.hpp"
#include "units.hpp"

namespace vlmest::tool {
namespace {

struct PlanOptions {
  EstimateArgs args;
  Output output;
  std::string memory, goal = "max-batch";
  int gpus = 1;
  std::string network;
  std::size_t results = 10;
  unsigned threads = 0;
};

diagnose::Goal goal(const std::string& text) {
  for (std::size_t i = 0; i < diagnose::goal_names.size(); ++i)
    if (diagnose::goal_names[i] == text) return static_cast<diagnose::Goal>(i);
  throw Error("--goal", "'" + text + "' is not a goal", "one of max-batch, max-seq, max-pixels, max-frames, fastest");
}

/// The device with that much of its memory.
Device limited(const Device& device, Bytes memory) {
  if (memory > device.usable_bytes)
    throw UsageError("--gpu-memory",
                     show(memory) + " are more than the " + show(device.usable_bytes) + " that " + device.name + " has",
                     "leave it out for all of them, or name a larger --device");
  return diagnose::within_memory(device, memory);
}

/// "plan: 37 of 103 combinations", rewritten in place on a terminal.
void show_progress(std::size_t done, std::size_t all) {
  say_part(done == all ? "\r\033[K" : fmt::format("\rplan: {} of {} combinations\033[K", done, all));
}

int plan(const PlanOptions& o) {
  diagnose::PlanRequest q;
  o.args.make_plan();  // what contradicts itself is told before a file is opened
  q.asked.vlm = find_model(o.args.config);
  q.asked.plan = o.args.make_plan(q.asked.vlm);
  q.asked.placement.gpus = o.gpus;
  const Device device = find_device(o.args.device);
  q.asked.allocator = allocator_settings(o.args.alloc_conf, {.total_memory = device.memory_bytes});
  q.device = o.memory.empty() ? device : limited(device, parse_size(o.memory, "--gpu-memory"));
  q.mode = o.args.phases() == Phases::train ? diagnose::Mode::training : diagnose::Mode::inference;
  q.goal = goal(o.goal);
  q.results = o.results;
  q.threads = o.threads;
  if (isatty(STDERR_FILENO) != 0) q.progress = show_progress;
  std::optional<parallel::Network> network;
  if (o.gpus > 1) network = find_network(o.network, device);
  // Actions are searched on the GPUs of one host; over more of them layouts alone differ.
  const bool one_host = !network || o.gpus <= network->domains.front().gpus;
  diagnose::PlanAnswer a;
  if (one_host) a = diagnose::plan(q);
  ReportedPlan r{q, a, o.args.config, o.args.device};
  if (network) {
    r.network = network->name;
    r.layouts = parallel::search_layouts({.vlm = q.asked.vlm,
                                          .plan = q.asked.plan,
                                          .device = q.device,
                                          .network = *network,
                                          .allocator = q.asked.allocator,
                                          .gpus = o.gpus,
                                          .threads = o.threads});
  }
  if (q.mode == diagnose::Mode::inference && !a.best.empty()) {
    Estimator e;
    r.budget = diagnose::budget(largest_group(a.best.front().candidate.settings, q.device, q.mode, e), q.device, e);
  }
  switch (o.output.format) {
    case Format::json: o.output.write(json_document(plan_json(r))); break;
    case Format::markdown: o.output.write(plan_markdown(r)); break;
    case Format::csv: o.output.write(plan_csv(r)); break;
    case Format::text: o.output.write(plan_text(r)); break;
  }
  const bool any_layout = r.layouts && !r.layouts->found.empty() && r.layouts->found.front().fits;
  return a.best.empty() && !any_layout ? Exit::no : Exit::done;
}

}  // namespace

void add_plan(CLI::App& app, Action& action) {
  auto o = std::make_shared<PlanOptions>();
  CLI::App* sub = app.add_subcommand("plan", "the settings that fit a memory size, best first");
  o->args.phase = name(Phases::train);
  o->args.add_run_to(*sub, words(std::array{Phases::inference, Phases::train}), "what the plan is for [train]");
  sub->add_option("--gpu-memory", o->memory, "what the framework may reserve on each GPU, such as 24GiB [the device's]")
      ->type_name("SIZE")
      ->group("Device");
  add_whole(*sub, "--gpus", o->gpus, "GPUs that train together [1]", 1, 1 << 16)->group("Device");
  sub->add_option("--network", o->network, "links between the GPUs [the device's own]")
      ->type_name("NAME|FILE")
      ->group("Device");
  o->args.add_alloc_conf_to(*sub);
  const auto search = [](CLI::Option* option) { option->group("Search"); };
  search(add_choice(*sub, "--goal", o->goal, "what to reach within the memory [max-batch]",
                    std::vector<std::string>(diagnose::goal_names.begin(), diagnose::goal_names.end())));
  search(add_whole(*sub, "--results", o->results, "plans to list [10]", 1, 1000));
  search(add_whole(*sub, "--threads", o->threads, "threads that search [one for each processor]", 1, 1024));
  o->output.add_to(*sub);
  sub->callback([o, sub, &action] {
    const GivenFlags given(*sub);
    o->output.resolve(*sub);
    if (o->goal == name(diagnose::Goal::max_frames) && !o->args.frames) {
      if (o->args.video_seconds && o->args.fps)
        throw UsageError("--fps", "has no effect on --goal max-frames, which searches for the frames of a video",
                         "leave --fps or --video-seconds out");
      o->args.frames = 2;  // where the search begins
    }
    check_run_flags(given, o->args, asked_phases(o->args.phase));
    if (o->args.phases() == Phases::inference && o->gpus > 1)
      throw UsageError("--gpus", "inference on several GPUs is not modelled",
                       "leave it out for one GPU, or plan training: --phase train");
    if (o->gpus == 1) given.no_effect({"--network"}, "on one GPU", "leave it out, or give --gpus N");
    action = [o] { return plan(*o); };
  });
}

}  // namespace vlmest::tool
