// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/evidence/stack/frame_traits.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace naming {

VLMEST_INLINE Traits of_file(std::string_view file) {
  using namespace trait;
  file = file.substr(file.size() > 4096 ? file.size() - 4096 : 0);
  const auto name = base(file);
  Traits t = 0;
  const bool python = name.ends_with(".py");
  const bool installed = has(file, {"site-packages/", "dist-packages/"});
  if (installed) t |= in_library;
  // Helpers that a model's code calls as it calls torch, and the code that Inductor writes
  // (torch/_inductor/codecache.py).
  const bool helper = has(file, {"/einops/", "/opt_einsum/", "/jaxtyping/", "/beartype/", "/torchinductor_"});
  if (!python || helper || has(file, {"/torch/", "<frozen"}) || (!installed && has(file, {"lib/python"}))) {
    // A notebook's cell is a file like /tmp/ipykernel_7/1.py or <ipython-input-3>: the user's.
    if (!has(file, {"<ipython", "<stdin>", "<string>"})) t |= in_torch | in_library;
  }
  if (has(file, {"/optim/", "/optimizers/", "deepspeed/ops/"}) || is(name, {"optimization.py", "optimizer.py"}))
    t |= in_optimizer;
  if (name == "cache_utils.py" || has(name, {"kv_cache", "kvcache"})) t |= in_cache;
  if (has(file, {"torch/autograd/graph.py"})) t |= in_backward;
  if (has(file, {"torch/fft"})) t |= fft;
  if (has(file, {"torch/nn/modules/linear.py"})) t |= linear;
  if (has(file, {"torch/nn/modules/normalization.py"})) t |= norm;
  if (has(file, {"torch/nn/modules/sparse.py"})) t |= embedding;
  if (has(file, {"torch/utils/data/"}) ||
      is(name, {"feature_extraction_utils.py", "tokenization_utils_base.py", "data_loader.py", "data_collator.py"}) ||
      name.starts_with("image_processing_") || name.starts_with("processing_"))
    t |= takes_input;
  if (has(name, {"loss"})) t |= loss;
  // Not "vision": modeling_llava_onevision.py and modeling_aya_vision.py hold whole models.
  if (name.starts_with("modeling_") && has(name, {"siglip", "clip", "vit", "dino"})) t |= vision;
  if (name.starts_with("masking_utils")) t |= mask;
  return t;
}

VLMEST_INLINE Traits of_function(std::string_view f) {
  using namespace trait;
  f = f.substr(0, 4096);
  Traits t = 0;
  if (is(f, {"step", "optimizer_step", "_optimizer_step"})) t |= optimizes;
  if (is(f, {"_init_group", "get_state_buffer", "init_state"}) || f.starts_with("_multi_tensor_") ||
      f.starts_with("_single_tensor_") || f.starts_with("_fused_adam"))
    t |= in_optimizer;
  if (f == "zero_grad") t |= zeroes;
  // The last two: torch/utils/checkpoint.py, which runs a forward again on autograd's thread.
  if (f == "_engine_run_backward" || f == "backward" || is(f, {"unpack_hook", "recompute_fn"}) ||
      has(f, {"torch::autograd::Engine"}))
    t |= in_backward;
  if (has(f, {"AccumulateGrad"})) t |= accumulates | in_backward;
  if (is(f, {"_call_impl", "_wrapped_call_impl", "forward"})) t |= in_forward;
  if (has(f, {"from_pretrained", "load_pretrained", "load_state_dict", "load_from_state_dict", "load_checkpoint",
              "load_weights", "load_model", "reset_parameters", "init_weights", "set_module_tensor_to_device",
              "materialize"}))
    t |= loads;
  if (f == "__init__") t |= constructs;
  if (has(f, {"kv_cache"}) && has(f, {"alloc", "init", "create"})) t |= in_cache;
  if (is(f, {"pin_memory", "collate_fn", "send_to_device", "_prepare_input", "_prepare_inputs", "batch_to_device",
             "move_data_to_device"}))
    t |= takes_input;
  if (has(f, {"NewWorkspace", "BlasWorkspace", "BlasLtWorkspace", "BlasHandle", "allocate_workspace", "WorkspacePtr"}))
    t |= workspace;
  if (has(f, {"mask"})) t |= mask;
  if ((t & mask) == 0 && has(f, {"attention", "attn", "sdpa"})) t |= attention;
  if (has(f, {"loss", "Loss", "cross_entropy"})) t |= loss;
  if (has(f, {"image_features", "video_features", "image_embeds", "vision", "visual", "embed_multimodal",
              "process_image_input", "pixel_values"}))
    t |= vision;
  if (has(f, {"fft", "fourier", "spectral"})) t |= fft;
  if (is(f, {"linear", "addmm", "matmul"})) t |= linear;
  if (has(f, {"layer_norm", "rms_norm"})) t |= norm;
  if (f == "embedding") t |= embedding;
  if (has(f, {"all_gather", "allgather", "unshard", "alloc_storage"})) t |= gathers;
  if (has(f, {"reduce_scatter", "ipg_bucket", "_build_buckets", "_ddp_init_helper"})) t |= collective;
  return t;
}

}  // namespace naming

VLMEST_INLINE std::vector<CallStackTraits> stack_traits(const StackTable& stacks) {
  constexpr Traits unset = 1u << 31;
  std::vector<Traits> files(stacks.strings.size(), unset), functions(stacks.strings.size(), unset);
  std::vector<Traits> frames(stacks.frame_count());
  for (std::uint32_t i = 0; i < frames.size(); ++i) {
    const auto& w = stacks.words(i);
    if (files[w.file] == unset) files[w.file] = naming::of_file(stacks.file(i));
    if (functions[w.function] == unset) functions[w.function] = naming::of_function(stacks.function(i));
    auto& t = frames[i] = files[w.file] | functions[w.function];
    if (naming::moves_module(stacks.file(i), stacks.function(i))) t |= trait::loads;
    // lr_scheduler.step and a user's own step() are no optimizer's; DeepSpeed's engine steps under another name.
    if ((t & trait::optimizes) != 0 && naming::has(stacks.file(i), {"deepspeed"})) t |= trait::in_optimizer;
    if ((t & trait::zeroes) != 0) t &= ~Traits{trait::in_optimizer};
  }
  std::vector<CallStackTraits> out(stacks.stack_count());
  for (std::uint32_t s = 0; s < out.size(); ++s)
    for (const auto f : stacks.stack(s)) {
      auto& o = out[s];
      Traits t = frames[f];
      // Some optimizers call the step's forward and backward themselves, as LBFGS and Lightning's all do: the
      // innermost of the three is what runs.
      if ((o.all & (trait::in_forward | trait::in_backward)) != 0) t &= ~Traits{trait::in_optimizer};
      o.all |= t;
      if (o.program == CallStackTraits::no_frame) o.innermost |= frames[f];
      if (o.program == CallStackTraits::no_frame && (frames[f] & trait::in_torch) == 0) o.program = f;
      if (o.user == CallStackTraits::no_frame && (frames[f] & trait::in_library) == 0) o.user = f;
    }
  return out;
}

}  // namespace vlmest::diagnose
