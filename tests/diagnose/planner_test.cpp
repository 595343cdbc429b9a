// SPDX-License-Identifier: Apache-2.0
// Plans: what is said to fit fits, the next size up does not, and neither threads nor what is asked first change it.
#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <span>

#include <gtest/gtest.h>

#include <vlmest/diagnose/advise/planner/budget.hpp>
#include <vlmest/diagnose/advise/planner/planner.hpp>
#include <vlmest/unit/error.hpp>
#include <vlmest/unit/parallel_for.hpp>

#include "../sanitizer.hpp"
#include "planning_support.hpp"

namespace vlmest::diagnose::planner_test {
namespace {

using test::device_of;
using test::settings;

PlanRequest request(const std::string& model, double gib, Mode mode, Goal goal, const Plan& plan = {}) {
  return {.asked = settings(model, plan), .device = device_of(gib), .mode = mode, .goal = goal};
}

void expect_sound(const PlanRequest& q, const PlanAnswer& a) {
  Estimator fresh;
  for (const auto* list : {&a.best, &a.front})
    for (const PlannedRun& r : *list) {
      const Outcome o = evaluate(r.candidate.settings, q.device, q.mode, fresh);
      EXPECT_EQ(r.outcome.peak, o.peak);
      EXPECT_EQ(r.outcome.fits, o.fits);
      EXPECT_EQ(r.outcome.time.value, o.time.value);
    }
  for (const PlannedRun& r : a.best) {
    EXPECT_TRUE(r.outcome.fits);
    EXPECT_LE(r.outcome.peak, q.device.usable_bytes);
    if (q.goal == Goal::fastest) continue;
    Settings up = r.candidate.settings;
    turn(up, q.goal, r.reach + 1);
    bool fits = false;
    try {
      fits = evaluate(up, q.device, q.mode, fresh).fits;
    } catch (const Error&) {
    }
    EXPECT_FALSE(fits) << r.reach;
  }
  for (std::size_t i = 1; i < a.best.size(); ++i) {
    const bool worse = a.best[i].candidate.loses() != Loses::nothing;
    EXPECT_GE(worse, a.best[i - 1].candidate.loses() != Loses::nothing);
    if (q.goal != Goal::fastest && worse == (a.best[i - 1].candidate.loses() != Loses::nothing)) {
      EXPECT_LE(a.best[i].reach, a.best[i - 1].reach);
    }
  }
  for (const PlannedRun& x : a.front)
    for (const PlannedRun& y : a.front)
      EXPECT_TRUE(&x == &y || x.outcome.peak < y.outcome.peak || x.outcome.per_sample() < y.outcome.per_sample());
}

TEST(Planner, LargestBatchOfTraining) {
  Plan p;
  p.batch = 2;
  const PlanRequest q = request("llava-onevision-0.5b", 20, Mode::training, Goal::max_batch, p);
  const PlanAnswer a = plan(q);
  ASSERT_FALSE(a.best.empty());
  expect_sound(q, a);
  ASSERT_TRUE(a.asked);
  EXPECT_TRUE(a.asked->candidate.changes.empty());
  EXPECT_GE(a.best.front().reach, a.asked->reach);
  EXPECT_EQ(a.best.front().candidate.loses(), Loses::nothing);
  EXPECT_GT(a.front.size(), 2u);
  EXPECT_EQ(a.vision, "model.vision_tower");
}

TEST(Planner, ThreadsChangeNothing) {
  PlanRequest q = request("llava-onevision-0.5b", 16, Mode::inference, Goal::max_batch);
  q.threads = 1;
  const PlanAnswer one = plan(q);
  std::size_t calls = 0, last = 0, all = 0;
  q.threads = 5;
  q.progress = [&](std::size_t done, std::size_t of) {
    ++calls;
    EXPECT_EQ(done, last + 1);
    last = done;
    all = of;
  };
  const PlanAnswer five = plan(q);
  EXPECT_EQ(calls, five.combinations);
  EXPECT_EQ(last, all);
  EXPECT_EQ(one.estimates, five.estimates);
  ASSERT_EQ(one.best.size(), five.best.size());
  for (std::size_t i = 0; i < one.best.size(); ++i) {
    EXPECT_EQ(one.best[i].reach, five.best[i].reach);
    EXPECT_EQ(one.best[i].candidate.changes, five.best[i].candidate.changes);
    EXPECT_EQ(one.best[i].outcome.peak, five.best[i].outcome.peak);
  }
  expect_sound(q, five);
}

TEST(Planner, OtherGoals) {
  for (const Goal goal : {Goal::max_seq, Goal::max_pixels, Goal::fastest}) {
    SCOPED_TRACE(std::string(name(goal)));
    const PlanRequest q = request("qwen2-vl-2b", 5, Mode::inference, goal);
    const PlanAnswer a = plan(q);
    ASSERT_FALSE(a.best.empty());
    expect_sound(q, a);
  }
  const PlanRequest q = request("llava-onevision-0.5b", 12, Mode::training, Goal::fastest, {.batch = 6});
  const PlanAnswer a = plan(q);
  ASSERT_FALSE(a.best.empty());
  expect_sound(q, a);
  for (const PlannedRun& r : a.best)
    EXPECT_EQ(r.candidate.settings.plan.batch * r.candidate.settings.plan.gradient_accumulation, 6);
}

TEST(Planner, FastestIsThatOfAllCutsThatFit) {
  Plan p;
  p.batch = 6;
  std::size_t short_of_memory = 0;
  for (const double gib : {7.0, 9.0, 14.0, 60.0}) {
    const PlanRequest q = request("llava-onevision-0.5b", gib, Mode::training, Goal::fastest, p);
    const Candidate c{q.asked, {}};
    Estimator e;
    const planner::Found f = planner::fastest(c, q, e);
    std::optional<Outcome> best;
    std::int64_t reach = 0;
    for (const std::int64_t micro : {1, 2, 3, 6}) {
      Settings s = q.asked;
      s.plan.batch = micro;
      s.plan.gradient_accumulation = 6 / micro;
      const Outcome o = evaluate(s, q.device, q.mode, e);
      short_of_memory += !o.fits;
      if (micro == 6) {
        ASSERT_TRUE(f.as_is);
        EXPECT_EQ(f.as_is->outcome.peak, o.peak);
        EXPECT_EQ(f.as_is->outcome.fits, o.fits);
      }
      if (!o.fits || (best && o.per_sample() >= best->per_sample())) continue;
      best = o;
      reach = micro;
    }
    ASSERT_EQ(f.run.has_value(), best.has_value()) << gib;
    if (!best) continue;
    EXPECT_EQ(f.run->reach, reach) << gib;
    EXPECT_EQ(f.run->outcome.peak, best->peak);
    EXPECT_EQ(f.run->outcome.time.value, best->time.value);
    EXPECT_TRUE(f.run->outcome.fits);
  }
  EXPECT_GT(short_of_memory, 0u);
  EXPECT_LT(short_of_memory, 16u);
}

TEST(Planner, TrainsAdaptersWhereFullTrainingDoesNotFit) {
  Plan p;
  p.text = 64;
  PlanRequest q = request("smolvlm-256m", 1.5, Mode::training, Goal::max_batch, p);
  const PlanAnswer a = plan(q);
  ASSERT_FALSE(a.best.empty());
  EXPECT_TRUE(a.adapters);
  EXPECT_FALSE(a.asked);
  expect_sound(q, a);
  for (const PlannedRun& r : a.best) {
    EXPECT_EQ(r.candidate.settings.plan.lora.rank, 16);
    EXPECT_TRUE(r.candidate.changes.front()->name == "lora-16" || r.candidate.changes.front()->name == "qlora");
  }
  // What trains a part alone is asked for as it is, and so are adapters.
  q.asked.plan.trainable.vision = false;
  EXPECT_FALSE(plan(q).adapters);
  q = request("smolvlm-256m", 8, Mode::training, Goal::max_batch, p);
  EXPECT_FALSE(plan(q).adapters);
}

TEST(Planner, SaysWhereNothingFits) {
  const PlanAnswer a = plan(request("llava-1.5-7b", 4, Mode::training, Goal::max_batch));
  EXPECT_TRUE(a.best.empty());
  EXPECT_FALSE(a.asked);
  EXPECT_FALSE(a.front.empty());
  EXPECT_THROW(plan(request("llava-1.5-7b", 80, Mode::inference, Goal::max_pixels)), Error);
  EXPECT_THROW(plan(request("qwen2-vl-2b", 80, Mode::inference, Goal::max_pixels, {.images = 0})), Error);
}

TEST(Planner, MoreMemoryReachesAtLeastAsFar) {
  std::int64_t last = 0;
  constexpr std::array sizes{8.0, 9.0, 12.0, 24.0};
  for (std::size_t i = 0; i < sizes.size(); i += one_in(3)) {
    const double gib = sizes[i];
    const PlanAnswer a = plan(request("llava-onevision-0.5b", gib, Mode::inference, Goal::max_batch));
    ASSERT_FALSE(a.best.empty());
    EXPECT_GE(a.best.front().reach, last) << gib;
    last = a.best.front().reach;
  }
}

TEST(Planner, LargestThatFitsLooksBeyondSmallSteps) {
  // Memory n, but for even n, which take 3 less: 100 fits, 99 does not, and nothing from 101 on does.
  int tries = 0;
  const auto bytes = [](std::int64_t n) { return n % 2 == 0 ? n - 3 : n; };
  const auto attempt = [&](std::int64_t n) {
    ++tries;
    return Fit{bytes(n) <= 97, {{static_cast<double>(bytes(n))}}};
  };
  for (const std::int64_t first : {1, 50, 97, 99, 100, 1000})
    EXPECT_EQ(largest_that_fits(1, 100000, first, 97, 4, attempt), 100) << first;
  EXPECT_LT(tries, 6 * 30);
  EXPECT_EQ(largest_that_fits(1, 40, 7, 97, 4, attempt), 40);
  EXPECT_EQ(largest_that_fits(101, 200, 150, 97, 4, attempt), std::nullopt);
  EXPECT_EQ(largest_that_fits(1, 1, 1, 97, 4, attempt), 1);
  // Nothing known but yes and no.
  for (const std::int64_t most : {1, 2, 77, 78, 1 << 20})
    EXPECT_EQ(largest_that_fits(1, most, 1, 0, 0,
                                [](std::int64_t n) {
                                  return Fit{n <= 77, {}};
                                }),
              std::min<std::int64_t>(most, 77));
}

TEST(Planner, LargestThatFitsFollowsValuesThatFitLongerThanOthers) {
  // One of 8 values fits a thousand times as long as the others.
  std::set<std::int64_t> tried;
  const auto attempt = [&](std::int64_t n) {
    tried.insert(n);
    return Fit{n <= 100 || (n % 8 == 5 && n <= 100000), {}};
  };
  EXPECT_EQ(largest_that_fits(1, 1 << 24, 50, 0, 8, attempt), 99997);
  EXPECT_LT(tried.size(), 400u);
  EXPECT_EQ(largest_that_fits(1, 90004, 50, 0, 8, attempt), 89997);
}

TEST(Planner, LargestThatFitsGuessesByThePhaseThatReachesTheLimitFirst) {
  // A phase that hardly grows is the largest one up to 100: a line through it alone would lead to a million.
  std::vector<std::int64_t> tried;
  const auto attempt = [&](std::int64_t n) {
    tried.push_back(n);
    const double still = 1000 + 0.001 * static_cast<double>(n), grows = 10 * static_cast<double>(n);
    return Fit{std::max(still, grows) <= 2005, {{still, grows}}};
  };
  EXPECT_EQ(largest_that_fits(1, 1 << 30, 1, 2005, 3, attempt), 200);
  EXPECT_LE(*std::max_element(tried.begin(), tried.end()), 400);
  EXPECT_LE(tried.size(), 10u);
  std::sort(tried.begin(), tried.end());
  EXPECT_EQ(std::adjacent_find(tried.begin(), tried.end()), tried.end());  // none twice
}

TEST(Planner, TriesGrowNoFasterThanAllowedWhileAllOfThemFit) {
  // What grows is hidden up to 50, so that lines through the first tries lead beyond a million.
  std::int64_t most = 0;
  const auto attempt = [&](std::int64_t n) {
    most = std::max(most, n);
    const double bytes =
        1000 + 0.001 * static_cast<double>(n) + 10 * static_cast<double>(std::max<std::int64_t>(n - 50, 0));
    return Fit{bytes <= 2005, {{bytes}}};
  };
  EXPECT_EQ(largest_that_fits(1, 1 << 30, 1, 2005, 3, attempt, 8), 150);
  EXPECT_LE(most, 8 * 128);
  most = 0;
  EXPECT_EQ(largest_that_fits(1, 1 << 30, 1, 2005, 3, attempt), 150);
  EXPECT_GT(most, 8 * 128);
}

TEST(Planner, FrontHoldsWhatNothingBeats) {
  const std::vector<std::pair<int, double>> points{{3, 1.0}, {1, 5.0}, {2, 5.0}, {2, 3.0},
                                                   {1, 5.0}, {4, 1.0}, {5, 0.5}};
  EXPECT_EQ(pareto_front(points), (std::vector<std::size_t>{1, 3, 0, 6}));
}

TEST(Planner, FailuresOfWorkersArrive) {
  const auto fail = [](int&, std::size_t i) {
    if (i == 7) throw Error("worker", "failed");
  };
  std::array<int, 4> states{};
  EXPECT_THROW(parallel_for(100, std::span<int>(states), fail, [](std::size_t) {}), Error);
  parallel_for(0, std::span<int>(states), fail, [](std::size_t) {});
}

TEST(Planner, BudgetAddsUp) {
  Plan p;
  p.batch = 2;
  const Settings s = settings("qwen2-vl-2b", p);
  const Device device = device_of(12);
  Estimator e;
  const MemoryBudget b = budget(s, device, e);
  EXPECT_EQ(b.left, device.usable_bytes - b.weights - b.inputs - b.working());
  EXPECT_GT(b.vision, Bytes{});
  EXPECT_GT(b.language, Bytes{});
  const Estimate estimate = e(s.vlm, s.plan, device);
  EXPECT_NEAR(b.weights / Bytes(1 << 20), estimate.inference.weights / Bytes(1 << 20), 1);
  EXPECT_NEAR(b.kv_token / Bytes(1), estimate.inference.kv_cache / Bytes(2 * estimate.sequences.seq), 1);
  // That many tokens fit: the rest of the memory holds them.
  EXPECT_LE(b.kv_token * b.kv_tokens, b.left);
  EXPECT_GT(b.kv_token * (b.kv_tokens + 1), b.left);
  EXPECT_LT(budget(s, device_of(2), e).left, Bytes{});
}

}  // namespace
}  // namespace vlmest::diagnose::planner_test
