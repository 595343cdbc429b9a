// SPDX-License-Identifier: Apache-2.0
#include "diagnosis.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <utility>

#include <vlmest/analysis/params.hpp>
#include <vlmest/device/flash_attention.hpp>
#include <vlmest/diagnose/advise/action/actions.hpp>
#include <vlmest/diagnose/advise/action/generic_actions.hpp>
#include <vlmest/diagnose/advise/action/remedies.hpp>
#include <vlmest/diagnose/advise/action/sign_actions.hpp>
#include <vlmest/diagnose/evidence/cut_offs.hpp>
#include <vlmest/diagnose/failure/from_snapshot.hpp>
#include <vlmest/diagnose/inversion/solve.hpp>
#include <vlmest/diagnose/inversion/together.hpp>
#include <vlmest/diagnose/verdict/judge.hpp>
#include <vlmest/diagnose/verdict/judge_batch.hpp>
#include <vlmest/diagnose/verdict/judge_budget.hpp>
#include <vlmest/diagnose/verdict/judge_run.hpp>
#include <vlmest/diagnose/verdict/judge_settings.hpp>
#include <vlmest/diagnose/verdict/judge_signs.hpp>
#include <vlmest/diagnose/verdict/judge_story.hpp>
#include <vlmest/diagnose/verdict/likely_tensor.hpp>
#include <vlmest/diagnose/verdict/name_by_widths.hpp>
#include <vlmest/diagnose/verdict/unknown_model.hpp>
#include <vlmest/diagnose/verdict/weight_shape.hpp>

#include "catalogue.hpp"
#include "files.hpp"

namespace vlmest::tool {
namespace {

using diagnose::Mode;
using diagnose::Verdict;

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
    v.confidence = v.cause == diagnose::Cause::unknown ? 0 : confidence(diagnose::Basis::filled_at_peak);
    v.why += ": " + diagnose::oom_verdict::live_words(f.live);
  }
  v.why += ".";
  return v;
}

/// The run that failed, as far as it is known.
struct KnownRun {
  EstimateArgs args;
  parallel::Strategy placement;
  std::vector<diagnose::ReadSetting> read;  ///< what of these a text gave
  std::optional<diagnose::ToldMode> told;   ///< by the words of a text
  Device device;
  bool device_known = false;
  std::optional<diagnose::Settings> settings;  ///< where a model is known
  std::optional<Mode> mode;                    ///< by --phase
};

std::optional<diagnose::Settings> settings_of(const EstimateArgs& args, const parallel::Strategy& placement,
                                              const Device& device) {
  if (args.config.empty()) return std::nullopt;
  Vlm vlm = find_model(args.config);
  const Plan plan = args.make_plan(vlm);
  expect_runnable(plan, device);
  return diagnose::Settings{.vlm = std::move(vlm),
                            .plan = plan,
                            .allocator = allocator_settings(args.alloc_conf, {}),
                            .placement = placement};
}

/// Whether a text is of a training or of inference, by its settings and calls, or else by what somebody tells; of the
/// first that says so.
std::optional<diagnose::ToldMode> told_by(const std::vector<Evidence>& all) {
  for (const Evidence& e : all)
    if (e.run.training.says != 0)
      return diagnose::ToldMode{e.run.training.says > 0 ? Mode::training : Mode::inference,
                                "`" + e.run.training.from + "` in the text"};
  using diagnose::Topic;
  for (const Evidence& e : all) {
    const auto& trains = e.story[Topic::trains];
    const auto& answers = e.story[e.story.has(Topic::answers) ? Topic::answers : Topic::serves];
    if (trains.has_value() != answers.has_value())
      return diagnose::ToldMode{trains ? Mode::training : Mode::inference,
                                "`" + (trains ? trains : answers)->words + "` in the text"};
  }
  return std::nullopt;
}

