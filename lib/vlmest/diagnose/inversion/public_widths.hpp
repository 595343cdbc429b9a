// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/evidence/cause.hpp>
#include <vlmest/diagnose/evidence/text/printed_size.hpp>
#include <vlmest/tensor/described_tensor.hpp>

/// The widths of language models and vision towers that vision-language models are made of, beside those of the shipped
/// descriptions: what a weight, its gradient and an optimizer's state of it can be where no model is known.
namespace vlmest::diagnose {

struct PublicWidths {
  std::string_view model;
  double billions = 0;  ///< parameters; 0: a tower, which comes with any of them
  std::int64_t hidden = 0, intermediate = 0, vocabulary = 0;
};

/// As the checkpoints' config.json have them (hidden_size, intermediate_size, vocab_size); of Qwen 7B and 14B half of
/// their intermediate_size, which counts both of its projections (modeling_qwen.py).
inline constexpr auto public_widths = std::to_array<PublicWidths>({
    {"LLaMA 7B", 6.7, 4096, 11008, 32000},
    {"LLaMA 13B", 13, 5120, 13824, 32000},
    {"LLaMA 30B", 32.5, 6656, 17920, 32000},
    {"LLaMA 65B", 65.2, 8192, 22016, 32000},
    {"Llama 2 70B", 69, 8192, 28672, 32000},
    {"Llama 3.2 1B", 1.2, 2048, 8192, 128256},
    {"Llama 3.2 3B", 3.2, 3072, 8192, 128256},
    {"Llama 3 8B", 8, 4096, 14336, 128256},
    {"Llama 3 70B", 70.6, 8192, 28672, 128256},
    {"Mistral 7B", 7.2, 4096, 14336, 32000},
    {"Mistral Nemo", 12.2, 5120, 14336, 131072},
    {"Mistral Small", 23.6, 5120, 32768, 131072},
    {"Qwen 7B", 7.7, 4096, 11008, 151936},
    {"Qwen 14B", 14.2, 5120, 13696, 152064},
    {"Qwen2 0.5B", 0.5, 896, 4864, 151936},
    {"Qwen2 1.5B", 1.5, 1536, 8960, 151936},
    {"Qwen2.5 3B", 3.1, 2048, 11008, 151936},
    {"Qwen2 7B", 7.6, 3584, 18944, 152064},
    {"Qwen2.5 14B", 14.8, 5120, 13824, 152064},
    {"Qwen2.5 32B", 32.8, 5120, 27648, 152064},
    {"Qwen2 72B", 72.7, 8192, 29568, 152064},
    {"Qwen3 1.7B", 1.7, 2048, 6144, 151936},
    {"Qwen3 4B", 4, 2560, 9728, 151936},
    {"Qwen3 8B", 8.2, 4096, 12288, 151936},
    {"Qwen3 14B", 14.8, 5120, 17408, 151936},
    {"Qwen3 32B", 32.8, 5120, 25600, 151936},
    {"Gemma 2B", 2.5, 2048, 16384, 256000},
    {"Gemma 7B", 8.5, 3072, 24576, 256000},
    {"Gemma 2 2B", 2.6, 2304, 9216, 256000},
    {"Gemma 2 9B", 9.2, 3584, 14336, 256000},
    {"Gemma 2 27B", 27.2, 4608, 36864, 256000},
    {"Gemma 3 4B", 4.3, 2560, 10240, 262208},
    {"Gemma 3 12B", 12.2, 3840, 15360, 262208},
    {"Gemma 3 27B", 27.4, 5376, 21504, 262208},
    {"ChatGLM 6B", 6.2, 4096, 16384, 130528},
    {"ChatGLM2 6B", 6.2, 4096, 13696, 65024},
    {"GLM-4 9B", 9.4, 4096, 13696, 151552},
    {"InternLM2 7B", 7.7, 4096, 14336, 92544},
    {"InternLM2 20B", 19.9, 6144, 16384, 92544},
    {"Yi 6B", 6.1, 4096, 11008, 64000},
    {"Yi 34B", 34.4, 7168, 20480, 64000},
    {"Baichuan2 7B", 7.5, 4096, 11008, 125696},
    {"Baichuan2 13B", 13.9, 5120, 13696, 125696},
    {"DeepSeek 7B", 6.9, 4096, 11008, 102400},
    {"Phi-2", 2.8, 2560, 10240, 51200},
    {"Phi-3 mini", 3.8, 3072, 8192, 32064},
    {"Phi-3 medium", 14, 5120, 17920, 32064},
    {"OPT 2.7B", 2.7, 2560, 10240, 50272},
    {"OPT 6.7B", 6.7, 4096, 16384, 50272},
    {"OPT 13B", 12.9, 5120, 20480, 50272},
    {"OPT 30B", 30, 7168, 28672, 50272},
    {"CLIP ViT-L", 0, 1024, 4096, 0},
    {"CLIP ViT-H", 0, 1280, 5120, 0},
    {"CLIP ViT-bigG", 0, 1664, 8192, 0},
    {"SigLIP so400m", 0, 1152, 4304, 0},
    {"EVA ViT-g", 0, 1408, 6144, 0},
    {"EVA-CLIP-E", 0, 1792, 15360, 0},
    {"InternViT 6B", 0, 3200, 12800, 0},
});

/// What is told of a model beside its widths.
struct ToldModel {
  double parameters = 0;    ///< that it is named by; 0: not told
  bool eight_bits = false;  ///< its weights have 8
};

/// The weights that have the size, each shape once: in 16 bits, of states and gradients in 32 as well; where none has
/// it, in 32, and then in 8. Where the model is told to have 8, in these first.
std::vector<DescribedTensor> weights_of_size(const PrintedSize& size, Cause cause, const ToldModel& told);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/inversion/impl/public_widths.hpp>
#endif
