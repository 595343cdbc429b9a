// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/diagnose/evidence/cut_offs.hpp>
#include <vlmest/diagnose/evidence/text/words.hpp>
#include <vlmest/diagnose/verdict/name_by_widths.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE void name_by_widths(Verdict& v, const Failure& f, const ToldModel& told) {
  const bool parameters = v.cause == Cause::weights || v.cause == Cause::optimizer_state || v.cause == Cause::gradients;
  if (v.tensor || !parameters || f.made || !f.tensor || !f.telling || f.whole_graph || f.program) return;
  const std::vector<DescribedTensor> all = weights_of_size(*f.tensor, v.cause, told);
  if (all.empty() || all.size() > 3) return;
  // Many weights of models that are not in the table lie within the 2 MiB of a figure: where neither the model's size
  // is told nor anything but words names the cause, it is no more than a possibility.
  const bool named = all.size() == 1 && (told.parameters > 0 || cut_off::named.reached(v.confidence));
  v.why += named ? " Its size is that of the " : " Its size may be that of the ";
  for (const DescribedTensor& t : all)
    v.why += (&t == &all.front() ? "" : ", or of the ") + t.name + ", " + to_string(t.shape) + " in " + t.dtype +
             " = " + in_words(t.bytes);
  v.why += ".";
  if (!named) return;
  v.tensor = all.front();
  if (v.cause == Cause::optimizer_state) {
    v.tensor->name = "state or temporary of an optimizer, of the " + v.tensor->name;
    v.tensor->role = Role::optimizer_state;
  } else if (v.cause == Cause::gradients) {
    v.tensor->name = "gradient of the " + v.tensor->name;
    v.tensor->role = Role::gradient;
  }
}

}  // namespace vlmest::diagnose
