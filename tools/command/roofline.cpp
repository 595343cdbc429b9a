// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include <vlmest/json/measured_file.hpp>

#include "args.hpp"
#include "command.hpp"
#include "files.hpp"
#include "flag_rules.hpp"
#include "options.hpp"
#include "output/estimate_report.hpp"
#include "output/json_document.hpp"
#include "output/roofline/chart.hpp"
#include "output/roofline/page.hpp"
#include "output/roofline/report.hpp"

namespace vlmest::tool {
namespace {

struct RooflineOptions {
  EstimateArgs args;
  std::vector<std::string> measured;
  std::size_t top = 20;
  std::string format;  ///< as --format names it, then what is written
  Output output;
};

RooflineView view(const RooflineOptions& o) {
  o.args.make_plan();  // what contradicts itself is told before a file is opened
  const Vlm vlm = find_model(o.args.config);
  const Plan plan = o.args.make_plan(vlm);
  const Device device = find_device(o.args.device);
  Estimator estimator;
  estimator.details = false;
  Estimate e;
  std::vector<Repeated> stretches;
  const bool training = o.args.phase == name(Phases::train);
  if (training) {
    estimator.train(e, vlm, plan, device);
    stretches = vlmest::stretches(estimator.training_graph(), plan.gradient_accumulation);
  } else {
    estimator.infer(e, vlm, plan, device);
    for (const Phase& p : estimator.graph().phases)
      if (name(p.kind) == o.args.phase) stretches.push_back({p.first, p.last});
  }
  RooflineView v{
      .model = vlm.name,
      .phase = training ? "training step" : o.args.phase,
      .device = device.name,
      .product = device.product,
      .inputs = inputs_line(vlm, plan, e.sequences),
      .points = place_on_roofline(training ? estimator.training_graph() : estimator.graph(), stretches, device),
      .ceilings = {},
      .measured = {}};
  v.ceilings = ceilings(device, v.points.points);
  for (const auto& file : o.measured) {
    const std::string where = file == "-" ? "standard input" : file;
    const json::MeasuredFile measured = json::read_measured(read_file(file), where, device.sm);
    if (!measured.problems.empty()) throw measured.problems.front();
    if (measured.kind != json::MeasuredFile::Kind::benchmarks)
      throw Error(where, "holds measured rows of whole models", "give the results of vlmest bench");
    for (const auto& op : measured.ops) add_measurement(v, op.row);
  }
  return v;
}

int roofline(const RooflineOptions& o) {
  const std::string& as = o.format;
  const RooflineView v = view(o);
  if (as == "html")
    o.output.write(roofline_page(v));
  else if (as == "svg")
    o.output.write(roofline_svg(v, true));
  else if (as == "json")
    o.output.write(json_document(roofline_json(v)));
  else if (as == "markdown")
    o.output.write(roofline_markdown(v, o.top));
  else if (as == "csv")
    o.output.write(roofline_csv(v));
  else
    o.output.write(roofline_text(v, o.top));
  return Exit::done;
}

}  // namespace

void add_roofline(CLI::App& app, Action& action) {
  auto o = std::make_shared<RooflineOptions>();
  CLI::App* sub = app.add_subcommand("roofline", "every op of a phase on the device's roofline, as a page to look at");
  o->args.phase = name(PhaseKind::prefill);
  o->args.add_run_to(
      *sub,
      {std::string(name(PhaseKind::prefill)), std::string(name(PhaseKind::decode)), std::string(name(Phases::train))},
      "whose ops [prefill]");
  sub->add_option("--measured", o->measured, "results of vlmest bench to draw beside it; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false)
      ->group("Report");
  add_whole(*sub, "--top", o->top, "ops in a table of text or markdown [20]", 0)->group("Report");
  add_choice(*sub, "--format", o->format, "how it is written [as --output is named, or text]",
             {"text", "json", "markdown", "csv", "html", "svg"})
      ->group("Output");
  sub->add_flag_callback(
         "--json", [] {}, "short for --format json")
      ->group("Output");
  sub->add_option("--output", o->output.file,
                  "write there instead of to standard output; .html, .svg, .json, .md, .csv and .txt decide the format")
      ->type_name("FILE")
      ->group("Output");
  sub->callback([o, sub, &action] {
    const GivenFlags given(*sub);
    const bool named = o->output.file.empty() || format_of_name(o->output.file);
    if (!named && !given.has("--format") && !given.has("--json"))
      throw CLI::ValidationError("--output", "the name '" + o->output.file +
                                                 "' does not say which format; end it in .html, .svg, .json, .md, "
                                                 ".csv or .txt, or give --format");
    o->format = chosen_format(*sub, {"text", "json", "markdown", "csv", "html", "svg"}, "text");
    check_run_flags(given, o->args, asked_phases(o->args.phase));
    if (o->args.phase == name(PhaseKind::prefill))
      given.no_effect({"--new-tokens"}, "with --phase prefill", "leave it out, or give --phase decode");
    if (o->args.phase == name(PhaseKind::decode))
      given.no_effect({"--logits"}, "with --phase decode", "leave it out, or give --phase prefill");
    if (o->format != "text" && o->format != "markdown")
      given.no_effect({"--top"}, "on " + o->format + ", which holds every op",
                      "leave it out, or write text or markdown");
    action = [o] { return roofline(*o); };
  });
}

}  // namespace vlmest::tool
