// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "trace_text.hpp"

/// Recorded op traces: one row per ATen op, tab-separated, as a TorchDispatchMode around a forward sees them:
///   n phase module op in out alias before after peak saved [requested before, after, peak] [line]
/// Bytes are torch.cuda.memory_allocated() and the allocator's requested_bytes around the op, since the trace began.
namespace conformance {

struct TraceRow {
  std::int64_t index = 0;
  std::string phase, module, op;
  std::vector<std::string> outputs;              ///< "2x576x1024:bfloat16", storages cut off
  std::int64_t before = 0, after = 0, peak = 0;  ///< allocated bytes since the trace began
  bool has_requested = false;
  std::int64_t req_before = 0, req_after = 0, req_peak = 0;  ///< requested bytes, where recorded
  int kernels = -1;                                          ///< launched by the op, -1 where not recorded
  std::string line;                                          ///< where the call stands in the model's source
};

inline std::vector<std::string> split(const std::string& s, char at) {
  std::vector<std::string> r;
  std::stringstream in(s);
  for (std::string part; std::getline(in, part, at);) r.push_back(part);
  return r;
}

/// Ops that only make a new view, or only look at a tensor.
inline bool is_view(const std::string& op) {
  static const char* const views[] = {
      "view",     "t",          "transpose",    "_unsafe_view",    "expand", "unsqueeze",      "slice",
      "permute",  "select",     "detach",       "alias",           "unbind", "split",          "split_with_sizes",
      "squeeze",  "lift_fresh", "view_as_real", "view_as_complex", "unfold", "_reshape_alias", "as_strided",
      "diagonal", "narrow",     "_conj"};
  const std::string base = op.substr(0, op.find('.'));
  for (const char* v : views)
    if (base == v) return true;
  return false;
}

/// The rows of a trace that run something on the GPU.
inline std::vector<TraceRow> read_trace(const std::string& path) {
  std::istringstream in = text_of(path);
  std::vector<TraceRow> rows;
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    auto c = split(line, '\t');
    if (c.size() < 10) continue;
    TraceRow r;
    r.index = std::stoll(c[0]);
    r.phase = c[1];
    r.module = c[2];
    r.op = c[3].substr(c[3].find('.') + 1);
    if (r.op.size() > 8 && r.op.ends_with(".default")) r.op.resize(r.op.size() - 8);
    for (const auto& o : split(c[5], ' '))
      if (!o.empty()) r.outputs.push_back(o.substr(0, o.find('@')));
    r.before = std::stoll(c[7]);
    r.after = std::stoll(c[8]);
    r.peak = std::stoll(c[9]);
    if (c.size() > 13) {
      r.has_requested = true;
      r.req_before = std::stoll(c[11]);
      r.req_after = std::stoll(c[12]);
      r.req_peak = std::stoll(c[13]);
    }
    if (c.size() > 14) r.line = c[14];
    const bool on_gpu = !c[4].empty() || !c[5].empty();
    if (!is_view(r.op) && on_gpu) rows.push_back(std::move(r));
  }
  return rows;
}

}  // namespace conformance
