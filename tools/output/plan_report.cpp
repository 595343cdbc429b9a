// SPDX-License-Identifier: Apache-2.0
#include "plan_report.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <fmt/core.h>

#include "estimate_flags.hpp"
#include "lines.hpp"
#include "parallel_flags.hpp"
#include "table.hpp"
#include "trainer_arguments.hpp"
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
  for (const auto* e : r.candidate.changes) text += (text.empty() ? "" : ", ") + std::string(e->name);
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

/// As many as were asked for.
std::span<const parallel::LaidOut> shown_layouts(const ReportedPlan& p) {
  const std::vector<parallel::LaidOut>& all = p.layouts->found;
  return {all.data(), std::min(all.size(), p.request.results)};
}

std::string estimate_command(const ReportedPlan& p, const std::string& flags) {
  return "vlmest estimate --config " + p.config + " --device " + p.device + " " + flags;
}

/// The lines that run the best plan: a trainer's, or, of inference, those of its changes.
std::vector<std::string> best_lines(const ReportedPlan& p) {
  const PlannedRun& best = p.answer.best.front();
  return p.request.mode == diagnose::Mode::training ? trainer_arguments(p.request, best, p.answer.vision)
                                                    : lines(p, best);
}

/// What ranks the plans (planner::rank).
std::string ranking(Goal g) {
  static constexpr std::array<const char*, 5> goals{"largest batch, ", "longest sequences, ", "largest images, ",
                                                    "most frames, ", ""};
  return fmt::format("best first: same results before other ones, then {}least time, fewest changes",
                     goals[static_cast<std::size_t>(g)]);
}

Json run(const ReportedPlan& p, const PlannedRun& r) {
  const Settings& s = r.candidate.settings;
  const Sequences q = make_sequences(s.vlm, s.plan);
  Json gave_up = Json::array();
  const auto how = lines(p, r);
  for (std::size_t i = 0; i < how.size(); ++i) {
    const auto& e = *r.candidate.changes[i];
    gave_up.push_back(
        {{"id", e.name}, {"title", e.title}, {"same_result", e.loses == diagnose::Loses::nothing}, {"how", how[i]}});
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
  if (q.video) j["frames"] = q.video->sampled, j["video_tokens"] = q.video_tokens;
  if (flags) j["estimate"] = estimate_command(p, *flags);
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
    case Goal::max_frames: return grouped(*p.video->frames);
    case Goal::fastest: return fmt::format("{} x {}", p.batch, p.gradient_accumulation);
  }
  return {};
}

const char* reach_head(Goal g) {
  static constexpr std::array<const char*, 5> heads{"batch", "seq", "image", "frames", "batch"};
  return heads[static_cast<std::size_t>(g)];
}

/// The figures of plans; of several GPUs the time that each needs for its sequence, and that of all together.
Table figures(const ReportedPlan& p, const std::vector<PlannedRun>& all, bool with_fit) {
  const int gpus = p.request.asked.placement.gpus;
  Table t{.head = {reach_head(p.request.goal), "peak", "reserved"}, .rows = {}, .left = 0};
  if (gpus == 1) t.head.emplace_back("time/sequence");
  if (gpus > 1) t.head.insert(t.head.end(), {"time/sequence of a GPU", fmt::format("of {} GPUs", gpus)});
  if (with_fit) t.head.emplace_back("fits");
  for (const auto& r : all) {
    const Seconds each = r.outcome.per_sample();
    t.rows.push_back({reach(r, p.request.goal), show(r.outcome.peak), show(r.outcome.reserved), show(each)});
    if (gpus > 1) t.rows.back().push_back(show(each * (1.0 / gpus)));
    if (with_fit) t.rows.back().emplace_back(r.outcome.fits ? "yes" : "no");
  }
  return t;
}

/// Figures first, and what was changed behind them, on as many lines as that needs.
std::string plans_text(const ReportedPlan& p, const std::vector<PlannedRun>& all, bool with_fit) {
  const std::string table = text(figures(p, all, with_fit));
  const std::size_t column = table.find('\n') + 2;
  std::string out;
  std::size_t from = 0;
  for (std::size_t i = 0; i <= all.size(); ++i) {
    const std::size_t to = table.find('\n', from);
    std::string line = table.substr(from, to - from);
    line.resize(column, ' ');
    out += wrapped(line + (i == 0 ? "changes" : changes(all[i - 1])), column) + "\n";
    from = to + 1;
  }
  return out;
}

