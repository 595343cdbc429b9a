// SPDX-License-Identifier: Apache-2.0
#include "validation_report.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include <vlmest/report/compare_run.hpp>
#include <vlmest/unit/sort_stably.hpp>

#include "table.hpp"
#include "units.hpp"

namespace vlmest::tool {
namespace {

using Json = nlohmann::ordered_json;

/// Rows beyond a limit that are listed; --rows lists all.
constexpr std::size_t most_beyond = 20;

std::string plural(std::size_t n, const char* what) {
  return fmt::format("{} {}{}", grouped(static_cast<std::int64_t>(n)), what, n == 1 ? "" : "s");
}

/// 0 is exact, 0.000 is not.
std::string percent(double p) { return p == 0 ? "0" : fmt::format("{:.3f}", p); }
std::string signed_percent(double p) { return p == 0 ? "0" : fmt::format("{:+.3f}", p); }

bool is_time(Unit u) { return u == Unit::milliseconds || u == Unit::microseconds; }

std::string figure(const Comparison& c, double v) {
  const std::string s = is_time(c.unit) ? fmt::format("{:.3f}", v) : grouped(std::llround(v));
  return c.unit == Unit::count || c.unit == Unit::flops
             ? s
             : s + (is_time(c.unit) ? " " + std::string(name(c.unit)) : " B");
}

/// As files of rows say it.
Json fitted_value(Fitted f) { return f == Fitted::partly ? Json("partly") : Json(f == Fitted::yes); }

/// The limits of a quantity: "3", "median 1, worst 3".
std::vector<ErrorLimit> limits_of(const Validated& v, const std::string& quantity) {
  std::vector<ErrorLimit> r;
  for (const auto& l : v.limits)
    if (l.quantity == quantity) r.push_back(l);
  return r;
}
std::string limit_cell(const std::vector<ErrorLimit>& limits) {
  std::string s;
  for (const auto& l : limits) s += (s.empty() ? "" : ", ") + fmt::format("{} {:g}", name(l.statistic), l.percent);
  return s.empty() ? "-" : s;
}

/// The limit that rows are counted against: that of the worst row where there is one.
const ErrorLimit* row_limit(const std::vector<ErrorLimit>& limits) {
  const auto found =
      std::find_if(limits.begin(), limits.end(), [](const ErrorLimit& l) { return l.statistic == Statistic::worst; });
  return limits.empty() ? nullptr : found == limits.end() ? &limits.front() : &*found;
}

/// Whether any file says of a quantity that is shown what was fitted to it.
bool says_fitted(const Validated& v) {
  return std::any_of(v.quantities.begin(), v.quantities.end(),
                     [&](const std::string& q) { return summary(v.all, q).fitted != Fitted::unknown; });
}
bool has_ranges(const Validated& v) {
  return std::any_of(v.quantities.begin(), v.quantities.end(),
                     [&](const std::string& q) { return summary(v.all, q).ranged > 0; });
}

/// Whether a file's mark speaks of a quantity that the file measured.
bool speaks_of(const Validated& v, const ValidatedFile& f, const json::FittedMark& m, const std::string& quantity) {
  return json::mark_of(f.fitted, quantity) == &m && std::any_of(v.all.begin(), v.all.end(), [&](const Comparison& c) {
           return c.quantity == quantity && c.where.starts_with(f.name);
         });
}

Table quantities(const Validated& v) {
  Table t{.head = {"quantity", "rows", "median %", "mean %", "worst %"}, .rows = {}};
  const bool marked = says_fitted(v), ranged = has_ranges(v);
  if (ranged) t.head.emplace_back("in range %");
  if (marked) t.head.emplace_back("fitted");
  if (!v.limits.empty()) t.head.insert(t.head.end(), {"limit %", "rows within it %"});
  for (const auto& q : v.quantities) {
    const ErrorSummary s = summary(v.all, q);
    t.rows.push_back(
        {q, grouped(static_cast<std::int64_t>(s.rows)), percent(s.median), percent(s.mean), percent(s.worst)});
    if (ranged) t.rows.back().push_back(s.ranged == 0 ? "-" : fmt::format("{:.0f}", s.coverage()));
    if (marked) t.rows.back().emplace_back(name(s.fitted));
    if (v.limits.empty()) continue;
    const auto limits = limits_of(v, q);
    const ErrorLimit* l = row_limit(limits);
    t.rows.back().push_back(limit_cell(limits));
    t.rows.back().push_back(l ? fmt::format("{:.3g}", share_within(v.all, q, l->percent)) : "-");
  }
  return t;
}

Table rows(const std::vector<const Comparison*>& list) {
  Table t{.head = {"quantity", "row", "predicted", "measured", "error %"}, .rows = {}, .left = 2};
  for (const Comparison* c : list)
    t.rows.push_back(
        {c->quantity, c->row, figure(*c, c->predicted), figure(*c, c->measured), signed_percent(c->error())});
  return t;
}

/// The rows of a quantity whose error is above `percent`, the worst first.
std::vector<const Comparison*> beyond(const Validated& v, const std::string& quantity, double percent) {
  std::vector<const Comparison*> r;
  for (const auto& c : v.all)
    if (c.quantity == quantity && std::abs(c.error()) > percent) r.push_back(&c);
  sort_stably(r, [](const Comparison* a, const Comparison* b) { return std::abs(a->error()) > std::abs(b->error()); });
  return r;
}

/// What is listed besides the rows beyond a limit.
std::vector<const Comparison*> listed(const Validated& v, const ValidationOptions& o,
                                      const std::vector<const Comparison*>& already) {
  std::vector<const Comparison*> r;
  for (const auto& q : v.quantities) {
    if (o.every_row) {
      for (const auto& c : v.all)
        if (c.quantity == q) r.push_back(&c);
      continue;
    }
    auto worst = beyond(v, q, 0);
    worst.resize(std::min(worst.size(), o.top));
    for (const Comparison* c : worst)
      if (std::find(already.begin(), already.end(), c) == already.end()) r.push_back(c);
  }
  return r;
}

/// "80 runs and 12 benchmarks of 4 files, predicted for h200-sxm"
std::string compared(const Validated& v) {
  std::size_t runs = 0, ops = 0;
  for (const auto& f : v.files) (f.kind == json::MeasuredFile::Kind::runs ? runs : ops) += f.compared;
  std::string s;
  if (runs > 0 || ops == 0) s = plural(runs, "run");
  if (ops > 0) s += (s.empty() ? "" : " and ") + plural(ops, "benchmark");
  return s + " of " + plural(v.files.size(), "file") + ", predicted for " + v.device.name;
}

/// One line that says whether the limits hold, or a line for each that does not.
std::vector<std::string> verdicts(const Validated& v) {
  auto r = broken_limits(v);
  const std::size_t n = v.limits.size();
  if (r.empty() && n > 0)
    r.push_back(n == 1 ? "the limit holds" : n == 2 ? "both limits hold" : fmt::format("all {} limits hold", n));
  return r;
}

/// Rows beyond the limits that do not hold.
std::vector<const Comparison*> beyond_limits(const Validated& v, const ValidationOptions& o, std::size_t& hidden) {
  std::vector<const Comparison*> r;
  for (const auto& l : v.limits) {
    if (l.holds(summary(v.all, l.quantity))) continue;
    for (const Comparison* c : beyond(v, l.quantity, l.percent))
      if (std::find(r.begin(), r.end(), c) == r.end()) r.push_back(c);
  }
  hidden = o.every_row || r.size() <= most_beyond ? 0 : r.size() - most_beyond;
  r.resize(r.size() - hidden);
  return r;
}

/// What was fitted to which quantities of which files, and why; files that say the same stand together.
std::vector<std::string> fitted_notes(const Validated& v) {
  using Said = std::pair<Fitted, std::string>;
  std::vector<Said> reasons;
  for (const auto& f : v.files)
    for (const auto& m : f.fitted)
      if (const Said said{m.fitted, m.reason};
          m.fitted != Fitted::no && std::find(reasons.begin(), reasons.end(), said) == reasons.end())
        reasons.push_back(said);
  std::vector<std::string> r;
  for (const Said& said : reasons) {
    std::string files, of;
    for (const auto& q : v.quantities) {
      bool any = false;
      for (const auto& f : v.files)
        for (const auto& m : f.fitted) {
          if (Said{m.fitted, m.reason} != said || !speaks_of(v, f, m, q)) continue;
          any = true;
          if (files.find(f.name) == std::string::npos) files += (files.empty() ? "" : ", ") + f.name;
        }
      if (any) of += (of.empty() ? "" : ", ") + q;
    }
    if (!of.empty())
      r.push_back(
          fmt::format("{}: {} fitted{}: {}", files, of, said.first == Fitted::partly ? " in part" : "", said.second));
  }
  return r;
}

/// What a reader of the figures must know besides.
std::vector<std::string> notes(const Validated& v) {
  std::vector<std::string> r;
  std::string walls;
  for (const auto& q : v.quantities)
    if (is_wall_time(q)) walls += (walls.empty() ? "" : ", ") + q;
  if (!walls.empty())
    r.push_back(walls + ": wall time of eager runs, the host's noise included; in range: as hosts and kernels differ");
  for (auto& line : fitted_notes(v)) r.push_back(std::move(line));
  for (const auto& f : v.files) {
    if (f.throttled > 0)
      r.push_back(
          fmt::format("{}: {} ran while the GPU held its clock down", f.name, plural(f.throttled, "benchmark")));
    if (!f.skipped.empty())
      r.push_back(fmt::format("{}: nothing to compare in {}, such as {}: {}", f.name, plural(f.skipped.size(), "row"),
                              f.skipped.front().name, f.skipped.front().why));
  }
  return r;
}

const char* listed_as(const ValidationOptions& o) {
  return o.every_row ? "every row" : o.top == 1 ? "the worst row of each quantity" : "the worst rows of each quantity";
}

}  // namespace

std::vector<std::string> broken_limits(const Validated& v) {
  std::vector<std::string> r;
  for (const auto& l : v.limits) {
    const ErrorSummary s = summary(v.all, l.quantity);
    if (l.holds(s)) continue;
    r.push_back(s.rows == 0 ? l.quantity + ": no row has measured it"
                            : fmt::format("{}: {} {} % is more than {:g} %", l.quantity, name(l.statistic),
                                          percent(value(s, l.statistic)), l.percent));
  }
  return r;
}

std::string validation_text(const Validated& v, const ValidationOptions& o) {
  std::string out;
  const char* color = broken_limits(v).empty() ? "\033[32m" : "\033[31m";
  for (const auto& line : verdicts(v)) out += o.color ? color + line + "\033[0m\n" : line + "\n";
  out += compared(v) + "\n\n" + text(quantities(v));
  std::size_t hidden = 0;
  const auto bad = beyond_limits(v, o, hidden);
  if (!bad.empty()) {
    out += "\nrows beyond a limit\n" + text(rows(bad));
    if (hidden > 0) out += fmt::format("  and {}: --rows lists them\n", plural(hidden, "more row"));
  }
  if (const auto list = listed(v, o, bad); !list.empty()) out += fmt::format("\n{}\n", listed_as(o)) + text(rows(list));
  for (const auto& n : notes(v)) out += (&n == &notes(v).front() ? "\n" : "") + n + "\n";
  return out;
}

std::string validation_markdown(const Validated& v, const ValidationOptions& o) {
  std::string out;
  for (const auto& line : verdicts(v)) out += "**" + line + "**\n\n";
  out += compared(v) + "\n\n" + markdown(quantities(v));
  std::size_t hidden = 0;
  const auto bad = beyond_limits(v, o, hidden);
  if (!bad.empty()) {
    out += "\nRows beyond a limit:\n\n" + markdown(rows(bad));
    if (hidden > 0) out += fmt::format("\nand {}\n", plural(hidden, "more row"));
  }
  if (const auto list = listed(v, o, bad); !list.empty())
    out += fmt::format("\n{}:\n\n", listed_as(o)) + markdown(rows(list));
  for (const auto& n : notes(v)) out += "\n" + n + "\n";
  return out;
}

std::string validation_csv(const Validated& v) {
  Table t{.head = {"where", "row", "quantity", "unit", "predicted", "measured", "error_percent"}, .rows = {}};
  const auto number = [](const Comparison& c, double n) {
    return is_time(c.unit) ? fmt::format("{:.6g}", n) : fmt::format("{:.0f}", n);
  };
  for (const auto& c : v.all)
    if (std::find(v.quantities.begin(), v.quantities.end(), c.quantity) != v.quantities.end())
      t.rows.push_back({c.where, c.row, c.quantity, std::string(name(c.unit)), number(c, c.predicted),
                        number(c, c.measured), fmt::format("{:+.6f}", c.error())});
  return csv(t);
}

nlohmann::ordered_json validation_json(const Validated& v) {
  Json files = Json::array(), all = Json::array(), limits = Json::array(), list = Json::array();
  for (const auto& f : v.files) {
    Json skipped = Json::array();
    for (const auto& s : f.skipped) skipped.push_back({{"name", s.name}, {"why", s.why}});
    files.push_back({{"file", f.name},
                     {"kind", f.kind == json::MeasuredFile::Kind::runs ? "runs" : "benchmarks"},
                     {"device", f.device},
                     {"rows", f.rows},
                     {"compared", f.compared},
                     {"throttled", f.throttled},
                     {"skipped", std::move(skipped)}});
    if (f.fitted.empty()) continue;
    Json marks = Json::array();
    for (const auto& m : f.fitted)
      marks.push_back({{"quantities", m.quantities}, {"fitted", fitted_value(m.fitted)}, {"reason", m.reason}});
    files.back()["fitted"] = std::move(marks);
  }
  for (const auto& q : v.quantities) {
    const ErrorSummary s = summary(v.all, q);
    all.push_back({{"quantity", q},
                   {"unit", std::string(name(s.unit))},
                   {"rows", s.rows},
                   {"median_pct", significant(s.median)},
                   {"mean_pct", significant(s.mean)},
                   {"worst_pct", significant(s.worst)}});
    all.back()["measurements"] = s.measurements;
    if (s.ranged > 0) all.back()["in_range_pct"] = significant(s.coverage());
    if (s.fitted != Fitted::unknown) all.back()["fitted"] = fitted_value(s.fitted);
    const auto of_it = limits_of(v, q);
    if (const ErrorLimit* l = row_limit(of_it))
      all.back()["within_limit_pct"] = significant(share_within(v.all, q, l->percent));
  }
  for (const auto& l : v.limits) {
    const ErrorSummary s = summary(v.all, l.quantity);
    limits.push_back({{"quantity", l.quantity},
                      {"statistic", std::string(name(l.statistic))},
                      {"limit_pct", l.percent},
                      {"rows", s.rows},
                      {"value_pct", significant(value(s, l.statistic))},
                      {"holds", l.holds(s)}});
  }
  const auto number = [](const Comparison& c, double n) {
    return is_time(c.unit) ? Json(significant(n)) : Json(static_cast<std::int64_t>(std::llround(n)));
  };
  for (const auto& c : v.all)
    if (std::find(v.quantities.begin(), v.quantities.end(), c.quantity) != v.quantities.end()) {
      list.push_back({{"where", c.where},
                      {"row", c.row},
                      {"quantity", c.quantity},
                      {"predicted", number(c, c.predicted)},
                      {"measured", number(c, c.measured)},
                      {"error_pct", significant(c.error())}});
      if (c.range) list.back()["predicted_range"] = {significant(c.range->low), significant(c.range->high)};
      if (c.fitted != Fitted::unknown) list.back()["fitted"] = fitted_value(c.fitted);
    }
  return {{"schema_version", 1},       {"device", v.device.name},      {"holds", broken_limits(v).empty()},
          {"files", std::move(files)}, {"quantities", std::move(all)}, {"limits", std::move(limits)},
          {"rows", std::move(list)}};
}

}  // namespace vlmest::tool
