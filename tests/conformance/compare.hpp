// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>

#include <vlmest/graph/graph.hpp>

#include "trace.hpp"

namespace conformance {

/// A node of the graph, in the trace's terms: bytes are requested bytes of what the phase holds beyond what was there
/// before its first node.
struct GraphRow {
  std::string module, op;
  std::vector<std::string> outputs;
  std::int64_t before = 0, after = 0, peak = 0;
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

inline std::vector<GraphRow> rows_of(const vlmest::Graph& g, const char* phase_name) {
  using namespace vlmest;
  const Phase* phase = nullptr;
  for (const auto& p : g.phases)
    if (std::string_view(p.name) == phase_name) phase = &p;
  if (!phase) throw std::runtime_error("the graph has no such phase");
  std::multimap<NodeId, std::int64_t> frees;
  std::int64_t live = 0;
  for (const auto& t : g.tensors) {
    if (t.alias_of != none || t.dies == none) continue;
    const std::int64_t bytes = requested_bytes(t).value();
    const bool before = t.born < phase->first || (t.born == phase->first && (t.role == Role::input || t.role == Role::kv_cache) );
    if (t.born >= phase->first && t.born < phase->last) frees.emplace(t.dies, bytes);
    else if (before && t.dies > phase->first) frees.emplace(t.dies, bytes);
  }
  std::vector<GraphRow> rows;
  NodeId n = phase->first;
  auto next_free = frees.lower_bound(phase->first);
  // What is freed exactly at the first node was already gone when the trace began.
  for (; n < phase->last; ++n) {
    while (next_free != frees.end() && next_free->first <= n) {
      live -= next_free->second;
      ++next_free;
    }
    const Node& node = g.node(n);
    GraphRow r;
    r.module = path(g, node.scope);
    r.op = node.name;
    r.before = live;
    for (auto o : g.outputs(node)) {
      const Tensor& t = g.tensor(o);
      r.outputs.push_back(to_string(t.shape) + ":" + torch_name(t.dtype));
      if (t.alias_of == none && t.born == n) live += requested_bytes(t).value();
    }
    r.after = live;
    r.peak = live;
    for (auto s : g.scratch_of(node)) r.peak += s.value();
    if (!is_view(r.op)) rows.push_back(std::move(r));
  }
  return rows;
}

struct Mismatch {
  std::size_t graph_row = 0, trace_row = 0;
  std::string what;
};

struct Comparison {
  std::size_t ops = 0, matched = 0;
  std::vector<Mismatch> mismatches;
};

/// Aligns both lists by op and outputs (longest common subsequence), then compares bytes alive on the aligned rows. The first
/// aligned row of the phase sets the zero of both.
inline Comparison compare(const std::vector<GraphRow>& graph, const std::vector<TraceRow>& trace) {
  const std::size_t n = graph.size(), m = trace.size();
  auto same = [&](std::size_t i, std::size_t j) { return graph[i].op == trace[j].op && graph[i].outputs == trace[j].outputs; };
  std::vector<std::vector<std::int32_t>> best(n + 1, std::vector<std::int32_t>(m + 1, 0));
  for (std::size_t i = n; i-- > 0;)
    for (std::size_t j = m; j-- > 0;)
      best[i][j] = same(i, j) ? best[i + 1][j + 1] + 1 : std::max(best[i + 1][j], best[i][j + 1]);
  Comparison c;
  c.ops = std::max(n, m);
  auto show = [](const auto& r) {
    std::string s = r.module + " " + r.op + " ->";
    for (const auto& o : r.outputs) s += " " + o;
    return s;
  };
  std::int64_t zero = 0;
  std::int64_t last = 0;
  bool have_zero = false;
  for (std::size_t i = 0, j = 0; i < n || j < m;) {
    if (i < n && j < m && same(i, j)) {
      ++c.matched;
      const GraphRow& g = graph[i];
      const TraceRow& t = trace[j];
      if (t.req_before >= 0 || have_zero || t.req_after >= 0) {
        if (!have_zero) {
          zero = t.req_before - g.before;
          have_zero = true;
        }
        const std::int64_t db = g.before + zero - t.req_before, da = g.after + zero - t.req_after, dp = g.peak + zero - t.req_peak;
        // An offset that goes on is reported where it begins.
        const bool news = db != last || da - db != 0 || dp - da != 0;
        if ((db || da || dp) && news)
          c.mismatches.push_back({i, j, "bytes " + show(g) + " before " + std::to_string(db) + " after " + std::to_string(da) +
                                            " peak " + std::to_string(dp) + " (graph - trace), trace row " + std::to_string(t.index) + " " + t.line});
        last = da;
        if (t.module != g.module)
          c.mismatches.push_back({i, j, "module " + show(g) + " vs " + t.module + ", trace row " + std::to_string(t.index)});
      }
      ++i;
      ++j;
    } else if (j >= m || (i < n && best[i + 1][j] >= best[i][j + 1])) {
      c.mismatches.push_back({i, j, "only in graph: " + show(graph[i])});
      ++i;
    } else {
      c.mismatches.push_back({i, j, "only in trace: row " + std::to_string(trace[j].index) + " " + show(trace[j]) + " " + trace[j].line});
      ++j;
    }
  }
  return c;
}

}  // namespace conformance
