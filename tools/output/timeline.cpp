// SPDX-License-Identifier: Apache-2.0
#include "timeline.hpp"

#include <cmath>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <vlmest/unit/sort_stably.hpp>

namespace vlmest::tool {
namespace {

/// Whole nanoseconds, so that slices nest exactly.
std::int64_t nanoseconds(Seconds s) { return std::llround(s.value * 1e9); }

std::string json_text(const std::string& s) { return nlohmann::json(s).dump(); }

/// Writes the events of one curve.
class Trace {
 public:
  Trace(std::string& out, const TracedCurve& traced, int process)
      : out_(out), g_(traced.graph), c_(traced.curve), process_(process) {
    starts_.reserve(c_.samples.size() + 1);
    for (const auto& s : c_.samples) starts_.push_back(nanoseconds(s.start));
    starts_.push_back(nanoseconds(c_.end));
    event(fmt::format(R"("ph":"M","name":"process_name","args":{{"name":{}}})", json_text(traced.name)));
  }

  void phases() {
    thread(1, "phases");
    for (const auto& p : c_.phases)
      slice(1, std::string(name(p.kind)), p.first, p.last, fmt::format(R"({{"peak_bytes":{}}})", p.peak.value()));
    thread(2, "ops");
    for (std::size_t k = 0; k < c_.samples.size(); ++k) {
      if (starts_[k] == starts_[k + 1]) continue;
      const Node& n = g_.node(c_.samples[k].node);
      slice(2, n.name, k, k + 1,
            fmt::format(R"({{"scope":{},"node":{},"allocated_bytes":{}}})", json_text(path(g_, n.scope)),
                        c_.samples[k].node, c_.samples[k].allocated.value()));
    }
  }

  void counters() {
    counter("allocated", [](const MemorySample& s) { return s.allocated; });
    counter("reserved", [](const MemorySample& s) { return s.reserved; });
    for (std::size_t r = 0; r < roles; ++r)
      counter(std::string(name(static_cast<Role>(r))), [r](const MemorySample& s) { return s.by_role[r]; });
  }

  /// A role's tensors on as few tracks as they fit on one inside or behind the other.
  void tensors(Bytes least) {
    std::map<Role, std::vector<const LifeSpan*>> by_role;
    for (const auto& l : c_.lives)
      if (l.tensor.bytes >= least) by_role[role(l)].push_back(&l);
    int next_thread = 10;
    for (auto& [r, lives] : by_role) {
      sort_stably(lives, [&](const LifeSpan* a, const LifeSpan* b) {
        return starts_[a->first] != starts_[b->first] ? starts_[a->first] < starts_[b->first]
                                                      : starts_[a->last] > starts_[b->last];
      });
      std::vector<std::vector<std::int64_t>> tracks;  // ends of the slices that are open
      const int first_thread = next_thread;
      for (const LifeSpan* l : lives) {
        std::size_t at = 0;
        for (; at < tracks.size(); ++at) {
          auto& open = tracks[at];
          while (!open.empty() && open.back() <= starts_[l->first]) open.pop_back();
          if (open.empty() || (open.back() >= starts_[l->last] && open.size() < deepest)) break;
        }
        if (at == tracks.size()) {
          tracks.emplace_back();
          thread(next_thread++, fmt::format("{} {}", name(r), tracks.size()));
        }
        tracks[at].push_back(starts_[l->last]);
        tensor(first_thread + static_cast<int>(at), *l);
      }
    }
  }

 private:
  static constexpr std::size_t deepest = 64;

  Role role(const LifeSpan& l) const { return role_of(g_, l.tensor); }
  void event(const std::string& body) {
    if (!out_.ends_with('[')) out_ += ",";
    out_ += fmt::format("\n{{\"pid\":{},{}}}", process_, body);
  }
  void thread(int id, const std::string& label) {
    event(fmt::format(R"("tid":{},"ph":"M","name":"thread_name","args":{{"name":{}}})", id, json_text(label)));
    event(fmt::format(R"("tid":{},"ph":"M","name":"thread_sort_index","args":{{"sort_index":{}}})", id, id));
  }
  static std::string microseconds(std::int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }
  void slice(int thread, const std::string& label, std::size_t first, std::size_t last, const std::string& args) {
    event(fmt::format(R"("tid":{},"ph":"X","name":{},"ts":{},"dur":{},"args":{})", thread, json_text(label),
                      microseconds(starts_[first]), microseconds(starts_[last] - starts_[first]), args));
  }
  void tensor(int thread, const LifeSpan& l) {
    const DescribedTensor d = describe(g_, l.tensor);
    std::string shape;
    for (auto n : d.shape) shape += (shape.empty() ? "" : ",") + std::to_string(n);
    slice(thread, d.name, l.first, l.last,
          fmt::format(R"({{"scope":{},"role":{},"shape":[{}],"dtype":{},"bytes":{}}})", json_text(d.scope),
                      json_text(std::string(name(d.role))), shape, json_text(d.dtype), d.bytes.value()));
  }
  template <class Get>
  void counter(const std::string& label, Get get) {
    std::int64_t last = -1;
    const auto emit = [&](std::size_t at, std::int64_t value) {
      event(fmt::format(R"("ph":"C","name":{},"ts":{},"args":{{"bytes":{}}})", json_text(label),
                        microseconds(starts_[at]), value));
    };
    for (std::size_t k = 0; k < c_.samples.size(); ++k)
      if (const std::int64_t now = get(c_.samples[k]).value(); now != last) emit(k, last = now);
    if (!c_.samples.empty()) emit(c_.samples.size(), last);
  }

