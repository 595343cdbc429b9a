// SPDX-License-Identifier: Apache-2.0
#include "foreign_flags.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace vlmest::tool {
namespace {

struct ForeignFlag {
  std::string_view theirs, ours;
};

/// As transformers' TrainingArguments, peft, accelerate, LLaMA-Factory, vLLM, SGLang and llama.cpp spell them, dashes
/// for underscores.
constexpr std::array foreign_flags{
    ForeignFlag{"--model", "--config"},
    ForeignFlag{"-m", "--config"},
    ForeignFlag{"-c", "--config"},
    ForeignFlag{"--model-path", "--config"},
    ForeignFlag{"--model-name", "--config"},
    ForeignFlag{"--model-id", "--config"},
    ForeignFlag{"--model-name-or-path", "--config"},
    ForeignFlag{"--pretrained-model-name-or-path", "--config"},
    ForeignFlag{"-b", "--batch"},
    ForeignFlag{"-bs", "--batch"},
    ForeignFlag{"--bs", "--batch"},
    ForeignFlag{"--batch-size", "--batch"},
    ForeignFlag{"--micro-batch-size", "--batch"},
    ForeignFlag{"--train-batch-size", "--batch"},
    ForeignFlag{"--per-device-batch-size", "--batch"},
    ForeignFlag{"--per-device-train-batch-size", "--batch"},
    ForeignFlag{"--per-device-eval-batch-size", "--batch"},
    ForeignFlag{"--max-num-seqs", "--batch"},
    ForeignFlag{"--max-model-len", "--seq"},
    ForeignFlag{"--max-seq-len", "--seq"},
    ForeignFlag{"--max-seq-length", "--seq"},
    ForeignFlag{"--max-length", "--seq"},
    ForeignFlag{"--model-max-length", "--seq"},
    ForeignFlag{"--cutoff-len", "--seq"},
    ForeignFlag{"--seq-len", "--seq"},
    ForeignFlag{"--seq-length", "--seq"},
    ForeignFlag{"--sequence-length", "--seq"},
    ForeignFlag{"--context-length", "--seq"},
    ForeignFlag{"--ctx-size", "--seq"},
    ForeignFlag{"--prompt-len", "--text"},
    ForeignFlag{"--prompt-tokens", "--text"},
    ForeignFlag{"--input-len", "--text"},
    ForeignFlag{"--text-tokens", "--text"},
    ForeignFlag{"--num-images", "--images"},
    ForeignFlag{"--resolution", "--image-size"},
    ForeignFlag{"--image-resolution", "--image-size"},
    ForeignFlag{"--img-size", "--image-size"},
    ForeignFlag{"--max-new-tokens", "--new-tokens"},
    ForeignFlag{"--max-tokens", "--new-tokens"},
    ForeignFlag{"--output-len", "--new-tokens"},
    ForeignFlag{"--gradient-checkpointing", "--checkpointing full"},
    ForeignFlag{"--activation-checkpointing", "--checkpointing full"},
    ForeignFlag{"--gradient-accumulation-steps", "--gradient-accumulation"},
    ForeignFlag{"--bf16", "--dtype bf16"},
    ForeignFlag{"--fp16", "--dtype fp16"},
    ForeignFlag{"--fp32", "--dtype fp32"},
    ForeignFlag{"--half", "--dtype fp16"},
    ForeignFlag{"--torch-dtype", "--dtype"},
    ForeignFlag{"--precision", "--dtype"},
    ForeignFlag{"--mixed-precision", "--amp"},
    ForeignFlag{"--autocast", "--amp"},
    ForeignFlag{"--load-in-4bit", "--weights nf4"},
    ForeignFlag{"--load-in-8bit", "--weights int8"},
    ForeignFlag{"--quantization", "--weights"},
    ForeignFlag{"--quantization-bit", "--weights"},
    ForeignFlag{"--quant", "--weights"},
    ForeignFlag{"--kv-cache-dtype", "--kv"},
    ForeignFlag{"--attn-implementation", "--attention"},
    ForeignFlag{"--attn", "--attention"},
    ForeignFlag{"--flash-attn", "--attention flash"},
    ForeignFlag{"--use-flash-attention-2", "--attention flash"},
    ForeignFlag{"--optim", "--optimizer"},
    ForeignFlag{"--use-lora", "--lora RANK"},
    ForeignFlag{"--lora-r", "--lora RANK"},
    ForeignFlag{"--lora-rank", "--lora RANK"},
    ForeignFlag{"--qlora", "--lora RANK --weights nf4"},
    ForeignFlag{"--lora-target", "--lora-targets"},
    ForeignFlag{"--lora-target-modules", "--lora-targets"},
    ForeignFlag{"--target-modules", "--lora-targets"},
    ForeignFlag{"--freeze-vision-tower", "--freeze vision"},
    ForeignFlag{"--freeze-vit", "--freeze vision"},
    ForeignFlag{"--freeze-multi-modal-projector", "--freeze projector"},
    ForeignFlag{"--freeze-language-model", "--freeze language"},
    ForeignFlag{"--gpu", "--device"},
    ForeignFlag{"--gpu-type", "--device"},
    ForeignFlag{"--gpu-mem", "--gpu-memory"},
    ForeignFlag{"--vram", "--gpu-memory"},
    ForeignFlag{"--num-gpus", "--gpus"},
    ForeignFlag{"--n-gpus", "--gpus"},
    ForeignFlag{"--nproc-per-node", "--gpus"},
    ForeignFlag{"--num-processes", "--gpus"},
    ForeignFlag{"--data-parallel-size", "--parallel dp=N"},
    ForeignFlag{"-dp", "--parallel dp=N"},
    ForeignFlag{"--dp", "--parallel dp=N"},
    ForeignFlag{"--tensor-parallel-size", "--parallel tp=N"},
    ForeignFlag{"--tensor-model-parallel-size", "--parallel tp=N"},
    ForeignFlag{"-tp", "--parallel tp=N"},
    ForeignFlag{"--tp", "--parallel tp=N"},
    ForeignFlag{"--tp-size", "--parallel tp=N"},
    ForeignFlag{"--pipeline-parallel-size", "--parallel pp=N"},
    ForeignFlag{"--pipeline-model-parallel-size", "--parallel pp=N"},
    ForeignFlag{"-pp", "--parallel pp=N"},
    ForeignFlag{"--pp", "--parallel pp=N"},
    ForeignFlag{"--context-parallel-size", "--parallel cp=N"},
    ForeignFlag{"--expert-parallel-size", "--parallel ep=N"},
    ForeignFlag{"--zero-stage", "--shard zero1|zero2|zero3"},
    ForeignFlag{"--deepspeed", "--shard zero1|zero2|zero3"},
    ForeignFlag{"--fsdp", "--shard fsdp2"},
    ForeignFlag{"--mode", "--phase"},
    ForeignFlag{"--train", "--phase train"},
    ForeignFlag{"--training", "--phase train"},
    ForeignFlag{"--do-train", "--phase train"},
    ForeignFlag{"--inference", "--phase inference"},
    ForeignFlag{"-o", "--output"},
    ForeignFlag{"--out", "--output"},
    ForeignFlag{"-f", "--format"},
};

constexpr std::string_view one_gpu = "'vlmest estimate --parallel dp=N,...' says what several GPUs need",
                           zero_stages = "'vlmest plan --gpus N' tries ZeRO's stages",
                           a_memory_size = "'vlmest plan --gpu-memory SIZE' looks for settings that fit a memory size";

/// What no flag of ours says, with what there is instead.
constexpr std::array foreign_matters{
    ForeignFlag{"--tensor-parallel-size", one_gpu},
    ForeignFlag{"-tp", one_gpu},
    ForeignFlag{"--tp", one_gpu},
    ForeignFlag{"--tp-size", one_gpu},
    ForeignFlag{"--pipeline-parallel-size", one_gpu},
    ForeignFlag{"--data-parallel-size", one_gpu},
    ForeignFlag{"--gpus", one_gpu},
    ForeignFlag{"--num-gpus", one_gpu},
    ForeignFlag{"--deepspeed", zero_stages},
    ForeignFlag{"--zero-stage", zero_stages},
    ForeignFlag{"--gpu-memory", a_memory_size},
    ForeignFlag{"--gpu-memory-utilization", a_memory_size},
    ForeignFlag{"--lora-alpha", "leave it out: it scales the adapters and changes neither bytes nor time"},
    ForeignFlag{"--learning-rate", "leave it out: it changes neither bytes nor time"},
};

}  // namespace

std::string our_flag(const std::string& word, const std::vector<std::string>& known) {
  std::string theirs = word;
  std::transform(theirs.begin(), theirs.end(), theirs.begin(),
                 [](unsigned char c) { return c == '_' ? '-' : static_cast<char>(std::tolower(c)); });
  const auto is_known = [&](std::string_view flag) {
    return std::find(known.begin(), known.end(), flag.substr(0, flag.find(' '))) != known.end();
  };
  if (is_known(theirs)) return "did you mean " + theirs + "?";
  for (const ForeignFlag& f : foreign_flags)
    if (f.theirs == theirs && is_known(f.ours)) return "did you mean " + std::string(f.ours) + "?";
  for (const ForeignFlag& f : foreign_matters)
    if (f.theirs == theirs) return std::string(f.ours);
  return {};
}

}  // namespace vlmest::tool
