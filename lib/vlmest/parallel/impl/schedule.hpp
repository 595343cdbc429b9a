// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/parallel/schedule.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/error.hpp>

namespace vlmest::parallel {

namespace schedule {

/// Forwards before the first backward, of all chunks.
inline std::int64_t warm_up(const Schedule& s, int stage, int stages, std::int64_t micro_batches) {
  const std::int64_t all = micro_batches * s.chunks;
  switch (s.kind) {
    case ScheduleKind::gpipe: return all;
    case ScheduleKind::one_f_one_b:
    case ScheduleKind::zero_bubble: return std::min<std::int64_t>(all, stages - stage - 1);
    case ScheduleKind::interleaved:
      return std::min<std::int64_t>(all, (stages - stage - 1) * 2 + (s.chunks - 1) * stages);
  }
  return 0;
}

/// The n-th forward, or backward, of a rank.
inline PipelineTask nth(const Schedule& s, PipelineTask::Kind kind, std::int64_t n, int stages) {
  if (s.chunks == 1) return {kind, 0, n};
  const std::int64_t group = n / (stages * s.chunks), within = n % (stages * s.chunks);
  const auto chunk = static_cast<int>(within / stages);
  return {kind, kind == PipelineTask::Kind::forward ? chunk : s.chunks - 1 - chunk, group * stages + within % stages};
}

}  // namespace schedule

VLMEST_INLINE std::vector<PipelineTask> pipeline_order(const Schedule& s, int stage, int stages,
                                                       std::int64_t micro_batches) {
  using Kind = PipelineTask::Kind;
  if (s.kind == ScheduleKind::interleaved && micro_batches % stages != 0)
    throw Error("layout.micro_batches",
                std::to_string(micro_batches) + " is no multiple of the " + std::to_string(stages) +
                    " stages, as an interleaved schedule needs",
                "give a multiple, or take layout.schedule=1f1b");
  const std::int64_t all = micro_batches * s.chunks, first = schedule::warm_up(s, stage, stages, micro_batches);
  std::vector<PipelineTask> r;
  std::int64_t forwards = 0, backwards = 0, weights = 0;
  const auto forward = [&] { r.push_back(schedule::nth(s, Kind::forward, forwards++, stages)); };
  const auto backward = [&] { r.push_back(schedule::nth(s, Kind::backward, backwards++, stages)); };
  while (forwards < first) forward();
  while (backwards < all) {
    if (forwards < all) forward();
    backward();
    // What is put off is held: as many as the stages before this one, by which 1f1b holds less.
    if (s.kind == ScheduleKind::zero_bubble && backwards - weights > stage)
      r.push_back(schedule::nth(s, Kind::weights, weights++, stages));
  }
  if (s.kind == ScheduleKind::zero_bubble)
    while (weights < all) r.push_back(schedule::nth(s, Kind::weights, weights++, stages));
  return r;
}

VLMEST_INLINE HeldInStep held_in_step(const Schedule& s, int stage, int stages, std::int64_t micro_batches,
                                      std::span<const Bytes> bytes) {
  using Kind = PipelineTask::Kind;
  const auto chunks = static_cast<std::size_t>(s.chunks);
  const HeldMicroBatches nothing(chunks, std::vector<std::int64_t>(chunks, 0));
  const std::vector<HeldMicroBatches> of_each(chunks, nothing);
  HeldInStep r{nothing, nothing, of_each, of_each, nothing, nothing};
  const auto total = [&](const std::vector<std::int64_t>& held) {
    Bytes sum{};
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) sum += bytes[chunk] * held[chunk];
    return sum;
  };
  const Kind releases = s.kind == ScheduleKind::zero_bubble ? Kind::weights : Kind::backward;
  std::vector<std::int64_t> in_flight(chunks, 0);
  std::size_t with_gradients = 0;
  Kind before = Kind::forward;
  for (const PipelineTask& t : pipeline_order(s, stage, stages, micro_batches)) {
    const auto running = static_cast<std::size_t>(t.chunk);
    const bool is_first = t.kind == Kind::backward && running + with_gradients + 1 == chunks;
    if (t.kind != Kind::weights) {
      const std::size_t all = std::max<std::size_t>(with_gradients, 1) - 1;
      HeldMicroBatches& most = is_first                   ? r.first
                               : t.kind == Kind::backward ? r.backward[all]
                               : with_gradients == 0      ? r.before
                                                          : r.forward[all];
      std::vector<std::int64_t> held = in_flight;
      // The one that runs has gone through the chunks before, and comes back to this one.
      for (std::size_t chunk = 0; chunk < running; ++chunk) --held[chunk];
      if (t.kind == Kind::backward) --held[running];
      if (total(held) > total(most[running])) most[running] = held;
      r.has_forward_between = r.has_forward_between || (t.kind == Kind::forward && with_gradients > 0);
      if (t.kind == Kind::backward && !is_first) {
        const bool forward = before == Kind::forward;
        (forward ? r.has_behind_forward : r.has_behind_backward) = true;
        HeldMicroBatches& of = forward ? r.behind_forward : r.behind_backward;
        if (total(held) > total(of[running])) of[running] = held;
      }
      before = t.kind;
    }
    if (t.kind == Kind::forward) ++in_flight[running];
    if (t.kind == releases) --in_flight[running];
    if (is_first) ++with_gradients;
  }
  return r;
}

