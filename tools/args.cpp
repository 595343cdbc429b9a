// SPDX-License-Identifier: Apache-2.0
#include "args.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>

#include <fmt/core.h>
#include <unistd.h>

#include <vlmest/allocator/config_text.hpp>

namespace vlmest::tool {
namespace {

/// The value that `text` names, or an error that lists the names.
template <class T>
T choice(const std::string& flag, const std::string& text, const std::vector<std::pair<std::string, T>>& known) {
  std::string names;
  for (const auto& [name, value] : known) {
    if (name == text) return value;
    names += (names.empty() ? "" : ", ") + name;
  }
  throw CLI::ValidationError(flag, "'" + text + "' is not one of " + names);
}

/// "q" is short for "q_proj", and so on.
std::string module_name(const std::string& target) {
  for (const char* shorthand : {"q", "k", "v", "o", "gate", "up", "down"})
    if (target == shorthand) return target + "_proj";
  return target;
}

/// "672x1008,336x336".
std::vector<PixelSize> pixel_sizes(const std::string& text) {
  std::vector<PixelSize> r;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t to = std::min(text.find(',', from), text.size());
    const std::string one = text.substr(from, to - from);
    long h = 0, w = 0;
    int used = 0;
    if (std::sscanf(one.c_str(), "%9ldx%9ld%n", &h, &w, &used) != 2 || static_cast<std::size_t>(used) != one.size() ||
        h < 1 || w < 1)
      throw CLI::ValidationError("--image-size", "'" + one + "' is not HEIGHTxWIDTH, such as 672x1008");
    r.push_back({h, w});
    from = to + 1;
  }
  return r;
}

constexpr std::int64_t largest_count = std::int64_t{1} << 31;

}  // namespace

void Output::add_to(CLI::App& app) {
  app.add_option_function<std::string>(
         "--format",
         [this](const std::string& s) {
           format = choice<Format>(
               "--format", s,
               {{"text", Format::text}, {"json", Format::json}, {"markdown", Format::markdown}, {"csv", Format::csv}});
         },
         "text, json, markdown or csv")
      ->type_name("FORMAT");
  app.add_flag_callback(
      "--json", [this] { format = Format::json; }, "short for --format json");
  app.add_option("--output", file, "write there instead of to standard output")->type_name("FILE");
  app.add_option("--color", color, "auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->type_name("WHEN");
}

bool Output::colored() const {
  if (format != Format::text || color == "never" || !file.empty()) return color == "always" && format == Format::text;
  if (color == "always") return true;
  const char* off = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) != 0 && (off == nullptr || *off == '\0');
}

void Output::write(const std::string& text) const {
  if (file.empty()) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return;
  }
  std::ofstream out(file, std::ios::binary);
  out << text;
  if (!out.flush()) throw Error(flag, "cannot write " + file, "check the folder and its permissions");
}

allocator::AllocatorConfig allocator_settings(const std::string& text, const allocator::AllocatorConfig& base) {
  try {
    return allocator::parse_allocator_config(text, base);
  } catch (const Error& e) {
    throw Error("--alloc-conf", e.where + " " + e.what_happened, e.hint);
  }
}

