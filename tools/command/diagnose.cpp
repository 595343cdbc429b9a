// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "args.hpp"
#include "command/command.hpp"
#include "diagnosis.hpp"
#include "files.hpp"
#include "flag_rules.hpp"
#include "options.hpp"
#include "output/diagnosis_report.hpp"
#include "output/json_document.hpp"
#include "streams.hpp"

namespace vlmest::tool {
namespace {

struct DiagnoseOptions {
  std::vector<std::string> files;
  FlagsOfRun run;
  std::size_t actions = 8;
  Output output;
};

int diagnose_files(const DiagnoseOptions& o) {
  // What is not said is not known of a snapshot's or a trace's GPU.
  std::optional<Device> device;
  if (o.run.has("--device")) device = find_device(o.run.args.device);
  std::vector<Evidence> evidence;
  for (const std::string& file : o.files) evidence.push_back(read_evidence(file, device));
  const Diagnosis d = diagnosis_of(std::move(evidence), o.run);
  const std::size_t top = o.run.args.top;
  switch (o.output.format) {
    case Format::json: o.output.write(json_document(to_json(d, top))); break;
    case Format::markdown: o.output.write(markdown(d, top, o.actions)); break;
    case Format::csv:
      if (const std::string words = unused_words(d); !words.empty()) say("note: " + words);
      o.output.write(csv(d));
      break;
    case Format::text: o.output.write(text(d, top, o.actions)); break;
  }
  return Exit::done;
}

}  // namespace

void add_diagnose(CLI::App& app, Action& action) {
  auto o = std::make_shared<DiagnoseOptions>();
  CLI::App* sub = app.add_subcommand("diagnose", "why a run is out of memory or slow, and what helps");
  sub->add_option(
         "files", o->files,
         "out-of-memory messages or logs, memory snapshots, memory_summary() text, traces; - is standard input")
      ->type_name("FILE")
      ->required();
  o->run.args.add_run_to(*sub, {"inference", "train", "all"}, "what was run [all: as the evidence tells]");
  sub->get_option("--config")->required(false);
  o->run.args.add_alloc_conf_to(*sub);
  add_whole(*sub, "--gpus", o->run.gpus, "GPUs that the run was on [1]", 1, 1 << 16)->group("Device");
  add_whole(*sub, "--top", o->run.args.top, "hypotheses to list [10]", 0)->group("Report");
  add_whole(*sub, "--actions", o->actions, "actions to show; JSON and CSV hold all of them [8]", 0)->group("Report");
  o->output.add_to(*sub);
  sub->callback([o, sub, &action] {
    const GivenFlags given(*sub);
    o->output.resolve(*sub);
    o->run.given = given.of_run();
    check_run_flags(given, o->run.args, asked_phases(o->run.args.phase));
    if (o->output.format == Format::csv)
      given.no_effect({"--top"}, "on CSV, which has no hypotheses", "leave it out, or write text, json or markdown");
    if (o->output.format == Format::csv || o->output.format == Format::json)
      given.no_effect({"--actions"}, "on JSON and CSV, which hold all actions", "leave it out");
    action = [o] { return diagnose_files(*o); };
  });
}

}  // namespace vlmest::tool
