// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <vector>

#include <bench/fit/least_squares.hpp>

#include <vlmest/analysis/attention_time.hpp>

namespace vlmest::fit {

struct AttentionSample {
  Attention op;
  Seconds time;
};

/// The parameters of measured fused attention. A parameter that no sample depends on (no mask, no causal one, none with
/// few queries) keeps its first value.
inline AttentionEfficiency fit_attention(const std::vector<AttentionSample>& samples, const Device& d,
                                         AttentionEfficiency first = {}) {
  if (samples.size() < 16) return first;
  const auto unpack = [&](const Eigen::VectorXd& p) {
    AttentionEfficiency e = first;
    std::size_t i = 0;
    for (Seconds AttentionEfficiency::*s :
         {&AttentionEfficiency::start, &AttentionEfficiency::step64, &AttentionEfficiency::step128,
          &AttentionEfficiency::step256, &AttentionEfficiency::mask, &AttentionEfficiency::mask_odd,
          &AttentionEfficiency::block, &AttentionEfficiency::combine})
      e.*s = {p[static_cast<Eigen::Index>(i++)] * 1e-6};
    e.longest = p[8];
    e.bandwidth = std::min(1.0, p[9]);
    return e;
  };
  Eigen::VectorXd p(10);
  p << first.start.us(), first.step64.us(), first.step128.us(), first.step256.us(), first.mask.us(),
      first.mask_odd.us(), first.block.us(), first.combine.us(), first.longest, first.bandwidth;
  const auto n = static_cast<Eigen::Index>(samples.size());
  return unpack(least_squares(p, n, [&](const Eigen::VectorXd& q, Eigen::VectorXd& out) {
    const AttentionEfficiency e = unpack(q);
    for (Eigen::Index i = 0; i < n; ++i) {
      const AttentionSample& s = samples[static_cast<std::size_t>(i)];
      out[i] = std::log(attention_time(s.op, d, e).time.value / s.time.value);
    }
  }));
}

}  // namespace vlmest::fit
