// SPDX-License-Identifier: Apache-2.0
#include "plan_report.hpp"

#include <array>

#include <fmt/core.h>

#include "estimate_flags.hpp"
#include "table.hpp"
#include "units.hpp"

namespace vlmest::tool {
namespace {

using Json = nlohmann::ordered_json;
using diagnose::Goal;
using diagnose::PlannedRun;
using diagnose::Settings;

std::string pixels(const Settings& s) {
  const ImageSize size = diagnose::image_size(s.vlm, s.plan);
  return fmt::format("{}x{}", size.height, size.width);
}

std::string changes(const PlannedRun& r) {
  std::string text;
  for (const auto* e : r.candidate.changes) text += (text.empty() ? "" : ", ") + std::string(e->id);
  return text.empty() ? "as asked" : text;
}

/// The lines that make a plan of what was asked for. Each is written for the settings that it was applied to.
std::vector<std::string> lines(const ReportedPlan& p, const PlannedRun& r) {
  const diagnose::Subject s{
      .now = p.request.asked, .device = p.request.device, .mode = p.request.mode, .vision = p.answer.vision};
  std::vector<std::string> out;
  for (const auto* e : r.candidate.changes) out.push_back(e->how(s, r.candidate.settings));
  return out;
}

Json run(const ReportedPlan& p, const PlannedRun& r) {
  const Settings& s = r.candidate.settings;
  const Sequences q = make_sequences(s.vlm, s.plan);
  Json gave_up = Json::array();
  const auto how = lines(p, r);
  for (std::size_t i = 0; i < how.size(); ++i) {
    const auto& e = *r.candidate.changes[i];
    gave_up.push_back(
        {{"id", e.id}, {"title", e.title}, {"same_result", e.loses == diagnose::Loses::nothing}, {"how", how[i]}});
  }
  const auto flags = estimate_flags(s, p.request.mode);
  Json j = {{"batch", s.plan.batch},
            {"gradient_accumulation", s.plan.gradient_accumulation},
            {"seq", q.seq},
            {"text_tokens", q.text},
            {"image_tokens", q.image_tokens},
            {"marker_tokens", q.markers},
            {"images", s.plan.images},
            {"image_size", {q.image.height, q.image.width}},
            {"peak_bytes", r.outcome.peak.value()},
            {"reserved_bytes", r.outcome.reserved.value()},
            {"time_ms", significant(r.outcome.time.ms())},
            {"time_per_sample_ms", significant(r.outcome.per_sample().ms())},
            {"fits", r.outcome.fits},
            {"same_result", r.candidate.loses() == diagnose::Loses::nothing},
            {"gave_up", std::move(gave_up)}};
  if (flags) j["estimate"] = "vlmest estimate --config " + p.config + " --device " + p.device + " " + *flags;
  return j;
}

Json runs(const ReportedPlan& p, const std::vector<PlannedRun>& all) {
  Json list = Json::array();
  for (const auto& r : all) list.push_back(run(p, r));
  return list;
}

std::string reach(const PlannedRun& r, Goal g) {
  const Plan& p = r.candidate.settings.plan;
  switch (g) {
    case Goal::max_batch: return grouped(p.batch);
    case Goal::max_seq: return grouped(*p.seq);
    case Goal::max_pixels: return pixels(r.candidate.settings);
    case Goal::fastest: return fmt::format("{} x {}", p.batch, p.gradient_accumulation);
  }
  return {};
}

Table table(const ReportedPlan& p, const std::vector<PlannedRun>& all, bool with_fit) {
  static constexpr std::array<const char*, 4> heads{"batch", "seq", "image", "batch"};
  Table t{.head = {"changes", heads[static_cast<std::size_t>(p.request.goal)], "peak", "reserved", "time/sequence"},
          .rows = {}};
  if (with_fit) t.head.emplace_back("fits");
  for (const auto& r : all) {
    t.rows.push_back({changes(r), reach(r, p.request.goal), show(r.outcome.peak), show(r.outcome.reserved),
                      show(r.outcome.per_sample())});
    if (with_fit) t.rows.back().emplace_back(r.outcome.fits ? "yes" : "no");
  }
  return t;
}

Table budget_table(const diagnose::MemoryBudget& b) {
  return {.head = {"memory of the first plan", "bytes"},
          .rows = {{"weights", show(b.weights)},
                   {"inputs", show(b.inputs)},
                   {"vision tower, while it runs", show(b.vision)},
                   {"projector, while it runs", show(b.projector)},
                   {"language model, at the prompt", show(b.language)},
                   {"language model, at a new token", show(b.decode)},
                   {"keys and values of the batch", show(b.kv)},
                   {"keys and values of a token", show(b.kv_token)},
                   {"left for keys and values", show(b.left)},
                   {"tokens that fit there", grouped(b.kv_tokens)}}};
}

std::string report(const ReportedPlan& p, std::string (*print)(const Table&)) {
  const auto& q = p.request;
  const auto& a = p.answer;
  std::string out = fmt::format(
      "{}: {} of {} within {} on {}{}, {} combinations\n\n", q.asked.vlm.name, name(q.goal),
      q.mode == diagnose::Mode::training ? "a training step" : "inference", show(q.device.usable_bytes), q.device.name,
      q.asked.placement.gpus > 1 ? fmt::format(" x {}", q.asked.placement.gpus) : "", a.combinations);
  if (a.best.empty()) {
    out += "nothing fits\n";
  } else {
    out += print(table(p, a.best, false));
    if (a.asked && !a.best.front().candidate.changes.empty())
      out += fmt::format("\nas asked: {}\n", reach(*a.asked, q.goal));
    const auto how = lines(p, a.best.front());
    if (!how.empty()) out += "\nthe first plan:\n";
    for (const auto& line : how) out += "  " + line + "\n";
    if (p.budget) out += "\n" + print(budget_table(*p.budget));
  }
  if (!a.front.empty()) out += "\nmemory against time, of what was asked for:\n\n" + print(table(p, a.front, true));
  return out;
}

}  // namespace

nlohmann::ordered_json plan_json(const ReportedPlan& p) {
  const auto& q = p.request;
  const auto& a = p.answer;
  Json j = {{"schema_version", 1},
            {"model", {{"name", q.asked.vlm.name}, {"family", q.asked.vlm.type}}},
            {"device",
             {{"name", q.device.name},
              {"memory_bytes", q.device.memory_bytes.value()},
              {"limit_bytes", q.device.usable_bytes.value()}}},
            {"gpus", q.asked.placement.gpus},
            {"goal", name(q.goal)},
            {"phase", q.mode == diagnose::Mode::training ? "train" : "inference"},
            {"combinations", a.combinations},
            {"estimates", a.estimates},
            {"plans", runs(p, a.best)},
            {"front", runs(p, a.front)}};
  if (a.asked) j["asked"] = run(p, *a.asked);
  if (p.budget) {
    const auto& b = *p.budget;
    j["budget"] = {{"limit_bytes", b.limit.value()},
                   {"weights_bytes", b.weights.value()},
                   {"inputs_bytes", b.inputs.value()},
                   {"vision_bytes", b.vision.value()},
                   {"projector_bytes", b.projector.value()},
                   {"language_bytes", b.language.value()},
                   {"decode_bytes", b.decode.value()},
                   {"kv_bytes", b.kv.value()},
                   {"kv_token_bytes", b.kv_token.value()},
                   {"left_bytes", b.left.value()},
                   {"kv_tokens", b.kv_tokens}};
  }
  return j;
}

std::string plan_text(const ReportedPlan& p) {
  return report(p, [](const Table& t) { return text(t); });
}
std::string plan_markdown(const ReportedPlan& p) {
  return report(p, [](const Table& t) { return markdown(t); });
}

std::string plan_csv(const ReportedPlan& p) {
  Table t{.head = {"rank", "batch", "gradient_accumulation", "seq", "images", "image_height", "image_width",
                   "peak_bytes", "reserved_bytes", "time_ms", "time_per_sample_ms", "changes"},
          .rows = {}};
  for (std::size_t i = 0; i < p.answer.best.size(); ++i) {
    const PlannedRun& r = p.answer.best[i];
    const Settings& s = r.candidate.settings;
    const Sequences q = make_sequences(s.vlm, s.plan);
    t.rows.push_back({std::to_string(i + 1), std::to_string(s.plan.batch), std::to_string(s.plan.gradient_accumulation),
                      std::to_string(q.seq), std::to_string(s.plan.images), std::to_string(q.image.height),
                      std::to_string(q.image.width), std::to_string(r.outcome.peak.value()),
                      std::to_string(r.outcome.reserved.value()), fmt::format("{}", significant(r.outcome.time.ms())),
                      fmt::format("{}", significant(r.outcome.per_sample().ms())), changes(r)});
  }
  return csv(t);
}

}  // namespace vlmest::tool
