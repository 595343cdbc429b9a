// SPDX-License-Identifier: Apache-2.0
#include "output/diagnosis_report.hpp"

#include <algorithm>
#include <span>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <vlmest/diagnose/evidence/text/words.hpp>

#include "output/table.hpp"
#include "units.hpp"

namespace vlmest::tool {
namespace {

using namespace diagnose;
using Json = nlohmann::ordered_json;

Json tensor_json(const DescribedTensor& t) {
  Json shape = Json::array();
  for (const std::int64_t n : t.shape) shape.push_back(n);
  return {{"name", t.name},   {"scope", t.scope},        {"role", name(t.role)}, {"shape", std::move(shape)},
          {"dtype", t.dtype}, {"bytes", t.bytes.value()}};
}

Json hypothesis_json(const Hypothesis& h) {
  Json j = {{"cause", name(h.cause)},         {"confidence", significant(h.confidence)},    {"phase", h.phase},
            {"moment", name(h.moment)},       {"allocated_before_bytes", h.before.value()}, {"alike", h.alike},
            {"tensor", tensor_json(h.tensor)}};
  if (!h.assuming.empty()) j["assuming"] = h.assuming;
  return j;
}

Json solution_json(const Solution& s) {
  Json j = {{"unknown", name(s.unknown)}, {"value", s.value}};
  if (s.unknown == Unknown::image_side) j["width"] = s.width;
  j["seq"] = s.seq;
  j["vision_patches"] = s.patches;
  j["exact"] = s.exact;
  j["cause"] = name(s.cause);
  j["tensor"] = tensor_json(s.tensor);
  if (!s.assuming.empty()) j["assuming"] = s.assuming;
  return j;
}

Json together_json(const Together& t, std::size_t top) {
  Json all = Json::array();
  for (std::size_t i = 0; i < std::min(top, t.likeliest.size()); ++i) {
    const TogetherSolution& s = t.likeliest[i];
    Json j = Json::object();
    if (s.batch) j["batch"] = *s.batch;
    if (s.seq) j["seq"] = *s.seq;
    if (s.images) j["images"] = *s.images;
    if (s.images && *s.images > 0) j["image_size"] = Json::array({s.height, s.width});
    j["share"] = significant(s.share);
    j["cause"] = name(s.cause);
    j["tensor"] = tensor_json(s.tensor);
    all.push_back(std::move(j));
  }
  return {{"found", t.found}, {"likeliest", std::move(all)}};
}

Json verdict_json(const Verdict& v, std::size_t top) {
  Json j = {{"cause", name(v.cause)}, {"confidence", significant(v.confidence)}, {"why", v.why}};
  if (!v.remarks.empty()) j["remarks"] = v.remarks;
  j["tensor"] = tensor_json(v.tensor.value_or(DescribedTensor{}));
  if (!v.tensor) j["tensor"]["role"] = "";
  if (v.predicted_peak) j["predicted_peak_bytes"] = v.predicted_peak->value();
  if (v.limit) j["limit_bytes"] = v.limit->value();
  if (v.mode) j["phase"] = {{"is", *v.mode == Mode::training ? "train" : "inference"}, {"by", v.mode_by}};
  if (v.explanation) {
    Json e = {{"by_settings", v.explanation->holds}};
    if (v.explanation->estimated) e["estimated_bytes"] = v.explanation->estimated->value();
    Json changes = Json::array();
    for (const ExplainingChange& c : v.explanation->changes)
      changes.push_back({{"flag", c.flag}, {"allocated_bytes", c.allocated.value()}});
    if (!changes.empty()) e["changes"] = std::move(changes);
    j["explained"] = std::move(e);
  }
  Json live = Json::object(), hypotheses = Json::array(), solutions = Json::array();
  for (const MemoryPart& p : v.live) live[std::string(name(p.cause))] = p.bytes.value();
  if (!live.empty()) j["live_bytes"] = std::move(live);
  for (std::size_t i = 0; i < std::min(top, v.hypotheses.size()); ++i)
    hypotheses.push_back(hypothesis_json(v.hypotheses[i]));
  for (std::size_t i = 0; i < std::min(top, v.solutions.size()); ++i)
    solutions.push_back(solution_json(v.solutions[i]));
  j["hypotheses"] = std::move(hypotheses);
  if (!solutions.empty()) j["solutions"] = std::move(solutions);
  if (!v.together.likeliest.empty()) j["settings_together"] = together_json(v.together, top);
  return j;
}

Json action_json(const diagnose::Action& a) {
  if (a.generic) {
    Json j = {{"id", name(a.id)}, {"title", a.title},    {"generic", true},
              {"fits", false},    {"fits_known", false}, {"how", a.how}};
    if (a.of) j["phase"] = *a.of == Mode::training ? "train" : "inference";
    return j;
  }
  Json j = {{"id", name(a.id)},
            {"title", a.title},
            {"saves_bytes", a.saves.value()},
            {"time_cost_pct", significant(a.time_cost_pct)},
            {"peak_after_bytes", a.peak_after.value()},
            {"fits", a.fits},
            {"how", a.how}};
  if (!a.fits_known) j["fits_known"] = false;
  if (a.of) j["phase"] = *a.of == Mode::training ? "train" : "inference";
  if (a.of_reserved) j["of"] = "reserved";
  return j;
}

const char* fits_words(const diagnose::Action& a) { return !a.fits_known ? "unknown" : a.fits ? "yes" : "no"; }

Table actions_table(std::span<const diagnose::Action> actions) {
  const bool both = std::any_of(actions.begin(), actions.end(), [](const diagnose::Action& a) { return a.of; });
  Table t{.head = {"action", "fits", "saves", "peak after", "time"}, .rows = {}, .left = 2};
  if (both) t.head.push_back("where it is");
  for (const diagnose::Action& a : actions) {
    t.rows.push_back({std::string(name(a.id)), fits_words(a), a.saves > Bytes{} ? in_words(a.saves) : "",
                      a.peak_after > Bytes{} ? in_words(a.peak_after) : "",
                      a.generic ? "" : fmt::format("{:+.0f} %", a.time_cost_pct)});
    if (both) t.rows.back().push_back(a.of ? std::string(name(*a.of)) : "either");
  }
  return t;
}

/// What a reader must know of the phase and of the settings, a line each.
std::vector<std::string> premises(const Diagnosis& d) {
  const Verdict& v = d.verdict;
  std::vector<std::string> r;
  for (const std::string& remark : v.remarks) r.push_back("beside it: " + remark);
  if (!d.read.empty()) {
    std::string words;
    for (const ReadSetting& s : d.read) words += (words.empty() ? "" : ", ") + s.flag + " " + s.value;
    r.push_back("read from the text: " + words + "; flags of these names override it");
  }
  if (std::string words = unused_words(d); !words.empty()) r.push_back(std::move(words));
  if (v.mode && !v.mode_by.empty() && v.mode_by != "--phase")
    r.push_back(fmt::format("taken for {}, by {}", name(*v.mode), v.mode_by));
  if (!v.mode && v.explanation)
    r.push_back(
        "whether it trained or answered prompts is not known: neither flags nor evidence tell, so both are "
        "considered; --phase decides");
  if (!v.explanation || v.explanation->holds) return r;
  const auto& changes = v.explanation->changes;
  if (changes.empty()) {
    r.push_back(
        "these settings do not explain what failed, nor does a change of one flag: whether an action is enough "
        "is not known");
  } else {
    std::string others;
    for (std::size_t i = 1; i < std::min<std::size_t>(changes.size(), 4); ++i) others += " or " + changes[i].flag;
    r.push_back(fmt::format("these settings do not explain what failed, with {} they do{}: actions are of that run",
                            changes.front().flag, others.empty() ? "" : " (so they do with" + others.substr(3) + ")"));
  }
  return r;
}

std::string solution_words(const Solution& s) {
  const std::string value =
      s.unknown == Unknown::image_side ? fmt::format("{}x{}", s.value, s.width) : grouped(s.value);
  const std::string patches = s.patches > 0 ? fmt::format(", {} vision patches", grouped(s.patches)) : "";
  return fmt::format("{}{} {}{}: {} of {} would take {} ({} tokens a sequence{})", s.exact ? "with" : "at least with",
                     s.assuming.empty() ? "" : " " + s.assuming + " and", name(s.unknown), " = " + value, s.tensor.name,
                     s.tensor.scope.empty() ? "the model" : s.tensor.scope, in_words(s.tensor.bytes), grouped(s.seq),
                     patches);
}

std::string together_line(const TogetherSolution& s) {
  return fmt::format("{:3.0f} %  {}", 100 * s.share, together_words(s));
}

std::span<const diagnose::Action> first_of(const Diagnosis& d, std::size_t actions) {
  return std::span(d.actions).first(std::min(actions, d.actions.size()));
}

}  // namespace

std::string unused_words(const Diagnosis& d) {
  if (d.unused.empty()) return {};
  return fmt::format("not used: {}: no model is named, nor read from the text; --config FILE names it",
                     fmt::join(d.unused, ", "));
}

nlohmann::ordered_json to_json(const Diagnosis& d, std::size_t top) {
  Json evidence = Json::array(), actions = Json::array();
  for (const Evidence& e : d.evidence) evidence.push_back({{"file", e.file}, {"kind", e.kind}, {"facts", e.facts}});
  for (const diagnose::Action& a : d.actions) actions.push_back(action_json(a));
  Json j = {{"schema_version", 1}, {"evidence", std::move(evidence)}, {"verdict", verdict_json(d.verdict, top)}};
  if (!d.read.empty()) {
    Json read = Json::array();
    for (const ReadSetting& s : d.read)
      read.push_back({{"flag", s.flag + " " + s.value}, {"from", s.from}, {"line", s.line}});
    j["read"] = std::move(read);
  }
  if (!d.unused.empty()) j["unused_flags"] = d.unused;
  j["actions"] = std::move(actions);
  return j;
}

std::string text(const Diagnosis& d, std::size_t top, std::size_t actions) {
  const Verdict& v = d.verdict;
  std::string out = fmt::format("cause: {} (confidence {:.0f} %)\n  {}\n", name(v.cause), 100 * v.confidence, v.why);
  if (v.predicted_peak && v.limit)
    out += fmt::format("  these settings need {} at their peak; {} may be used\n", in_words(*v.predicted_peak),
                       in_words(*v.limit));
  for (const std::string& line : premises(d)) out += "  " + line + "\n";
  for (const Evidence& e : d.evidence) {
    out += fmt::format("\n{}: {}\n", e.file, e.kind);
    for (const std::string& line : e.lines) out += "  " + line + "\n";
  }
  if (v.hypotheses.size() > 1) {
    Table t{.head = {"hypothesis", "in", "size", "over", "share"}, .rows = {}, .left = 2};
    for (std::size_t i = 0; i < std::min(top, v.hypotheses.size()); ++i) {
      const Hypothesis& h = v.hypotheses[i];
      if (h.confidence < 0.005) break;
      t.rows.push_back({h.tensor.name + (h.tensor.scope.empty() ? "" : " of " + h.tensor.scope), h.phase,
                        in_words(h.tensor.bytes), in_words(h.before), fmt::format("{:.0f} %", 100 * h.confidence)});
    }
    out += "\n" + text(t);
  }
  if (!v.solutions.empty()) {
    out += v.hypotheses.empty() ? "\nno tensor of these settings has that size; it would be\n"
                                : "\nwith other inputs a tensor of that size would be\n";
    for (std::size_t i = 0; i < std::min(top, v.solutions.size()); ++i)
      out += "  " + solution_words(v.solutions[i]) + "\n";
  }
  if (const auto& all = v.together.likeliest; !all.empty()) {
    out += fmt::format("\nlikeliest of {} settings that explain the size\n", v.together.found);
    for (std::size_t i = 0; i < std::min(top, all.size()); ++i) out += "  " + together_line(all[i]) + "\n";
  }
  if (const auto shown = first_of(d, actions); !shown.empty()) {
    out += "\n" + text(actions_table(shown)) + "\n";
    for (const diagnose::Action& a : shown) out += fmt::format("{}: {}\n  {}\n", name(a.id), a.title, a.how);
    if (shown.size() < d.actions.size())
      out += fmt::format("and {} more: --actions {}\n", d.actions.size() - shown.size(), d.actions.size());
  }
  return out;
}

std::string markdown(const Diagnosis& d, std::size_t top, std::size_t actions) {
  const Verdict& v = d.verdict;
  std::string out = fmt::format("**{}** (confidence {:.0f} %)\n\n{}\n", name(v.cause), 100 * v.confidence, v.why);
  for (const std::string& line : premises(d)) out += "\n" + line + "\n";
  for (const Evidence& e : d.evidence) {
    out += fmt::format("\n`{}`: {}\n\n", e.file, e.kind);
    for (const std::string& line : e.lines) out += "- " + line + "\n";
  }
  for (std::size_t i = 0; i < std::min(top, v.solutions.size()); ++i)
    out += (i == 0 ? "\n- " : "- ") + solution_words(v.solutions[i]) + "\n";
  for (std::size_t i = 0; i < std::min(top, v.together.likeliest.size()); ++i)
    out += (i == 0 ? "\n- " : "- ") + together_line(v.together.likeliest[i]) + "\n";
  if (const auto shown = first_of(d, actions); !shown.empty()) {
    Table t = actions_table(shown);
    t.head.push_back("how");
    for (std::size_t i = 0; i < shown.size(); ++i) t.rows[i].push_back("`" + shown[i].how + "`");
    out += "\n" + markdown(t);
  }
  return out;
}

std::string csv(const Diagnosis& d) {
  Table t{.head = {"id", "title", "saves_bytes", "time_cost_pct", "peak_after_bytes", "fits", "how"}, .rows = {}};
  for (const diagnose::Action& a : d.actions)
    t.rows.push_back({std::string(name(a.id)), a.title, a.generic ? "" : std::to_string(a.saves.value()),
                      a.generic ? "" : fmt::format("{}", significant(a.time_cost_pct)),
                      a.generic ? "" : std::to_string(a.peak_after.value()),
                      !a.fits_known ? "unknown"
                      : a.fits      ? "true"
                                    : "false",
                      a.how});
  return csv(t);
}

}  // namespace vlmest::tool
