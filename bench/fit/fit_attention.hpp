// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <bench/fit/least_squares.hpp>

#include <vlmest/analysis/attention_time.hpp>

namespace vlmest::fit {

struct AttentionSample {
  Attention op;
  Seconds time;
};

namespace detail {

/// A parameter to be found, in a unit of which it has neither very many nor very few, and between which values.
struct Fitted {
  double* value;
  double unit = 1, least = 0, most = 1e30;
};
inline Fitted us(Seconds& s) { return {&s.value, 1e-6}; }
inline Fitted ratio(double& r, double most = 100) { return {&r, 1, 1e-3, most}; }

inline std::vector<Fitted> loops_of(AttentionEfficiency& e) {
  return {us(e.start),      us(e.step64),          us(e.step128),      us(e.step256),
          us(e.ragged),     us(e.block),           us(e.diagonal),     ratio(e.longest),
          ratio(e.overlap), ratio(e.bandwidth, 1), ratio(e.sustained), {&e.boost.value, 1e-3, 1e-4, 0.5}};
}
inline std::vector<Fitted> masks_of(AttentionEfficiency& e) {
  return {us(e.mask64), us(e.mask128), us(e.mask256), us(e.mask_odd)};
}
inline std::vector<Fitted> decode_of(AttentionEfficiency& a) {
  DecodeEfficiency& e = a.decode;
  return {us(e.start),
          us(e.step64),
          us(e.step128),
          us(e.step256),
          us(e.block),
          us(e.combine),
          {&e.partial.value, 1e-12},
          ratio(e.shared),
          ratio(e.bandwidth, 1),
          ratio(e.overlap)};
}

/// The parameters of `list` for which the samples are met best; one that no sample depends on keeps its first value.
inline AttentionEfficiency fit_some(const std::vector<AttentionSample>& samples, const Device& d,
                                    const AttentionEfficiency& first,
                                    std::vector<Fitted> (*list)(AttentionEfficiency&)) {
  AttentionEfficiency e = first;
  const std::vector<Fitted> fitted = list(e);
  const auto size = static_cast<Eigen::Index>(fitted.size()), n = static_cast<Eigen::Index>(samples.size());
  if (n < 2 * size) return first;
  const auto unpack = [&](const Eigen::VectorXd& p) {
    for (Eigen::Index i = 0; i < size; ++i) {
      const Fitted& f = fitted[static_cast<std::size_t>(i)];
      *f.value = std::clamp(p[i] * f.unit, f.least, f.most);
    }
  };
  Eigen::VectorXd p(size);
  for (Eigen::Index i = 0; i < size; ++i) {
    const Fitted& f = fitted[static_cast<std::size_t>(i)];
    p[i] = *f.value / f.unit;
  }
  unpack(least_squares(p, n, [&](const Eigen::VectorXd& q, Eigen::VectorXd& out) {
    unpack(q);
    for (Eigen::Index i = 0; i < n; ++i) {
      const AttentionSample& s = samples[static_cast<std::size_t>(i)];
      out[i] = std::log(attention_time(s.op, d, e).time.value / s.time.value);
    }
  }));
  return e;
}

}  // namespace detail

/// The parameters of measured fused attention: those of the loops from attention without a mask, then those of masks,
/// and those of single queries. Parameters of which there are too few samples keep their first values.
inline AttentionEfficiency fit_attention(const std::vector<AttentionSample>& samples, const Device& d,
                                         AttentionEfficiency first = {}) {
  std::vector<AttentionSample> plain, masked, decode;
  for (const AttentionSample& s : samples)
    (s.op.q_len == 1 ? decode : s.op.mask > Bytes{} ? masked : plain).push_back(s);
  first = detail::fit_some(plain, d, first, detail::loops_of);
  first = detail::fit_some(masked, d, first, detail::masks_of);
  return detail::fit_some(decode, d, first, detail::decode_of);
}

}  // namespace vlmest::fit
