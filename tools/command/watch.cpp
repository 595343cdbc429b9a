// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <memory>

#include "args.hpp"
#include "command.hpp"
#include "files.hpp"
#include "flag_rules.hpp"
#include "options.hpp"
#include "plan_flags.hpp"
#include "streams.hpp"
#include "units.hpp"
#include "watch/session.hpp"

namespace vlmest::tool {
namespace {

struct WatchFlags {
  EstimateArgs args;
  WatchOptions watch;
  bool nvml = false;
  double interval = 1;
  std::optional<std::uint16_t> port;
  std::string gpu_memory, format;
};

/// What the estimate says of the run that is watched: the phases' highest peak.
diagnose::MemoryExpectation predict(const WatchFlags& o, const Device& device) {
  o.args.make_plan();  // what contradicts itself is told before a file is opened
  const Vlm vlm = find_model(o.args.config);
  const Plan plan = o.args.make_plan(vlm);
  const Phases phases = o.args.phases();
  Estimator estimator;
  estimator.allocator = allocator_settings(o.args.alloc_conf, {.total_memory = device.memory_bytes});
  Estimate e;
  Bytes peak{}, reserved{};
  if (has_inference(phases)) {
    estimator.infer(e, vlm, plan, device);
    peak = e.inference.peak;
    reserved = std::max(e.inference.prefill.memory.reserved, e.inference.decode.memory.reserved);
  }
  if (has_training(phases)) try {
      estimator.train(e, vlm, plan, device, has_inference(phases));
      peak = std::max(peak, e.training.peak);
      reserved = std::max(reserved, e.training.reserved_in_loop);
    } catch (const Error& why) {
      // As estimate does: who asks for everything still gets inference.
      if (!has_inference(phases)) throw;
      say("note: training is not estimated: " + in_flags(why.where + ": " + why.what_happened));
    }
  return {.peak = peak, .reserved = reserved, .total = {}, .limit = {}};
}

int run(const WatchFlags& o, bool device_given) {
  WatchOptions w = o.watch;
  w.interval = std::chrono::milliseconds(std::llround(o.interval * 1000));
  w.port = o.port;
  if (o.nvml == !w.file.empty())
    throw CLI::ValidationError("--nvml", o.nvml ? "cannot be given together with a file"
                                                : "is needed where no file is given, and no - for standard input");
  if (w.once && w.port) throw CLI::ValidationError("--once", "cannot be given together with --port");
  if (device_given || !o.args.config.empty()) {
    const Device device = find_device(o.args.device);
    if (!o.args.config.empty()) w.expected = predict(o, device);
    // The default device is one to estimate on, it need not be the one that runs.
    if (device_given) w.expected.total = device.usable_bytes;
  }
  if (!o.gpu_memory.empty()) w.expected.limit = parse_size(o.gpu_memory, "--gpu-memory");
  watch(w);
  return Exit::done;
}

}  // namespace

void add_watch(CLI::App& app, Action& action) {
  auto o = std::make_shared<WatchFlags>();
  CLI::App* sub = app.add_subcommand("watch", "memory of a run that goes on, its growth, and when it ends");
  sub->add_option("file", o->watch.file, "a training log or nvidia-smi's CSV that grows, or - for standard input")
      ->type_name("FILE");
  sub->add_flag("--nvml", o->nvml, "ask the driver of this machine's GPUs instead");
  add_decimal(*sub, "--interval", o->interval, "seconds between two looks [1]", 0.01, 86400, "S");
  sub->add_flag("--once", o->watch.once, "report what is there now, and end");
  add_whole(*sub, "--port", o->port, "serve http://127.0.0.1:N/metrics for Prometheus; 0: a free port", 0, 65535);
  add_choice(*sub, "--format", o->format, "how it is written; json: an object a line [text]",
             {"text", "json", "prometheus"});
  sub->add_flag_callback(
      "--json", [] {}, "short for --format json");
  sub->add_option("--output", o->watch.output, "write there instead of to standard output; .json decides the format")
      ->type_name("FILE");
  sub->add_option("--gpu-memory", o->gpu_memory, "where memory ends [what the readings or the device say]")
      ->type_name("SIZE");
  o->args.add_run_to(*sub, {"inference", "train", "all"}, "whose peak to predict [all]");
  CLI::Option* const config = sub->get_option("--config");
  config->required(false)->description(
      "predict the peak of this model: a description, a config.json, a folder, a name");
  o->args.add_alloc_conf_to(*sub);
  sub->callback([o, sub, &action] {
    const GivenFlags given(*sub);
    const std::string format = chosen_format(*sub, {"text", "json", "prometheus"}, "text");
    o->watch.format = format == "json"         ? WatchFormat::json
                      : format == "prometheus" ? WatchFormat::prometheus
                                               : WatchFormat::text;
    check_run_is_named(given, {});
    check_run_flags(given, o->args, asked_phases(o->args.phase));
    if (o->watch.once) given.no_effect({"--interval"}, "with --once", "leave one of them out");
    action = [o, named = given.has("--device")] { return run(*o, named); };
  });
}

}  // namespace vlmest::tool
