// SPDX-License-Identifier: Apache-2.0
// Estimates against the measured runs of tests/validation: absolute errors in percent.
#include <cstdio>

#include "../../tests/validation/measured.hpp"

int main() {
  const auto all = validation::compare(
      ".", {"h200-inference-fresh.json", "h200-inference.json", "h200-training.json", "h200-times.json"});
  std::printf("%-26s %5s %10s %10s\n", "quantity", "runs", "median %", "worst %");
  for (const char* quantity :
       {"params", "image_tokens", "kv_bytes", "alloc_weights", "prefill_flops", "decode_flops", "prefill_peak",
        "prefill_above_weights", "decode_peak", "prefill_reserved", "prefill_kernels", "trainable", "optimizer_bytes",
        "train_flops", "forward_peak", "alloc_after_forward", "backward_peak", "step_peak", "reserved_peak"}) {
    const vlmest::ErrorSummary s = vlmest::summary(all, quantity);
    std::printf("%-26s %5zu %10.4f %10.4f\n", quantity, s.rows, s.median, s.worst);
  }
}
