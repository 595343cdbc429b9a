// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include <vlmest/nn/divided_sequence.hpp>
#include <vlmest/nn/sequence.hpp>
#include <vlmest/nn/stack/registry.hpp>

/// What a training step needs to run a part of each sequence.
namespace vlmest {

/// Of a plan that asks for it: an input of the step. Throws Error where that does not run so.
inline std::optional<DividedSequence> divided_sequence(Context& c, const Sequences& s) {
  const SequencePart& p = c.plan.sequence_part;
  if (p.parts <= 1) return std::nullopt;
  const auto refuse = [](const std::string& why, const std::string& hint) { throw Error("layout.mesh", why, hint); };
  if (!c.stack().divides_layers)
    refuse("how this runtime divides sequences is not modelled",
           "use plan.runtime=" + std::string(name(first_with(&StackTraits::divides_layers))));
  if (c.plan.attention != AttentionKind::sdpa)
    refuse("torch's context parallelism takes the place of scaled_dot_product_attention, not of " +
               std::string(attn_implementation(c.plan.attention)),
           "use plan.attention=sdpa");
  if (s.padded())
    refuse("context parallelism knows no padding, and these sequences have several lengths",
           "give images of one size, or leave cp out");
  // _HeadTailLoadBalancer cuts a sequence into two pieces for each GPU.
  const std::int64_t pieces = std::int64_t{2} * p.parts;
  if (s.seq % pieces != 0)
    refuse("a sequence of " + std::to_string(s.seq) + " tokens is not cut into " + std::to_string(pieces) +
               " equal pieces",
           "give a length that is a multiple, for example plan.seq=" +
               std::to_string((s.seq + pieces - 1) / pieces * pieces));
  const std::int64_t part = s.seq / p.parts;
  DividedSequence r{.at = {p.parts, p.part}};
  r.places = c.b.existing("places", Role::input, DType::int64, {part});
  r.targets = c.b.existing("shift_labels", Role::input, DType::int64, {s.batch, part});
  r.labels = c.b.existing("labels", Role::input, DType::int64, {s.batch, part});
  return r;
}

/// Throws Error for a model whose language model took no part.
inline void check_ran(const DividedSequence& s) {
  if (!s.ran)
    throw Error("layout.mesh", "context parallelism of this model is not modelled",
                "leave cp out: dp=N gives each GPU sequences of its own");
}

}  // namespace vlmest