void EstimateArgs::add_run_to(CLI::App& app) {
  app.add_option("--config", config, "a description, a config.json, a folder with one, or a shipped model's name")
      ->type_name("FILE")
      ->required();
  app.add_option("--device", device, "a shipped device or a file [h200-sxm]")->type_name("NAME|FILE");
  app.add_option("--batch", plan.batch, "sequences per GPU [1]")
      ->check(CLI::Range(std::int64_t{1}, largest_count))
      ->type_name("N");
  app.add_option("--seq", seq, "LLM tokens per sequence, visual ones included")
      ->check(CLI::Range(std::int64_t{1}, largest_count))
      ->type_name("N");
  app.add_option("--text", text, "text tokens per sequence, instead of --seq [256]")
      ->check(CLI::Range(std::int64_t{0}, largest_count))
      ->type_name("N");
  app.add_option("--images", images, "images per sequence [1]")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{4096}))
      ->type_name("N");
  app.add_option("--image-size", image_size,
                 "their size in pixels, before any resize; of several, sequences take turns [the model's own]")
      ->type_name("HxW[,HxW]");
  app.add_option("--vision-chunk", plan.vision_chunk, "images or tiles that the vision tower sees at a time [all]")
      ->check(CLI::Range(std::int64_t{1}, largest_count))
      ->type_name("N");
  app.add_option("--new-tokens", plan.new_tokens, "tokens to decode after the prefill [128]")
      ->check(CLI::Range(std::int64_t{1}, largest_count))
      ->type_name("N");
  app.add_option("--dtype", dtype, "weights and activations: bf16, fp16 or fp32 [config.json's, or bf16]")
      ->type_name("TYPE");
  app.add_flag("--amp", plan.amp, "fp32 weights under bf16 autocast");
  app.add_option("--weights", weights,
                 "storage of the language model's weights, instead of config.json's: bf16, fp16, int8, int4, nf4, fp8")
      ->type_name("TYPE");
  app.add_option("--kv", kv, "storage of the KV cache: bf16, fp16, fp8, int8")->type_name("TYPE");
  app.add_option("--attention", attention, "eager, sdpa or flash [sdpa]")->type_name("KIND");
  app.add_option("--profile", profile, "transformers or fused [transformers]")->type_name("NAME");
  app.add_option("--logits", logits, "positions whose logits the prefill computes: last or all [last]")
      ->type_name("WHICH");
  app.add_option("--optimizer", optimizer,
                 "adamw, adamw-fused, adamw-8bit, adamw-bnb-8bit, sgd, sgd-momentum or adafactor [adamw]")
      ->type_name("NAME");
  app.add_option("--checkpointing", checkpointing,
                 "activations to compute again: none, full, selective, or vision alone [none]")
      ->type_name("WHICH");
  app.add_option("--checkpoint-layers", checkpoint_layers, "so many of the language model's layers, the first [all]")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 10))
      ->type_name("N");
  app.add_option("--freeze", freeze, "vision, projector, language")->delimiter(',')->type_name("PART[,PART]");
  app.add_option("--lora", plan.lora.rank, "rank of adapters on the language model; the rest is frozen")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 16))
      ->type_name("R");
  app.add_option("--lora-targets", lora_targets, "linear modules with adapters [q,k,v,o]")
      ->delimiter(',')
      ->type_name("NAME[,NAME]");
  app.add_flag("--lora-vision", plan.lora.vision, "adapters on the vision tower's modules of these names too");
  app.add_option("--lora-dropout", lora_dropout, "their dropout probability [0]")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("P");
  app.add_option("--input-gradients", input_gradients, "gradients of the embeddings' results: auto, on or off [auto]")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->type_name("WHEN");
  app.add_option("--loss", loss, "unfused, fused or chunked [unfused]")->type_name("KIND");
  app.add_option("--gradient-accumulation", plan.gradient_accumulation, "micro-batches per step [1]")
      ->check(CLI::Range(1, 1 << 20))
      ->type_name("N");
}

void EstimateArgs::add_to(CLI::App& app) {
  add_run_to(app);
  app.add_option("--phase", phase, "inference, train or all [all]")
      ->check(CLI::IsMember({"inference", "train", "all"}))
      ->type_name("PHASE");
  app.add_flag("--per-layer", per_layer, "the table per layer");
  app.add_option("--top", top, "tensors of the peak to list [10]")->check(CLI::Range(0, 1 << 20))->type_name("N");
  app.add_option("--fail-on", fail_on, "oom: exit with 1 when it does not fit")
      ->check(CLI::IsMember({"oom"}))
      ->type_name("WHAT");
  app.add_option("--alloc-conf", alloc_conf, "settings of PyTorch's allocator, as in PYTORCH_ALLOC_CONF")
      ->type_name("KEY:VALUE,...");
  app.add_option("--timeline", timeline, "memory over time: a trace for Perfetto, or FILE.csv")->type_name("FILE");
  app.add_option("--timeline-min", timeline_min, "smallest tensor with a slice of its own in a trace [1MiB]")
      ->type_name("SIZE");
}

