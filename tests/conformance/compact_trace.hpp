// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trace.hpp"

namespace conformance {

/// Traces as tests/data/traces keeps them: the rows that run something on the GPU, each with what changed since the row
/// before it. Columns, tab-separated, empty ones at the end left out:
///   phase      where it changes
///   module     where it changes; "3|mlp.fc1" keeps the first three elements of the path above
///   op         without its namespace and without ".default"
///   outputs    "2x576x1024:bf16 1:i64"
///   requested  before - last after, after - before, peak - after; zeros are empty; "-" where not recorded
///   allocated  the same, or "=" where the numbers are the requested ones
///   kernels    that the op launched; empty where not recorded
///   line       source file and line of the model's code, where it changes
/// Both counts of bytes begin at zero in each phase.
class CompactReader {
 public:
  explicit CompactReader(const std::string& path) : path_(path) {}

  std::vector<TraceRow> read() {
    std::istringstream in = text_of(path_);
    std::vector<TraceRow> rows;
    for (std::string line; std::getline(in, line);) {
      auto c = split(line, '\t');
      c.resize(8);
      rows.push_back(row(c));
      rows.back().index = static_cast<std::int64_t>(rows.size());
    }
    return rows;
  }

 private:
  struct Change {
    std::int64_t before = 0, after = 0, peak = 0;
  };
  Change change(const std::string& s) const {
    std::array<std::int64_t, 3> v{};
    const auto parts = split(s, ',');
    if (parts.size() > v.size()) throw std::runtime_error(path_ + ": expected three numbers in '" + s + "'");
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (!parts[i].empty()) v[i] = std::stoll(parts[i]);
    return {v[0], v[1], v[2]};
  }
  /// The long name of an element type.
  static std::string output(const std::string& s) {
    static constexpr std::array<std::array<const char*, 2>, 9> names{{{"u8", "uint8"},
                                                                      {"bf16", "bfloat16"},
                                                                      {"fp16", "float16"},
                                                                      {"fp32", "float32"},
                                                                      {"fp64", "float64"},
                                                                      {"i64", "int64"},
                                                                      {"i32", "int32"},
                                                                      {"b", "bool"},
                                                                      {"c64", "complex64"}}};
    const std::size_t at = s.find(':') + 1;
    for (const auto& n : names)
      if (s.substr(at) == n[0]) return s.substr(0, at) + n[1];
    return s;
  }
  std::string module(const std::string& s) const {
    const std::size_t bar = s.find('|');
    if (bar == std::string::npos) return s;
    std::string r;
    const auto above = split(module_, '.');
    for (std::size_t i = 0; i < std::stoul(s.substr(0, bar)); ++i) r += (r.empty() ? "" : ".") + above.at(i);
    return s.size() > bar + 1 ? r + "." + s.substr(bar + 1) : r;
  }
  TraceRow row(const std::vector<std::string>& c) {
    if (!c[0].empty()) {
      phase_ = c[0];
      requested_ = allocated_ = 0;
    }
    if (!c[1].empty()) module_ = module(c[1]);
    if (!c[7].empty()) line_ = c[7];
    TraceRow r{.phase = phase_, .module = module_, .op = c[2], .line = line_};
    for (const auto& o : split(c[3], ' ')) r.outputs.push_back(output(o));
    const bool recorded = c[4] != "-";
    const Change a = change(c[5] == "=" ? c[4] : c[5]);
    r.before = allocated_ + a.before;
    r.after = allocated_ = r.before + a.after;
    r.peak = r.after + a.peak;
    if (recorded) {
      const Change q = change(c[4]);
      r.has_requested = true;
      r.req_before = requested_ + q.before;
      r.req_after = requested_ = r.req_before + q.after;
      r.req_peak = r.req_after + q.peak;
    }
    if (!c[6].empty()) r.kernels = std::stoi(c[6]);
    return r;
  }

  std::string path_, phase_, module_, line_;
  std::int64_t requested_ = 0, allocated_ = 0;
};

/// A recording begins with a line of column names.
inline bool is_compact(const std::string& path) {
  std::istringstream in = text_of(path);
  std::string line;
  return std::getline(in, line) && !line.starts_with("n\t");
}

inline std::vector<TraceRow> read_compact_trace(const std::string& path) { return CompactReader(path).read(); }

}  // namespace conformance
