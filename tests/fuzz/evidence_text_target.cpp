// SPDX-License-Identifier: Apache-2.0
// Every reader of text: encodings, messages of memory running out, logs, summaries, kinds of files.
#include <cmath>

#include <vlmest/diagnose/evidence/kind.hpp>
#include <vlmest/diagnose/evidence/leak.hpp>
#include <vlmest/diagnose/evidence/oom/ranks.hpp>
#include <vlmest/diagnose/evidence/oom/reader.hpp>
#include <vlmest/diagnose/evidence/stack/cut_stack.hpp>
#include <vlmest/diagnose/evidence/text/encoding.hpp>
#include <vlmest/diagnose/evidence/text/gpu_processes.hpp>
#include <vlmest/diagnose/evidence/text/memory_log.hpp>
#include <vlmest/diagnose/evidence/text/memory_summary.hpp>
#include <vlmest/diagnose/evidence/text/numerics.hpp>
#include <vlmest/diagnose/evidence/text/other_failures.hpp>
#include <vlmest/diagnose/evidence/text/run_settings.hpp>
#include <vlmest/diagnose/evidence/text/run_signs.hpp>
#include <vlmest/diagnose/evidence/text/story.hpp>
#include <vlmest/diagnose/evidence/text/told_settings.hpp>
#include <vlmest/diagnose/evidence/text/xla_program.hpp>
#include <vlmest/diagnose/failure/tensor_sizes.hpp>
#include <vlmest/diagnose/verdict/elsewhere.hpp>
#include <vlmest/diagnose/verdict/judge_signs.hpp>
#include <vlmest/diagnose/verdict/judge_story.hpp>

#include "target.hpp"

namespace {

using namespace vlmest;
using namespace vlmest::diagnose;
using fuzz::require;

void check(const PrintedSize& s) { require(s.holds(s.value) && s.low >= Bytes(), "a size outside of its interval"); }
void check(const std::optional<PrintedSize>& s) {
  if (s) check(*s);
}

void check(const OomMessage& m, std::int64_t lines) {
  for (const auto* s : {&m.requested, &m.total, &m.free, &m.allocated, &m.reserved, &m.reserved_unallocated,
                        &m.private_pools, &m.allowed, &m.own_process, &m.other})
    check(*s);
  check(reserved(m));
  check(allocated(m));
  check(unallocated(m));
  check(unallocated_everywhere(m));
  check(non_torch(m));
  check(other_processes(m));
  check(not_torch(m));
  require(m.line >= 1 && m.line <= lines, "a message beyond the text");
  require(m.times >= 1 && m.text.size() <= 2100, "a message of no lines, or without end");
  require(m.has_numbers || !m.requested, "a figure that is no number");
  if (const auto t = tensor_sizes(m)) {
    require(t->low <= t->high && t->high <= m.requested->high, "a tensor larger than the request");
    require(tensor_allowed(m, t->high) || t->rule == SizeRule::large_segment || m.requested->low == m.requested->high,
            "the largest tensor is not allowed");
  }
  if (const auto f = fragmentation(m)) require(!f->fragmented || f->together_enough, "fragmented, yet too little");
  for (const auto& f : m.traceback.frames) require(f.line >= 0 && f.file.size() <= 400, "a frame");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = fuzz::text(data, size);
  try {
    const auto kind = evidence_kind(text);
    if (kind == EvidenceKind::text) require(!evidence_word(text_kind(text)).empty(), "a text of no kind");
    const auto lines = 1 + std::count(text.begin(), text.end(), '\n');
    const auto signs = find_run_signs(text);
    for (const FoundSign& f : signs) {
      require(f.line >= 1 && f.line <= lines && f.text.size() <= 300, "a sign beyond the text");
      for (const double n : f.numbers) require(std::isfinite(n), "a figure that is no number");
    }
    if (const auto v = judge_signs(signs, {}, says_out_of_memory(text), trains_with_engine(text)))
      require(v->confidence > 0 && v->confidence <= 1 && !v->why.empty(), "a verdict without why");
    for (const ReadSetting& s : read_settings(text))
      require(s.line >= 1 && s.line <= lines && !s.value.empty(), "a setting beyond the text");
    for (const ReadSetting& s : told_settings(text))
      require(s.line >= 1 && s.line <= lines && !s.value.empty() && !s.from.empty(), "a told setting beyond the text");
    if (const auto p = find_xla_program(text)) {
      check(p->arguments);
      check(p->temporaries);
      for (const XlaBuffer& b : p->buffers) {
        check(b.size);
        require(std::isfinite(b.padding), "a buffer of no size");
      }
    }
    if (const auto s = find_cut_stack(text)) require(s->line >= 1 && s->line <= lines, "a stack beyond the text");
    for (const auto& m : find_oom_messages(text)) check(m, lines);
    if (const auto ranks = failed_ranks(find_oom_messages(text)); !ranks.empty())
      require(ranks.size() > 1 && !in_words(ranks).empty(), "one rank beside none");
    const Story story = read_story(text);
    require(std::isfinite(story.largest) && story.parameters >= 0 && story.parameters <= 1e12 && story.gpus >= 0,
            "figures that nobody tells");
    for (const auto& told : story.told)
      require(!told || (told->line >= 1 && told->line <= lines && !told->words.empty()), "a topic beyond the text");
    if (const auto v = judge_story(story, {.says_memory = says_out_of_memory(text)}))
      require(v->confidence > 0 && v->confidence < 0.5 && v->cause != Cause::unknown && !v->why.empty(),
              "a guess that is sure, or of nothing");
    for (const auto& m : find_memory_summaries(text)) {
      require(m.line >= 1 && m.line <= lines, "a summary beyond the text");
      for (const auto* rows : {&m.allocated, &m.active, &m.requested, &m.reserved, &m.non_releasable})
        if (rows->all) check(rows->all->current), check(rows->all->freed);
    }
    const auto s = read_memory_log(text);
    for (const auto& m : find_oom_messages(text)) {
      const auto elsewhere = judge_elsewhere(m, s.facts);
      require(!elsewhere || !elsewhere->why.empty(), "a verdict without a reason");
      if (const auto f = failure_elsewhere(m)) check(f->others);
      const auto f = failure_of(m);
      require(!f.others_deduced || (f.others && f.others->low > Bytes()), "others that are nobody");
    }
    if (const auto f = find_other_failure(text)) require(f->line >= 1 && f->line <= lines, "a failure beyond the text");
    for (const auto& p : find_gpu_processes(text)) require(p.used >= Bytes(), "a process of less than nothing");
    require(encoding_of(utf8_text(std::string(text))) != TextEncoding::utf8_mark || text.size() > 5,
            "a mark that stays");
    require(s.stride >= 1, "a stride");
    for (const auto& f : s.facts) check(f.size);
    const auto growth = find_leak(points(s, [](const MemoryRow& r) { return r.used ? r.used : r.allocated; }),
                                  Bytes(std::int64_t{80} << 30));
    require(!growth.is_leak() || (growth.bytes_per_step > 0 && growth.end_step && !std::isnan(*growth.end_step)),
            "a leak without growth");
    for (const auto& f : numeric_findings(s)) require(f.times >= 1 && f.line <= lines, "a finding beyond the text");
    for (const auto& f : numeric_messages(text)) require(f.line >= 1 && f.text.size() <= 400, "a message without end");
  } catch (const Error& e) {
    fuzz::require_readable(e);
  }
  return 0;
}
