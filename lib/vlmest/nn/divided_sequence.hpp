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

/// What a language model is called with: all of each sequence, or this GPU's part of it.
struct LanguageInputs {
  Value embeds;     ///< [B, S, hidden]
  Value positions;  ///< [axes, B, S], or none
  Value mask;       ///< [B, S]
  Value whole;      ///< of a part: the embeddings that it was taken of, which the caller holds as long as the call runs
  Value taken;      ///< of a part: `embeds` once more, which the hook holds as long
  bool divided() const { return static_cast<bool>(whole); }
};

/// The inputs of a language model in scope `s`, to be held while it runs; positions may be none.
inline LanguageInputs own_part(Context& c, ScopeId s, Value embeds, Value positions, const Value& mask) {
  if (!c.sequence || c.b.graph.scopes[static_cast<std::size_t>(s)].part != Part::language)
    return {.embeds = std::move(embeds), .positions = std::move(positions), .mask = mask};
  c.sequence->ran = true;
  const Value& places = c.sequence->places;
  const auto take = [&](const Value& v, int dim) { return eager::index_select(v, dim, places); };
  LanguageInputs own{.whole = std::move(embeds)};
  own.embeds = own.taken = take(own.whole, 1);
  own.mask = take(mask, 1);
  if (positions) own.positions = take(positions, -1);
  return own;
}

}  // namespace vlmest