  std::string& out_;
  const Graph& g_;
  const MemoryCurve& c_;
  int process_;
  std::vector<std::int64_t> starts_;
};

}  // namespace

std::string chrome_trace(const std::vector<TracedCurve>& curves, Bytes least) {
  std::string out = fmt::format(
      "{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"time\":\"estimated kernel time\",\"least_slice_bytes\":{}}},"
      "\"traceEvents\":[",
      least.value());
  int process = 0;
  for (const TracedCurve& t : curves) {
    Trace trace(out, t, ++process);
    trace.phases();
    trace.counters();
    trace.tensors(least);
  }
  return out + "\n]}\n";
}

std::string timeline_csv(const std::vector<TracedCurve>& curves) {
  std::string out = "node,time_us,duration_us,phase,scope,op,allocated_bytes,reserved_bytes";
  for (std::size_t r = 0; r < roles; ++r) out += fmt::format(",{}_bytes", name(static_cast<Role>(r)));
  out += "\n";
  for (const TracedCurve& t : curves)
    for (const CurvePhase& p : t.curve.phases)
      for (std::size_t k = p.first; k < p.last; ++k) {
        const MemorySample& s = t.curve.samples[k];
        const Node& n = t.graph.node(s.node);
        out += fmt::format("{},{:.3f},{:.3f},{},{},{},{},{}", s.node, s.start.us(), s.length.us(), name(p.kind),
                           path(t.graph, n.scope), n.name, s.allocated.value(), s.reserved.value());
        for (const Bytes b : s.by_role) out += fmt::format(",{}", b.value());
        out += "\n";
      }
  return out;
}

std::string sparkline(const MemoryCurve& curve, std::size_t width, bool unicode) {
  static constexpr std::array<const char*, 8> blocks{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr std::array<const char*, 8> ascii{"_", ".", "-", "=", "+", "*", "#", "@"};
  // Time decides the columns of a phase; none gets fewer than its name needs.
  std::vector<std::size_t> columns;
  const auto time = [&](std::size_t at) {
    return at < curve.samples.size() ? curve.samples[at].start.value : curve.end.value;
  };
  std::size_t least_columns = 0;
  for (const auto& p : curve.phases) least_columns += name(p.kind).size() + 1;
  const std::size_t free = width > least_columns ? width - least_columns : 0;
  for (const auto& p : curve.phases) {
    const double share = curve.end.value > 0 ? (time(p.last) - time(p.first)) / curve.end.value : 0;
    columns.push_back(name(p.kind).size() + 1 + static_cast<std::size_t>(share * static_cast<double>(free)));
  }
  std::vector<Bytes> most;
  for (std::size_t i = 0; i < curve.phases.size(); ++i) {
    const auto& p = curve.phases[i];
    const std::size_t begin = most.size();
    most.resize(begin + columns[i]);
    const double from = time(p.first), length = time(p.last) - from;
    std::vector<bool> seen(columns[i], false);
    for (std::size_t k = p.first; k < p.last; ++k) {
      const double part = length > 0 ? (time(k) - from) / length : 0;
      const std::size_t at = std::min(static_cast<std::size_t>(part * static_cast<double>(columns[i])), columns[i] - 1);
      most[begin + at] = std::max(most[begin + at], curve.samples[k].allocated);
      seen[at] = true;
    }
    // A long op fills the columns in which no other begins.
    for (std::size_t at = 0; at < columns[i]; ++at)
      if (!seen[at]) most[begin + at] = begin + at > 0 ? most[begin + at - 1] : Bytes{};
  }
  if (most.empty()) return {};
  const auto [low, high] = std::minmax_element(most.begin(), most.end());
  std::string line, names;
  for (const Bytes b : most) {
    const double part =
        *high > *low ? static_cast<double>((b - *low).value()) / static_cast<double>((*high - *low).value()) : 1;
    const auto level = std::min<std::size_t>(static_cast<std::size_t>(part * 8), 7);
    line += (unicode ? blocks : ascii)[level];
  }
  for (std::size_t i = 0; i < curve.phases.size(); ++i)
    names += fmt::format("{:<{}}", fmt::format("|{}", name(curve.phases[i].kind)), columns[i]);
  names.erase(names.find_last_not_of(' ') + 1);
  return "  " + line + "\n  " + names + "\n";
}

}  // namespace vlmest::tool