std::string plans_markdown(const ReportedPlan& p, const std::vector<PlannedRun>& all, bool with_fit) {
  Table t = figures(p, all, with_fit);
  t.left = 1;
  t.head.insert(t.head.begin(), "changes");
  for (std::size_t i = 0; i < all.size(); ++i) t.rows[i].insert(t.rows[i].begin(), changes(all[i]));
  return markdown(t);
}

/// The flags of estimate that say the same of a layout.
std::string layout_command(const ReportedPlan& p, const parallel::LaidOut& l) {
  Settings s = p.request.asked;
  s.placement = {};
  s.plan.checkpointing = l.plan.checkpointing;
  return estimate_command(p, estimate_flags(s, p.request.mode).value_or("") + " " + layout_flags(l.layout));
}

/// "dp=4, pp=2, 1f1b x 16": a pipeline's schedule and micro-batches.
std::string layout_words(const parallel::LaidOut& of) {
  const parallel::Layout& l = of.layout;
  std::string r;
  const auto add = [&](const std::string& word) { r += (r.empty() ? "" : ", ") + word; };
  for (const auto& [dimension, size] : {std::pair{"dp", l.dp}, {"tp", l.tp}, {"pp", l.pp}, {"cp", l.cp}, {"ep", l.ep}})
    if (size > 1) add(fmt::format("{}={}", dimension, size));
  if (l.shard != parallel::Shard::none) add(std::string(name(l.shard)));
  if (l.shard == parallel::Shard::none && holders(l) > 1) add("DDP");
  if (!l.reshard_after_forward) add("no reshard");
  if (l.pp > 1) add(fmt::format("{} x {}", schedule_word(l.schedule), parallel::micro_batches(l)));
  if (!l.stages.empty()) add("stages by time");
  if (of.plan.checkpointing != Checkpointing::off) add("checkpointed");
  return r;
}

Json layouts_json(const ReportedPlan& p) {
  Json list = Json::array();
  for (const parallel::LaidOut& l : shown_layouts(p))
    list.push_back({{"flags", layout_flags(l.layout)},
                    {"checkpointing", name(l.plan.checkpointing)},
                    {"peak_bytes", l.most.peak.value()},
                    {"reserved_bytes", l.most.reserved.value()},
                    {"outside_bytes", l.outside.value()},
                    {"step_ms", significant(l.step.ms())},
                    {"step_is_lower_bound", l.lower_bound},
                    {"exposed_ms", significant(l.exposed.ms())},
                    {"bubble_share", significant(l.bubble_share)},
                    {"tokens_per_s", significant(l.tokens_per_second)},
                    {"mfu", significant(l.mfu)},
                    {"fits", l.fits},
                    {"estimate", layout_command(p, l)}});
  return list;
}