/// Flags, and below them what the first text that gives any settings says; `and_told`: in sentences as well.
KnownRun with_texts(const FlagsOfRun& flags, const std::vector<Evidence>& all, bool and_told) {
  KnownRun k{.args = flags.args, .placement = {.gpus = flags.gpus}, .read = {}, .told = told_by(all), .device = {}};
  for (const Evidence& e : all) {
    const bool failed_in_inference =
        e.failure && e.failure->told && e.failure->told->mode == Mode::inference && !e.cut_short;
    const bool training =
        flags.args.phases() == Phases::train ||
        (flags.args.phases() == Phases::all && !failed_in_inference && k.told && k.told->mode == Mode::training);
    k.read = take_settings(e.run, training, and_told, flags.given, k.args, k.placement);
    if (!k.read.empty()) break;
  }
  k.device_known = flags.has("--device") ||
                   std::any_of(k.read.begin(), k.read.end(), [](const auto& s) { return s.flag == "--device"; });
  k.device = find_device(k.args.device);
  k.settings = settings_of(k.args, k.placement, k.device);
  return k;
}

KnownRun known_run(const FlagsOfRun& flags, const std::vector<Evidence>& all) {
  std::optional<KnownRun> k;
  // What was told or read may contradict itself, the model or a flag: without it then.
  for (const bool and_told : {true, false}) try {
      if (!k) k = with_texts(flags, all, and_told);
    } catch (const Error&) {
      continue;
    }
  if (!k) {
    // Flags alone, one of which may be wrong by itself.
    k = KnownRun{.args = flags.args,
                 .placement = {.gpus = flags.gpus},
                 .read = {},
                 .told = told_by(all),
                 .device = find_device(flags.args.device),
                 .device_known = flags.has("--device")};
    k->settings = settings_of(k->args, k->placement, k->device);
  }
  if (flags.args.phases() != Phases::all)
    k->mode = flags.args.phases() == Phases::train ? Mode::training : Mode::inference;
  return *std::move(k);
}

/// What flags say of a request where no model is given.
diagnose::LengthBounds said_of(const EstimateArgs& args) {
  const Plan p = args.make_plan();
  diagnose::LengthBounds b{.seq = p.seq, .images = args.images};
  if (!args.dtype.empty()) b.element = bits(p.dtype) / 8;
  if (p.image_height > 0) b.pixels = checked_mul(args.images.value_or(1), checked_mul(p.image_height, p.image_width));
  return b;
}

/// Flags that act without a model: the phase, the device, bounds of lengths, and what is in force already.
constexpr std::array acting_without_model{"--phase",         "--device", "--seq",      "--images",
                                          "--image-size",    "--dtype",  "--weights",  "--attention",
                                          "--checkpointing", "--lora",   "--optimizer"};

/// Whether an engine with kernels of its own runs the model.
bool serves(const std::vector<Evidence>& all) {
  return std::any_of(all.begin(), all.end(), [](const Evidence& e) { return e.story.has(diagnose::Topic::serves); });
}

