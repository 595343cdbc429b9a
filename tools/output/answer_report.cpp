// SPDX-License-Identifier: Apache-2.0
#include "answer_report.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/core.h>

#include <vlmest/report/tensor_groups.hpp>

#include "lines.hpp"
#include "slow_shapes.hpp"
#include "table.hpp"
#include "training_report.hpp"
#include "units.hpp"

namespace vlmest::tool {
namespace {

constexpr std::size_t screen_lines = 40;

std::string painted(const std::string& s, bool good, bool color) {
  return color ? (good ? "\033[32m" : "\033[31m") + s + "\033[0m" : s;
}

/// One column of the memory: a phase's peak.
struct PeakColumn {
  std::string head;
  PeakParts parts;
  Bytes peak{}, reserved{};
};

std::vector<PeakColumn> peak_columns(const Reported& r, const ReportOptions& o) {
  std::vector<PeakColumn> c;
  if (o.inference) {
    const InferenceEstimate& e = r.estimate.inference;
    c.push_back({"prefill", e.prefill.parts, e.prefill.memory.peak, e.prefill.memory.reserved});
    c.push_back({fmt::format("decode at {}", grouped(e.decode.kv_len)), e.decode.parts, e.decode.memory.peak,
                 e.decode.memory.reserved});
  }
  if (o.training) {
    const TrainingEstimate& e = r.estimate.training;
    c.push_back({fmt::format("training, in {}", name(e.peak_phase)), e.parts, e.peak, e.reserved});
  }
  return c;
}

/// Memory by what it is for. Rows that are empty everywhere are left out.
Table memory_table(const Reported& r, const ReportOptions& o) {
  const std::vector<PeakColumn> columns = peak_columns(r, o);
  Bytes most{};
  for (const PeakColumn& c : columns) most = std::max(most, c.peak);
  const SizeScale scale = scale_of(most);
  const std::array<const char*, 7> names{
      "weights",
      "KV cache",
      "activations, temporaries",
      "saved activations",
      "gradients",
      "optimizer states",
      r.several ? "other (gathered, inputs, workspaces)" : "other (inputs, workspaces)"};
  Table t{.head = {fmt::format("peak of GPU memory, {}", scale.unit)}, .rows = {}};
  std::vector<std::vector<std::string>> parts;
  for (const PeakColumn& c : columns) {
    t.head.push_back(c.head);
    const PeakParts& p = c.parts;
    parts.push_back(
        show_parts({p.weights, p.kv_cache, p.activations, p.saved, p.gradients, p.optimizer, p.other}, c.peak, scale));
  }
  const auto is_nothing = [](const std::string& s) { return s.find_first_of("123456789") == std::string::npos; };
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::vector<std::string> row{names[i]};
    for (const auto& p : parts) row.push_back(p[i]);
    if (!std::all_of(row.begin() + 1, row.end(), is_nothing)) t.rows.push_back(std::move(row));
  }
  std::vector<std::string> sum{"peak"}, reserved{"reserved by the allocator"};
  for (const PeakColumn& c : columns) {
    sum.push_back(show(c.peak, scale));
    reserved.push_back(show(c.reserved, scale));
  }
  t.rows.push_back(std::move(sum));
  t.rows.push_back(std::move(reserved));
  return t;
}

/// The tensors that take most at the peak, those of equal layers together.
Table largest_table(const Reported& r, const ReportOptions& o) {
  const bool both = o.inference && o.training;
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](PhaseKind phase, const Graph& g, const std::vector<LiveTensor>& all) {
    std::size_t left = 3;
    for (const TensorGroup& x : grouped(g, all)) {
      if (left-- == 0) break;
      const std::string shape = (x.count > 1 ? std::to_string(x.count) + " of " : "") + to_string(x.shape);
      rows.push_back(
          {std::string(name(phase)), x.scope.empty() ? x.name : x.scope + " " + x.name, shape, x.dtype, show(x.bytes)});
    }
  };
  const InferenceEstimate& e = r.estimate.inference;
  if (o.inference) add(e.peak_phase(), r.estimator.graph(), e.tensors);
  if (o.training) add(r.estimate.training.peak_phase, r.estimator.training_graph(), r.estimate.training.tensors);
  Table t{.head = {fmt::format("largest tensors at the peak{}", both ? "" : fmt::format(" of {}", rows[0][0])), "shape",
                   "dtype", "bytes"},
          .rows = {},
          .left = 3};
  std::array<std::size_t, 5> widest{0, t.head[0].size(), 5, 5, 5};
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i)
      if (i != 1) widest[i] = std::max(widest[i], row[i].size());
  const std::size_t first = both ? widest[0] + 2 : 0;
  const std::size_t room = line_width - 2 - (widest[2] + 2) - (widest[3] + 2) - (widest[4] + 2);
  for (auto& row : rows)
    t.rows.push_back({(both ? fmt::format("{:<{}}", row[0] + ":", first) : "") + shortened(row[1], room - first),
                      row[2], row[3], row[4]});
  return t;
}

