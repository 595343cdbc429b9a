// SPDX-License-Identifier: Apache-2.0
// Prints docs/reference/theory-vs-practice.md: published formulas and the estimate beside every measured training step.
#include <cstdio>
#include <span>

#include "theory.hpp"

namespace {

void table(const std::vector<theory::Compared>& rows, std::span<const char* const> rules) {
  std::printf("\n| run | measured GiB |");
  for (const char* r : rules) std::printf(" %s |", r);
  std::printf("\n|---|---:|");
  for (std::size_t i = 0; i < rules.size(); ++i) std::printf("---:|");
  std::printf("\n");
  for (const auto& row : rows) {
    std::printf("| %s | %.2f |", row.name.c_str(), row.measured / 0x1p30);
    for (const char* r : rules)
      if (const auto e = row.error(r))
        std::printf(" %+.2f |", *e);
      else
        std::printf(" |");
    std::printf("\n");
  }
}

}  // namespace

int main() {
  try {
    const theory::Comparison c = theory::compare(".");
    std::printf(
        "# Published formulas beside measured steps\n\nPrinted by `docs/generate/theory-vs-practice.cpp` out of "
        "[h200-training.json](../../tests/validation/rows/h200-training.json); "
        "[what it\nteaches](../explanation/theory_vs_practice.md). Signed errors in percent of the measured value. "
        "The formulas with their sources\nare functions of "
        "[published_formulas.hpp](../../lib/vlmest/analysis/published_formulas.hpp).\n\n"
        "## Activations that the forward leaves\n\nAllocated at the end of the forward, less what was allocated at "
        "its begin. Formulas count the layers of tower and language\nmodel and the output layer.\n");
    table(c.activations, theory::activation_rules);
    std::printf(
        "\n## The peak of the step\n\n16 or 18 bytes for each trained parameter, 2 for each other one, and the "
        "activations of the formula that is meant for the\nrun: 2sbh under checkpointing, 34sbh where a kernel keeps "
        "the attention scores to itself, sbh(34+5as/h) where they are\nwritten out.\n");
    table(c.peaks, theory::peak_rules);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}
