// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <vlmest/device/flash_attention.hpp>
#include <vlmest/diagnose/action/actions.hpp>
#include <vlmest/diagnose/action/generic_actions.hpp>
#include <vlmest/diagnose/action/remedies.hpp>
#include <vlmest/diagnose/oom/cause_remedies.hpp>
#include <vlmest/diagnose/oom/oom_verdict.hpp>
#include <vlmest/diagnose/oom/sign_verdict.hpp>
#include <vlmest/diagnose/snapshot/snapshot_failure.hpp>

#include "args.hpp"
#include "command/command.hpp"
#include "evidence/evidence.hpp"
#include "files.hpp"
#include "flag_rules.hpp"
#include "options.hpp"
#include "output/diagnosis_report.hpp"
#include "output/json_document.hpp"
#include "streams.hpp"

namespace vlmest::tool {
namespace {

using diagnose::Mode;
using diagnose::Verdict;

struct DiagnoseOptions {
  std::vector<std::string> files;
  EstimateArgs run;
  int gpus = 1;
  std::size_t actions = 8;
  std::vector<std::string> given;  ///< flags of the run
  bool device_named = false;       ///< by --device: what is not said is not known of a snapshot's or a trace's GPU
  Output output;
};

/// The failure that all files together tell of: exact figures of a snapshot before those of a message, and of a message
/// before those of a table.
std::optional<diagnose::Failure> failure_of(const std::vector<Evidence>& all) {
  std::optional<diagnose::Failure> r;
  for (const char* kind : {"snapshot", "oom_message", "memory_summary"})
    for (const Evidence& e : all)
      if (e.kind == kind && e.failure) r = r ? diagnose::merged(*std::move(r), *e.failure) : *e.failure;
  for (const Evidence& e : all)
    if (r && !r->growth && e.failure && e.failure->growth) r->growth = e.failure->growth;
  return r;
}

/// The verdict of evidence that is no failed allocation, the surest first.
std::optional<Verdict> other_verdict(const std::vector<Evidence>& all) {
  std::optional<Verdict> r;
  for (const Evidence& e : all)
    if (e.verdict && (!r || e.verdict->confidence > r->confidence)) r = e.verdict;
  return r;
}

/// Without a failed allocation there is no cause, unless memory grows; what fills the memory at its peak can be said.
Verdict of_peak(const diagnose::Failure& f) {
  if (auto grown = diagnose::oom_verdict::growing_memory(f)) {
    grown->live = f.live;
    return *std::move(grown);
  }
  Verdict v{.live = f.live};
  v.why = "no allocation failed";
  if (f.allocated) v.why += "; at the peak " + diagnose::in_words(f.allocated->value) + " were allocated";
  if (!f.live.empty()) {
    v.cause = f.live.front().cause;
    v.confidence = v.cause == diagnose::Cause::unknown ? 0 : 0.5;
    v.why += ": " + diagnose::oom_verdict::live_words(f.live);
  }
  v.why += ".";
  return v;
}

/// What would change the memory of the run, by its settings: those given, or, where they do not explain what failed,
/// the ones that do. Of a run of which nothing tells whether it trained, both ways.
void add_estimated_actions(Diagnosis& d, diagnose::Settings settings, Device device, const diagnose::Failure& f,
                           Estimator& estimator) {
  const Verdict& v = d.verdict;
  if (v.changed) settings.plan = *v.changed;
  // Whether an action helps is a question of the memory that there was, not of the device's name.
  if (v.limit) device.usable_bytes = std::min(device.usable_bytes, *v.limit);
  const bool known = v.changed || (v.explanation && v.explanation->holds);
  std::vector<Mode> modes{Mode::training, Mode::inference};
  if (v.mode) modes = {*v.mode};
  const std::size_t of_evidence = d.actions.size();
  for (const Mode mode : modes) {
    std::vector<diagnose::Action> all;
    try {
      all = diagnose::actions(settings, device, mode, estimator);
    } catch (const Error&) {
      if (v.mode) throw;  // of two ways that are only possible, one may be none of this model's
    }
    for (diagnose::Action& a : all) {
      const auto end = d.actions.begin() + static_cast<std::ptrdiff_t>(of_evidence);
      if (std::any_of(d.actions.begin(), end, [&](const diagnose::Action& x) { return x.id == a.id; })) continue;
      if (!diagnose::adapt(a, f)) continue;
      a.fits_known = known;
      a.fits = a.fits && known;
      if (!v.mode) a.of = mode;
      d.actions.push_back(std::move(a));
    }
  }
}

/// The largest part of a training whose settings are all that is known, where they need more than the device has.
Verdict of_settings(const diagnose::Settings& s, const Device& device, bool device_known, Estimator& estimator) {
  const diagnose::Outcome o = diagnose::evaluate(s, device, Mode::training, estimator);
  const TrainingEstimate e = estimator.training_work(s.vlm, s.plan, device);
  const diagnose::Shares share = diagnose::shares(s.placement);
  const auto part = [](Bytes b, std::int64_t n) { return n == 0 ? Bytes{} : Bytes(b.value() / n); };
  const Bytes weights = diagnose::weight_bytes(estimator.training_graph()).all;
  std::vector<diagnose::MemoryPart> parts{{diagnose::Cause::weights, part(weights, share.weights)},
                                          {diagnose::Cause::gradients, part(e.gradients, share.gradients)},
                                          {diagnose::Cause::optimizer_state, part(e.optimizer, share.optimizer)}};
  Bytes states{};
  for (const auto& p : parts) states += p.bytes;
  // What the step has beside the states are the optimizer's temporaries.
  if (o.peak > states && o.peaks[2] == o.peak)
    parts.back().bytes += o.peak - states;
  else if (o.peak > states)
    parts.push_back({diagnose::Cause::activations, o.peak - states});
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  Verdict v{.live = parts};
  v.predicted_peak = o.peak;
  v.mode = Mode::training;
  v.why = "no message of an allocator is in this text; by the settings that are known each GPU needs " +
          diagnose::in_words(o.peak) + ": " + diagnose::oom_verdict::live_words(parts);
  if (device_known) {
    v.limit = device.usable_bytes;
    v.why += ", and has " + diagnose::in_words(device.usable_bytes);
  }
  if (device_known && o.fits) {
    v.why +=
        ". That fits: if it was a lack of the GPU's memory, then with more or larger pictures than these, longer "
        "sequences, or a setting that the text does not have; otherwise it was the host's.";
    return v;
  }
  v.why += ".";
  if (!device_known) {
    v.why += " --device says whether that fits.";
    return v;
  }
  v.cause = parts.front().cause;
  v.confidence = 0.4;  // what the text does not tell, pictures and lengths above all, is as the defaults have it
  return v;
}

/// What the text of a run says of it, where no flag does; what was taken of it.
struct TakenRun {
  EstimateArgs args;
  diagnose::Placement placement;
  std::vector<diagnose::ReadSetting> read;
  std::optional<diagnose::ToldMode> told;
  bool config_read = false;
};

TakenRun taken_run(const DiagnoseOptions& o, const std::vector<Evidence>& all) {
  TakenRun t{.args = o.run, .placement = {.gpus = o.gpus}, .read = {}, .told = {}};
  for (const Evidence& e : all) {
    if (e.run.training.says != 0 && !t.told)
      t.told = diagnose::ToldMode{e.run.training.says > 0 ? Mode::training : Mode::inference,
                                  "`" + e.run.training.from + "` in the text"};
    const bool failed_in_inference =
        e.failure && e.failure->told && e.failure->told->mode == Mode::inference && !e.cut_short;
    const bool training = o.run.phase == "train" ||
                          (o.run.phase == "all" && !failed_in_inference && t.told && t.told->mode == Mode::training);
    if (t.read.empty()) t.read = take_settings(e.run, training, o.given, t.args, t.placement);
  }
  t.config_read = o.run.config.empty() && !t.args.config.empty();
  return t;
}

/// What helps against the cause in general, behind what the evidence itself tells.
void add_generic_actions(Diagnosis& d, const diagnose::Failure& f, const diagnose::KnownSettings& known) {
  for (diagnose::Action& a : diagnose::generic_actions_of(d.verdict, f, known)) {
    const auto same = [&](const diagnose::Action& x) { return x.id == a.id; };
    if (std::none_of(d.actions.begin(), d.actions.end(), same)) d.actions.push_back(std::move(a));
  }
}

/// Where the settings do not make what failed, their own levers come behind what acts on the cause: the actions of its
/// list first, with figures where they were estimated.
void put_cause_first(Diagnosis& d, const diagnose::Failure& f, const diagnose::KnownSettings& known) {
  const auto of_cause = diagnose::generic_actions_of(d.verdict, f, known);
  const auto place = [&](const diagnose::Action& a) {
    return std::find_if(of_cause.begin(), of_cause.end(), [&](const auto& x) { return x.id == a.id; }) -
           of_cause.begin();
  };
  add_generic_actions(d, f, known);
  std::stable_sort(d.actions.begin(), d.actions.end(),
                   [&](const diagnose::Action& a, const diagnose::Action& b) { return place(a) < place(b); });
}

/// What flags say of a run whose model is not given.
diagnose::LengthBounds said_of(const DiagnoseOptions& o) {
  const Plan p = o.run.make_plan();
  diagnose::LengthBounds b{.seq = p.seq, .images = o.run.images};
  if (!o.run.dtype.empty()) b.element = bits(p.dtype) / 8;
  if (p.image_height > 0) b.pixels = o.run.images.value_or(1) * p.image_height * p.image_width;
  return b;
}

/// Flags that act without --config: the phase, bounds of lengths, and what is in force already.
const std::vector<std::string> acting_without_model{"--phase", "--seq",      "--images",    "--image-size",
                                                    "--dtype", "--weights",  "--attention", "--checkpointing",
                                                    "--lora",  "--optimizer"};

int diagnose_files(const DiagnoseOptions& o) {
  Diagnosis d;
  bool failed = false;
  for (const std::string& file : o.files) {
    d.evidence.push_back(read_evidence(file, o.device_named ? std::optional(find_device(o.run.device)) : std::nullopt));
    failed = failed || d.evidence.back().out_of_memory;
  }
  TakenRun run = taken_run(o, d.evidence);
  const bool device_known = o.device_named || std::any_of(run.read.begin(), run.read.end(),
                                                          [](const auto& s) { return s.flag == "--device"; });
  const Device device = find_device(run.args.device);
  std::optional<diagnose::Failure> failure = failure_of(d.evidence);
  if (failure && o.device_named) failure = diagnose::on_device(*std::move(failure), device.memory_bytes);
  if (failure && !failure->told) failure->told = run.told;
  std::optional<diagnose::Settings> settings;
  const auto settings_of = [&](const EstimateArgs& args) {
    Vlm vlm = find_model(args.config);
    const Plan plan = args.make_plan(vlm);
    expect_runnable(plan, device);
    return diagnose::Settings{.vlm = std::move(vlm),
                              .plan = plan,
                              .allocator = allocator_settings(args.alloc_conf, {}),
                              .placement = run.placement};
  };
  if (!run.args.config.empty()) {
    try {
      settings = settings_of(run.args);
    } catch (const Error&) {
      if (run.read.empty()) throw;
      // What was read contradicts itself, the model or a flag: flags alone.
      run = {.args = o.run, .placement = {.gpus = o.gpus}, .read = {}, .told = run.told};
      if (!o.run.config.empty()) settings = settings_of(o.run);
    }
  }
  d.read = run.read;
  if (!settings)
    for (const std::string& flag : o.given)
      if (flag != "--device" &&
          std::find(acting_without_model.begin(), acting_without_model.end(), flag) == acting_without_model.end())
        d.unused.push_back(flag);
  // Without a model flags bound what a request can be, and tell which actions are in force.
  Plan said;
  if (!settings) said = o.run.make_plan();
  said.compute_capability = device_known ? device.sm : said.compute_capability;
  std::optional<Mode> mode;
  if (o.run.phase != "all") mode = o.run.phase == "train" ? Mode::training : Mode::inference;
  Estimator estimator;
  if (settings) estimator.allocator = settings->allocator;
  if (failed && failure) {
    d.verdict = settings ? judge(*failure) : judge(*failure, said_of(o));
    if (settings) {
      Verdict v = judge(*failure, *settings, device, mode, estimator);
      // Settings read from a text are some of the run's: where they do not explain it, what the figures and the stack
      // say holds.
      const bool explains = v.explanation && (v.explanation->holds || !v.explanation->changes.empty());
      if (!run.config_read || explains || v.cause == d.verdict.cause) {
        d.verdict = std::move(v);
      } else {
        d.verdict.predicted_peak = v.predicted_peak;
        d.verdict.explanation = v.explanation;
        d.verdict.solutions = std::move(v.solutions);
      }
    } else if (mode) {
      set_mode(d.verdict, *failure, mode, std::nullopt);
    }
    for (const Evidence& e : d.evidence)
      if (e.failure) diagnose::name_profile_run(d.verdict, *failure, e.log_facts);
    if (std::any_of(d.evidence.begin(), d.evidence.end(),
                    [](const Evidence& e) { return e.cut_short && !e.says_memory; })) {
      d.verdict.confidence *= 0.6;
      d.verdict.why += " The text ends before its error: this holds if it was a lack of memory.";
    }
  } else if (auto v = other_verdict(d.evidence))
    d.verdict = *std::move(v);
  else if (failure)
    d.verdict = of_peak(*failure);
  const bool trains = mode ? *mode == Mode::training : run.told && run.told->mode == Mode::training;
  const bool no_figure = std::all_of(d.evidence.begin(), d.evidence.end(), [](const Evidence& e) {
    return e.kind == "training_log" || !e.failure || !e.failure->requested;
  });
  const bool nothing_grows =
      std::none_of(d.evidence.begin(), d.evidence.end(), [](const Evidence& e) { return e.facts.contains("memory"); });
  bool estimated = false;
  if (settings && trains && no_figure && nothing_grows && d.verdict.cause == diagnose::Cause::unknown &&
      d.verdict.confidence == 0) {
    try {
      Verdict v = of_settings(*settings, device, device_known, estimator);
      v.mode_by = mode ? "--phase" : run.told->by;
      v.remarks = d.verdict.remarks;
      d.verdict = std::move(v);
      estimated = true;
    } catch (const Error&) {
      // A model that is not trained by what vlmest knows: what the text says stays.
    }
  }
  if (failure) {
    d.actions = diagnose::memory_remedies(d.verdict, *failure);
    for (std::string& r : diagnose::second_remarks(d.verdict, *failure)) d.verdict.remarks.push_back(std::move(r));
  }
  for (const Evidence& e : d.evidence)
    for (auto& a : diagnose::cause_remedies(d.verdict, e.signs)) d.actions.push_back(std::move(a));
  for (const Evidence& e : d.evidence)
    if (e.slow)
      for (auto& a : diagnose::time_remedies(*e.slow)) d.actions.push_back(std::move(a));
  if (settings && ((failed && failure) || estimated)) {
    const Plan plan = settings->plan;
    const diagnose::Failure known = failure.value_or(diagnose::Failure{});
    add_estimated_actions(d, *std::move(settings), device, known, estimator);
    const auto& e = d.verdict.explanation;
    if (e && !e->holds && e->changes.empty() && d.verdict.cause != diagnose::Cause::unknown)
      put_cause_first(d, known, {.mode = d.verdict.mode, .plan = &plan});
  } else if (d.verdict.limit || failed || d.verdict.cause != diagnose::Cause::unknown) {
    add_generic_actions(d, failure.value_or(diagnose::Failure{}),
                        {.mode = mode ? mode : d.verdict.mode, .plan = &said});
  }
  switch (o.output.format) {
    case Format::json: o.output.write(json_document(to_json(d, o.run.top))); break;
    case Format::markdown: o.output.write(markdown(d, o.run.top, o.actions)); break;
    case Format::csv: o.output.write(csv(d)); break;
    case Format::text: o.output.write(text(d, o.run.top, o.actions)); break;
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
  o->run.add_run_to(*sub, {"inference", "train", "all"}, "what was run [all: as the evidence tells]");
  sub->get_option("--config")->required(false);
  o->run.add_alloc_conf_to(*sub);
  add_whole(*sub, "--gpus", o->gpus, "GPUs that train together [1]", 1, 1 << 16)->group("Device");
  add_whole(*sub, "--top", o->run.top, "hypotheses to list [10]", 0)->group("Report");
  add_whole(*sub, "--actions", o->actions, "actions to show; JSON and CSV hold all of them [8]", 0)->group("Report");
  o->output.add_to(*sub);
  sub->callback([o, sub, &action] {
    const GivenFlags given(*sub);
    o->device_named = given.has("--device");
    o->output.resolve(*sub);
    for (const char* flag : {"--config",
                             "--device",
                             "--phase",
                             "--batch",
                             "--seq",
                             "--text",
                             "--images",
                             "--image-size",
                             "--vision-chunk",
                             "--dtype",
                             "--amp",
                             "--weights",
                             "--attention",
                             "--profile",
                             "--alloc-conf",
                             "--new-tokens",
                             "--kv",
                             "--logits",
                             "--optimizer",
                             "--checkpointing",
                             "--checkpoint-layers",
                             "--freeze",
                             "--lora",
                             "--lora-targets",
                             "--lora-vision",
                             "--lora-dropout",
                             "--input-gradients",
                             "--loss",
                             "--gradient-accumulation",
                             "--gpus"})
      if (given.has(flag)) o->given.emplace_back(flag);
    check_run_flags(given, o->run, asked_phases(o->run.phase));
    if (o->run.phase == "inference" && o->gpus > 1)
      throw UsageError("--gpus", "inference on several GPUs is not modelled", "leave it out");
    if (o->output.format == Format::csv)
      given.no_effect({"--top"}, "on CSV, which has no hypotheses", "leave it out, or write text, json or markdown");
    if (o->output.format == Format::csv || o->output.format == Format::json)
      given.no_effect({"--actions"}, "on JSON and CSV, which hold all actions", "leave it out");
    action = [o] { return diagnose_files(*o); };
  });
}

}  // namespace vlmest::tool
