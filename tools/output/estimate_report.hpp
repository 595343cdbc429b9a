// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <vlmest/parallel/several_gpus.hpp>
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
  const parallel::ParallelEstimate* several = nullptr;  ///< of several GPUs

  /// What the framework's allocator can reserve on a GPU.
  Bytes usable() const { return several ? device.memory_bytes - several->outside : device.usable_bytes; }
  const Timeline& training_timeline() const { return several ? several->training : estimator.training_timeline(); }
  /// The graph whose scopes the layers name.
  const Graph& layers_graph(const ReportOptions& o) const {
    return o.inference ? estimator.graph() : estimator.training_graph();
  }
};

/// "llava-next-7b: 8 sequences of 4,096 tokens (1,168 text, 2,928 from 1 image of 672x672 in 5 tiles), bf16"
std::string inputs_line(const Vlm& vlm, const Plan& plan, const Sequences& s);

/// Whether what was asked for fits, the worst first.
struct VerdictLine {
  std::string text;
  bool good = true;
};
std::vector<VerdictLine> verdicts(const Reported& r, const ReportOptions& o);

/// What was asked for: the model and its inputs, and what is trained, each within the width of a line.
std::string header_lines(const Reported& r, const ReportOptions& o);

/// For a terminal: the tables that were asked for, components, phases, layers and the tensors of the peaks. Nothing
/// where none was.
std::string tables_text(const Reported& r, const ReportOptions& options);
/// The verdict, what was asked for, and all tables under headings.
std::string markdown_report(const Reported& r, const ReportOptions& options);
/// One line per layer or top-level module, in plain numbers.
std::string csv_report(const Reported& r, const ReportOptions& options);

}  // namespace vlmest::tool