/// What limits most of a phase's time.
const char* limit_words(Bound b) {
  switch (b) {
    case Bound::compute: return "compute";
    case Bound::memory: return "memory bandwidth";
    case Bound::launch: return "the CPU's launches";
  }
  return "";
}

/// Whose time it is. What several GPUs take together stands below; where they divide layers or sequences, what they
/// send each other for that is in a rank's own.
const char* time_words(const Reported& r) {
  if (!r.several) return "time";
  if (r.plan.shards.ranks == 1 && r.plan.sequence_part.parts == 1) return "time of one GPU alone";
  return r.several->layout.pp > 1 ? "time of all stages on one rank" : "time of one rank";
}

Table time_table(const Reported& r, const ReportOptions& o) {
  const char* of = time_words(r);
  Table t{.head = {of, "wall (eager)", "its range", "GPU", "rate", "bound by"}, .rows = {}, .left = 1};
  const auto rate = [](double amount, Seconds time, const char* unit) {
    const double per_second = time.value > 0 ? amount / time.value : 0;
    return (per_second >= 1000 ? grouped(std::llround(per_second))
                               : fmt::format("{:.{}f}", per_second,
                                             per_second >= 100  ? 0
                                             : per_second >= 10 ? 1
                                                                : 2)) +
           unit;
  };
  const auto range = [](const WallRange& w) {
    const std::string low = show(w.low), high = show(w.high);
    const std::size_t unit = low.find(' ');
    return (high.ends_with(low.substr(unit)) ? low.substr(0, unit) : low) + "-" + high;
  };
  const Sequences& s = r.estimate.sequences;
  if (o.inference) {
    const InferenceEstimate& e = r.estimate.inference;
    t.rows.push_back({"prefill", show(e.prefill.wall), range(e.prefill.wall_range), show(e.prefill.gpu),
                      rate(static_cast<double>(s.batch) * static_cast<double>(s.seq), e.prefill.wall, " tokens/s"),
                      limit_words(e.prefill.bound)});
    t.rows.push_back(
        {e.canvas > 0 ? fmt::format("decode, 1 of {} steps", grouped(e.steps)) : std::string("decode, a token"),
         show(e.decode.wall), range(e.decode.wall_range), show(e.decode.gpu),
         rate(e.tokens_per_step() * static_cast<double>(s.batch), e.decode.wall, " tokens/s"),
         limit_words(e.decode.bound)});
  }
  if (o.training) {
    const TrainingEstimate& e = r.estimate.training;
    t.rows.push_back(
        {e.micro_batches > 1 ? fmt::format("step of {} micro-batches", e.micro_batches) : std::string("training step"),
         show(e.wall), range(e.wall_range), show(e.gpu),
         rate(static_cast<double>(s.batch) * static_cast<double>(e.micro_batches), e.wall, " sequences/s"),
         limit_words(e.bound)});
  }
  return t;
}

