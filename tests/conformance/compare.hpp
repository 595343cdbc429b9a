// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include <vlmest/graph/graph.hpp>

#include "trace.hpp"

namespace conformance {

/// A node of the graph, in the trace's terms: bytes of what the phase holds beyond what was there before its first
/// node.
struct GraphRow {
  std::string module, op;
  std::vector<std::string> outputs;
  std::int64_t before = 0, after = 0, peak = 0;
  int kernels = 0;
};

inline std::string torch_name(vlmest::DType t) {
  switch (t) {
    case vlmest::DType::bf16: return "bfloat16";
    case vlmest::DType::fp16: return "float16";
    case vlmest::DType::fp32: return "float32";
    case vlmest::DType::fp64: return "float64";
    default: return std::string(vlmest::name(t));
  }
}

/// The rows of one phase; the root module is called model, as the recorder calls it; `size` says how many bytes a
/// request counts for, Bytes -> integer.
template <class Size>
std::vector<GraphRow> rows_of(const vlmest::Graph& g, std::string_view phase_name, Size size) {
  using namespace vlmest;
  const auto phase =
      std::find_if(g.phases.begin(), g.phases.end(), [&](const Phase& p) { return name(p.kind) == phase_name; });
  if (phase == g.phases.end()) throw std::runtime_error("the graph has no such phase");
  // What was there when the phase began counts from zero; what is freed at its first node was already gone.
  std::multimap<NodeId, std::int64_t> frees;
  for (const auto& t : g.tensors) {
    if (t.alias_of != none || t.dies == none || t.born >= phase->last) continue;
    const bool outside = t.role != Role::activation;
    const bool before = t.born < phase->first || (t.born == phase->first && outside);
    if (!before || t.dies > phase->first) frees.emplace(t.dies, size(requested_bytes(t)));
  }
  std::vector<GraphRow> rows;
  std::int64_t live = 0;
  auto free = frees.lower_bound(phase->first);
  for (NodeId n = phase->first; n < phase->last; ++n) {
    for (; free != frees.end() && free->first <= n; ++free) live -= free->second;
    const Node& node = g.node(n);
    GraphRow r{.module = node.scope == 0 ? "model" : path(g, node.scope),
               .op = node.name,
               .before = live,
               .kernels = cost(g.op(node)).kernels};
    for (auto o : g.outputs(node)) {
      const Tensor& t = g.tensor(o);
      r.outputs.push_back(to_string(t.shape) + ":" + torch_name(t.dtype));
      if (t.alias_of == none && t.born == n) live += size(requested_bytes(t));
    }
    r.after = r.peak = live;
    for (auto s : g.scratch_of(node)) r.peak += size(s);
    if (node.trait == AtenTrait::outside) continue;  // no recording of ATen's ops has it
    if (!is_view(r.op)) rows.push_back(std::move(r));
  }
  return rows;
}
inline std::vector<GraphRow> rows_of(const vlmest::Graph& g, std::string_view phase_name) {
  return rows_of(g, phase_name, [](vlmest::Bytes b) { return b.value(); });
}

/// One difference: `kind` is bytes, module, graph (the op is only there), trace (only there) or kernels.
struct Mismatch {
  std::string kind, module, op, detail;
  std::int64_t trace_row = 0;
  std::string line;
  std::string text() const {
    return kind + ": " + module + " " + op + " " + detail + ", trace row " + std::to_string(trace_row) + " " + line;
  }
};

struct Comparison {
  std::size_t ops = 0, matched = 0;
  std::vector<Mismatch> mismatches;
};

/// Aligned rows, -1 where one side has none: the longest common subsequence of ops with their outputs.
inline std::vector<std::pair<int, int>> align(const std::vector<GraphRow>& graph, const std::vector<TraceRow>& trace) {
  const std::size_t n = graph.size(), m = trace.size();
  auto same = [&](std::size_t i, std::size_t j) {
    return graph[i].op == trace[j].op && graph[i].outputs == trace[j].outputs;
  };
  std::vector<std::pair<int, int>> r;
  std::size_t first = 0;
  for (; first < n && first < m && same(first, first); ++first) r.emplace_back(first, first);
  std::vector<std::vector<std::int32_t>> best(n - first + 1, std::vector<std::int32_t>(m - first + 1, 0));
  for (std::size_t i = n; i-- > first;)
    for (std::size_t j = m; j-- > first;) {
      auto at = [&](std::size_t a, std::size_t b) -> std::int32_t& { return best[a - first][b - first]; };
      at(i, j) = same(i, j) ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
    }
  for (std::size_t i = first, j = first; i < n || j < m;) {
    if (i < n && j < m && same(i, j))
      r.emplace_back(i++, j++);
    else if (j >= m || (i < n && best[i + 1 - first][j - first] >= best[i - first][j + 1 - first]))
      r.emplace_back(i++, -1);
    else
      r.emplace_back(-1, j++);
  }
  return r;
}

template <class Row>
std::string outputs_of(const Row& r) {
  std::string s = "->";
  for (const auto& o : r.outputs) s += " " + o;
  return s;
}

/// Compares aligned rows. The first one sets the zero of both counts of bytes; a difference that goes on is reported
/// where it begins.
inline Comparison compare(const std::vector<GraphRow>& graph, const std::vector<TraceRow>& trace) {
  Comparison c;
  c.ops = std::max(graph.size(), trace.size());
  std::int64_t zero = 0, last = 0;
  bool have_zero = false;
  for (const auto& [i, j] : align(graph, trace)) {
    const GraphRow* g = i < 0 ? nullptr : &graph[static_cast<std::size_t>(i)];
    const TraceRow* t = j < 0 ? nullptr : &trace[static_cast<std::size_t>(j)];
    auto report = [&](const char* kind, std::string detail) {
      c.mismatches.push_back(
          {kind, g ? g->module : t->module, g ? g->op : t->op, std::move(detail), t ? t->index : -1, t ? t->line : ""});
    };
    if (!t) {
      report("graph", outputs_of(*g));
      continue;
    }
    if (!g) {
      report("trace", outputs_of(*t));
      continue;
    }
    ++c.matched;
    if (t->module != g->module) report("module", "is in " + t->module);
    if (t->kernels >= 0 && t->kernels != g->kernels)
      report("kernels",
             std::to_string(g->kernels) + " instead of " + std::to_string(t->kernels) + " " + outputs_of(*g));
    if (!t->has_requested) continue;
    if (!have_zero) zero = t->req_before - g->before;
    have_zero = true;
    const std::int64_t before = g->before + zero - t->req_before, after = g->after + zero - t->req_after,
                       peak = g->peak + zero - t->req_peak;
    if ((before != 0 || after != 0 || peak != 0) && (before != last || after != before || peak != after))
      report("bytes", "before " + std::to_string(before) + " after " + std::to_string(after) + " peak " +
                          std::to_string(peak) + " (graph - trace) " + outputs_of(*g));
    last = after;
  }
  return c;
}

}  // namespace conformance
