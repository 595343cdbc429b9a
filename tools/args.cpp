// SPDX-License-Identifier: Apache-2.0
#include "args.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include <unistd.h>

#include <vlmest/allocator/config_text.hpp>
#include <vlmest/nn/audio/layout.hpp>
#include <vlmest/nn/image_processor/video.hpp>
#include <vlmest/nn/sequence_layout.hpp>
#include <vlmest/nn/stack/registry.hpp>

#include "options.hpp"
#include "streams.hpp"

namespace vlmest::tool {
namespace {

/// Types that a flag may be given, in the order in which --help lists them.
constexpr std::array activation_types{DType::bf16, DType::fp16, DType::fp32};
constexpr std::array weight_types{DType::bf16, DType::fp16, DType::fp8, DType::int8, DType::int4, DType::nf4};
constexpr std::array kv_types{DType::bf16, DType::fp16, DType::fp32, DType::fp8, DType::int8, DType::int4};
constexpr std::array trainable_parts{Part::vision, Part::projector, Part::language, Part::audio};
/// Beside Checkpointing's: all layers of the tower alone.
constexpr std::string_view tower_alone = name(Part::vision);

std::vector<std::string> checkpointing_words() {
  std::vector<std::string> r = words<Checkpointing>();
  r.emplace_back(tower_alone);
  return r;
}

/// "Hugging Face's or an idealised stack [transformers]", of all runtimes and the default one.
std::string runtimes_in_words() {
  std::string r;
  for (const Stack* stack : stacks::registry) {
    if (!r.empty()) r += stack == stacks::registry.back() ? " or " : ", ";
    r += stack->kernels;
  }
  return r + " [" + std::string(name(Runtime{})) + "]";
}

/// "q" is short for "q_proj", and so on.
std::string module_name(const std::string& target) {
  for (const char* shorthand : {"q", "k", "v", "o", "gate", "up", "down"})
    if (target == shorthand) return target + "_proj";
  return target;
}

/// "672x1008,336x336".
std::vector<PixelSize> pixel_sizes(const std::string& text, const char* flag = "--image-size") {
  constexpr std::int64_t most_pixels = std::int64_t{1} << 20;
  std::vector<PixelSize> r;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t to = std::min(text.find(',', from), text.size());
    const std::string one = text.substr(from, to - from);
    const std::size_t by = std::min(one.find('x'), one.size());
    const auto height = whole_number(one.substr(0, by));
    const auto width = whole_number(one.substr(std::min(by + 1, one.size())));
    if (!height || !width) throw CLI::ValidationError(flag, "'" + one + "' is not HEIGHTxWIDTH, such as 672x1008");
    if (*height < 1 || *width < 1 || *height > most_pixels || *width > most_pixels)
      throw CLI::ValidationError(flag, "'" + one + "': each side has 1 to 1048576 pixels");
    r.push_back({*height, *width});
    from = to + 1;
  }
  return r;
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> formats_of_names{{{".html", "html"},
                                                                                         {".htm", "html"},
                                                                                         {".svg", "svg"},
                                                                                         {".json", "json"},
                                                                                         {".md", "markdown"},
                                                                                         {".csv", "csv"},
                                                                                         {".txt", "text"}}};

}  // namespace

std::optional<std::string> format_of_name(const std::string& file) {
  std::string lower = file;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const auto& [ending, format] : formats_of_names)
    if (lower.ends_with(ending)) return std::string(format);
  return std::nullopt;
}

std::string chosen_format(const CLI::App& app, const std::vector<std::string>& known, const std::string& fallback) {
  const CLI::Option& format = *app.get_option("--format");
  const CLI::Option& output = *app.get_option("--output");
  std::string r = format.count() > 0 ? format.as<std::string>() : "";
  std::string by = "--format " + r;
  if (app.get_option("--json")->count() > 0) {
    if (!r.empty() && r != "json")
      throw UsageError("--json", "contradicts --format " + r, "give one of them: --json is --format json");
    r = "json";
    by = "--json";
  }
  const std::string file = output.count() > 0 ? output.as<std::string>() : "";
  const auto named = format_of_name(file);
  if (!named) return r.empty() ? fallback : r;
  // Text is what a .txt holds, and any format is text.
  if (*named == "text") return r.empty() ? "text" : r;
  if (!r.empty() && r != *named)
    throw UsageError("--output", "the name '" + file + "' asks for " + *named + ", and " + by + " for another format",
                     "leave " + by + " out, or name the file otherwise");
  if (std::find(known.begin(), known.end(), *named) == known.end())
    throw UsageError("--output", "the name '" + file + "' asks for " + *named + ", which this command does not write",
                     "name it otherwise, or write another format");
  return *named;
}

