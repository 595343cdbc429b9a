// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>

#include <vlmest/diagnose/advise/action/action_entry.hpp>
#include <vlmest/diagnose/advise/action/image_lever.hpp>
#include <vlmest/diagnose/advise/action/vision_chunk_line.hpp>
#include <vlmest/nn/sequence_layout.hpp>

/// Actions on what is fed to a model. Names of arguments: transformers 5.17 (training_args.py, processors), TRL
/// (SFTConfig).
namespace vlmest::diagnose {

namespace action {

std::vector<Settings> fewer_images(const Subject& s);

/// Of a video whose frames are handed over these, of one that is sampled its rate.
std::vector<Settings> fewer_frames(const Subject& s);
std::string fewer_frames_line(const Settings& after);

/// Less text, the images whole.
std::vector<Settings> shorter(const Subject& s);

std::vector<Settings> fewer_new_tokens(const Subject& s);

/// Sequences that a batch must have: one for each size of images.
inline std::int64_t least_batch(const Plan& p) { return static_cast<std::int64_t>(p.more_sizes.size()) + 1; }

/// Whether images of several sizes share a batch.
inline bool mixes_sizes(const Subject& s) {
  const std::vector<ImageSize> sizes = image_sizes(s.now.vlm, s.plan());
  return s.plan().images > 0 && !s.now.grouped_by_size &&
         std::any_of(sizes.begin(), sizes.end(), [&](ImageSize i) { return !(i == sizes.front()); });
}

/// Divisors of the batch, so that a step sees the same sequences.
std::vector<Settings> micro_batches(const Subject& s);

std::vector<Settings> smaller_batches(const Subject& s);

}  // namespace action

inline constexpr std::array input_actions{
    ActionEntry{"smaller-images", "a lower limit on the pixels or tiles of an image", Loses::quality,
                [](const Subject& s) { return lower_images(s.now); },
                [](const Subject&, const Settings& after) { return limit_line(after.vlm.image_processor); }}
        .in_general({.torch = "a processor with lower max_pixels (or size), or pictures scaled down before it",
                     .engine = "--mm-processor-kwargs '{\"max_pixels\": N}'",
                     .other = "scale pictures down before they are handed over"}),
    ActionEntry{.name = "vision-chunks",
                .title = "the vision tower on a few images at a time",
                .options = [](const Subject& s) { return vision_chunks(s); },
                .how = [](const Subject&, const Settings& after) { return vision_chunk_line(after); },
                .levels_off = true}
        .in_general({.torch = "call the tower on a few pictures at a time and concatenate its features"}),
    ActionEntry{.name = "group-by-size",
                .title = "batches of images of one size, without padding for the largest",
                .options =
                    [](const Subject& s) {
                      return changed(s, action::mixes_sizes(s), [](Settings& n) { n.grouped_by_size = true; });
                    },
                // trainer.py takes the unused columns away before it makes the sampler, the lengths with them.
                .how =
                    [](const Subject& s, const Settings&) {
                      return s.training() ? std::string(
                                                "TrainingArguments(train_sampling_strategy=\"group_by_length\", "
                                                "length_column_name=\"length\", remove_unused_columns=False)  # a "
                                                "column with each sequence's tokens, those of its images included")
                                          : std::string(
                                                "prompts.sort(key=lambda p: len(processor(**p)[\"input_ids\"][0]))  # "
                                                "then batches in this order");
                    },
                .for_time = true},
    ActionEntry{"fewer-images", "fewer images or frames in a sequence", Loses::quality, action::fewer_images,
                [](const Subject&, const Settings& after) {
                  return "images = images[:" + std::to_string(after.plan.images) + "]  # in each sequence";
                }}
        .in_general({.torch = "images = images[:N]; of videos fewer frames (fps, nframes, max_frames)",
                     .engine = "--limit-mm-per-prompt '{\"image\": N, \"video\": 0}'; fewer frames",
                     .other = "one picture at a time; fewer frames of a video"}),
    ActionEntry{"fewer-frames", "fewer frames of a video", Loses::quality, action::fewer_frames,
                [](const Subject&, const Settings& after) { return action::fewer_frames_line(after); }},
    ActionEntry{"shorter-seq", "less text in a sequence", Loses::quality, action::shorter,
                [](const Subject& s, const Settings& after) {
                  const auto tokens = std::to_string(make_sequences(after.vlm, after.plan).seq);
                  return s.training() ? "SFTConfig(max_length=" + tokens + ")"
                                      : "processor(..., truncation=True, max_length=" + tokens + ")";
                }}
        .in_general({.torch = "max_length=N (SFTConfig), max_prompt_length, cutoff_len",
                     .engine = "--max-model-len N; SGLang: --context-length N",
                     .other = "a smaller context (llama.cpp -c N, ollama num_ctx), prompts in chunks (-ub N)"}),
    ActionEntry{"fewer-new-tokens", "a shorter answer", Loses::quality, action::fewer_new_tokens,
                [](const Subject&, const Settings& after) {
                  return "model.generate(**inputs, max_new_tokens=" + std::to_string(after.plan.new_tokens) + ")";
                }},
    ActionEntry{"smaller-micro-batch", "the batch in several passes, gradients added up", Loses::order,
                action::micro_batches,
                [](const Subject&, const Settings& after) {
                  return "TrainingArguments(per_device_train_batch_size=" + std::to_string(after.plan.batch) +
                         ", gradient_accumulation_steps=" + std::to_string(after.plan.gradient_accumulation) + ")";
                }}
        .in_general({.inference = false, .torch = "per_device_train_batch_size=1, gradient_accumulation_steps=N"}),
    ActionEntry{"smaller-batch", "fewer sequences at a time", Loses::order, action::smaller_batches,
                [](const Subject&, const Settings& after) {
                  return "prompts = prompts[:" + std::to_string(after.plan.batch) +
                         "]  # the others in further batches; vLLM: --max-num-seqs " + std::to_string(after.plan.batch);
                }}
        .in_general({.training = false,
                     .torch = "prompts = prompts[:N]",
                     .engine = "--max-num-seqs N; SGLang: --max-running-requests N",
                     .other = "fewer requests at once (llama.cpp -np, ollama OLLAMA_NUM_PARALLEL)"}),
};

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/advise/action/impl/actions_inputs.hpp>
#endif
