// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/advise/action/actions_inputs.hpp>
#include <vlmest/nn/sequence_layout.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace action {

VLMEST_INLINE std::vector<Settings> fewer_images(const Subject& s) {
  std::vector<Settings> r;
  for (std::int64_t n = s.plan().images - 1; n > 0; --n) {
    Settings less = s.now;
    less.plan.images = n;
    keep_text(s.now, less);
    r.push_back(std::move(less));
  }
  return r;
}

VLMEST_INLINE std::vector<Settings> fewer_frames(const Subject& s) {
  std::vector<Settings> r;
  if (!s.plan().video) return r;
  const auto tokens = [](const Settings& with) { return make_sequences(with.vlm, with.plan).video_tokens; };
  std::int64_t least = tokens(s.now);
  for (std::int64_t k = lever_steps - 1; k > 0; --k) {
    Settings less = s.now;
    VideoPlan& v = *less.plan.video;
    if (v.frames)
      v.frames = *v.frames * k / lever_steps;
    else
      v.fps = *video_source(s.now.vlm, v).take * static_cast<double>(k) / lever_steps;
    try {
      const std::int64_t n = tokens(less);
      if (n >= least) continue;
      least = n;
    } catch (const Error&) {
      continue;  // a number that the processor refuses
    }
    keep_text(s.now, less);
    r.push_back(std::move(less));
  }
  return r;
}

VLMEST_INLINE std::string fewer_frames_line(const Settings& after) {
  const VideoPlan& v = *after.plan.video;
  if (v.frames) return "frames = frames[:" + std::to_string(*v.frames) + "]  # or every nth, of each video";
  std::string fps = std::to_string(*v.fps);
  fps.erase(fps.find_last_not_of('0') + 1);
  if (fps.back() == '.') fps.pop_back();
  return "processor(..., do_sample_frames=True, fps=" + fps + ")";
}

VLMEST_INLINE std::vector<Settings> shorter(const Subject& s) {
  std::vector<Settings> r;
  const Sequences now = make_sequences(s.now.vlm, s.plan());
  std::int64_t last = now.text;
  for (std::int64_t k = lever_steps - 1; k > 0; --k) {
    const std::int64_t text = now.text * k / lever_steps;
    if (text >= last || text < 1) continue;
    last = text;
    Plan& p = r.emplace_back(s.now).plan;
    p.text = text;
    if (p.seq) p.seq = now.visual_tokens() + text;
  }
  return r;
}

VLMEST_INLINE std::vector<Settings> fewer_new_tokens(const Subject& s) {
  std::vector<Settings> r;
  if (s.training()) return r;
  for (std::int64_t k = lever_steps - 1, last = s.plan().new_tokens; k > 0; --k)
    if (const std::int64_t n = s.plan().new_tokens * k / lever_steps; n > 0 && n < last)
      last = r.emplace_back(s.now).plan.new_tokens = n;
  return r;
}

VLMEST_INLINE std::vector<Settings> micro_batches(const Subject& s) {
  std::vector<Settings> r;
  if (!s.training()) return r;
  for (std::int64_t n = s.plan().batch - 1; n >= least_batch(s.plan()); --n)
    if (s.plan().batch % n == 0) {
      Plan& p = r.emplace_back(s.now).plan;
      p.batch = n;
      p.gradient_accumulation = checked_mul(p.gradient_accumulation, s.plan().batch / n);
    }
  return r;
}

VLMEST_INLINE std::vector<Settings> smaller_batches(const Subject& s) {
  std::vector<Settings> r;
  if (s.training()) return r;
  // Every batch of a small one, 64 steps of a large one.
  const std::int64_t batch = s.plan().batch, steps = std::min<std::int64_t>(batch, 64);
  for (std::int64_t k = steps - 1; k > 0; --k)
    if (batch * k / steps >= least_batch(s.plan())) r.emplace_back(s.now).plan.batch = batch * k / steps;
  return r;
}

}  // namespace action
}  // namespace vlmest::diagnose
