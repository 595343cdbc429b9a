// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include <vlmest/diagnose/evidence/stack/frame_meaning.hpp>

namespace vlmest::diagnose::frame_words {

/// Words of loading, inputs, torch's own modules and of the program around them.
inline constexpr auto program_words = std::to_array<FrameWord>({
    // Whose step it is, where nothing further in tells more.
    {Part::file, "torch/optim/", {.site = Site::optimizer_temporary}},
    {Part::file, "transformers/optimization.py", {.site = Site::optimizer_temporary}},
    // Loading.
    {Part::code, "from_pretrained", {.site = Site::weights, .traits = trait::loads}},
    {Part::code, "load_model", {.site = Site::weights, .traits = trait::loads}},
    {Part::code, "load_weights", {.site = Site::weights, .traits = trait::loads}},
    {Part::code, "create_weights", {.site = Site::weights}},
    {Part::code, "build_model(", {.site = Site::weights, .traits = trait::loads}},  // mmengine/_strategy, fairseq
    {Part::code, "models.build(", {.site = Site::weights, .traits = trait::loads}},
    {Part::code, "load_state_dict", {.site = Site::weights, .traits = trait::loads}},
    {Part::code, "load_pretrained_model", {.site = Site::weights}},
    {Part::code, "set_module_tensor_to_device", {.site = Site::weights, .traits = trait::loads}},
    {Part::code, "caching_allocator_warmup", {.site = Site::weights}},
    {Part::code, "dispatch_model(", {.site = Site::weights, .traits = trait::loads}},  // accelerate/big_modeling.py
    {Part::code, "get_peft_model(", {.site = Site::weights}},
    {Part::code, "inject_adapter", {.site = Site::weights}},  // peft/tuners/tuners_utils.py
    {Part::code, "quantize_4bit(", {.site = Site::weights}},  // bitsandbytes/nn/modules.py, of a weight on its way
    {Part::code, "process_weights_after_loading", {.site = Site::weights}},  // vllm, sglang
    {Part::code, "initialize_model(", {.site = Site::weights, .traits = trait::loads}},
    {Part::code, "materialize_", {.site = Site::weights}},
    {Part::code, "_initialize_missing_keys", {.site = Site::weights}},
    {Part::code, "gatheredparameters(", {.site = Site::module_gather}},  // deepspeed/runtime/zero
    {Part::code, "prepare_model_for_kbit_training", {.site = Site::weights}},
    {Part::code, "merge_and_unload", {.site = Site::weights}},
    {Part::code, "factory_kwargs", {.site = Site::weights}},
    {Part::code, "load_pretrained", {.traits = trait::loads}},
    {Part::code, "load_from_state_dict", {.traits = trait::loads}},
    {Part::code, "load_checkpoint", {.traits = trait::loads}},
    {Part::code, "reset_parameters", {.traits = trait::loads}},
    {Part::code, "init_weights", {.traits = trait::loads}},
    {Part::code, "materialize", {.traits = trait::loads}},
    // Inputs. Decoders write whole clips and pictures to the host's memory; of those with short names the installed
    // package is meant (site-packages, dist-packages), no folder of somebody's.
    {Part::file, "torchvision/io/", {.site = Site::decoded_media, .traits = trait::takes_input}},
    {Part::file, "-packages/torchcodec/", {.site = Site::decoded_media}},
    {Part::file, "-packages/decord/", {.site = Site::decoded_media}},
    {Part::file, "-packages/av/", {.site = Site::decoded_media}},
    {Part::file, "-packages/imageio/", {.site = Site::decoded_media}},
    {Part::file, "-packages/moviepy/", {.site = Site::decoded_media}},
    {Part::file, "-packages/librosa/", {.site = Site::decoded_media}},
    {Part::file, "-packages/pil/", {.site = Site::decoded_media}},
    {Part::code, "io.read_video(", {.site = Site::decoded_media}},
    {Part::code, "cv2.videocapture", {.site = Site::decoded_media}},
    {Part::file, "torch/utils/data/", {.traits = trait::takes_input}},
    {Part::file_name, "feature_extraction_utils.py", {.traits = trait::takes_input}},
    {Part::file_name, "tokenization_utils_base.py", {.traits = trait::takes_input}},
    {Part::file_name, "data_loader.py", {.traits = trait::takes_input}},
    {Part::file_name, "data_collator.py", {.traits = trait::takes_input}},
    {Part::file_begins, "image_processing_", {.traits = trait::takes_input}},
    {Part::file_begins, "processing_", {.traits = trait::takes_input}},
    {Part::function, "pin_memory", {.traits = trait::takes_input}},
    {Part::function, "collate_fn", {.traits = trait::takes_input}},
    {Part::function, "send_to_device", {.traits = trait::takes_input}},
    {Part::function, "_prepare_input", {.traits = trait::takes_input}},
    {Part::function, "_prepare_inputs", {.traits = trait::takes_input}},
    {Part::function, "batch_to_device", {.traits = trait::takes_input}},
    {Part::function, "move_data_to_device", {.traits = trait::takes_input}},
    // Torch's own modules and kernels.
    {Part::file, "torch/nn/modules/linear.py", {.traits = trait::linear}},
    {Part::function, "linear", {.traits = trait::linear}},
    {Part::function, "addmm", {.traits = trait::linear}},
    {Part::function, "matmul", {.traits = trait::linear}},
    {Part::code, "ret=input.softmax(", {.kernel = Site::score_matrix}},  // torch/nn/functional.py, softmax()
    {Part::code, "conv2d(", {.kernel = Site::convolution}},
    {Part::code, "conv3d(", {.kernel = Site::convolution}},
    {Part::code, "layer_norm(", {.kernel = Site::norm}},
    {Part::code, "rms_norm", {.kernel = Site::norm, .traits = trait::norm}},
    {Part::code, "variance", {.kernel = Site::norm}},
    {Part::code, "silu(", {.kernel = Site::mlp}},
    {Part::code, "gelu(", {.kernel = Site::mlp}},
    {Part::code, "activation_fn(", {.kernel = Site::mlp}},
    {Part::code, "f.linear(", {.kernel = Site::projection}},
    {Part::file, "torch/nn/modules/normalization.py", {.traits = trait::norm}},
    {Part::code, "layer_norm", {.traits = trait::norm}},
    {Part::file, "torch/nn/modules/sparse.py", {.traits = trait::embedding}},
    {Part::function, "embedding", {.traits = trait::embedding}},
    {Part::function, "_call_impl", {.traits = trait::in_forward}},
    {Part::function, "_wrapped_call_impl", {.traits = trait::in_forward}},
    // Scratch of cuBLAS and cuDNN.
    {Part::code, "newworkspace", {.traits = trait::workspace}},
    {Part::code, "blasworkspace", {.traits = trait::workspace}},
    {Part::code, "blasltworkspace", {.traits = trait::workspace}},
    {Part::code, "blashandle", {.traits = trait::workspace}},
    {Part::code, "allocate_workspace", {.traits = trait::workspace}},
    {Part::code, "workspaceptr", {.traits = trait::workspace}},
    // What the program does.
    {Part::function, "training_step", {.mode = Mode::training}},
    {Part::file, "torch/utils/checkpoint.py", {.mode = Mode::training}},
    {Part::code, "_reduce_and_partition_ipg_grads", {.mode = Mode::training}},
    {Part::function, "generate", {.phase = RunPhase::decode, .mode = Mode::inference}},
    {Part::function, "_sample", {.phase = RunPhase::decode, .mode = Mode::inference}},
    {Part::code, "execute_model(", {.phase = RunPhase::decode, .mode = Mode::inference}},
    {Part::code, ".generate(", {.phase = RunPhase::decode, .mode = Mode::inference}},
    // What makes or moves a module.
    {Part::function, "convert", {.site = Site::weights, .phase = RunPhase::load_weights}},
    {Part::function, "__deepcopy__", {.site = Site::weights, .phase = RunPhase::load_weights}},
    {Part::function, "_apply", {.site = Site::weights, .phase = RunPhase::load_weights}},
    {Part::function, "__init__", {.site = Site::weights, .phase = RunPhase::load_weights, .traits = trait::constructs}},
    {Part::function, "from_pretrained", {.phase = RunPhase::load_weights}},
    {Part::code, ".from_pretrained(", {.phase = RunPhase::load_weights}},
    {Part::code, "load_model(", {.phase = RunPhase::load_weights}},
    {Part::code, "load_weights(", {.phase = RunPhase::load_weights}},
    {Part::code, "load_pretrained_model(", {.phase = RunPhase::load_weights}},
    {Part::code, "load_state_dict(", {.phase = RunPhase::load_weights}},
    {Part::code, "model.to(", {.phase = RunPhase::load_weights}},
    {Part::code, "model.cuda(", {.phase = RunPhase::load_weights}},
    {Part::code, "_move_model_to_device", {.phase = RunPhase::load_weights}},
    {Part::code, "from_config(", {.phase = RunPhase::load_weights}},
    {Part::code, "pixel_values", {.site = Site::pixel_values, .traits = trait::vision}},
    {Part::code, "self.model(", {.phase = RunPhase::forward}},
    {Part::function, "forward", {.phase = RunPhase::forward, .traits = trait::in_forward}},
    {Part::function, "training_step", {.phase = RunPhase::forward}},
    // The program around it.
    {Part::function, "_inner_training_loop", {.around = Mode::training}},
    {Part::function, "compute_loss", {.around = Mode::training}},
    {Part::code, "compute_loss(", {.around = Mode::training}},
    {Part::code, "trainer.train(", {.around = Mode::training}},
    {Part::code, "trainer.fit(", {.around = Mode::training}},
    {Part::file, "deepspeed/runtime/zero/", {.around = Mode::training}},
    {Part::file, "trl/trainer/", {.around = Mode::training}},
    {Part::function, "train", {.around = Mode::training}},
    {Part::code, "train()", {.around = Mode::training}},
    // Programs that answer.
    {Part::code, "profile_run", {.mode = Mode::inference}},
    {Part::function, "evaluation_loop", {.mode = Mode::inference}},
    {Part::function, "prediction_step", {.mode = Mode::inference}},
    {Part::function, "validation_step", {.mode = Mode::inference}},
    {Part::file, "/vllm/", {.mode = Mode::inference}},
    {Part::file, "/sglang/", {.mode = Mode::inference}},
    {Part::file, "/lmdeploy/", {.mode = Mode::inference}},
});

}  // namespace vlmest::diagnose::frame_words