/// The verdict on a failed allocation.
Verdict of_failure(const diagnose::Failure& f, const KnownRun& run, const FlagsOfRun& flags,
                   const std::vector<Evidence>& all, Estimator& estimator) {
  Verdict v;
  if (!run.settings) {
    v = judge(f, said_of(flags.args));
    if (run.mode) set_mode(v, f, run.mode, std::nullopt);
  } else {
    v = judge(f, *run.settings, run.device, run.mode, estimator);
    // Settings read from a text are some of the run's: where they do not explain it, what the figures and the stack
    // say holds. Where those say nothing, a tensor of the asked size does.
    const bool explains = v.explanation && (v.explanation->holds || !v.explanation->changes.empty());
    if (flags.args.config.empty() && !explains)
      if (Verdict plain = judge(f);
          plain.cause != v.cause && (plain.cause != diagnose::Cause::unknown || v.hypotheses.empty())) {
        plain.predicted_peak = v.predicted_peak;
        plain.explanation = v.explanation;
        plain.solutions = std::move(v.solutions);
        v = std::move(plain);
      }
  }
  const bool trains = run.mode ? *run.mode == Mode::training : f.told && f.told->mode == Mode::training;
  const bool of_states = v.cause == diagnose::Cause::optimizer_state || v.cause == diagnose::Cause::gradients;
  if (run.settings && trains && (v.confidence < 0.5 || (of_states && !v.tensor))) try {
      if (auto part = diagnose::judge_partition(f, *run.settings, run.device, estimator)) {
        // What a stack says of it stays.
        if (of_states && v.confidence >= part->confidence) {
          part->cause = v.cause;
          part->confidence = v.confidence;
          part->why = v.why + " By its size " + part->why;
        } else {
          part->why = diagnose::oom_verdict::request_words(f) + "; " + part->why;
        }
        part->predicted_peak = v.predicted_peak;
        part->explanation = v.explanation;
        part->limit = v.limit;
        part->mode_by = v.mode_by;
        v = *std::move(part);
      }
    } catch (const Error&) {
      // A model that is not trained by what vlmest knows has no parts either.
    }
  const bool batch_told = flags.has("--batch") || std::any_of(run.read.begin(), run.read.end(),
                                                              [](const auto& r) { return r.flag == "--batch"; });
  const bool explained = v.explanation && (v.explanation->holds || !v.explanation->changes.empty());
  const bool unsure =
      v.cause == diagnose::Cause::unknown || (v.cause == diagnose::Cause::leak && !f.growth && v.confidence < 0.5);
  if (run.settings && trains && !batch_told && !explained && unsure) try {
      // Where nothing else was said, the memory alone says too little: the size must agree.
      auto batch = diagnose::judge_batch(f, *run.settings, run.device, v.solutions, estimator);
      if (batch && (batch->tensor || v.cause == diagnose::Cause::leak)) {
        batch->predicted_peak = v.predicted_peak;
        batch->explanation = v.explanation;
        batch->solutions = std::move(v.solutions);
        batch->limit = v.limit;
        batch->mode = v.mode;
        batch->mode_by = v.mode_by;
        v = *std::move(batch);
      }
    } catch (const Error&) {
      // A model that is not trained by what vlmest knows has no batch to be told either.
    }
  const bool answers = run.mode ? *run.mode == Mode::inference : f.told && f.told->mode == Mode::inference;
  if (run.settings && answers && v.cause == diagnose::Cause::unknown) try {
      if (auto sized = diagnose::judge_by_size(f, *run.settings, run.device, serves(all))) {
        v.cause = sized->cause;
        v.confidence = sized->confidence;
        v.tensor = std::move(sized->tensor);
        v.why += " In an inference " + sized->why;
      }
    } catch (const Error&) {
      // A model whose heads are not known is read without them.
    }
  for (const Evidence& e : all)
    if (e.failure) diagnose::name_profile_run(v, f, e.log_facts);
  if (std::any_of(all.begin(), all.end(), [](const Evidence& e) { return e.with_engine; }))
    diagnose::name_rollout_engine(v, f);
  if (std::any_of(all.begin(), all.end(), [](const Evidence& e) { return e.cut_short && !e.says_memory; })) {
    v.confidence *= confidence(diagnose::Basis::memory_is_not_said);
    v.why += " The text ends before its error: this holds if it was a lack of memory.";
  }
  return v;
}

/// Whether the sharding that was read is DeepSpeed's: FSDP's states are torch's.
bool with_deepspeed(const std::vector<diagnose::ReadSetting>& read) {
  return std::any_of(read.begin(), read.end(), [](const diagnose::ReadSetting& s) {
    return s.flag == "sharding" && s.value.starts_with("zero-");
  });
}

