// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include <vlmest/nn/context.hpp>
#include <vlmest/unit/error.hpp>

/// Context parallelism: GPUs that run the same sequences, each its part of them in the language model. Towers and the
/// scattering of features see whole sequences on every GPU; a hook before the language model takes this one's places
/// of embeddings, positions and mask (index_select), attention goes round (graph/eager/ring_attention.hpp), and the
/// loss is that of these places, whose targets were shifted before they were taken, as transformers' Trainer hands
/// them over (trainer.py, _prepare_context_parallel_inputs: shift_labels).
namespace vlmest {

/// A part of the sequences of a training step.
struct DividedSequence {
  eager::RingRank at;
  Value places;      ///< int64[S / parts]: which
  Value targets;     ///< int64[B, S / parts]: the token after each
  Value labels;      ///< int64[B, S / parts]: handed over beside them
  bool ran = false;  ///< a language model took its part
};

/// Throws Error from what has no meaning for a part of a sequence.
inline void refuse_part(const Context& c, const char* what) {
  if (c.sequence)
    throw Error("layout.mesh",
                std::string("context parallelism knows causal attention over everything alone, not ") + what,
                "leave cp out: dp=N gives each GPU sequences of its own");
}

/// Whether the current scope is where sequences are divided: in the language model.
inline bool in_part(const Context& c) {
  return c.sequence && c.b.graph.scopes[static_cast<std::size_t>(c.b.scope())].part == Part::language;
}

/// Calls a language model in scope `s`, run(embeds, positions, mask), with its part of each sequence, or with all of
/// it where sequences are whole; positions may be empty. The hook's results live as long as the call, as do the
/// caller's.
template <class Run>
Value on_own_part(Context& c, ScopeId s, Value embeds, Value positions, const Value& mask, Run&& run) {
  if (!c.sequence || c.b.graph.scopes[static_cast<std::size_t>(s)].part != Part::language)
    return run(std::move(embeds), std::move(positions), mask);
  c.sequence->ran = true;
  const Value& places = c.sequence->places;
  const auto own = [&](const Value& v, int dim) { return eager::index_select(v, dim, places); };
  const Value part = own(embeds, 1), part_mask = own(mask, 1);
  const Value part_positions = positions ? own(positions, -1) : Value();
  return run(part, part_positions, part_mask);
}

}  // namespace vlmest
