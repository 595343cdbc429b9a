// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/core.h>

#include "args.hpp"
#include "command.hpp"
#include "files.hpp"
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
  std::string gpu_memory;
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
      fmt::print(stderr, "note: training is not estimated: {}: {}\n", why.where, why.what_happened);
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
  sub->add_option("--interval", o->interval, "seconds between two looks [1]")
      ->check([](const std::string& text) {
        double s = 0;
        return CLI::detail::lexical_cast(text, s) && s >= 0.01 && s <= 86400 ? "" : "is not in 0.01 to 86400 seconds";
      })
      ->type_name("S");
  sub->add_flag("--once", o->watch.once, "report what is there now, and end");
  sub->add_option("--port", o->port, "serve http://127.0.0.1:N/metrics for Prometheus; 0: a free port")
      ->check(CLI::Range(0, 65535))
      ->type_name("N");
  sub->add_option_function<std::string>(
         "--format",
         [o](const std::string& s) {
           o->watch.format = s == "json"         ? WatchFormat::json
                             : s == "prometheus" ? WatchFormat::prometheus
                                                 : WatchFormat::text;
         },
         "text, json (an object a line) or prometheus [text]")
      ->check(CLI::IsMember({"text", "json", "prometheus"}))
      ->type_name("FORMAT");
  sub->add_flag_callback(
      "--json", [o] { o->watch.format = WatchFormat::json; }, "short for --format json");
  sub->add_option("--output", o->watch.output, "write there instead of to standard output")->type_name("FILE");
  sub->add_option("--gpu-memory", o->gpu_memory, "where memory ends [what the readings or the device say]")
      ->type_name("SIZE");
  o->args.add_run_to(*sub);
  CLI::Option* const config = sub->get_option("--config");
  config->required(false)->description(
      "predict the peak of this model: a description, a config.json, a folder, a name");
  sub->add_option("--phase", o->args.phase, "whose peak to predict: inference, train or all [all]")
      ->check(CLI::IsMember({"inference", "train", "all"}))
      ->type_name("PHASE");
  sub->add_option("--alloc-conf", o->args.alloc_conf, "settings of PyTorch's allocator, as in PYTORCH_ALLOC_CONF")
      ->type_name("KEY:VALUE,...");
  const CLI::Option* const device = sub->get_option("--device");
  sub->callback([o, device, &action] { action = [o, device] { return run(*o, device->count() > 0); }; });
}

}  // namespace vlmest::tool
