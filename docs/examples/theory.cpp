// SPDX-License-Identifier: Apache-2.0
// Rules of thumb against the measured training steps of tests/validation: signed errors in percent.
#include "../generate/theory.hpp"

#include <algorithm>
#include <cstdio>

template <class Rules>
void summary(const char* what, const std::vector<theory::Compared>& rows, const Rules& rules) {
  std::printf("%-26s %5s %10s %10s %10s\n", what, "runs", "lowest %", "median %", "highest %");
  for (const char* rule : rules) {
    std::vector<double> errors;
    for (const auto& row : rows)
      if (const auto e = row.error(rule)) errors.push_back(*e);
    std::sort(errors.begin(), errors.end());
    const std::size_t n = errors.size();
    if (n == 0) continue;
    std::printf("%-26s %5zu %+10.2f %+10.2f %+10.2f\n", rule, n, errors.front(),
                (errors[n / 2] + errors[(n - 1) / 2]) / 2, errors.back());
  }
}

int main() {
  const theory::Comparison c = theory::compare(".");
  summary("saved activations", c.activations, theory::activation_rules);
  std::printf("\n");
  summary("peak of the step", c.peaks, theory::peak_rules);
}
