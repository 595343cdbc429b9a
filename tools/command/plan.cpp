// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>

#include <fmt/core.h>
#include <unistd.h>

#include "args.hpp"
#include "command.hpp"
#include "files.hpp"
#include "output/json_document.hpp"
#include "output/plan_report.hpp"
#include "units.hpp"

namespace vlmest::tool {
namespace {

struct PlanOptions {
  EstimateArgs args;
  Output output;
  std::string memory, goal = "max-batch", phase = "train", alloc_conf;
  int gpus = 1;
  std::size_t results = 10;
  unsigned threads = 0;
};

diagnose::Goal goal(const std::string& text) {
  for (std::size_t i = 0; i < diagnose::goal_names.size(); ++i)
    if (diagnose::goal_names[i] == text) return static_cast<diagnose::Goal>(i);
  throw Error("--goal", "'" + text + "' is not a goal", "one of max-batch, max-seq, max-pixels, fastest");
}

/// "plan: 37 of 103 combinations", rewritten in place on a terminal.
void show_progress(std::size_t done, std::size_t all) {
  fmt::print(stderr, "\rplan: {} of {} combinations\033[K", done, all);
  if (done == all) fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
}

int plan(const PlanOptions& o) {
  diagnose::PlanRequest q;
  o.args.make_plan();  // what contradicts itself is told before a file is opened
  q.asked.vlm = find_model(o.args.config);
  q.asked.plan = o.args.make_plan(q.asked.vlm);
  q.asked.placement.gpus = o.gpus;
  const Device device = find_device(o.args.device);
  q.asked.allocator = allocator_settings(o.alloc_conf, {.total_memory = device.memory_bytes});
  q.device = o.memory.empty() ? device : diagnose::within_memory(device, parse_size(o.memory, "--gpu-memory"));
  q.mode = o.phase == "train" ? diagnose::Mode::training : diagnose::Mode::inference;
  q.goal = goal(o.goal);
  q.results = o.results;
  q.threads = o.threads;
  if (isatty(STDERR_FILENO) != 0) q.progress = show_progress;
  const diagnose::PlanAnswer a = diagnose::plan(q);
  ReportedPlan r{q, a, o.args.config, o.args.device};
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
  return a.best.empty() ? Exit::no : Exit::done;
}

}  // namespace

void add_plan(CLI::App& app, Action& action) {
  auto o = std::make_shared<PlanOptions>();
  CLI::App* sub = app.add_subcommand("plan", "the settings that fit a memory size, best first");
  o->args.add_run_to(*sub);
  sub->add_option("--gpu-memory", o->memory, "what the framework may reserve on each GPU, such as 24GiB [the device's]")
      ->type_name("SIZE");
  sub->add_option("--gpus", o->gpus, "GPUs of one host, which train together [1]")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  sub->add_option("--goal", o->goal, "max-batch, max-seq, max-pixels or fastest [max-batch]")
      ->check(CLI::IsMember({"max-batch", "max-seq", "max-pixels", "fastest"}))
      ->type_name("GOAL");
  sub->add_option("--phase", o->phase, "inference or train [train]")
      ->check(CLI::IsMember({"inference", "train"}))
      ->type_name("PHASE");
  sub->add_option("--alloc-conf", o->alloc_conf, "settings of PyTorch's allocator, as in PYTORCH_ALLOC_CONF")
      ->type_name("KEY:VALUE,...");
  sub->add_option("--results", o->results, "plans to list [10]")->check(CLI::Range(1, 1000))->type_name("N");
  sub->add_option("--threads", o->threads, "threads that search [one for each processor]")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  o->output.add_to(*sub);
  sub->callback([o, &action] { action = [o] { return plan(*o); }; });
}

}  // namespace vlmest::tool