void Output::add_to(CLI::App& app) {
  const auto flags = [](CLI::Option* o) { o->group("Output"); };
  flags(add_choice(app, "--format", asked, "how it is written [as --output is named, or text]", words<Format>()));
  flags(app.add_flag_callback(
      "--json", [] {}, "short for --format json"));
  flags(app.add_option("--output", file,
                       "write there instead of to standard output; .json, .md and .csv decide the format")
            ->type_name("FILE"));
  flags(add_choice(app, "--color", color, "colours of a text [auto: on a terminal]", {"auto", "always", "never"}));
}

void Output::resolve(const CLI::App& app) {
  const std::string chosen = chosen_format(app, words<Format>(), "text");
  format = choice<Format>("--format", chosen);
  if (color == "always" && format != Format::text)
    throw UsageError("--color", "there are no colours in " + chosen, "leave it out, or write text");
}

bool Output::colored() const {
  if (format != Format::text || color == "never" || !file.empty()) return color == "always" && format == Format::text;
  if (color == "always") return true;
  const char* off = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) != 0 && (off == nullptr || *off == '\0');
}

void Output::write(const std::string& text) const {
  if (file.empty()) {
    write_answer(text);
    return;
  }
  std::ofstream out(file, std::ios::binary);
  if (!out) throw Error(flag, "cannot write " + file, "check the folder and its permissions");
  out << text;
  if (!out.flush()) throw WriteError(flag, "cannot write all of " + file, "check that there is space left");
}

allocator::AllocatorConfig allocator_settings(const std::string& text, const allocator::AllocatorConfig& base) {
  try {
    return allocator::parse_allocator_config(text, base);
  } catch (const Error& e) {
    throw Error("--alloc-conf", e.where + " " + e.what_happened, e.hint);
  }
}

