// SPDX-License-Identifier: Apache-2.0
// Prints docs/reference/validation.md: the error of every measured run, and its time beside the estimated one.
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <span>

#include "../../tests/validation/measured.hpp"

namespace {

using vlmest::Comparison;

struct Row {
  std::string name;
  std::map<std::string, double> error;
};

/// A run begins with its parameters; two runs may have the same name.
bool begins_run(const Comparison& c) { return c.quantity == "params"; }

void table(const std::vector<Comparison>& all, std::span<const char* const> columns, int digits = 4) {
  std::vector<Row> rows;
  for (const auto& c : all) {
    if (begins_run(c)) rows.push_back({c.row, {}});
    rows.back().error[c.quantity] = c.error();
  }
  std::printf("\n| run |");
  for (const char* c : columns) std::printf(" %s |", c);
  std::printf("\n|---|");
  for (std::size_t i = 0; i < columns.size(); ++i) std::printf("---:|");
  std::printf("\n");
  for (const auto& r : rows) {
    if (std::none_of(columns.begin(), columns.end(), [&](const char* c) { return r.error.contains(c); })) continue;
    std::printf("| %s |", r.name.c_str());
    for (const char* c : columns)
      if (const auto e = r.error.find(c); e == r.error.end())
        std::printf(" |");
      else if (e->second == 0)
        std::printf(" 0 |");
      else
        std::printf(" %+.*f |", digits, e->second);
    std::printf("\n");
  }
}

void inference(const std::vector<Comparison>& all) {
  static constexpr std::array columns{"kv_bytes",    "prefill_flops",  "prefill_peak", "prefill_above_weights",
                                      "decode_peak", "prefill_kernels"};
  table(all, columns);
}

void training(const std::vector<Comparison>& all) {
  static constexpr std::array columns{"optimizer_bytes",     "train_flops",   "alloc_start", "forward_peak",
                                      "alloc_after_forward", "backward_peak", "step_peak",   "reserved_peak"};
  table(all, columns);
  for (const auto& c : all)
    if (c.quantity == "fits" && c.measured == 0)
      std::printf("\n`%s` ran out of memory; its estimate %s.\n", c.row.c_str(),
                  c.predicted == 0 ? "says so" : "says that it fits");
}

void times(const std::vector<Comparison>& all) {
  static constexpr std::array inference{"prefill_gpu_ms", "prefill_ms", "decode_gpu_ms", "decode_graph_ms",
                                        "decode_ms"};
  static constexpr std::array training{"forward_gpu_ms", "backward_gpu_ms", "optimizer_gpu_ms", "step_gpu_ms",
                                       "step_ms"};
  table(all, inference, 1);
  table(all, training, 1);
}

/// Kinds of single operations: how many, and how far off.
void operations(const std::vector<Comparison>& all) {
  std::vector<std::string> quantities;
  for (const auto& c : all)
    if (std::find(quantities.begin(), quantities.end(), c.quantity) == quantities.end())
      quantities.push_back(c.quantity);
  std::sort(quantities.begin(), quantities.end());
  std::printf("\n| quantity | operations | median %% | mean %% | worst %% | fitted |\n|---|---:|---:|---:|---:|---|\n");
  for (const auto& q : quantities) {
    const vlmest::ErrorSummary s = vlmest::summary(all, q);
    std::printf("| %s | %zu | %.2f | %.2f | %.1f | %s |\n", q.c_str(), s.rows, s.median, s.mean, s.worst,
                std::string(name(s.fitted)).c_str());
  }
}

}  // namespace

