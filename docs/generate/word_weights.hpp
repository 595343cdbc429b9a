// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

/// How much each word of a report speaks for each cause: a multinomial logistic regression over settled reports.
///
/// A report is the vector of its counted words, each with the logarithm of how few reports have it, at a length of
/// `length`. Weights minimise the mean of -log p(cause) plus l2/2n times their squares; a bias for each cause is free.
/// Nesterov's accelerated gradient, a fixed number of steps: the same on every machine.
namespace generate {

struct Report {
  std::string cause;  ///< empty: not settled, or with too few others
  std::size_t collection = 0;
  std::vector<std::string> words;
};

struct WordWeights {
  static constexpr double length = 3, l2 = 0.3;
  static constexpr int reports_at_least = 3, steps = 150;

  std::vector<std::string> causes;
  std::vector<double> bias;
  std::size_t reports = 0;
  struct Word {
    int in = 0;  ///< reports
    std::vector<double> weights;
  };
  std::map<std::string, Word> words;

  double rarity(const Word& w) const { return std::log(static_cast<double>(reports) / w.in); }

  /// Probabilities by cause.
  std::vector<double> read(const std::vector<std::string>& of) const {
    double squares = 0;
    std::vector<double> sum(causes.size(), 0.0);
    for (const std::string& w : of)
      if (const auto found = words.find(w); found != words.end()) {
        const double r = rarity(found->second);
        squares += r * r;
        for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += r * found->second.weights[k];
      }
    const double by = squares > 0 ? length / std::sqrt(squares) : 0;
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] = by * sum[k] + bias[k];
    return shares(std::move(sum));
  }

  static std::vector<double> shares(std::vector<double> z) {
    const double most = *std::max_element(z.begin(), z.end());
    double sum = 0;
    for (double& x : z) {
      x = std::exp(x - most);
      sum += x;
    }
    for (double& x : z) x /= sum;
    return z;
  }
};

/// A word that at least three reports have and not half of all.
inline void choose_words(const std::vector<const Report*>& reports, WordWeights& w) {
  std::map<std::string, int> in;
  for (const Report* r : reports)
    for (const std::string& word : r->words) ++in[word];
  for (const auto& [word, n] : in)
    if (n >= WordWeights::reports_at_least && 2 * n < static_cast<int>(reports.size()))
      w.words[word] = {n, std::vector<double>(w.causes.size(), 0.0)};
}

inline WordWeights weigh(const std::vector<const Report*>& all) {
  WordWeights w;
  std::vector<const Report*> reports;
  std::set<std::string> causes;
  for (const Report* r : all)
    if (!r->cause.empty()) {
      reports.push_back(r);
      causes.insert(r->cause);
    }
  w.causes.assign(causes.begin(), causes.end());
  w.reports = reports.size();
  choose_words(reports, w);
  const std::size_t n = reports.size(), kinds = w.causes.size();

  // Rows as lists of a word's number and its part.
  std::map<std::string, std::size_t> number;
  std::vector<double> rarity;
  for (const auto& [word, of] : w.words) {
    number.emplace(word, rarity.size());
    rarity.push_back(w.rarity(of));
  }
  std::vector<std::vector<std::pair<std::size_t, double>>> rows(n);
  std::vector<std::size_t> cause(n);
  for (std::size_t i = 0; i < n; ++i) {
    double squares = 0;
    for (const std::string& word : reports[i]->words)
      if (const auto found = number.find(word); found != number.end()) {
        rows[i].emplace_back(found->second, rarity[found->second]);
        squares += rarity[found->second] * rarity[found->second];
      }
    for (auto& [j, x] : rows[i]) x *= WordWeights::length / std::sqrt(squares);
    cause[i] = static_cast<std::size_t>(std::lower_bound(w.causes.begin(), w.causes.end(), reports[i]->cause) -
                                        w.causes.begin());
  }

  // The largest eigenvalue of the words' products bounds how fast the gradient turns.
  double largest = 0;
  std::vector<double> v(number.size(), 1.0);
  for (int step = 0; step < 30; ++step) {
    std::vector<double> next(v.size(), 0.0);
    for (const auto& row : rows) {
      double dot = 0;
      for (const auto& [j, x] : row) dot += x * v[j];
      for (const auto& [j, x] : row) next[j] += x * dot;
    }
    double squares = 0;
    for (const double x : next) squares += x * x;
    largest = std::sqrt(squares);
    for (std::size_t j = 0; j < v.size(); ++j) v[j] = next[j] / largest;
  }
  const double count = static_cast<double>(n);
  const double rate = 1 / (0.5 * largest / count + WordWeights::l2 / count);

  std::vector<double> weights(number.size() * kinds, 0.0), at = weights;
  std::vector<double> bias(kinds, 0.0), bias_at = bias;
  double t = 1;
  for (int step = 0; step < WordWeights::steps; ++step) {
    std::vector<double> slope(weights.size()), bias_slope(kinds, 0.0);
    for (std::size_t j = 0; j < slope.size(); ++j) slope[j] = WordWeights::l2 / count * at[j];
    for (std::size_t i = 0; i < n; ++i) {
      std::vector<double> z = bias_at;
      for (const auto& [j, x] : rows[i])
        for (std::size_t k = 0; k < kinds; ++k) z[k] += x * at[j * kinds + k];
      z = WordWeights::shares(std::move(z));
      z[cause[i]] -= 1;
      for (double& x : z) x /= count;
      for (const auto& [j, x] : rows[i])
        for (std::size_t k = 0; k < kinds; ++k) slope[j * kinds + k] += x * z[k];
      for (std::size_t k = 0; k < kinds; ++k) bias_slope[k] += z[k];
    }
    const double next_t = (1 + std::sqrt(1 + 4 * t * t)) / 2, on = (t - 1) / next_t;
    const auto move = [&](std::vector<double>& x, std::vector<double>& x_at, const std::vector<double>& s) {
      for (std::size_t j = 0; j < x.size(); ++j) {
        const double next = x_at[j] - rate * s[j];
        x_at[j] = next + on * (next - x[j]);
        x[j] = next;
      }
    };
    move(weights, at, slope);
    move(bias, bias_at, bias_slope);
    t = next_t;
  }
  w.bias = bias;
  for (auto& [word, of] : w.words)
    for (std::size_t k = 0; k < kinds; ++k) of.weights[k] = weights[number[word] * kinds + k];
  return w;
}

}  // namespace generate
