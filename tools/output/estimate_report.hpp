// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/report/estimate.hpp>

#include "report_options.hpp"

namespace vlmest::tool {

/// Everything that a report speaks of.
struct Reported {
  const Vlm& vlm;
  const Plan& plan;
  const Device& device;
  const Estimate& estimate;
  const Estimator& estimator;

  /// The graph whose scopes the layers name.
  const Graph& layers_graph(const ReportOptions& o) const {
    return o.inference ? estimator.graph() : estimator.training_graph();
  }
};

/// "llava-next-7b: 8 sequences of 4,096 tokens (1,168 text, 2,928 from 1 image of 672x672, 5 tiles each), bf16"
std::string inputs_line(const Vlm& vlm, const Plan& plan, const Sequences& s);

/// For a terminal: one line with the verdict, then inputs, phases, components, layers and the tensors of the peak.
std::string text_report(const Reported& r, const ReportOptions& options);
/// The same as headings and tables.
std::string markdown_report(const Reported& r, const ReportOptions& options);
/// One line per layer or top-level module, in plain numbers.
std::string csv_report(const Reported& r, const ReportOptions& options);

}  // namespace vlmest::tool