int main() {
  try {
    const auto timed = validation::compare(".", {"h200-times.json"});
    std::printf(
        "# Validation\n\nEvery measured run of a whole model beside its estimate. This page is printed by "
        "`docs/generate/validation.cpp`\nout of [tests/validation/rows](../../tests/validation/rows); "
        "[accuracy](../explanation/accuracy.md) says how the runs were\nmeasured, [measured rows](measured-rows.md) "
        "what "
        "the quantities are. Signed errors in percent of the measured value;\nempty where a run did not record it. A "
        "name is `model b<batch> text <tokens> images <number> <height>x<width> options`. The rules of\n"
        "memory were written with these runs [in sight](../explanation/accuracy.md#what-is-compared).\n\n"
        "## A process for each model\n");
    inference(validation::compare(".", {"h200-inference-fresh.json"}));
    inference(timed);
    std::printf("\n## Several models in one process\n");
    inference(validation::compare(".", {"h200-inference.json"}));
    std::printf(
        "\n## Training steps\n\nThe second step of each run, absolute bytes, against "
        "[h200-training.json](../../tests/validation/rows/h200-training.json). Reserved bytes of the first\nrun alone, "
        "whose process had trained no other model.\n");
    training(validation::compare(".", {"h200-training.json"}));
    std::printf(
        "\nAgainst [h200-times.json](../../tests/validation/rows/h200-times.json), each in a process of its own:\n");
    training(timed);
    std::printf(
        "\nAgainst [h200-training-held-out.json](../../tests/validation/rows/h200-training-held-out.json), each in a "
        "process of its own,\nchosen before they ran; nothing was fitted to them:\n");
    const std::vector<Comparison> held_out = validation::compare(".", {"h200-training-held-out.json"});
    training(held_out);
    std::printf(
        "\n## Held out\n\nModels of types that were read last, in settings of their own, against "
        "[h200-held-out.json](../../tests/validation/rows/h200-held-out.json):\nchosen before they ran, and nothing "
        "was "
        "fitted to them. Where kernels were slow that had no time of their own (triangular solves, depthwise "
        "convolutions,\nattention of wide heads), the errors here showed it; their times were then taken from those "
        "ops alone.\n");
    const auto types = validation::compare(".", {"h200-held-out.json"});
    inference(types);
    training(types);
    times(types);
    std::printf(
        "\nTypes read later still, on an H100, against "
        "[h100-newer-types.json](../../tests/validation/rows/h100-newer-types.json): chosen before they ran,\nnothing "
        "fitted. Until then op traces of two layers had been recorded of them. Several processes shared the GPU, so "
        "that no times\nwere kept. DiffusionGemma's rows showed that its sampler's states go within a step: that was "
        "mended after they ran.\n");
    const auto newer = validation::compare(".", {"h100-newer-types.json"});
    inference(newer);
    training(newer);
    std::printf(
        "\nThe same of Gemma 3n, whose tower is timm's, against "
        "[h100-gemma-3n.json](../../tests/validation/rows/h100-gemma-3n.json): chosen before they ran, nothing\n"
        "fitted.\n");
    const auto gemma_3n = validation::compare(".", {"h100-gemma-3n.json"});
    inference(gemma_3n);
    training(gemma_3n);
    std::printf(
        "\nThe same of FastVLM, whose tower is timm's too, against "
        "[h100-fastvlm.json](../../tests/validation/rows/h100-fastvlm.json): chosen before they ran, "
        "nothing\nfitted.\n");
    const auto fast_vlm = validation::compare(".", {"h100-fastvlm.json"});
    inference(fast_vlm);
    training(fast_vlm);
    std::printf(
        "\nThe same of Phi-4-multimodal with pictures, against "
        "[h100-phi-4-multimodal.json](../../tests/validation/rows/h100-phi-4-multimodal.json):\nchosen before they "
        "ran, "
        "nothing fitted.\n");
    const auto phi_4 = validation::compare(".", {"h100-phi-4-multimodal.json"});
    inference(phi_4);
    training(phi_4);
    std::printf(
        "\nThe same of Qwen3.5-4B with the packages fla and causal-conv1d, times among them, against "
        "[h100-fla.json](../../tests/validation/rows/h100-fla.json): chosen\nbefore they ran, nothing fitted to them; "
        "the "
        "packages' kernels have their times from runs of their own. The host, which\nlaunches Triton's kernels more "
        "slowly "
        "than others, is not modelled.\n");
    const auto fla = validation::compare(".", {"h100-fla.json"});
    inference(fla);
    training(fla);
    times(fla);
    std::printf(
        "\nThe same of MiniMax-M3 with two layers of its language model, against "
        "[h100-minimax-m3.json](../../tests/validation/rows/h100-minimax-m3.json):\nchosen before they ran, nothing "
        "fitted. "
        "Inference has all 128 experts and two layers of the tower, training 8 experts and the whole tower.\n");
    const auto minimax = validation::compare(".", {"h100-minimax-m3.json"});
    inference(minimax);
    training(minimax);
    std::printf(
        "\nThe same of Step-3.7 with its first layers, widths and experts whole (or 16 of them in full fine-tuning), "
        "against "
        "[h100-step-3.7.json](../../tests/validation/rows/h100-step-3.7.json):\nchosen before they ran, nothing "
        "fitted. "
        "Its router is random: which experts got tokens is not what the estimate\nassumes.\n");
    const auto step = validation::compare(".", {"h100-step-3.7.json"});
    inference(step);
    training(step);
    std::printf(
        "\nThe same of PerceptionLM, whose tower is timm's, against "
        "[h100-perception-lm.json](../../tests/validation/rows/h100-perception-lm.json): chosen before they "
        "ran,\nnothing fitted.\n");
    const auto perception = validation::compare(".", {"h100-perception-lm.json"});
    inference(perception);
    training(perception);
    std::printf(
        "\nThe same of Molmo 2 by its own code, against "
        "[h100-molmo2.json](../../tests/validation/rows/h100-molmo2.json): chosen before they ran, nothing fitted.\n");
    const auto molmo = validation::compare(".", {"h100-molmo2.json"});
    inference(molmo);
    training(molmo);
    std::printf(
        "\nThe same of MiniCPM-V 2.6 by its own code, against "
        "[h100-minicpmv.json](../../tests/validation/rows/h100-minicpmv.json): chosen before they ran, nothing "
        "fitted.\n");
    const auto minicpmv = validation::compare(".", {"h100-minicpmv.json"});
    inference(minicpmv);
    training(minicpmv);
    std::printf(
        "\nThe same of Phi-3.5-vision by its own code, against "
        "[h100-phi3_v.json](../../tests/validation/rows/h100-phi3_v.json): chosen before they ran, nothing "
        "fitted.\n");
    const auto phi3v = validation::compare(".", {"h100-phi3_v.json"});
    inference(phi3v);
    training(phi3v);
    std::printf(
        "\nThe same of dots.ocr by its own code, with its tower's attention written out or, in rows of dots.ocr-sdpa, "
        "by "
        "torch's\nmemory-efficient kernel, against "
        "[h100-dots-ocr.json](../../tests/validation/rows/h100-dots-ocr.json): chosen before they ran, nothing "
        "fitted.\n");
    const auto dots = validation::compare(".", {"h100-dots-ocr.json"});
    inference(dots);
    training(dots);
    std::printf(
        "\nThe same of Nemotron Nano V2 VL by its own code and of 14 of its 62 layers, against "
        "[h100-nemotron-vl.json](../../tests/validation/rows/h100-nemotron-vl.json): chosen before\nthey ran, nothing "
        "fitted. What a run reserved is off by a block of 12 GiB, as large as its largest tensor.\n");
    const auto nemotron = validation::compare(".", {"h100-nemotron-vl.json"});
    inference(nemotron);
    training(nemotron);
    std::printf(
        "\nThe same of Kimi-VL by its own code, against "
        "[h100-kimi-vl.json](../../tests/validation/rows/h100-kimi-vl.json): chosen before they ran, nothing\nfitted; "
        "but once the step under autocast had been compared, its loss was found to be taken in fp32.\n");
    const auto kimi = validation::compare(".", {"h100-kimi-vl.json"});
    inference(kimi);
    training(kimi);
    std::printf(
        "\nAgain on an H100, each alone on the GPU, against "
        "[h100-times.json](../../tests/validation/rows/h100-times.json): chosen before they ran, nothing\nfitted. The "
        "H100's file has its own parameters of products, attention and fused kernels; those of PyTorch's kernels are "
        "the\nH200's in parts of its bandwidth.\n");
    const auto on_h100 = validation::compare(".", {"h100-times.json"});
    inference(on_h100);
    training(on_h100);
    times(on_h100);
    std::printf(
        "\nThe same of types that run by their checkpoints' own code, against "
        "[h100-own-code-times.json](../../tests/validation/rows/h100-own-code-times.json): chosen before\nthey ran, "
        "nothing fitted. Slowest beside its estimate is a tower that attends by torch's memory-efficient kernel over a "
        "mask.\n");
    const auto own_code = validation::compare(".", {"h100-own-code-times.json"});
    inference(own_code);
    training(own_code);
    times(own_code);
    std::printf(
        "\n## Times\n\nGPU time is the sum of the kernels' durations, a graph's that of one replayed decode step, the "
        "rest is wall time of\neager runs. The estimated wall time is the larger of GPU and host, so that a run that "
        "waits for both in turn takes\nlonger. A graph's step was captured without an attention mask, with which "
        "PyTorch runs other kernels where heads share\nkeys. The host's times were taken from the decode steps and "
        "training "
        "steps of these runs ([what was fitted](../explanation/time.md#how-far-off)).\n");
    times(timed);
    std::printf(
        "\n## Single operations\n\nRandom shapes from `vlmest bench --suite heldout`, and large ones with CUPTI's "
        "counters. The traffic of products is\npredicted from their sizes, and (kernel) from the tiles of the kernel "
        "that "
        "ran. [What was fitted to these rows](../explanation/time.md#how-far-off)\nthe last column says.\n");
    operations(validation::compare(".", {"h200-ops.json", "h200-products.json", "h200-transforms.json",
                                         "h200-attention.json", "h200-traffic.json"}));
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}
