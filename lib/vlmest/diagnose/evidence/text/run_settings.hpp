// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Settings of a run as its text gives them: command lines, YAML and JSON files, printed arguments, Python calls.
namespace vlmest::diagnose {

/// What a key of another program is here.
enum class RunKey : std::uint8_t {
  model,
  batch,
  gradient_accumulation,
  length,  ///< of a training sequence, at most
  images,
  optimizer,
  tuning,  ///< all weights, or adapters
  lora_rank,
  lora_targets,
  freeze_vision,  ///< true: the tower is not trained
  tune_vision,    ///< the opposite
  dtype,
  bf16,
  fp16,
  four_bits,
  eight_bits,
  quantization,
  attention,
  flash,  ///< true or a version: flash attention
  checkpointing,
  sharding,  ///< a DeepSpeed configuration's name, or FSDP's word
  zero_stage,
  gpus,
  visible_gpus
};

/// `key` in lower case with '_' for '-'. Sources: transformers (training_args.py), LLaMA-Factory (hparams/), ms-swift
/// (swift/llm/argument/), verl and EasyR1 (verl/trainer/config), LLaVA (llava/train/train.py), Qwen-VL's finetuning
/// (qwenvl/train/argument.py), vLLM (engine/arg_utils.py), SGLang (srt/server_args.py), Megatron-LM
/// (training/arguments.py), torchrun, Unsloth (FastVisionModel.from_pretrained), peft (LoraConfig).
struct RunKeyWord {
  std::string_view key;
  RunKey is;
};
inline constexpr auto run_keys = std::to_array<RunKeyWord>({
    {"model_name_or_path", RunKey::model},
    {"model_id_or_path", RunKey::model},
    {"pretrained_model_name_or_path", RunKey::model},
    {"model_path", RunKey::model},
    {"model_name", RunKey::model},
    {"model_id", RunKey::model},
    {"base_model", RunKey::model},
    {"base model", RunKey::model},
    {"model", RunKey::model},
    {"served_model_name", RunKey::model},
    {"model_type", RunKey::model},
    {"per_device_train_batch_size", RunKey::batch},
    {"per_gpu_train_batch_size", RunKey::batch},
    {"micro_batch_size_per_device_for_update", RunKey::batch},
    {"ppo_micro_batch_size_per_gpu", RunKey::batch},
    {"train_micro_batch_size_per_gpu", RunKey::batch},
    {"micro_batch_size", RunKey::batch},
    {"batch_size", RunKey::batch},
    {"gradient_accumulation_steps", RunKey::gradient_accumulation},
    {"cutoff_len", RunKey::length},
    {"model_max_length", RunKey::length},
    {"max_seq_length", RunKey::length},
    {"max_length", RunKey::length},
    {"limit_mm_per_prompt", RunKey::images},
    {"optim", RunKey::optimizer},
    {"finetuning_type", RunKey::tuning},
    {"train_type", RunKey::tuning},
    {"tuner_type", RunKey::tuning},
    {"sft_type", RunKey::tuning},
    {"lora_rank", RunKey::lora_rank},
    {"lora_r", RunKey::lora_rank},
    {"lora_target", RunKey::lora_targets},
    {"lora_target_modules", RunKey::lora_targets},
    {"target_modules", RunKey::lora_targets},
    {"freeze_vision_tower", RunKey::freeze_vision},
    {"freeze_vit", RunKey::freeze_vision},
    {"tune_mm_vision", RunKey::tune_vision},
    {"finetune_vision_layers", RunKey::tune_vision},
    {"torch_dtype", RunKey::dtype},
    {"dtype", RunKey::dtype},
    {"bf16", RunKey::bf16},
    {"fp16", RunKey::fp16},
    {"load_in_4bit", RunKey::four_bits},
    {"load_in_8bit", RunKey::eight_bits},
    {"quantization", RunKey::quantization},
    {"attn_implementation", RunKey::attention},
    {"attn_impl", RunKey::attention},
    {"flash_attn", RunKey::flash},
    {"use_flash_attn", RunKey::flash},
    {"gradient_checkpointing", RunKey::checkpointing},
    {"enable_gradient_checkpointing", RunKey::checkpointing},
    {"recompute_granularity", RunKey::checkpointing},
    {"deepspeed", RunKey::sharding},
    {"fsdp", RunKey::sharding},
    {"stage", RunKey::zero_stage},
    {"zero_stage", RunKey::zero_stage},
    {"nproc_per_node", RunKey::gpus},
    {"num_processes", RunKey::gpus},
    {"n_gpus_per_node", RunKey::gpus},
    {"num_gpus", RunKey::gpus},
    {"cuda_visible_devices", RunKey::visible_gpus},
});

/// A key with its value, as it stands.
struct RunWord {
  RunKey is = RunKey::model;
  std::string key, value;
  bool flag = false;  ///< "--name" on a command line
  std::int64_t line = 0;
};

/// Every known key of a text with its value, in order; comments are passed over. At most 512; of a long text its first
/// and last MiB are read.
std::vector<RunWord> run_words(std::string_view text);

/// A setting in words of vlmest's own flags: "--batch", "1". Sharding has no flag: "sharding", "zero-3" where it is
/// DeepSpeed's, "full-shard" where it is FSDP's.
struct ReadSetting {
  std::string flag, value;
  std::string from;  ///< the words of the text
  std::int64_t line = 0;
};

/// What the words of a run set, each flag once: the last of its values, as programs take them, and the first model.
/// Models are as the text names them.
std::vector<ReadSetting> read_settings(std::string_view text);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/text/impl/run_settings.hpp>
#endif