Phases EstimateArgs::phases() const {
  return phase == "inference" ? Phases::inference : phase == "train" ? Phases::train : Phases::all;
}

Plan EstimateArgs::make_plan() const {
  Plan p = plan;
  if (seq && text) throw CLI::ValidationError("--seq", "cannot be given together with --text");
  p.seq = seq;
  if (text) p.text = *text;
  if (images) p.images = *images;
  if (!image_size.empty()) {
    p.more_sizes = pixel_sizes(image_size);
    p.image_height = p.more_sizes.front().height;
    p.image_width = p.more_sizes.front().width;
    p.more_sizes.erase(p.more_sizes.begin());
  }
  if (!dtype.empty())
    p.dtype = choice<DType>("--dtype", dtype, {{"bf16", DType::bf16}, {"fp16", DType::fp16}, {"fp32", DType::fp32}});
  if (p.amp) p.dtype = DType::fp32;
  if (!weights.empty())
    p.weights = choice<DType>("--weights", weights,
                              {{"bf16", DType::bf16},
                               {"fp16", DType::fp16},
                               {"fp8", DType::fp8},
                               {"int8", DType::int8},
                               {"int4", DType::int4},
                               {"nf4", DType::nf4}});
  if (!kv.empty())
    p.kv.dtype = choice<DType>("--kv", kv,
                               {{"bf16", DType::bf16},
                                {"fp16", DType::fp16},
                                {"fp32", DType::fp32},
                                {"fp8", DType::fp8},
                                {"int8", DType::int8},
                                {"int4", DType::int4}});
  p.attention = choice<AttentionKind>(
      "--attention", attention,
      {{"eager", AttentionKind::eager}, {"sdpa", AttentionKind::sdpa}, {"flash", AttentionKind::flash}});
  p.profile =
      choice<Profile>("--profile", profile, {{"transformers", Profile::transformers}, {"fused", Profile::fused}});
  p.logits = choice<Logits>("--logits", logits, {{"last", Logits::last}, {"all", Logits::all}});
  p.optimizer = choice<Optimizer>("--optimizer", optimizer,
                                  {{"adamw", Optimizer::adamw},
                                   {"adamw-fused", Optimizer::adamw_fused},
                                   {"adamw-8bit", Optimizer::adamw_8bit},
                                   {"adamw-bnb-8bit", Optimizer::adamw_bnb_8bit},
                                   {"sgd", Optimizer::sgd},
                                   {"sgd-momentum", Optimizer::sgd_momentum},
                                   {"adafactor", Optimizer::adafactor}});
  p.checkpointing = choice<Checkpointing>("--checkpointing", checkpointing,
                                          {{"none", Checkpointing::off},
                                           {"full", Checkpointing::full},
                                           {"selective", Checkpointing::selective},
                                           {"vision", Checkpointing::full}});
  p.checkpointed.language = checkpointing != "vision";
  p.checkpointed.layers = checkpoint_layers;
  if (checkpoint_layers && (p.checkpointing == Checkpointing::off || !p.checkpointed.language))
    throw CLI::ValidationError("--checkpoint-layers", "needs --checkpointing full or selective");
  p.loss =
      choice<Loss>("--loss", loss, {{"unfused", Loss::unfused}, {"fused", Loss::fused}, {"chunked", Loss::chunked}});
  p.lora.dropout = lora_dropout > 0;
  if (input_gradients != "auto") p.input_gradients = input_gradients == "on";
  if (p.lora.rank == 0 && (!lora_targets.empty() || p.lora.vision || p.lora.dropout))
    throw CLI::ValidationError("--lora", "the other --lora flags need a rank: --lora R");
  if (!lora_targets.empty()) {
    p.lora.targets.clear();
    for (const auto& t : lora_targets) p.lora.targets.push_back(module_name(t));
  }
  for (const auto& part : freeze) {
    if (part == "vision")
      p.trainable.vision = false;
    else if (part == "projector")
      p.trainable.projector = false;
    else if (part == "language")
      p.trainable.language = false;
    else
      throw CLI::ValidationError("--freeze", "'" + part + "' is not one of vision, projector, language");
  }
  return p;
}

}  // namespace vlmest::tool
