// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <memory>

#include <vlmest/parallel/estimate_layout.hpp>

#include "args.hpp"
#include "command.hpp"
#include "files.hpp"
#include "flag_rules.hpp"
#include "output/answer_report.hpp"
#include "output/estimate_report.hpp"
#include "output/json.hpp"
#include "output/json_document.hpp"
#include "output/several_gpus.hpp"
#include "output/timeline.hpp"
#include "parallel_flags.hpp"
#include "plan_flags.hpp"
#include "streams.hpp"
#include "units.hpp"
#include "weight_files.hpp"

namespace vlmest::tool {
namespace {

struct EstimateOptions {
  EstimateArgs args;
  ParallelArgs parallel;
  Output output;
  bool verbose = false, top_given = false, device_given = false;
};

/// The locale's characters are UTF-8 (POSIX: the first of these that is set and not empty decides).
bool utf8() {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(variable);
    if (value == nullptr || *value == '\0') continue;
    const std::string v = value;
    for (const char* name : {"UTF-8", "utf-8", "UTF8", "utf8"})
      if (v.find(name) != std::string::npos) return true;
    return false;
  }
  return false;
}

void write_timeline(const std::string& file, Bytes least, const Reported& r, const ReportOptions& shown) {
  const Estimator& estimator = r.estimator;
  const Device& device = r.device;
  std::vector<TracedCurve> curves;
  if (shown.inference)
    curves.push_back({"inference", estimator.graph(),
                      memory_curve(estimator.graph(), estimator.timeline(), device, estimator.allocator)});
  if (shown.training)
    curves.push_back({"training", estimator.training_graph(),
                      memory_curve(estimator.training_graph(), r.training_timeline(), device, estimator.allocator)});
  const std::string text = file.ends_with(".csv") ? timeline_csv(curves) : chrome_trace(curves, least);
  Output{.file = file == "-" ? "" : file, .flag = "--timeline"}.write(text);
}

int estimate(const EstimateOptions& o) {
  o.args.make_plan();  // what contradicts itself is told before a file is opened
  const parallel::Layout layout = o.parallel.layout();
  expect_modelled(layout);
  const Vlm vlm = find_model(o.args.config);
  Plan plan = o.args.make_plan(vlm);
  compare_weight_files(o.args, vlm, plan);  // a checkpoint holds the whole model
  plan = plan_of_rank(std::move(plan), layout);
  const Device device = find_device(o.args.device);
  const Phases phases = o.args.phases();
  const Bytes least = parse_size(o.args.timeline_min, "--timeline-min");
  ReportOptions options{.inference = has_inference(phases),
                        .training = has_training(phases),
                        .verbose = o.verbose,
                        .per_layer = o.args.per_layer,
                        .top = o.args.top,
                        .tensors = o.top_given,
                        .device_assumed = !o.device_given,
                        .color = o.output.colored(),
                        .unicode = utf8(),
                        .no_training = {}};
  Estimator estimator;
  estimator.allocator = allocator_settings(o.args.alloc_conf, {.total_memory = device.memory_bytes});
  Estimate e;
  if (options.inference) estimator.infer(e, vlm, plan, device);
  if (options.training) try {
      estimator.train(e, vlm, plan, device, options.inference);
    } catch (const Error& why) {
      // Who asks for everything still gets inference.
      if (!options.inference) throw;
      options.training = false;
      options.no_training = in_flags(why.where + ": " + why.what_happened);
    }
  std::optional<parallel::ParallelEstimate> several;
  if (layout.gpus() > 1) {
    const Phases asked = !options.training ? Phases::inference : !options.inference ? Phases::train : Phases::all;
    const parallel::Network network = find_network(o.parallel.network, device);
    several = parallel::estimate_layout(estimator, e, vlm, plan, device, layout, network, asked);
    several->launch =
        parallel::launch(layout, plan, network, options.training ? estimator.training_graph() : estimator.graph(),
                         vlm.family.takes_images(), options.training);
  }
  const Reported r{vlm, plan, device, e, estimator, several ? &*several : nullptr};
  const bool to_stdout = o.args.timeline == "-" && o.output.file.empty();
  if (!to_stdout) switch (o.output.format) {
      case Format::json: o.output.write(json_document(to_json(r, options))); break;
      case Format::markdown: o.output.write(markdown_report(r, options)); break;
      case Format::csv: o.output.write(csv_report(r, options)); break;
      case Format::text:
        o.output.write(answer_text(r, options, find_answer(r, options)) + several_gpus_text(r, options) +
                       tables_text(r, options));
        break;
    }
  if (!o.args.timeline.empty()) write_timeline(o.args.timeline, least, r, options);
  const bool shows_why = !to_stdout && (o.output.format == Format::text || o.output.format == Format::markdown);
  if (!options.no_training.empty() && !shows_why) say("note: training is not estimated: " + options.no_training);
  const bool fits = (!options.inference || e.inference.fits) && (!options.training || e.training.fits);
  return o.args.fail_on == "oom" && !fits ? Exit::no : Exit::done;
}

/// What the report does not show is not asked for.
void check_report_flags(const GivenFlags& given, const EstimateOptions& o) {
  const std::string& timeline = o.args.timeline;
  if (timeline == "-" && o.output.file.empty())
    given.no_effect({"--format", "--json", "--top", "--per-layer"}, "with --timeline -, which takes standard output",
                    "leave it out, or give the report a file: --output FILE");
  if (timeline.empty())
    given.no_effect({"--timeline-min"}, "without --timeline", "leave it out, or give --timeline FILE");
  if (timeline.ends_with(".csv"))
    given.no_effect({"--timeline-min"}, "on a timeline in CSV, which has no slices", "leave it out");
  if (o.output.format == Format::csv)
    given.no_effect({"--top", "--per-layer"}, "on CSV, which has every layer and no tensors", "leave it out");
}

}  // namespace

void add_estimate(CLI::App& app, Action& action) {
  auto o = std::make_shared<EstimateOptions>();
  CLI::App* sub = app.add_subcommand("estimate", "memory, FLOPs and time of a model (the default command)");
  o->args.add_to(*sub);
  o->parallel.add_to(*sub);
  sub->add_flag("--verbose", o->verbose, "every table of text: components, phases, layers, tensors of the peaks");
  o->output.add_to(*sub);
  sub->callback([o, sub, &action] {
    o->top_given = sub->get_option("--top")->count() > 0;
    o->device_given = sub->get_option("--device")->count() > 0;
    const GivenFlags given(*sub);
    o->output.resolve(*sub);
    check_run_flags(given, o->args, asked_phases(o->args.phase));
    check_parallel_flags(given, o->parallel.layout(), asked_phases(o->args.phase));
    check_report_flags(given, *o);
    action = [o] { return estimate(*o); };
  });
}

}  // namespace vlmest::tool