void EstimateArgs::add_run_to(CLI::App& app, const std::vector<std::string>& phases, const std::string& phase_help) {
  const auto in = [](const char* group, CLI::Option* o) { return o->group(group); };
  const char* const model = "Model and inputs";
  in(model, app.add_option("--config", config,
                           "a description, a config.json, a folder with one, or a shipped model's name or Hugging "
                           "Face id")
                ->type_name("FILE|MODEL")
                ->required());
  in(model, add_whole(app, "--batch", plan.batch, "sequences per GPU [1]", 1, most_sequences));
  in(model, add_whole(app, "--seq", seq, "LLM tokens per sequence, visual ones included", 1));
  in(model, add_whole(app, "--text", text, "text tokens per sequence, instead of --seq [256]", 0));
  in(model, add_whole(app, "--images", images, "images per sequence [1]", 0));
  in(model,
     app.add_option("--image-size", image_size,
                    "their size in pixels, before any resize; of several, sequences take turns [the model's own]")
         ->type_name("HxW[,HxW]"));
  in(model, add_whole(app, "--frames", frames,
                      "frames of a video in each sequence, handed over as they are; alone, without images", 1,
                      image_processor::max_frames));
  in(model, add_decimal(app, "--fps", fps,
                        "frames a second: what the processor samples, or of --frames those there are [the processor's]",
                        0.001, 1000, "F"));
  in(model,
     add_decimal(app, "--video-seconds", video_seconds,
                 "length of a video that the processor samples, or that --frames were taken of", 0.001, 1e5, "S"));
  in(model, add_decimal(app, "--recorded-fps", recorded_fps, "frames a second of the video that is sampled [30]", 0.001,
                        1000, "F"));
  in(model, app.add_option("--video-size", video_size, "size of its frames in pixels, before any resize [as images]")
                ->type_name("HxW"));
  in(model,
     add_decimal(app, "--audio-seconds", audio_seconds,
                 "length of each clip of sound in a sequence; alone, without images", 0.001, audio::most_seconds, "S"));
  in(model, add_whole(app, "--audio-clips", audio_clips, "clips of sound per sequence [1]", 1, most_sequences));
  in(model, add_whole(app, "--instruction", instruction,
                      "tokens of the text as InstructBLIP's Q-Former reads it [as many as of text]", 1,
                      std::int64_t{1} << 31));
  in(model, add_whole(app, "--vision-chunk", plan.vision_chunk,
                      "images or tiles that the vision tower sees at a time [all]", 1, most_sequences));
  const char* const run = "How it runs";
  in(run, add_choice(app, "--phase", phase, phase_help, phases));
  in(run,
     add_choice(app, "--dtype", dtype, "weights and activations [config.json's, or bf16]", words(activation_types)));
  in(run, app.add_flag("--amp", plan.amp, "fp32 weights under bf16 autocast"));
  in(run, add_choice(app, "--weights", weights,
                     "storage of the language model's weights [config.json's, or as --dtype]", words(weight_types)));
  in(run, add_choice(app, "--attention", attention, "implementation of attention [sdpa]", words<AttentionKind>()));
  in(run, add_choice(app, "--profile", profile, "whose kernels run: " + runtimes_in_words(), words<Runtime>()));
  in(run, app.add_option("--packages", packages,
                         "installed packages whose kernels transformers takes: " + listed(words<KernelPackage>()))
              ->delimiter(',')
              ->type_name("NAME[,NAME]"));
  const char* const inference = "Inference";
  in(inference, add_whole(app, "--new-tokens", plan.new_tokens, "tokens to decode after the prefill [128]", 1,
                          std::int64_t{1} << 31));
  in(inference, add_whole(app, "--denoising-steps", denoising_steps,
                          "steps of each canvas, of a model that denoises them [48]", 1, std::int64_t{1} << 31));
  in(inference, add_choice(app, "--kv", kv, "storage of the KV cache [as --dtype]", words(kv_types)));
  in(inference,
     add_choice(app, "--logits", logits, "positions whose logits the prefill computes [last]", words<Logits>()));
  const char* const training = "Training";
  in(training, add_whole(app, "--target", target, "tokens of an encoder-decoder model's labels [as --new-tokens]", 1,
                         std::int64_t{1} << 31));
  in(training, add_choice(app, "--optimizer", optimizer, "the optimizer [adamw]", words<Optimizer>()));
  in(training,
     add_choice(app, "--checkpointing", checkpointing,
                "activations to compute again: of all layers, fewer of each, or the vision tower's alone [none]",
                checkpointing_words()));
  in(training, add_whole(app, "--checkpoint-layers", checkpoint_layers,
                         "so many of the language model's layers, the first [all]", 1));
  in(training, app.add_option("--freeze", freeze, "parts that are not trained: " + listed(words(trainable_parts)))
                   ->delimiter(',')
                   ->type_name("PART[,PART]"));
  in(training, add_whole(app, "--lora", plan.lora.rank, "rank of adapters on the language model; the rest is frozen", 1,
                         std::int64_t{1} << 16, "R"));
  in(training, app.add_option("--lora-targets", lora_targets, "linear modules with adapters [q,k,v,o]")
                   ->delimiter(',')
                   ->type_name("NAME[,NAME]"));
  in(training,
     app.add_flag("--lora-vision", plan.lora.vision, "adapters on the vision tower's modules of these names too"));
  in(training, add_decimal(app, "--lora-dropout", lora_dropout, "their dropout probability [0]", 0, 1, "P"));
  in(training, add_choice(app, "--input-gradients", input_gradients, "gradients of the embeddings' results [auto]",
                          {"auto", "on", "off"}));
  in(training, add_choice(app, "--loss", loss, "how the loss is computed [unfused]", words<Loss>()));
  in(training, add_whole(app, "--gradient-accumulation", plan.gradient_accumulation, "micro-batches per step [1]", 1));
  in("Device", app.add_option("--device", device, "a shipped device or a file [h200-sxm]")->type_name("NAME|FILE"));
}

void EstimateArgs::add_alloc_conf_to(CLI::App& app) {
  app.add_option("--alloc-conf", alloc_conf, "settings of PyTorch's allocator, as in PYTORCH_ALLOC_CONF")
      ->type_name("KEY:VALUE,...")
      ->group("Device");
}

