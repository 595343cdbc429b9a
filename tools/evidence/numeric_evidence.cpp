// SPDX-License-Identifier: Apache-2.0
#include "evidence/numeric_evidence.hpp"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include <vlmest/diagnose/evidence/text/numerics.hpp>
#include <vlmest/diagnose/verdict/confidence.hpp>

#include "evidence/series_evidence.hpp"

namespace vlmest::tool {

using namespace diagnose;
using Json = nlohmann::ordered_json;

namespace {

const char* advice(NumericTrouble t) {
  switch (t) {
    case NumericTrouble::exploding_gradient:
    case NumericTrouble::loss_spike:
      return "lower the learning rate or clip gradients (max_grad_norm=1.0), and look at the batch of that step";
    case NumericTrouble::skipped_step:
    case NumericTrouble::scale_at_minimum:
      return "fp16 overflows: train in bf16 (bf16=True), whose range is that of fp32";
    default:
      return "in fp16 use bf16 (bf16=True); find the op with torch.autograd.set_detect_anomaly(True); an unscaled FFT "
             "of N points multiplies its input by up to N, so that in fp16 mean |x| must stay below 65504 / N "
             "(norm=\"ortho\": below 65504 / sqrt(N))";
  }
}

}  // namespace

void add_numerics(Evidence& e, const MemorySeries& series, const std::vector<NumericFinding>& messages) {
  auto found = numeric_findings(series);
  for (const NumericFinding& f : messages) {
    const bool known =
        std::any_of(found.begin(), found.end(), [&](const NumericFinding& x) { return x.trouble == f.trouble; });
    if (!known) found.push_back(f);
  }
  if (found.empty()) return;
  Json all = Json::array();
  for (const NumericFinding& f : found) {
    Json x = {{"trouble", name(f.trouble)}, {"line", f.line}, {"times", f.times}, {"value", number_json(f.value)}};
    if (f.step) x["step"] = *f.step;
    if (f.usual > 0) x["usual"] = number_json(f.usual);
    if (!f.text.empty()) x["text"] = f.text;
    all.push_back(std::move(x));
    e.lines.push_back(fmt::format("{} at line {}{}: {}", name(f.trouble), f.line,
                                  f.step ? fmt::format(", step {}", *f.step) : "", advice(f.trouble)));
  }
  e.facts["numerics"] = std::move(all);
  if (e.failure || e.verdict) return;
  const NumericFinding& first = found.front();
  e.verdict =
      Verdict{.confidence = confidence(Basis::numbers),
              .why = fmt::format("not memory but numbers: {} at line {}{}; {}.", name(first.trouble), first.line,
                                 first.step ? fmt::format(" (step {})", *first.step) : "", advice(first.trouble))};
}

}  // namespace vlmest::tool