/// The first actions, as many as there are lines for: a line each, and below it how to switch it on; of the first that
/// alone where its code is too long (`vlmest plan` prints it).
std::string helps_text(const std::vector<diagnose::Action>& all, const std::string& run, std::size_t lines) {
  if (all.empty()) return "nothing known makes " + run + " need less: another model or device\n";
  const std::string heading = all.front().fits
                                  ? fmt::format("what makes {} fit:\n", run)
                                  : fmt::format("what saves most of {}; vlmest plan combines them:\n", run);
  enum class How { code, comments, none };
  const auto shown = [&](std::size_t most, How how) {
    std::string out = heading;
    for (std::size_t i = 0; i < std::min(most, all.size()); ++i) {
      const diagnose::Action& a = all[i];
      out += wrapped(fmt::format("  {}: saves {}{}, {:+.0f} % time{}{}", a.title, show(a.saves),
                                 a.of_reserved ? " reserved" : "", a.time_cost_pct,
                                 a.loses == diagnose::Loses::quality ? ", other results" : "",
                                 a.fits ? "" : "; not enough alone"),
                     4) +
             "\n";
      if (how == How::none) continue;
      for (const std::string& line : code_lines(a.how, 6, how == How::comments)) out += line + "\n";
    }
    return out;
  };
  std::string out;
  for (const std::size_t most : {3, 2, 1})
    for (const How how : {How::comments, How::code}) {
      out = shown(most, how);
      if (static_cast<std::size_t>(std::count(out.begin(), out.end(), '\n')) <= lines) return out;
    }
  return shown(1, How::none);
}

std::string notes(const Reported& r, const ReportOptions& o) {
  std::string out;
  const Bytes fft =
      std::max(o.inference ? r.estimate.inference.fft : Bytes{}, o.training ? r.estimate.training.fft : Bytes{});
  if (fft > Bytes{}) out += fmt::format("FFT buffers of a block: up to {}, with the temporaries\n", show(fft));
  if (const InferenceEstimate& e = r.estimate.inference; o.inference && e.cache_states > Bytes{}) {
    const Sequences& s = r.estimate.sequences;
    const double tokens = static_cast<double>(s.batch) * static_cast<double>(s.seq);
    const Bytes token(static_cast<std::int64_t>(static_cast<double>((e.kv_cache - e.cache_states).value()) / tokens));
    out += fmt::format("KV cache: {} a token, and {} of states a sequence, however long it is\n", show(token),
                       show(Bytes(e.cache_states.value() / s.batch)));
  }
  const bool fits = (!o.inference || r.estimate.inference.fits) && (!o.training || r.estimate.training.fits);
  if (const Slowness slow = fits ? slowness(r, o) : Slowness{}; slow.shapes > 0)
    out += fmt::format("slow shapes: {} cost {} of {}; --verbose lists them\n", slow.shapes, show(slow.saves),
                       o.inference ? "the prefill" : "the step");
  return out;
}

}  // namespace

Answer find_answer(const Reported& r, const ReportOptions& o) {
  Answer a;
  if (o.inference && !r.estimate.inference.fits && !r.several) a.inference = find_helps(r, diagnose::Mode::inference);
  if (o.training && !r.estimate.training.fits && !r.several) a.training = find_helps(r, diagnose::Mode::training);
  return a;
}

std::string answer_text(const Reported& r, const ReportOptions& o, const Answer& answer) {
  std::string out;
  for (const auto& v : verdicts(r, o)) out += painted(wrapped(v.text, 2), v.good, o.color) + "\n";
  out += header_lines(r, o);
  out +=
      "\n" + text(memory_table(r, o)) + "\n" + text(largest_table(r, o)) + "\n" + text(time_table(r, o)) + notes(r, o);
  const bool both = o.inference && o.training;
  const auto add = [&](const std::optional<std::vector<diagnose::Action>>& h, const char* run, std::size_t share) {
    if (!h) return;
    const auto used = static_cast<std::size_t>(std::count(out.begin(), out.end(), '\n'));
    out += helps_text(*h, both ? run : "it", used < screen_lines ? (screen_lines - used) / share : 0);
  };
  add(answer.inference, "inference", answer.training ? 2 : 1);
  add(answer.training, "training", 1);
  return out;
}

}  // namespace vlmest::tool
