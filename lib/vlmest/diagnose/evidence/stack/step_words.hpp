// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include <vlmest/diagnose/evidence/stack/frame_meaning.hpp>

namespace vlmest::diagnose::frame_words {

/// Words of a training step: gathered parameters, the backward, the optimizer, the loss.
inline constexpr auto step_words = std::to_array<FrameWord>({
    // An engine that measures itself.
    {Part::code, "profile_run", {.phase = RunPhase::server_profile}},
    {Part::code, "determine_available_memory", {.phase = RunPhase::server_profile}},
    {Part::code, "determine_num_available_blocks", {.phase = RunPhase::server_profile}},
    {Part::code, "_dummy_run", {.phase = RunPhase::server_profile}},
    {Part::code, "_initialize_kv_caches", {.phase = RunPhase::server_profile}},
    // Parameters of FSDP and ZeRO-3 that are put together.
    {Part::code, "all_gather_into_tensor", {.site = Site::module_gather, .phase = RunPhase::module_gather}},
    {Part::code, "_allgather_params", {.site = Site::module_gather, .phase = RunPhase::module_gather}},
    {Part::code, "all_gather_coalesced", {.site = Site::module_gather, .phase = RunPhase::module_gather}},
    {Part::code, "_all_gather_flat_param", {.site = Site::module_gather, .phase = RunPhase::module_gather}},
    {Part::code, "_alloc_padded_unsharded", {.site = Site::module_gather}},
    {Part::code, "alloc_all_gather_outputs", {.site = Site::module_gather, .phase = RunPhase::module_gather}},
    {Part::function, "unshard", {.site = Site::module_gather, .phase = RunPhase::module_gather}},
    {Part::code, "fetch_sub_module", {.site = Site::module_gather, .phase = RunPhase::module_gather}},
    // Whole weights for a checkpoint: torch/distributed/fsdp/_state_dict_utils.py and checkpoint/state_dict.py,
    // deepspeed/runtime/engine.py.
    {Part::code, "pre_state_dict_hook", {.site = Site::module_gather, .phase = RunPhase::module_gather}},
    {Part::code, "summon_full_params", {.site = Site::module_gather, .phase = RunPhase::module_gather}},
    {Part::code, "get_model_state_dict", {.site = Site::module_gather, .phase = RunPhase::module_gather}},
    {Part::code, "_gather_state_dict", {.site = Site::module_gather, .phase = RunPhase::module_gather}},
    {Part::code, "consolidated_16bit_state_dict", {.site = Site::module_gather, .phase = RunPhase::module_gather}},
    {Part::code, ".full_tensor(", {.site = Site::module_gather}},
    {Part::function, "wait_for_unshard", {.phase = RunPhase::module_gather}},
    {Part::code, "all_gather", {.traits = trait::gathers}},
    {Part::code, "allgather", {.traits = trait::gathers}},
    {Part::code, "unshard", {.traits = trait::gathers}},
    {Part::code, "alloc_storage", {.traits = trait::gathers}},
    // Fourier transforms.
    {Part::code, "fft2(", {.site = Site::fft}},
    {Part::code, "fftn(", {.site = Site::fft}},
    {Part::code, "fft.", {.site = Site::fft}},
    {Part::code, "fft(", {.site = Site::fft}},
    {Part::file, "torch/fft", {.traits = trait::fft}},
    {Part::code, "fft", {.traits = trait::fft}},
    {Part::code, "fourier", {.traits = trait::fft}},
    {Part::code, "spectral", {.traits = trait::fft}},
    // The optimizer's states.
    {Part::code, "exp_avg", {.site = Site::optimizer_state}},
    {Part::code, "init_state", {.site = Site::optimizer_state}},
    {Part::code, "momentum_buffer", {.site = Site::optimizer_state}},
    {Part::code, "initialize_optimizer_states", {.site = Site::optimizer_state}},
    {Part::code, "_setup_for_real_optimizer", {.site = Site::optimizer_state}},  // deepspeed/runtime/zero/stage3.py
    {Part::code, "_create_fp32_partitions", {.site = Site::optimizer_state}},
    {Part::code, "_configure_zero_optimizer", {.site = Site::optimizer_state}},  // deepspeed/runtime/engine.py
    {Part::code, "ds_initialize(", {.site = Site::optimizer_state}},             // accelerate/accelerator.py
    {Part::code, "deepspeed.initialize(", {.site = Site::optimizer_state}},
    {Part::code, "deepspeedengine(", {.site = Site::optimizer_state}},  // deepspeed/__init__.py
    {Part::code, "fp32_partitioned_groups", {.site = Site::optimizer_state}},
    {Part::code,
     "partition_of_fp32_groups",
     {.site = Site::optimizer_state}},                                  // deepspeed/runtime/zero/stage_1_and_2.py
    {Part::code, "fp32_groups_flat", {.site = Site::optimizer_state}},  // deepspeed/runtime/bf16_optimizer.py
    {Part::code, "build_model_and_main_param_groups", {.site = Site::optimizer_state}},  // megatron/core/optimizer
    {Part::code, "master_grads", {.site = Site::gradient}},  // apex and Megatron: fp32 copies of gradients
    {Part::code, "master.grad=", {.site = Site::gradient}},
    {Part::code, "_flatten_dense_tensors(grads", {.site = Site::gradient}},
    {Part::code, "_prepare_fp32_grad", {.site = Site::gradient}},  // deepspeed/runtime/zero/stage3.py
    {Part::code, "averaged_gradients", {.site = Site::gradient}},
    {Part::in_file_name, "grad_buffer", {.site = Site::gradient}},  // megatron/core/distributed
    // The backward. The hooks: torch/utils/checkpoint.py, which runs a forward again on autograd's thread.
    {Part::file, "torch/autograd/graph.py", {.traits = trait::in_backward}},
    {Part::function, "unpack_hook", {.traits = trait::in_backward}},
    {Part::function, "recompute_fn", {.traits = trait::in_backward}},
    {Part::code, "torch::autograd::engine", {.traits = trait::in_backward}},
    // accelerate's wrapper of DeepSpeed steps within its backward (accelerate/utils/deepspeed.py).
    {Part::code, "engine.step(", {.phase = RunPhase::optimizer_step}},
    {Part::code, "_take_model_step", {.phase = RunPhase::optimizer_step}},
    {Part::code,
     "_engine_run_backward",
     {.phase = RunPhase::backward, .mode = Mode::training, .traits = trait::in_backward}},
    {Part::code, "autograd.backward", {.phase = RunPhase::backward}},
    {Part::code, ".backward(", {.phase = RunPhase::backward, .mode = Mode::training}},
    {Part::function, "backward", {.phase = RunPhase::backward, .mode = Mode::training, .traits = trait::in_backward}},
    {Part::code,
     "_init_group",
     {.site = Site::optimizer_state, .phase = RunPhase::optimizer_step, .traits = trait::in_optimizer}},
    {Part::code,
     "get_state_buffer",
     {.site = Site::optimizer_state, .phase = RunPhase::optimizer_step, .traits = trait::in_optimizer}},
    // The step.
    {Part::file, "torch/optim/", {.phase = RunPhase::optimizer_step, .mode = Mode::training}},
    {Part::file, "transformers/optimization.py", {.phase = RunPhase::optimizer_step}},
    {Part::code, "optimizer.step(", {.phase = RunPhase::optimizer_step, .mode = Mode::training}},
    {Part::file, "bitsandbytes/optim/", {.phase = RunPhase::optimizer_step, .mode = Mode::training}},
    {Part::code, "_foreach_", {.site = Site::optimizer_temporary}},
    {Part::code, "multi_tensor_", {.site = Site::optimizer_temporary, .traits = trait::in_optimizer}},
    {Part::code, "single_tensor_", {.site = Site::optimizer_temporary, .traits = trait::in_optimizer}},
    {Part::file, "/optim/", {.traits = trait::in_optimizer}},
    {Part::file, "/optimizers/", {.traits = trait::in_optimizer}},
    {Part::file, "deepspeed/ops/", {.traits = trait::in_optimizer}},
    {Part::file_name, "optimization.py", {.traits = trait::in_optimizer}},
    {Part::file_name, "optimizer.py", {.traits = trait::in_optimizer}},
    {Part::function, "step", {.traits = trait::optimizes}},
    {Part::function, "optimizer_step", {.traits = trait::optimizes}},
    {Part::function, "_optimizer_step", {.traits = trait::optimizes}},
    {Part::code, "_fused_adam", {.traits = trait::in_optimizer}},
    {Part::function, "zero_grad", {.traits = trait::zeroes}},
    {Part::function, "init_state", {.traits = trait::in_optimizer}},
    // The loss.
    {Part::code, "logits.float(", {.site = Site::logits_upcast, .phase = RunPhase::loss}},
    {Part::code, "logits.to(torch.float", {.site = Site::logits_upcast}},
    {Part::code, "logits.to(dtype=torch.float", {.site = Site::logits_upcast}},
    {Part::code, "cross_entropy", {.site = Site::cross_entropy, .phase = RunPhase::loss, .traits = trait::loss}},
    {Part::code, "log_softmax", {.site = Site::cross_entropy}},
    // megatron/core/tensor_parallel/cross_entropy.py, and what is written after it.
    {Part::code, "vocab_parallel", {.site = Site::cross_entropy, .phase = RunPhase::loss}},
    {Part::in_file_name, "cross_entropy", {.site = Site::cross_entropy, .phase = RunPhase::loss}},
    {Part::code, "=logits", {.site = Site::cross_entropy}},
    {Part::code, "entropy_from_logits", {.site = Site::cross_entropy, .phase = RunPhase::loss}},  // verl
    // transformers/trainer.py and trainer_pt_utils.py, of an evaluation.
    {Part::code, "nested_concat", {.site = Site::logits}},
    {Part::code, "preds_host", {.site = Site::logits}},
    {Part::code, "pad_across_processes(logits", {.site = Site::logits}},
    {Part::code, "gather_function((logits", {.site = Site::logits}},
    // trl, verl, slime: the log-probabilities of what was rolled out.
    {Part::code, "per_token_logps", {.site = Site::logits}},
    {Part::code, "logprobs_from_logits", {.site = Site::cross_entropy, .phase = RunPhase::loss}},
    {Part::code, "compute_log_probs", {.site = Site::cross_entropy, .phase = RunPhase::loss}},
    {Part::code, "logsumexp", {.site = Site::cross_entropy}},
    {Part::code, "loss_fct(", {.site = Site::cross_entropy, .phase = RunPhase::loss}},
    {Part::code, "loss_function(", {.site = Site::cross_entropy, .phase = RunPhase::loss}},
    {Part::code, "forcausallmloss", {.phase = RunPhase::loss}},
    {Part::in_file_name, "loss", {.traits = trait::loss}},
    {Part::code, "loss", {.traits = trait::loss}},
});

}  // namespace vlmest::diagnose::frame_words
