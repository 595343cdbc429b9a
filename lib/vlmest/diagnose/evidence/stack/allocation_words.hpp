// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include <vlmest/diagnose/evidence/stack/traceback.hpp>
#include <vlmest/diagnose/evidence/text/log_prefix.hpp>

/// Names of functions and files and pieces of source lines that tell what a stack was doing. They are those of torch,
/// transformers, accelerate, DeepSpeed, PEFT, bitsandbytes, vLLM, SGLang and common remote code.
namespace vlmest::diagnose {

namespace allocation_site {

/// A word of a frame, in lower case: of the function, of the source line (or function), or of the path.
enum class Part : std::uint8_t { function, code, file };

template <class Meaning>
struct Rule {
  Part part;
  std::string_view word;
  Meaning meaning;
};

struct LowFrame {
  std::string function, code, file;
};

inline LowFrame low(const Frame& f) {
  LowFrame l{log_prefix::lower_case(f.function), log_prefix::lower_case(f.code), log_prefix::lower_case(f.file)};
  std::replace(l.file.begin(), l.file.end(), '\\', '/');
  std::erase(l.code, ' ');
  return l;
}

template <class Meaning>
bool matches(const Rule<Meaning>& r, const LowFrame& f) {
  switch (r.part) {
    case Part::function: return f.function == r.word;
    case Part::code: return log_prefix::has(f.code, r.word) || log_prefix::has(f.function, r.word);
    case Part::file: return log_prefix::has(f.file, r.word);
  }
  return false;
}

/// Sites that a frame names by itself, in the order in which one frame is asked. Words are without blanks.
inline constexpr auto sites = std::to_array<Rule<AllocationSite>>({
    {Part::code, "all_gather_into_tensor", AllocationSite::module_gather},
    {Part::code, "_allgather_params", AllocationSite::module_gather},
    {Part::code, "all_gather_coalesced", AllocationSite::module_gather},
    {Part::code, "_all_gather_flat_param", AllocationSite::module_gather},
    {Part::code, "_alloc_padded_unsharded", AllocationSite::module_gather},
    {Part::code, "alloc_all_gather_outputs", AllocationSite::module_gather},
    {Part::function, "unshard", AllocationSite::module_gather},
    {Part::code, "fetch_sub_module", AllocationSite::module_gather},
    {Part::code, "fft2(", AllocationSite::fft},
    {Part::code, "fftn(", AllocationSite::fft},
    {Part::code, "fft.", AllocationSite::fft},
    {Part::code, "fft(", AllocationSite::fft},
    {Part::code, "_init_group", AllocationSite::optimizer_state},
    {Part::code, "get_state_buffer", AllocationSite::optimizer_state},
    {Part::code, "exp_avg", AllocationSite::optimizer_state},
    {Part::code, "init_state", AllocationSite::optimizer_state},
    {Part::code, "momentum_buffer", AllocationSite::optimizer_state},
    {Part::code, "initialize_optimizer_states", AllocationSite::optimizer_state},
    {Part::code, "_setup_for_real_optimizer", AllocationSite::optimizer_state},  // deepspeed/runtime/zero/stage3.py
    {Part::code, "_create_fp32_partitions", AllocationSite::optimizer_state},
    {Part::code, "_configure_zero_optimizer", AllocationSite::optimizer_state},  // deepspeed/runtime/engine.py
    {Part::code, "ds_initialize(", AllocationSite::optimizer_state},             // accelerate/accelerator.py
    {Part::code, "fp32_partitioned_groups", AllocationSite::optimizer_state},
    {Part::code, "_foreach_", AllocationSite::optimizer_temporary},
    {Part::code, "multi_tensor_", AllocationSite::optimizer_temporary},
    {Part::code, "single_tensor_", AllocationSite::optimizer_temporary},
    {Part::code, "logits.float(", AllocationSite::logits_upcast},
    {Part::code, "logits.to(torch.float", AllocationSite::logits_upcast},
    {Part::code, "logits.to(dtype=torch.float", AllocationSite::logits_upcast},
    {Part::code, "cross_entropy", AllocationSite::cross_entropy},
    {Part::code, "log_softmax", AllocationSite::cross_entropy},
    {Part::code, "logsumexp", AllocationSite::cross_entropy},
    {Part::code, "loss_fct(", AllocationSite::cross_entropy},
    {Part::code, "loss_function(", AllocationSite::cross_entropy},
    {Part::code, "lm_head(", AllocationSite::logits},
    {Part::code, "compute_logits", AllocationSite::logits},
    {Part::code, "_gather_logits", AllocationSite::logits},
    {Part::code, "output_layer(", AllocationSite::logits},
    {Part::code, "embed_out(", AllocationSite::logits},
    // Of torch's own no frame shows: a function of that name is somebody's Python, which writes the scores out.
    {Part::code, "f.scaled_dot_product_attention(", AllocationSite::sdpa},
    {Part::code, "functional.scaled_dot_product_attention(", AllocationSite::sdpa},
    {Part::function, "scaled_dot_product_attention", AllocationSite::score_matrix},
    {Part::code, "scaled_dot_product_attention", AllocationSite::sdpa},
    {Part::code, "create_causal_mask", AllocationSite::attention_mask},
    {Part::code, "_prepare_4d", AllocationSite::attention_mask},
    {Part::code, "_update_causal_mask", AllocationSite::attention_mask},
    {Part::code, "make_causal_mask", AllocationSite::attention_mask},
    {Part::code, "sdpa_mask", AllocationSite::attention_mask},
    {Part::code, "eager_mask", AllocationSite::attention_mask},
    {Part::code, "attention_mask=torch.", AllocationSite::attention_mask},
    {Part::code, "causal_mask=", AllocationSite::attention_mask},
    {Part::code, "_make_attention_mask", AllocationSite::attention_mask},  // vllm_ascend/worker/model_runner_v1.py
    {Part::code, "attn_mask_builder", AllocationSite::attention_mask},
    {Part::code, "attention_mask(", AllocationSite::attention_mask},
    {Part::code, "attn_mask(", AllocationSite::attention_mask},
    {Part::code, "eager_attention_forward", AllocationSite::score_matrix},
    {Part::code, "attn_weights=", AllocationSite::score_matrix},
    {Part::code, "attention_scores=", AllocationSite::score_matrix},
    {Part::code, "attention_probs=", AllocationSite::score_matrix},
    {Part::code, "attn_scores=", AllocationSite::score_matrix},
    {Part::code, "attn=attn.", AllocationSite::score_matrix},
    {Part::code, "attn=torch.matmul(", AllocationSite::score_matrix},
    {Part::code, "torch.matmul(q", AllocationSite::score_matrix},
    {Part::code, "sim=einsum(", AllocationSite::score_matrix},
    {Part::code, "sim.softmax(", AllocationSite::score_matrix},
    {Part::code, "attention_basic", AllocationSite::score_matrix},
    {Part::code, "torch.baddbmm(", AllocationSite::score_matrix},
    {Part::code, "q@k", AllocationSite::score_matrix},
    {Part::code, "@k.transpose", AllocationSite::score_matrix},
    {Part::code, "@key.transpose", AllocationSite::score_matrix},
    {Part::code, "vision_attention_forward", AllocationSite::sdpa},
    // vLLM's engine measures before it allocates its cache, both in there: what is further in decides.
    {Part::function, "_initialize_kv_caches", AllocationSite::unknown},
    {Part::code, "self._initialize_kv_caches(", AllocationSite::unknown},
    {Part::code, "initialize_kv_cache", AllocationSite::kv_cache},
    {Part::code, "_allocate_kv_cache", AllocationSite::kv_cache},
    {Part::code, "allocate_gpu_cache", AllocationSite::kv_cache},
    {Part::code, "kv_cache=torch.", AllocationSite::kv_cache},
    {Part::code, "torch.cat([self.key", AllocationSite::kv_cache},
    {Part::code, "torch.cat([self.value", AllocationSite::kv_cache},
    {Part::code, "past_key_values.update(", AllocationSite::kv_cache},
    {Part::code, "past_key_value.update(", AllocationSite::kv_cache},
    {Part::code, "torch.cat((past_key", AllocationSite::kv_cache},
    {Part::file, "cache_utils.py", AllocationSite::kv_cache},
    {Part::file, "/kv_cache", AllocationSite::kv_cache},
    {Part::file, "/kvcache", AllocationSite::kv_cache},
    {Part::file, "mem_cache/memory_pool.py", AllocationSite::kv_cache},
    {Part::code, "patch_embed", AllocationSite::patch_embedding},
    {Part::code, "merge_input_ids_with_image", AllocationSite::image_features},
    {Part::code, "merge_multimodal", AllocationSite::image_features},
    {Part::code, "masked_scatter", AllocationSite::image_features},
    {Part::code, "image_embeds=torch.cat", AllocationSite::image_features},
    {Part::code, "image_features=torch.cat", AllocationSite::image_features},
    {Part::code, "apply_rotary", AllocationSite::rotary},
    {Part::code, "rotate_half", AllocationSite::rotary},
    {Part::code, ".grad=", AllocationSite::gradient},
    {Part::code, "allreduce_bucket", AllocationSite::gradient},
    {Part::code, "reduce_scatter", AllocationSite::gradient},
    {Part::code, "average_tensor", AllocationSite::gradient},
    {Part::code, "flatten_dense_tensors", AllocationSite::gradient},
    {Part::code, "self.mlp(", AllocationSite::mlp},
    {Part::code, "gate_proj(", AllocationSite::mlp},
    {Part::code, "up_proj(", AllocationSite::mlp},
    {Part::code, "down_proj(", AllocationSite::mlp},
    {Part::code, "act_fn(", AllocationSite::mlp},
    {Part::code, "self.fc1(", AllocationSite::mlp},
    {Part::code, "self.fc2(", AllocationSite::mlp},
    {Part::code, "q_proj(", AllocationSite::projection},
    {Part::code, "k_proj(", AllocationSite::projection},
    {Part::code, "v_proj(", AllocationSite::projection},
    {Part::code, "o_proj(", AllocationSite::projection},
    {Part::code, "qkv", AllocationSite::projection},
    {Part::file, "torch/optim/", AllocationSite::optimizer_temporary},
    {Part::file, "transformers/optimization.py", AllocationSite::optimizer_temporary},
    {Part::code, "from_pretrained", AllocationSite::weights},
    {Part::code, "load_model", AllocationSite::weights},
    {Part::code, "load_weights", AllocationSite::weights},
    {Part::code, "create_weights", AllocationSite::weights},
    {Part::code, "load_state_dict", AllocationSite::weights},
    {Part::code, "load_pretrained_model", AllocationSite::weights},
    {Part::code, "set_module_tensor_to_device", AllocationSite::weights},
    {Part::code, "caching_allocator_warmup", AllocationSite::weights},
    {Part::code, "materialize_", AllocationSite::weights},
    {Part::function, "convert", AllocationSite::weights},
    {Part::function, "__deepcopy__", AllocationSite::weights},
    {Part::function, "_apply", AllocationSite::weights},
    {Part::code, "factory_kwargs", AllocationSite::weights},
    {Part::function, "__init__", AllocationSite::weights},
    {Part::code, "pixel_values", AllocationSite::pixel_values},
});

/// What torch's own frames say where no frame further out says more.
inline constexpr auto kernels = std::to_array<Rule<AllocationSite>>({
    {Part::code, "conv2d(", AllocationSite::convolution},
    {Part::code, "conv3d(", AllocationSite::convolution},
    {Part::code, "layer_norm(", AllocationSite::norm},
    {Part::code, "rms_norm", AllocationSite::norm},
    {Part::code, "variance", AllocationSite::norm},
    {Part::code, "silu(", AllocationSite::mlp},
    {Part::code, "gelu(", AllocationSite::mlp},
    {Part::code, "activation_fn(", AllocationSite::mlp},
    {Part::code, "f.linear(", AllocationSite::projection},
});

inline constexpr auto phases = std::to_array<Rule<RunPhase>>({
    {Part::code, "profile_run", RunPhase::server_profile},
    {Part::code, "determine_available_memory", RunPhase::server_profile},
    {Part::code, "determine_num_available_blocks", RunPhase::server_profile},
    {Part::code, "_dummy_run", RunPhase::server_profile},
    {Part::code, "_initialize_kv_caches", RunPhase::server_profile},
    {Part::code, "all_gather_into_tensor", RunPhase::module_gather},
    {Part::code, "_allgather_params", RunPhase::module_gather},
    {Part::code, "_all_gather_flat_param", RunPhase::module_gather},
    {Part::code, "fetch_sub_module", RunPhase::module_gather},
    {Part::code, "all_gather_coalesced", RunPhase::module_gather},
    {Part::function, "unshard", RunPhase::module_gather},
    {Part::function, "wait_for_unshard", RunPhase::module_gather},
    {Part::code, "alloc_all_gather_outputs", RunPhase::module_gather},
    // accelerate's wrapper of DeepSpeed steps within its backward (accelerate/utils/deepspeed.py).
    {Part::code, "engine.step(", RunPhase::optimizer_step},
    {Part::code, "_take_model_step", RunPhase::optimizer_step},
    {Part::code, "_engine_run_backward", RunPhase::backward},
    {Part::code, "autograd.backward", RunPhase::backward},
    {Part::code, ".backward(", RunPhase::backward},
    {Part::function, "backward", RunPhase::backward},
    {Part::code, "optimizer.step(", RunPhase::optimizer_step},
    {Part::code, "_init_group", RunPhase::optimizer_step},
    {Part::code, "get_state_buffer", RunPhase::optimizer_step},
    {Part::file, "torch/optim/", RunPhase::optimizer_step},
    {Part::file, "bitsandbytes/optim/", RunPhase::optimizer_step},
    {Part::file, "transformers/optimization.py", RunPhase::optimizer_step},
    {Part::code, "cross_entropy", RunPhase::loss},
    {Part::code, "loss_function(", RunPhase::loss},
    {Part::code, "forcausallmloss", RunPhase::loss},
    {Part::code, "loss_fct(", RunPhase::loss},
    {Part::code, "logits.float(", RunPhase::loss},
    {Part::code, "self.visual(", RunPhase::vision_forward},
    {Part::code, "vision_tower(", RunPhase::vision_forward},
    {Part::code, "vision_model(", RunPhase::vision_forward},
    {Part::code, "vision_encoder(", RunPhase::vision_forward},
    {Part::code, "image_encoder(", RunPhase::vision_forward},
    {Part::code, "visionmodel.", RunPhase::vision_forward},
    {Part::code, "visiontransformer.", RunPhase::vision_forward},
    {Part::code, "visiontower.", RunPhase::vision_forward},
    {Part::code, "apply_rotary_pos_emb_vision", RunPhase::vision_forward},
    {Part::code, "get_image_features", RunPhase::vision_forward},
    {Part::code, "get_video_features", RunPhase::vision_forward},
    {Part::code, "encode_images", RunPhase::vision_forward},
    {Part::code, "extract_feature", RunPhase::vision_forward},
    {Part::code, "embed_multimodal", RunPhase::vision_forward},
    {Part::code, "get_multimodal_embeddings", RunPhase::vision_forward},
    {Part::code, "_process_image_input", RunPhase::vision_forward},
    {Part::code, "_process_video_input", RunPhase::vision_forward},
    {Part::code, "_execute_mm_encoder", RunPhase::vision_forward},
    {Part::file, "siglip", RunPhase::vision_forward},
    {Part::file, "modeling_clip", RunPhase::vision_forward},
    {Part::file, "clip_encoder", RunPhase::vision_forward},
    {Part::file, "intern_vit", RunPhase::vision_forward},
    {Part::file, "vision_transformer", RunPhase::vision_forward},
    {Part::function, "generate", RunPhase::decode},
    {Part::function, "_sample", RunPhase::decode},
    {Part::code, "execute_model(", RunPhase::decode},
    {Part::code, ".generate(", RunPhase::decode},
    {Part::function, "from_pretrained", RunPhase::load_weights},
    {Part::code, ".from_pretrained(", RunPhase::load_weights},
    {Part::code, "load_model(", RunPhase::load_weights},
    {Part::code, "load_weights(", RunPhase::load_weights},
    {Part::code, "load_pretrained_model(", RunPhase::load_weights},
    {Part::code, "load_state_dict(", RunPhase::load_weights},
    {Part::code, "model.to(", RunPhase::load_weights},
    {Part::code, "model.cuda(", RunPhase::load_weights},
    {Part::code, "_move_model_to_device", RunPhase::load_weights},
    {Part::code, "from_config(", RunPhase::load_weights},
    {Part::function, "__init__", RunPhase::load_weights},
    {Part::function, "_apply", RunPhase::load_weights},
    {Part::function, "convert", RunPhase::load_weights},
    {Part::function, "__deepcopy__", RunPhase::load_weights},
    {Part::code, "self.model(", RunPhase::forward},
    {Part::function, "forward", RunPhase::forward},
    {Part::function, "training_step", RunPhase::forward},
});

}  // namespace allocation_site

}  // namespace vlmest::diagnose
