// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <memory>

#include <vlmest/json/measured_file.hpp>

#include "args.hpp"
#include "command.hpp"
#include "files.hpp"
#include "output/estimate_report.hpp"
#include "output/json_document.hpp"
#include "output/roofline/chart.hpp"
#include "output/roofline/page.hpp"
#include "output/roofline/report.hpp"

namespace vlmest::tool {
namespace {

struct RooflineOptions {
  EstimateArgs args;
  std::string phase = "prefill";
  std::vector<std::string> measured;
  std::size_t top = 20;
  std::string format;  ///< empty: what the output's name says, or text
  Output output;
};

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> extensions{{{".html", "html"},
                                                                                   {".htm", "html"},
                                                                                   {".svg", "svg"},
                                                                                   {".json", "json"},
                                                                                   {".md", "markdown"},
                                                                                   {".csv", "csv"},
                                                                                   {".txt", "text"}}};

std::string format(const RooflineOptions& o) {
  if (!o.format.empty()) return o.format;
  if (o.output.file.empty()) return "text";
  for (const auto& [extension, format] : extensions)
    if (o.output.file.ends_with(extension)) return std::string(format);
  throw CLI::ValidationError("--output", "the name '" + o.output.file +
                                             "' does not say which format; end it in .html, .svg, .json, .md, .csv or "
                                             ".txt, or give --format");
}

RooflineView view(const RooflineOptions& o) {
  o.args.make_plan();  // what contradicts itself is told before a file is opened
  const Vlm vlm = find_model(o.args.config);
  const Plan plan = o.args.make_plan(vlm);
  const Device device = find_device(o.args.device);
  Estimator estimator;
  estimator.details = false;
  Estimate e;
  std::vector<Repeated> stretches;
  const bool training = o.phase == "train";
  if (training) {
    estimator.train(e, vlm, plan, device);
    stretches = training_stretches(estimator.training_graph(), plan.gradient_accumulation);
  } else {
    estimator.infer(e, vlm, plan, device);
    for (const Phase& p : estimator.graph().phases)
      if (p.name == o.phase) stretches.push_back({p.first, p.last});
  }
  RooflineView v{
      .model = vlm.name,
      .phase = training ? "training step" : o.phase,
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
  const std::string as = format(o);
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
  o->args.add_run_to(*sub);
  sub->add_option("--phase", o->phase, "prefill, decode or train [prefill]")
      ->check(CLI::IsMember({"prefill", "decode", "train"}))
      ->type_name("PHASE");
  sub->add_option("--measured", o->measured, "results of vlmest bench to draw beside it; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
  sub->add_option("--top", o->top, "ops in a table of text or markdown [20]")
      ->check(CLI::Range(0, 1 << 20))
      ->type_name("N");
  sub->add_option("--format", o->format, "text, json, markdown, csv, html or svg [as --output is named, or text]")
      ->check(CLI::IsMember({"text", "json", "markdown", "csv", "html", "svg"}))
      ->type_name("FORMAT");
  sub->add_flag_callback(
      "--json", [o] { o->format = "json"; }, "short for --format json");
  sub->add_option("--output", o->output.file, "write there instead of to standard output")->type_name("FILE");
  sub->callback([o, &action] { action = [o] { return roofline(*o); }; });
}

}  // namespace vlmest::tool
