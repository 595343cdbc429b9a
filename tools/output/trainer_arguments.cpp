// SPDX-License-Identifier: Apache-2.0
#include "trainer_arguments.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/core.h>

#include <vlmest/transform/training_step.hpp>

namespace vlmest::tool {
namespace {

using diagnose::Settings;
using diagnose::Sharding;

const char* torch_dtype(DType t) {
  return t == DType::fp32 ? "torch.float32" : t == DType::fp16 ? "torch.float16" : "torch.bfloat16";
}

/// Weights in a type that bitsandbytes makes of them as they are loaded (transformers, utils/quantization_config.py).
/// The tower and the head stay as they are; names are matched from their beginning (quantizers_utils.py,
/// should_convert_module).
std::string quantization_line(const Plan& p, const std::string& vision) {
  if (!p.weights || *p.weights == p.dtype) return {};
  const std::string skipped =
      fmt::format("llm_int8_skip_modules=[{}\"lm_head\"]", vision.empty() ? "" : "\"" + vision + "\", ");
  if (*p.weights == DType::nf4)
    return fmt::format(
        "quantization_config = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type=\"nf4\", "
        "bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype={}, {})",
        torch_dtype(p.amp ? DType::bf16 : p.dtype), skipped);
  if (*p.weights == DType::int8)
    return fmt::format("quantization_config = BitsAndBytesConfig(load_in_8bit=True, {})", skipped);
  return fmt::format("# MODEL is a checkpoint whose weights are stored in {}", name(*p.weights));
}

std::string model_line(const Plan& p, bool has_tower, bool quantized) {
  return fmt::format("model = {}.from_pretrained(MODEL, dtype={}, attn_implementation=\"{}\"{})",
                     has_tower ? "AutoModelForImageTextToText" : "AutoModelForCausalLM",
                     torch_dtype(p.amp ? DType::fp32 : p.dtype), attn_implementation(p.attention),
                     quantized ? ", quantization_config=quantization_config" : "");
}

/// The processor's limit where it counts pixels, so that no image becomes larger than those of the plan. It counts
/// those of the resized image, or of its copies in time (GLM-4V).
std::string pixels_line(const Settings& s) {
  if (s.plan.images < 1 || !s.plan.more_sizes.empty()) return {};
  const ImageSize asked = diagnose::image_size(s.vlm, s.plan);
  const ImageLayout whole = layout(s.vlm.image_processor, asked);
  for (const std::int64_t copies : {1, 2}) {
    ImageProcessor rule = s.vlm.image_processor;
    image_processor::PixelBudget* const budget = rule.budget();
    if (!budget) return {};
    budget->max_pixels = std::max(budget->min_pixels, whole.resized.height * whole.resized.width * copies);
    if (layout(rule, asked) == whole) return limit_line(rule);
  }
  return {};
}

/// `optim` of TrainingArguments, or nothing where the Trainer is handed the optimizer (training_args.py,
/// OptimizerNames: its 8-bit AdamW keeps moments of embeddings in fp32, its SGD has no momentum of its own).
std::string_view optim_name(Optimizer o) {
  switch (o) {
    case Optimizer::adamw: return "adamw_torch";
    case Optimizer::adamw_fused: return "adamw_torch_fused";
    case Optimizer::adamw_bnb_8bit: return "adamw_bnb_8bit";
    case Optimizer::sgd: return "sgd";
    case Optimizer::adafactor: return "adafactor";
    case Optimizer::adamw_8bit:
    case Optimizer::sgd_momentum: break;
  }
  return {};
}

/// fully_shard (FSDP2) through accelerate: training_args.py, _process_fsdp_args. DistributedDataParallel needs none.
std::string fsdp_arguments(const parallel::Strategy& p) {
  if (p.gpus < 2 || p.sharding < Sharding::gradients) return {};
  const bool offload = p.offload == diagnose::Offload::parameters;
  return fmt::format(", fsdp=\"full_shard auto_wrap{}\", fsdp_config={{\"version\": 2, \"reshard_after_forward\": {}}}",
                     offload ? " offload" : "", p.sharding == Sharding::parameters ? "True" : "False");
}

std::string arguments_line(const Settings& s) {
  const Plan& p = s.plan;
  std::string line = fmt::format(
      "args = TrainingArguments(output_dir=OUTPUT, per_device_train_batch_size={}, gradient_accumulation_steps={}",
      p.batch, p.gradient_accumulation);
  if (p.checkpointing == Checkpointing::full && p.checkpointed.vision && p.checkpointed.language &&
      !p.checkpointed.layers)
    line += ", gradient_checkpointing=True, gradient_checkpointing_kwargs={\"use_reentrant\": False}";
  if (const auto optim = optim_name(p.optimizer); !optim.empty()) line += fmt::format(", optim=\"{}\"", optim);
  // Weights in bf16 need no autocast, which would keep some activations in fp32.
  line += p.amp ? ", bf16=True" : ", bf16=False";
  if (s.grouped_by_size)
    line += ", train_sampling_strategy=\"group_by_length\", length_column_name=\"length\", remove_unused_columns=False";
  return line + fsdp_arguments(s.placement) + ")";
}

/// The changes in force that no argument asks for, by their names.
std::vector<diagnose::ActionId> by_hand(const Settings& s, const std::vector<const diagnose::ActionEntry*>& changes) {
  const Plan& p = s.plan;
  using diagnose::action_id;
  std::vector<diagnose::ActionId> ids;
  if (p.checkpointing == Checkpointing::selective) ids.push_back(action_id("checkpointing-selective"));
  if (p.checkpointing == Checkpointing::full && !p.checkpointed.language)
    ids.push_back(action_id("checkpointing-vision"));
  if (p.checkpointing == Checkpointing::full && p.checkpointed.layers) ids.push_back(action_id("checkpointing-layers"));
  if (p.loss != Loss::unfused)
    ids.push_back(p.loss == Loss::fused ? action_id("loss-fused") : action_id("loss-chunked"));
  if (p.vision_chunk > 0) ids.push_back(action_id("vision-chunks"));
  for (const auto* e : changes)
    if (id_of(*e) == action_id("zero-1")) ids.push_back(id_of(*e));
  return ids;
}

std::string frozen_line(const Plan& p, const std::string& vision) {
  if (p.lora.rank > 0) return {};
  std::string others;
  if (!p.trainable.audio) others += " audio";
  if (!p.trainable.projector) others += " projector";
  if (!p.trainable.language) others += " language";
  return (p.trainable.vision ? std::string() : "model." + vision + ".requires_grad_(False)") +
         (others.empty() ? "" : "  # requires_grad_(False) too:" + others);
}

}  // namespace

std::vector<std::string> trainer_arguments(const diagnose::PlanRequest& asked, const diagnose::PlannedRun& run,
                                           const std::string& vision) {
  const Settings& s = run.candidate.settings;
  const Plan& p = s.plan;
  std::vector<std::string> lines;
  const auto add = [&](std::string line) {
    if (!line.empty()) lines.push_back(std::move(line));
  };
  if (s.allocator.expandable_segments) add("export PYTORCH_ALLOC_CONF=expandable_segments:True");
  if (s.placement.gpus > 1) add(fmt::format("torchrun --nproc_per_node {} train.py", s.placement.gpus));
  const std::string quantization = quantization_line(p, vision);
  add(quantization);
  add(model_line(p, !vision.empty(), quantization.starts_with("quantization_config")));
  add(pixels_line(s));
  add(frozen_line(p, vision));
  if (p.lora.rank > 0) {
    // Gradients have to reach the first checkpointed layer through frozen embeddings.
    if (wants_input_gradients(p)) add("model.enable_input_require_grads()");
    add(diagnose::action::lora_line(p.lora, s.vlm, vision.empty()));
  }
  add(arguments_line(s));
  if (p.optimizer == Optimizer::adamw_8bit)
    add("trainer = Trainer(model, args, optimizers=(bitsandbytes.optim.AdamW8bit(model.parameters(), lr), None), ...)");
  if (p.optimizer == Optimizer::sgd_momentum)
    add("trainer = Trainer(model, args, optimizers=(torch.optim.SGD(model.parameters(), lr, momentum=0.9), None), "
        "...)");
  const diagnose::Subject from{
      .now = asked.asked, .device = asked.device, .mode = diagnose::Mode::training, .vision = vision};
  for (const auto id : by_hand(s, run.candidate.changes)) add(diagnose::action_entry(id)->how(from, s));
  return lines;
}

}  // namespace vlmest::tool
