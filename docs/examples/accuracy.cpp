// SPDX-License-Identifier: Apache-2.0
// Estimates against the measured runs of tests/validation: absolute errors in percent.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "../../tests/validation/measured_training.hpp"

int main() {
  std::vector<validation::Pair> pairs;
  validation::Comparison compare(".");
  for (const char* file : {"h200-inference-fresh.json", "h200-inference.json"})
    compare.add(validation::read_json(std::string("tests/validation/rows/") + file), pairs);
  for (const auto& row : validation::training_rows(".")) validation::add(row, pairs);
  std::printf("%-26s %5s %10s %10s\n", "quantity", "runs", "median %", "worst %");
  for (const char* quantity :
       {"parameters", "image tokens", "KV bytes", "weights", "prefill FLOPs", "decode FLOPs", "prefill peak",
        "prefill peak - weights", "decode peak", "prefill reserved", "prefill kernels", "trainable", "optimizer bytes",
        "training FLOPs", "forward peak", "forward end", "backward peak", "step peak", "training reserved"}) {
    std::vector<double> errors;
    for (const auto& p : pairs)
      if (p.quantity == quantity) errors.push_back(100 * std::abs(p.error()));
    std::sort(errors.begin(), errors.end());
    const std::size_t n = errors.size();
    std::printf("%-26s %5zu %10.4f %10.4f\n", quantity, n, n == 0 ? 0 : (errors[n / 2] + errors[(n - 1) / 2]) / 2,
                n == 0 ? 0 : errors.back());
  }
}
