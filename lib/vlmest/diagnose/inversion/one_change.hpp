// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <vlmest/diagnose/inversion/read_failure.hpp>
#include <vlmest/diagnose/inversion/solve.hpp>
#include <vlmest/nn/vlm.hpp>
#include <vlmest/plan/plan.hpp>

/// Settings that differ from the ones given by one flag.
namespace vlmest::diagnose {

struct OneChange {
  std::string flag;  ///< what it is called on the command line
  Plan plan;
  Mode mode = Mode::inference;
};

namespace one_change {

class List {
 public:
  List(const Plan& plan, Mode mode) : plan_(plan), mode_(mode) {}
  /// Adds the plan with a change, where it differs.
  template <class Change>
  void add(bool applies, std::string flag, Change&& change) {
    if (!applies) return;
    OneChange& c = changes.emplace_back(OneChange{std::move(flag), plan_, mode_});
    change(c.plan);
  }
  std::vector<OneChange> changes;

 private:
  const Plan& plan_;
  Mode mode_;
};

inline std::string number(std::int64_t n) { return std::to_string(n); }

/// What a solution changes.
OneChange of(const Solution& s, const Plan& plan, Mode mode);

}  // namespace one_change

/// The flags that people leave out or get wrong, the commonest first: those of memory that a training script sets
/// elsewhere, how attention and logits are computed, types, sizes by a factor of two.
std::vector<OneChange> one_changes(const Plan& p, Mode mode);

/// The changes that make tensors which the settings do not have, rather than other sizes of them: scores, activations
/// that are kept, logits of every position, fp32. Where it is not known how much was allocated, a size alone would be
/// explained by too many others.
inline bool makes_other_tensors(const OneChange& c) {
  return c.flag == "--attention eager" || c.flag == "--checkpointing none" || c.flag == "--logits all" ||
         c.flag == "--dtype fp32";
}

/// Whether a reading explains the failure: a tensor of the size is asked for over the memory that was allocated, or,
/// where that is not known, in a run that needs more than there is.
bool explains(const Failure& f, const Reading& r);

/// A change that explains the failure, with the run as it reads with it.
struct Explaining {
  OneChange change;
  Reading reading;
};

/// The changes, of those given, with which a tensor of the size that failed is asked for over the memory that was
/// allocated, within the estimate's error; those whose tensor agrees with the stack best first.
std::vector<Explaining> explaining(const Vlm& vlm, const std::vector<OneChange>& changes, const Device& device,
                                   const Failure& f, Estimator& estimator);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/inversion/impl/one_change.hpp>
#endif
