// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "args.hpp"
#include "command.hpp"
#include "files.hpp"
#include "output/estimate_report.hpp"
#include "output/json.hpp"

namespace vlmest::tool {
namespace {

struct Options {
  EstimateArgs args;
  Output output;
};

int estimate(const Options& o) {
  const Plan plan = o.args.make_plan();
  const Vlm vlm = find_model(o.args.config);
  const Device device = find_device(o.args.device);
  Estimator estimator;
  const Estimate e = estimator(vlm, plan, device);
  const Graph& g = estimator.graph();
  const ReportOptions options{.inference = o.args.phase != "train",
                              .training = o.args.phase != "inference",
                              .per_layer = o.args.per_layer,
                              .top = o.args.top,
                              .color = o.output.colored()};
  const Reported r{vlm, plan, device, e, g};
  switch (o.output.format) {
    case Format::json: o.output.write(to_json(vlm, plan, device, e, g, options).dump(2) + "\n"); break;
    case Format::markdown: o.output.write(markdown_report(r, options)); break;
    case Format::csv: o.output.write(csv_report(r)); break;
    case Format::text: o.output.write(text_report(r, options)); break;
  }
  return o.args.fail_on == "oom" && !e.inference.fits ? Exit::no : Exit::done;
}

}  // namespace

void add_estimate(CLI::App& app, Action& action) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("estimate", "memory, FLOPs and time of a model (the default command)");
  o->args.add_to(*sub);
  o->output.add_to(*sub);
  sub->callback([o, &action] { action = [o] { return estimate(*o); }; });
}

}  // namespace vlmest::tool
