// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include <vlmest/diagnose/evidence/text/training_words.hpp>
#include <vlmest/diagnose/evidence/text/word_starts.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE TrainingWords training_words(std::string_view text) {
  // Trainers' own arguments and programs; servers' and engines' own calls.
  static constexpr std::array<std::string_view, 14> trainers{"per_device_train_batch_size",
                                                             "do_train",
                                                             "swift sft",
                                                             "megatron sft",
                                                             "llamafactory-cli train",
                                                             "finetuning_type",
                                                             "train_mem.py",
                                                             "adv_estimator",
                                                             "trainer.train()",
                                                             "get_peft_model",
                                                             "num_train_epochs",
                                                             "accelerate.prepare",
                                                             "train_batch_size",
                                                             "gradient_accumulation_steps"};
  static constexpr std::array<std::string_view, 11> servers{
      "vllm serve",  "vllm.entrypoints", "sglang.launch_server", "LLM(",       "llama-server",     "ollama",
      "swift infer", "lmdeploy serve",   ".generate(",           "EngineCore", "llama-qwen2vl-cli"};
  static constexpr WordScan trainer_scan(trainers);
  static constexpr WordScan server_scan(servers);
  text = text.substr(0, 4 << 20);
  const auto trains = trainer_scan.in(text);
  const auto serves = server_scan.in(text);
  for (std::size_t i = 0; i < trainers.size(); ++i)
    if (trains[i]) return {1, std::string(trainers[i])};
  for (std::size_t i = 0; i < servers.size(); ++i)
    if (serves[i]) return {-1, std::string(servers[i])};
  return {};
}

}  // namespace vlmest::diagnose