Table layouts_table(const ReportedPlan& p) {
  Table t{.head = {"layout", "peak", "reserved", "step", "tokens/s", "MFU"}, .rows = {}, .left = 1};
  for (const parallel::LaidOut& l : shown_layouts(p))
    t.rows.push_back({layout_words(l), show(l.most.peak), show(l.most.reserved),
                      (l.lower_bound ? "> " : "") + show(l.step),
                      grouped(static_cast<std::int64_t>(l.tokens_per_second)),
                      l.fits ? fmt::format("{:.1f} %", 100 * l.mfu) : "no fit"});
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

/// What was searched for, and in which order the answers stand.
std::string heading(const ReportedPlan& p) {
  const auto& q = p.request;
  const auto& a = p.answer;
  std::string out = wrapped(fmt::format(
      "{}: {} of {} within {} on {}{}, {} combinations", q.asked.vlm.name, name(q.goal),
      q.mode == diagnose::Mode::training ? "a training step" : "inference", show(q.device.usable_bytes), q.device.name,
      q.asked.placement.gpus > 1 ? fmt::format(" x {}", q.asked.placement.gpus) : "", a.combinations));
  out += "\n" + ranking(q.goal) + "\n";
  if (a.adapters)
    out += wrapped(
               "full training does not fit, whatever is changed: these train adapters (lora-16), also over weights "
               "in 4 bits (qlora)") +
           "\n";
  return out + "\n";
}

using PrintPlans = std::string (*)(const ReportedPlan&, const std::vector<PlannedRun>&, bool);
using PrintLines = std::string (*)(const std::vector<std::string>&);

std::string report(const ReportedPlan& p, PrintPlans plans, PrintLines code, std::string (*print)(const Table&)) {
  const auto& q = p.request;
  const auto& a = p.answer;
  const bool searched = a.combinations > 0;
  std::string out =
      searched
          ? heading(p)
          : wrapped(fmt::format("{}: a training step within {} on {} x {}, more than one host has", q.asked.vlm.name,
                                show(q.device.usable_bytes), q.device.name, q.asked.placement.gpus)) +
                "\n";
  if (!searched) {
  } else if (a.best.empty()) {
    out += "nothing fits\n";
  } else {
    out += plans(p, a.best, false);
    if (a.asked && !a.best.front().candidate.changes.empty())
      out += fmt::format("\nas asked: {}\n", reach(*a.asked, q.goal));
    if (const auto lines = best_lines(p); !lines.empty()) out += "\nthe first plan:\n" + code(lines);
    if (const auto flags = estimate_flags(a.best.front().candidate.settings, q.mode))
      out += "\nits estimate:\n" + code(command_lines(estimate_command(p, *flags), 0, line_width - 2));
    if (p.budget) out += "\n" + print(budget_table(*p.budget));
  }
  if (!a.front.empty()) out += "\nmemory against time, of what was asked for:\n\n" + plans(p, a.front, true);
  if (p.layouts && !p.layouts->found.empty()) {
    out += fmt::format("\nlaid out over {} GPUs and {}, of what was asked for, most tokens a second first:\n\n",
                       q.asked.placement.gpus, p.network) +
           print(layouts_table(p));
    out += "\nthe first layout's estimate:\n" +
           code(command_lines(layout_command(p, p.layouts->found.front()), 0, line_width - 2));
  }
  return out;
}

std::string code_text(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines)
    for (const std::string& part : code_lines(line, 2)) out += part + "\n";
  return out;
}
std::string code_markdown(const std::vector<std::string>& lines) {
  std::string out = "\n```text\n";
  for (const std::string& line : lines)
    for (const std::string& part : code_lines(line, 0)) out += part + "\n";
  return out + "```\n";
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
  j["ranking"] = ranking(q.goal);
  j["adapters"] = a.adapters;
  if (!a.best.empty() && q.mode == diagnose::Mode::training) j["trainer"] = best_lines(p);
  if (p.layouts) {
    j["network"] = p.network;
    j["layouts"] = layouts_json(p);
  }
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
  return report(p, plans_text, code_text, [](const Table& t) { return text(t); });
}
std::string plan_markdown(const ReportedPlan& p) {
  return report(p, plans_markdown, code_markdown, [](const Table& t) { return markdown(t); });
}

std::string plan_csv(const ReportedPlan& p) {
  Table t{.head = {"rank", "batch", "gradient_accumulation", "seq", "images", "image_height", "image_width",
                   "peak_bytes", "reserved_bytes", "time_ms", "time_per_sample_ms", "changes"},
          .rows = {}};
  const bool video = p.request.asked.plan.video.has_value();
  if (video) t.head.emplace_back("frames");
  for (std::size_t i = 0; i < p.answer.best.size(); ++i) {
    const PlannedRun& r = p.answer.best[i];
    const Settings& s = r.candidate.settings;
    const Sequences q = make_sequences(s.vlm, s.plan);
    t.rows.push_back({std::to_string(i + 1), std::to_string(s.plan.batch), std::to_string(s.plan.gradient_accumulation),
                      std::to_string(q.seq), std::to_string(s.plan.images), std::to_string(q.image.height),
                      std::to_string(q.image.width), std::to_string(r.outcome.peak.value()),
                      std::to_string(r.outcome.reserved.value()), fmt::format("{}", significant(r.outcome.time.ms())),
                      fmt::format("{}", significant(r.outcome.per_sample().ms())), changes(r)});
    if (video) t.rows.back().push_back(std::to_string(q.video->sampled));
  }
  return csv(t);
}

}  // namespace vlmest::tool