void EstimateArgs::add_to(CLI::App& app) {
  add_run_to(app, words<Phases>(), "what to estimate [all]");
  add_alloc_conf_to(app);
  const auto report = [](CLI::Option* o) { o->group("Report"); };
  report(app.add_flag("--per-layer", per_layer, "the table per layer"));
  report(add_whole(app, "--top", top, "tensors of the peak to list [10]", 0));
  report(add_choice(app, "--fail-on", fail_on, "exit with 1 when it does not fit", {"oom"}));
  report(
      app.add_option("--timeline", timeline, "memory over time: a trace for Perfetto, or FILE.csv")->type_name("FILE"));
  report(app.add_option("--timeline-min", timeline_min, "smallest tensor with a slice of its own in a trace [1MiB]")
             ->type_name("SIZE"));
}

Phases EstimateArgs::phases() const { return value_of<Phases>(phase).value_or(Phases::all); }

Plan EstimateArgs::make_plan() const {
  Plan p = plan;
  if (seq && text) throw CLI::ValidationError("--seq", "cannot be given together with --text");
  p.seq = seq;
  p.target = target;
  p.denoising_steps = denoising_steps;
  p.instruction = instruction;
  if (text) p.text = *text;
  if (images) p.images = *images;
  if (!image_size.empty()) {
    p.more_sizes = pixel_sizes(image_size);
    p.image_height = p.more_sizes.front().height;
    p.image_width = p.more_sizes.front().width;
    p.more_sizes.erase(p.more_sizes.begin());
  }
  if (frames || video_seconds) {
    p.video = VideoPlan{.frames = frames, .fps = fps, .seconds = video_seconds, .recorded = recorded_fps};
    if (!images) p.images = 0;
    if (!video_size.empty()) {
      const std::vector<PixelSize> sizes = pixel_sizes(video_size, "--video-size");
      if (sizes.size() > 1) throw CLI::ValidationError("--video-size", "takes one size");
      p.video->height = sizes.front().height;
      p.video->width = sizes.front().width;
    }
  }
  if (audio_seconds) {
    p.audio = AudioPlan{.seconds = *audio_seconds, .clips = audio_clips.value_or(1)};
    if (!images) p.images = 0;
  }
  if (!dtype.empty()) p.dtype = choice("--dtype", dtype, activation_types);
  if (p.amp) p.dtype = DType::fp32;
  if (!weights.empty()) p.weights = choice("--weights", weights, weight_types);
  if (!kv.empty()) p.kv.dtype = choice("--kv", kv, kv_types);
  p.attention = choice<AttentionKind>("--attention", attention);
  p.runtime = choice<Runtime>("--profile", profile);
  for (const auto& package : packages) p.packages.add(choice<KernelPackage>("--packages", package));
  p.logits = choice<Logits>("--logits", logits);
  p.optimizer = choice<Optimizer>("--optimizer", optimizer);
  expect_one_of("--checkpointing", checkpointing, checkpointing_words());
  p.checkpointing = value_of<Checkpointing>(checkpointing).value_or(Checkpointing::full);
  p.checkpointed.language = checkpointing != tower_alone;
  p.checkpointed.layers = checkpoint_layers;
  if (checkpoint_layers && (p.checkpointing == Checkpointing::off || !p.checkpointed.language))
    throw CLI::ValidationError("--checkpoint-layers", "needs --checkpointing full or selective");
  p.loss = choice<Loss>("--loss", loss);
  p.lora.dropout = lora_dropout > 0;
  if (input_gradients != "auto") p.input_gradients = input_gradients == "on";
  if (p.lora.rank == 0 && (!lora_targets.empty() || p.lora.vision || p.lora.dropout))
    throw CLI::ValidationError("--lora", "the other --lora flags need a rank: --lora R");
  if (!lora_targets.empty()) {
    p.lora.targets.clear();
    for (const auto& t : lora_targets) p.lora.targets.push_back(module_name(t));
  }
  for (const auto& part : freeze) switch (choice("--freeze", part, trainable_parts)) {
      case Part::vision: p.trainable.vision = false; break;
      case Part::projector: p.trainable.projector = false; break;
      case Part::audio: p.trainable.audio = false; break;
      default: p.trainable.language = false; break;
    }
  return p;
}

}  // namespace vlmest::tool