VLMEST_INLINE PipelineTime pipeline_time(const Schedule& s, const std::vector<StageTime>& stages,
                                         std::int64_t micro_batches, Seconds send) {
  using Kind = PipelineTask::Kind;
  const auto n = static_cast<int>(stages.size());
  const int chunks = s.chunks, last = n * chunks - 1;
  const bool apart = s.kind == ScheduleKind::zero_bubble;
  std::vector<std::vector<PipelineTask>> orders;
  for (int i = 0; i < n; ++i) orders.push_back(pipeline_order(s, i, n, micro_batches));
  // When each forward and backward of each chunk has ended; below zero: not yet.
  const auto cells = static_cast<std::size_t>(last + 1) * static_cast<std::size_t>(micro_batches);
  std::vector<double> done[2] = {std::vector<double>(cells, -1), std::vector<double>(cells, -1)};
  const auto at = [&](int chunk, std::int64_t m) {
    return static_cast<std::size_t>(chunk) * static_cast<std::size_t>(micro_batches) + static_cast<std::size_t>(m);
  };
  std::vector<double> free(stages.size(), 0);
  std::vector<std::size_t> next(stages.size(), 0);
  double busy = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (int i = 0; i < n; ++i) {
      const auto rank = static_cast<std::size_t>(i);
      for (; next[rank] < orders[rank].size(); ++next[rank], moved = true) {
        const PipelineTask& t = orders[rank][next[rank]];
        const int chunk = t.chunk * n + i;  // of the whole model
        double ready = 0, takes = 0;
        if (t.kind == Kind::forward) {
          takes = stages[rank].forward.value / chunks;
          if (chunk > 0) ready = done[0][at(chunk - 1, t.micro_batch)];
        } else if (t.kind == Kind::backward) {
          takes = (stages[rank].backward.value - (apart ? stages[rank].weights.value : 0)) / chunks;
          ready = chunk < last ? done[1][at(chunk + 1, t.micro_batch)] : done[0][at(chunk, t.micro_batch)];
        } else {
          takes = stages[rank].weights.value / chunks;
        }
        if (ready < 0) break;
        const bool came = t.kind == Kind::forward ? chunk > 0 : t.kind == Kind::backward && chunk < last;
        free[rank] = std::max(free[rank], ready + (came && n > 1 ? send.value : 0)) + takes;
        busy += takes;
        if (t.kind != Kind::weights) done[t.kind == Kind::forward ? 0 : 1][at(chunk, t.micro_batch)] = free[rank];
      }
    }
  }
  PipelineTime r;
  r.all = {*std::max_element(free.begin(), free.end())};
  r.sent = send * static_cast<double>(2 * last * micro_batches);
  r.bubble_share = r.all.value > 0 ? 1 - busy / (r.all.value * n) : 0;
  return r;
}

}  // namespace vlmest::parallel
