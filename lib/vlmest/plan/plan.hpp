// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/plan/kernel_packages.hpp>
#include <vlmest/tensor/dtype.hpp>
#include <vlmest/unit/words.hpp>

namespace vlmest {

/// Whose kernels run: the place of a row of nn/stack/registry.hpp, which has their names.
enum class Runtime : std::uint8_t {};

/// attn_implementation: products and softmax written out, torch's scaled_dot_product_attention, FlashAttention-2.
enum class AttentionKind : std::uint8_t { eager, sdpa, flash };
template <>
inline constexpr std::array<std::string_view, 3> words_of<AttentionKind>{"eager", "sdpa", "flash"};
/// As transformers spells it.
constexpr std::string_view attn_implementation(AttentionKind k) {
  return k == AttentionKind::flash ? "flash_attention_2" : name(k);
}

/// Positions whose logits a prefill computes (transformers: logits_to_keep = 1, or 0 for all).
enum class Logits : std::uint8_t { last, all };
template <>
inline constexpr std::array<std::string_view, 2> words_of<Logits>{"last", "all"};

/// adamw_8bit: bitsandbytes' AdamW8bit; adamw_bnb_8bit: as transformers' Trainer runs it under that name.
enum class Optimizer : std::uint8_t { adamw, adamw_fused, adamw_8bit, adamw_bnb_8bit, sgd, sgd_momentum, adafactor };
template <>
inline constexpr std::array<std::string_view, 7> words_of<Optimizer>{
    "adamw", "adamw-fused", "adamw-8bit", "adamw-bnb-8bit", "sgd", "sgd-momentum", "adafactor"};

/// Whether an 8-bit optimizer keeps the moments of a parameter in fp32.
constexpr bool keeps_fp32_moments(Optimizer o, std::int64_t elements, bool embedding) {
  return elements < 4096 || (embedding && o == Optimizer::adamw_bnb_8bit);
}

/// How the LLM's keys and values are kept between steps.
struct KvLayout {
  enum class Kind : std::uint8_t { dense, paged, sliding, mla } kind = Kind::dense;
  std::int64_t block = 16;      ///< paged: tokens in a page
  std::int64_t window = 0;      ///< sliding: the newest tokens that every layer keeps
  std::int64_t latent_dim = 0;  ///< mla: compressed keys and values of a token
  std::int64_t rope_dim = 0;    ///< mla: rotated key channels that all heads share
  std::optional<DType> dtype;   ///< storage type; the activations' type where not given
};
template <>
inline constexpr std::array<std::string_view, 4> words_of<KvLayout::Kind>{"dense", "paged", "sliding", "mla"};

/// Parts of the model that are trained.
struct Trainable {
  bool vision = true;
  bool audio = true;
  bool projector = true;
  bool language = true;
};

/// Which activations a training forward keeps. full: the input of every layer, as gradient_checkpointing_enable() does
/// (torch.utils.checkpoint without reentrance around each GradientCheckpointingLayer, the vision tower's too);
/// selective: of every layer also what its matrix products and attention kernels gave, the rest is computed again
/// (torch.utils.checkpoint.create_selective_checkpoint_contexts).
enum class Checkpointing : std::uint8_t { off, full, selective };
template <>
inline constexpr std::array<std::string_view, 3> words_of<Checkpointing>{"none", "full", "selective"};

/// Parts of the model whose layers are checkpointed, where any are; what is neither goes with the language model.
struct Checkpointed {
  bool vision = true;
  bool language = true;
  std::optional<std::int64_t> layers;  ///< so many of the language model's, the first ones; not given: all
};

/// Low-rank adapters (Hu et al., arXiv:2106.09685, section 4.1) as peft puts them on linear layers; all else is frozen.
struct Lora {
  std::int64_t rank = 0;  ///< 0: none
  bool dropout = false;   ///< lora_dropout is above zero
  bool vision = false;    ///< adapters on the vision tower's layers of these names too
  std::vector<std::string> targets = {"q_proj", "k_proj", "v_proj", "o_proj"};  ///< names of linear modules
};

/// How the loss is computed from the last hidden states: logits, their fp32 copy and cross entropy one after the other;
/// one kernel that writes the gradient over the logits; or that over slices of the tokens, which gives the gradients of
/// head and hidden states in the forward (Liger Kernel, arXiv:2410.10989, section 3.2). Runtimes that
/// fuse the loss (StackTraits::fuses_loss) take the second where the first is asked for.
enum class Loss : std::uint8_t { unfused, fused, chunked };
template <>
inline constexpr std::array<std::string_view, 3> words_of<Loss>{"unfused", "fused", "chunked"};

/// How the layers of the language model are divided among GPUs: as the tensor-parallel plan of its transformers config
/// says, or with `experts` as the expert-parallel one does (DistributedConfig(tp_size=ranks, enable_expert_parallel)).
/// All ranks run the same sequences and hold parts of one size.
struct LayerShards {
  int ranks = 1;
  bool experts = false;
};

/// Which part of each sequence the language model of this GPU runs (context parallelism).
struct SequencePart {
  int parts = 1;
  int part = 0;
};

/// Pixels of an image, before the model's own resize.
struct PixelSize {
  std::int64_t height = 0;
  std::int64_t width = 0;
  constexpr bool operator==(const PixelSize&) const = default;
};

/// A video in each sequence, as it reaches the model's processor. With `frames` these are handed over as they are, as
/// with do_sample_frames=False; without, the processor samples `seconds` of a video itself.
struct VideoPlan {
  std::optional<std::int64_t> frames;
  /// A second: what the processor samples, of handed-over frames those that there are; not given: the processor's own.
  std::optional<double> fps;
  std::optional<double> seconds;   ///< length of the video; not given: as long as the frames last
  std::optional<double> recorded;  ///< frames a second of the video that is sampled; not given: 30
  std::int64_t height = 0;         ///< pixels of a frame, before the processor's resize; 0: the model's native size
  std::int64_t width = 0;
};

/// Clips of sound in each sequence, all of one length, as they reach the model's processor.
struct AudioPlan {
  double seconds = 0;
  std::int64_t clips = 1;
};

/// Every choice that is not the model's: how it is run.
struct Plan {
  std::int64_t batch = 1;         ///< sequences
  std::int64_t images = 1;        ///< images in each sequence
  std::int64_t image_height = 0;  ///< pixels, before the model's own resize; 0: the model's native size
  std::int64_t image_width = 0;
  /// Where images differ: the sequences of a batch take turns, the first one has images of the size above, the next
  /// ones of these. Sequences of different lengths are padded to the longest.
  std::vector<PixelSize> more_sizes;
  std::optional<VideoPlan> video;  ///< beside the images
  std::optional<AudioPlan> audio;  ///< beside images and video
  /// Images that the vision tower sees at a time, tiles where the processor hands them over as images (InternVL, Aya
  /// Vision, Idefics2, Idefics3, SmolVLM); 0: all at once, as transformers runs it.
  std::int64_t vision_chunk = 0;
  std::optional<std::int64_t> seq;  ///< LLM tokens of a sequence, visual ones included
  std::int64_t text = 256;          ///< text tokens of a sequence, where seq is not given
  bool markers = true;              ///< tokens that the processor writes around images; off: inputs made without it
  std::int64_t new_tokens = 128;    ///< tokens to decode after the prefill
  /// Denoising steps of each canvas, of a model that generates by them; not given: as many as generate() takes at most.
  /// Rates count with it; a step's memory and time are the same whatever it is.
  std::optional<std::int64_t> denoising_steps;
  /// Tokens that an encoder-decoder model's decoder is trained on, of each sequence; not given: new_tokens.
  std::optional<std::int64_t> target;
  /// Tokens of the instruction as a Q-Former reads it, by a tokenizer of its own; not given: as many as of text, at
  /// most those that it has positions for.
  std::optional<std::int64_t> instruction;
  DType dtype = DType::bf16;     ///< weights and activations
  bool own_dtype = false;        ///< dtype is what the model's config.json names, not what was asked for
  std::optional<DType> weights;  ///< storage of the language model's linear weights
  KvLayout kv;
  AttentionKind attention = AttentionKind::sdpa;
  Runtime runtime{};        ///< the first row: transformers, whose modules run eagerly
  KernelPackages packages;  ///< beside it
  Logits logits = Logits::last;
  Optimizer optimizer = Optimizer::adamw;
  Checkpointing checkpointing = Checkpointing::off;
  Checkpointed checkpointed;
  Lora lora;
  Loss loss = Loss::unfused;
  Trainable trainable;
  /// The embeddings' results collect gradients (enable_input_require_grads()), so that gradients flow through frozen
  /// layers down to them; not given: with checkpointing and frozen weights, as fine-tuning scripts do.
  std::optional<bool> input_gradients;
  std::int64_t gradient_accumulation = 1;
  LayerShards shards;
  SequencePart sequence_part;
  /// What a training step gathers weights of `dtype` in, and runs in (fully_shard's
  /// MixedPrecisionPolicy(param_dtype=...)). Only a layout that divides weights does (parallel/layout.hpp).
  std::optional<DType> param_dtype;
  bool amp = false;
  bool dropout = false;  ///< modules in training mode (model.train()): dropout draws its masks
};

}  // namespace vlmest
