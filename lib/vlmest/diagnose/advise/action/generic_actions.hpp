// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/advise/action/action.hpp>
#include <vlmest/diagnose/failure/failure.hpp>
#include <vlmest/diagnose/verdict/verdict.hpp>

/// What helps against a cause in general, where no model is given or nothing can be estimated: ids of the catalogue
/// (action_entries(), remedies.hpp) without a figure.
namespace vlmest::diagnose {

/// Whose settings act: torch's with transformers' and peft's, an engine's that serves (vLLM and SGLang, on torch), or
/// those of a runtime without torch (MLX, llama.cpp and ollama, TurboMind).
enum class Runtime : std::uint8_t { torch, engine, other };

Runtime runtime_of(const Failure& f);
/// The same where the frames tell nothing, but the cause is one that only engines have.
Runtime runtime_for(Cause cause, const Failure& f);

/// Settings of a run that are known without its model: their actions are left out where they are in force.
struct KnownSettings {
  std::optional<Mode> mode;
  const Plan* plan = nullptr;  ///< what flags say; null: nothing
  Gpu gpu{};                   ///< that it ran on, an H200 where that is not known
};

namespace generic_actions {

/// How an action of the catalogue is taken with each runtime; empty where there is no such setting.
struct How {
  std::string_view id;
  bool training = true, inference = true;
  std::string_view torch, engine, other;
};

/// Arguments: transformers 5.17 (TrainingArguments, from_pretrained), peft, torch 2.11; vLLM (engine/arg_utils.py) and
/// SGLang (server_args.py); llama.cpp (common/arg.cpp) and ollama (envconfig).
inline constexpr auto hows = std::to_array<How>({
    {"smaller-images", true, true, "a processor with lower max_pixels (or size), or pictures scaled down before it",
     "--mm-processor-kwargs '{\"max_pixels\": N}'", "scale pictures down before they are handed over"},
    {"fewer-images", true, true, "images = images[:N]; of videos fewer frames (fps, nframes, max_frames)",
     "--limit-mm-per-prompt '{\"image\": N, \"video\": 0}'; fewer frames",
     "one picture at a time; fewer frames of a video"},
    {"vision-chunks", true, true, "call the tower on a few pictures at a time and concatenate its features", "", ""},
    {"shorter-seq", true, true, "max_length=N (SFTConfig), max_prompt_length, cutoff_len",
     "--max-model-len N; SGLang: --context-length N",
     "a smaller context (llama.cpp -c N, ollama num_ctx), prompts in chunks (-ub N)"},
    {"smaller-batch", false, true, "prompts = prompts[:N]", "--max-num-seqs N; SGLang: --max-running-requests N",
     "fewer requests at once (llama.cpp -np, ollama OLLAMA_NUM_PARALLEL)"},
    {"smaller-micro-batch", true, false, "per_device_train_batch_size=1, gradient_accumulation_steps=N", "", ""},
    {"attention-flash", true, true, "from_pretrained(MODEL, attn_implementation=\"flash_attention_2\")", "",
     "llama.cpp -fa on; OLLAMA_FLASH_ATTENTION=1"},
    {"attention-sdpa", true, true, "from_pretrained(MODEL, attn_implementation=\"sdpa\")", "", ""},
    {"checkpointing-full", true, false, "gradient_checkpointing=True", "", ""},
    {"checkpointing-vision", true, false, "model.visual.gradient_checkpointing_enable()  # of the tower, too", "", ""},
    {"loss-chunked", true, false, "use_liger_kernel=True", "", ""},
    {"logits-last", false, true, "model.generate(...), or model(..., logits_to_keep=1)", "", ""},
    {"optimizer-8bit", true, false, "optim=\"adamw_bnb_8bit\"", "", ""},
    {"zero-1", true, false, "DeepSpeed {\"zero_optimization\": {\"stage\": 1}}, with several GPUs", "", ""},
    {"zero-2", true, false, "DeepSpeed {\"zero_optimization\": {\"stage\": 2}}, with several GPUs", "", ""},
    {"zero-3", true, false, "DeepSpeed {\"zero_optimization\": {\"stage\": 3}}, with several GPUs", "", ""},
    {"offload-optimizer", true, false,
     "DeepSpeed {\"zero_optimization\": {\"offload_optimizer\": {\"device\": \"cpu\"}}}", "", ""},
    {"offload-parameters", true, true,
     "from_pretrained(MODEL, device_map=\"auto\"); training: offload_param of stage 3", "--cpu-offload-gb N",
     "fewer layers on the device (llama.cpp -ngl N)"},
    {"freeze-vision", true, false, "for p in model.visual.parameters(): p.requires_grad_(False)", "", ""},
    {"lora-16", true, false, "peft.get_peft_model(model, LoraConfig(r=16, target_modules=\"all-linear\"))", "", ""},
    {"qlora", true, false, "BitsAndBytesConfig(load_in_4bit=True) under a LoraConfig", "", ""},
    {"weights-bf16", true, true, "from_pretrained(MODEL, dtype=torch.bfloat16)", "--dtype bfloat16", ""},
    {"weights-nf4", false, true, "BitsAndBytesConfig(load_in_4bit=True)", "a checkpoint in AWQ or GPTQ",
     "a model file in 4 bits"},
    {"weights-int8", false, true, "BitsAndBytesConfig(load_in_8bit=True)", "a checkpoint in 8 bits",
     "a model file in 8 bits"},
    {"kv-fp8", false, true, "", "--kv-cache-dtype fp8; SGLang: fp8_e5m2",
     "a quantised cache (llama.cpp -ctk q8_0 -ctv q8_0; ollama OLLAMA_KV_CACHE_TYPE=q8_0, with its flash attention)"},
    {"engine-share", false, true, "",
     "--gpu-memory-utilization 0.95, where no other process needs the device; SGLang: --mem-fraction-static", ""},
    {"allocator-expandable", true, true, "export PYTORCH_ALLOC_CONF=expandable_segments:True", "", ""},
    {"let-go", true, true, "losses.append(loss.item()); no tensors kept from step to step", "", ""},
    {"free-the-gpu", true, true, "nvidia-smi; end the other processes, or CUDA_VISIBLE_DEVICES=N",
     "nvidia-smi; end the other processes, or CUDA_VISIBLE_DEVICES=N", "end the other programs on the device"},
});

/// Of a cause: what acts on it, the surest first.
struct Of {
  Cause cause;
  std::array<std::string_view, 10> ids;
};
inline constexpr auto by_cause = std::to_array<Of>({
    {Cause::weights, {"weights-nf4", "weights-int8", "zero-3", "qlora", "weights-bf16", "offload-parameters"}},
    {Cause::optimizer_state, {"optimizer-8bit", "lora-16", "qlora", "zero-1", "zero-3", "offload-optimizer"}},
    {Cause::gradients, {"lora-16", "qlora", "zero-2", "zero-3", "freeze-vision"}},
    {Cause::activations,
     {"checkpointing-full", "smaller-images", "fewer-images", "shorter-seq", "smaller-micro-batch", "smaller-batch"}},
    {Cause::attention_scores,
     {"attention-flash", "attention-sdpa", "smaller-images", "fewer-images", "vision-chunks", "shorter-seq"}},
    {Cause::logits, {"loss-chunked", "logits-last", "shorter-seq", "smaller-micro-batch", "smaller-batch"}},
    {Cause::kv_cache, {"engine-share", "kv-fp8", "shorter-seq", "smaller-batch", "weights-nf4", "fewer-images"}},
    {Cause::vision_tiles,
     {"smaller-images", "fewer-images", "vision-chunks", "freeze-vision", "checkpointing-vision",
      "smaller-micro-batch"}},
    {Cause::profile_run, {"fewer-images", "smaller-images", "smaller-batch", "shorter-seq"}},
    {Cause::engine_budget, {"smaller-batch", "shorter-seq", "kv-fp8", "offload-optimizer", "weights-nf4"}},
    {Cause::encoder_cache, {"smaller-images", "fewer-images"}},
    {Cause::fragmentation, {"allocator-expandable"}},
    {Cause::leak, {"let-go"}},
    {Cause::other_process, {"free-the-gpu"}},
    {Cause::unknown,
     {"checkpointing-full", "smaller-images", "fewer-images", "shorter-seq", "smaller-micro-batch", "smaller-batch",
      "optimizer-8bit", "lora-16", "weights-nf4", "offload-parameters"}},
});

/// Whether the run has it already, or is said not to have what it acts on.
bool in_force(std::string_view id, const Plan& p, const Gpu& gpu);

}  // namespace generic_actions

/// One of them as that runtime takes it; nothing where it has no such setting.
std::optional<Action> generic_action(std::string_view id, Runtime runtime);

/// The actions against the verdict's cause that are not in force and act on the runtime. Without a mode those of both,
/// each with `of` where it is of one alone.
std::vector<Action> generic_actions_of(const Verdict& v, const Failure& f, const KnownSettings& known);

/// Whether an estimated action acts on the runtime at all, with how it is taken there: torch's settings do nothing for
/// MLX, ggml or TurboMind.
bool adapt(Action& a, const Failure& f);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/advise/action/impl/generic_actions.hpp>
#endif