/// Whether settings are all that the evidence tells of a training: no figure of a failure, and none of growing memory.
bool only_settings(const KnownRun& run, const Verdict& v, const std::vector<Evidence>& all) {
  const bool trains = run.mode ? *run.mode == Mode::training : run.told && run.told->mode == Mode::training;
  if (!run.settings || !trains || v.cause != diagnose::Cause::unknown || v.confidence != 0) return false;
  return std::all_of(all.begin(), all.end(), [](const Evidence& e) {
    // Who tells of a slow run and of no memory does not ask what fills it.
    if (e.story.has(diagnose::Topic::slow) && !e.says_memory) return false;
    const bool figure = e.kind != "training_log" && e.failure && e.failure->requested;
    return !figure && !e.facts.contains("memory");
  });
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

std::vector<diagnose::FoundSign> signs_of(const std::vector<Evidence>& all) {
  std::vector<diagnose::FoundSign> r;
  for (const Evidence& e : all) r.insert(r.end(), e.signs.begin(), e.signs.end());
  return r;
}

/// Names what a model that is not known asked for by the weights, vocabularies and heads of all shipped descriptions.
void name_by_shipped(Verdict& v, const diagnose::Failure& f, const std::vector<Evidence>& evidence,
                     const Device& device) {
  const bool weight =
      !v.tensor && diagnose::weight_shape::of_parameters(v.cause) && !f.made && f.tensor && f.telling && !f.foreign;
  const bool rows = diagnose::may_name_rows(v, f);
  if (!weight && !rows) return;
  std::vector<Vlm> models;
  for (const std::string& name : shipped("vlm")) try {
      models.push_back(find_model(name));
    } catch (const Error&) {
      continue;  // a description that somebody put beside the shipped ones
    }
  std::vector<const Vlm*> all;
  for (const Vlm& m : models) all.push_back(&m);
  double told = 0;
  for (const Evidence& e : evidence) told = std::max(told, e.story.parameters);
  if (weight) diagnose::name_weight(v, f, all, device, told);
  if (rows) diagnose::name_by_public_rows(v, f, diagnose::public_rows(all, device));
}

/// Where the settings that are known do not explain what failed and several of its inputs are told by nobody: settings
/// that would.
void add_together(Verdict& v, const KnownRun& run, const FlagsOfRun& flags, const diagnose::Failure& f) {
  using diagnose::Cause;
  const bool explained = v.explanation && (v.explanation->holds || !v.explanation->changes.empty());
  // A guess leaves room for other tensors; a cause that is known does for those of its own.
  const bool sure = diagnose::cut_off::named.reached(v.confidence);
  const bool of_inputs = !sure || v.cause == Cause::activations || v.cause == Cause::logits ||
                         v.cause == Cause::attention_scores || v.cause == Cause::vision_tiles;
  if (!run.settings || explained || !of_inputs || v.tensor || f.foreign || f.outside || f.program || f.whole_graph)
    return;
  const auto told = [&](std::initializer_list<const char*> words) {
    return std::any_of(words.begin(), words.end(), [&](const char* w) {
      return flags.has(w) || std::any_of(run.read.begin(), run.read.end(), [&](const auto& r) { return r.flag == w; });
    });
  };
  // A video's frames are no pictures, and are not looked for.
  if (told({"--frames", "--video-size", "--fps", "--audio-seconds"})) return;
  const diagnose::ToldInputs inputs{.batch = told({"--batch"}),
                                    .length = told({"--seq", "--text"}),
                                    .images = told({"--images"}),
                                    .image_size = told({"--image-size"})};
  if (inputs.unknown() < 2) return;
  const bool training = v.mode ? *v.mode == Mode::training : f.told && f.told->mode == Mode::training;
  try {
    v.together = diagnose::solve_together(run.settings->vlm, run.settings->plan, inputs, run.device, training, f,
                                          sure ? v.cause : Cause::unknown);
  } catch (const Error&) {
    return;  // a model that does not run as it is given
  }
  const auto& likeliest = v.together.likeliest;
  if (likeliest.empty()) return;
  v.why += " Of batch, length and pictures not all are told; one of " + std::to_string(v.together.found) +
           " settings that explain the size is " + diagnose::together_words(likeliest.front()) + ".";
  // What all of them say of the tensor holds whichever of them it was.
  const bool one_kind = std::all_of(likeliest.begin(), likeliest.end(), [&](const diagnose::TogetherSolution& s) {
    return s.tensor.name == likeliest.front().tensor.name && s.tensor.scope == likeliest.front().tensor.scope &&
           s.tensor.dtype == likeliest.front().tensor.dtype;
  });
  if (one_kind && v.cause == likeliest.front().cause) v.tensor = likeliest.front().tensor;
}

/// The same by the widths of models that are not shipped.
void name_by_public(Verdict& v, const diagnose::Failure& f, const std::vector<Evidence>& evidence) {
  diagnose::ToldModel told;
  for (const Evidence& e : evidence) {
    told.parameters = std::max(told.parameters, e.story.parameters);
    if (const auto& bits = e.story[diagnose::Topic::few_bits])
      told.eight_bits = told.eight_bits || bits->words.find('8') != std::string::npos;
  }
  diagnose::name_by_widths(v, f, told);
}

/// Parameters of the model where its weights have 16 bits; 0 otherwise, and of a model that does not run as it is
/// given.
double parameters_of(const diagnose::Settings& s, const Device& device) try {
  if (s.plan.weights) return 0;
  diagnose::solve::Builds builds(s.vlm, device, false);
  if (!builds.build(diagnose::solve::short_prompt(s.vlm))) return 0;
  return static_cast<double>(parameters(builds.graph()).total().value());
} catch (const Error&) {
  return 0;
}

/// Where figures and stacks name no cause, or name one with less right than the words of a text: what the words tell.
void add_story(Verdict& v, const KnownRun& run, const std::optional<diagnose::Failure>& failure,
               const std::vector<Evidence>& all) {
  for (const Evidence& e : all) {
    if (e.other_failure) continue;
    diagnose::StoryContext c{.mode = run.mode,
                             .says_memory = e.says_memory || e.out_of_memory,
                             .with_engine = e.with_engine,
                             .named = failure && v.cause != diagnose::Cause::unknown};
    if (!c.mode && failure && failure->told) c.mode = failure->told->mode;
    if (!c.mode && run.told) c.mode = run.told->mode;
    if (e.kind == "oom_message" && e.failure) c.failure = &*e.failure;
    const auto gpus = std::any_of(run.read.begin(), run.read.end(), [](const auto& r) { return r.flag == "--gpus"; });
    if (run.placement.gpus > 1 || gpus) c.gpus = run.placement.gpus;
    if (run.settings) c.parameters = parameters_of(*run.settings, run.device);
    if (run.device_known) c.device = static_cast<double>(run.device.memory_bytes.value());
    if (v.cause == diagnose::Cause::attention_scores && c.failure != nullptr &&
        diagnose::speaks_of_logits(e.story, *c.failure, c.mode))
      v = Verdict{.why = v.why + " But the text speaks of logits.",
                  .named_by_model = v.named_by_model,
                  .mode = v.mode,
                  .mode_by = v.mode_by};
    const auto told = diagnose::judge_story(e.story, c);
    if (!told || told->confidence <= v.confidence) continue;
    v.cause = told->cause;
    v.confidence = told->confidence;
    v.why += (v.why.empty() ? "" : " ") + told->why;
  }
}

}  // namespace

bool FlagsOfRun::has(const std::string& flag) const {
  return std::find(given.begin(), given.end(), flag) != given.end();
}

Diagnosis diagnosis_of(std::vector<Evidence> evidence, const FlagsOfRun& flags) {
  KnownRun run = known_run(flags, evidence);
  Diagnosis d;
  d.evidence = std::move(evidence);
  d.read = run.read;
  if (!run.settings)
    std::copy_if(flags.given.begin(), flags.given.end(), std::back_inserter(d.unused), [](const std::string& flag) {
      return std::find(acting_without_model.begin(), acting_without_model.end(), flag) == acting_without_model.end();
    });
  const bool failed = std::any_of(d.evidence.begin(), d.evidence.end(), [](const auto& e) { return e.out_of_memory; });
  std::optional<diagnose::Failure> failure = failure_of(d.evidence);
  if (failure && flags.has("--device")) failure = diagnose::on_device(*std::move(failure), run.device.memory_bytes);
  if (failure && !failure->told) failure->told = run.told;
  Estimator estimator;
  if (run.settings) estimator.allocator = run.settings->allocator;

  if (failed && failure)
    d.verdict = of_failure(*failure, run, flags, d.evidence, estimator);
  else if (auto v = other_verdict(d.evidence))
    d.verdict = *std::move(v);
  else if (failure)
    d.verdict = of_peak(*failure);
  bool estimated = false;
  if (only_settings(run, d.verdict, d.evidence)) {
    try {
      Verdict v = diagnose::judge_settings(
          *run.settings, run.device, {.device = run.device_known, .deepspeed = with_deepspeed(run.read)}, estimator);
      v.mode_by = run.mode ? "--phase" : run.told->by;
      v.remarks = d.verdict.remarks;
      d.verdict = std::move(v);
      estimated = true;
    } catch (const Error&) {
      // A model that is not trained by what vlmest knows: what the text says stays.
    }
  }

  for (const Evidence& e : d.evidence)
    if (e.of_budget && run.settings && run.mode != Mode::training) try {
        const auto need = diagnose::kv_need(e.log_facts, *run.settings, run.device, estimator);
        if (auto v = diagnose::judge_engine_budget(e.log_facts, need)) d.verdict = *std::move(v);
      } catch (const Error&) {
        // A model that does not run as it is given has no cache either: what the log says stays.
      }

  add_story(d.verdict, run, failure, d.evidence);

  if (run.settings && failed && run.placement.gpus > 1 && d.verdict.mode == Mode::inference)
    d.verdict.remarks.push_back("the figures of the settings are of a GPU that holds the whole model: of " +
                                std::to_string(run.placement.gpus) +
                                " GPUs that divide it (device_map, tensor parallelism) each holds a part");
  if (failed && failure && !run.settings) name_by_shipped(d.verdict, *failure, d.evidence, run.device);
  if (failed && failure) try {
      diagnose::name_tensor(d.verdict, *failure, run.settings ? &*run.settings : nullptr, run.device);
    } catch (const Error&) {
      // A model whose heads are not known has no scores to name.
    }
  if (failed && failure && !run.settings) name_by_public(d.verdict, *failure, d.evidence);
  if (failed && failure) add_together(d.verdict, run, flags, *failure);

  if (d.verdict.named_by_model && !d.verdict.tensor && !run.settings)
    d.verdict.why += " With --config the tensor can be named.";

  if (failure) {
    d.actions = diagnose::memory_remedies(d.verdict, *failure);
    for (std::string& r : diagnose::second_remarks(d.verdict, *failure)) d.verdict.remarks.push_back(std::move(r));
  }
  const std::vector<diagnose::FoundSign> signs = signs_of(d.evidence);
  for (diagnose::Action& a : diagnose::sign_actions(d.verdict, signs)) d.actions.push_back(std::move(a));
  for (const Evidence& e : d.evidence)
    if (e.slow)
      for (auto& a : diagnose::time_remedies(*e.slow)) d.actions.push_back(std::move(a));
  // Whose settings act is told by the failure's frames, or by the lines of a text without one.
  diagnose::Failure of = failure.value_or(diagnose::Failure{});
  if (!failure) of.foreign = diagnose::of_other_runtime(signs);
  if (run.settings && ((failed && failure) || estimated)) {
    const Plan plan = run.settings->plan;
    const bool pictures = takes_images(run.settings->vlm);
    add_estimated_actions(d, *std::move(run.settings), run.device, of, estimator);
    const auto& e = d.verdict.explanation;
    // Of a model without pictures not every generic action is one.
    if (pictures && !(e && (e->holds || !e->changes.empty())))
      put_cause_first(d, of, {.mode = d.verdict.mode, .plan = &plan});
  } else if (d.verdict.limit || failed || d.verdict.cause != diagnose::Cause::unknown) {
    // Without a model flags tell which actions are in force.
    const Plan said = flags.args.make_plan();
    add_generic_actions(d, of,
                        {.mode = run.mode ? run.mode : d.verdict.mode,
                         .plan = &said,
                         .gpu = run.device_known ? gpu_of(run.device) : Gpu{}});
  }
  // What is in pieces would have served this request, and the next one hardly, where something else fills the memory.
  if (d.verdict.cause != diagnose::Cause::fragmentation && d.verdict.cause != diagnose::Cause::unknown)
    std::stable_partition(d.actions.begin(), d.actions.end(), [](const diagnose::Action& a) { return !a.of_reserved; });
  return d;
}

}  // namespace vlmest::tool
