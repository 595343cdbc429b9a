// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include <vlmest/diagnose/evidence/text/log_prefix.hpp>
#include <vlmest/diagnose/evidence/text/words.hpp>
#include <vlmest/diagnose/failure/stack_cause.hpp>
#include <vlmest/diagnose/verdict/confidence.hpp>
#include <vlmest/diagnose/verdict/judge_program.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace program_verdict {

/// Words of an operator's path in lower case: names of JAX's primitives and of Flax' modules.
struct OpWord {
  std::string_view word;
  Cause cause;
};
inline constexpr auto before_shape = std::to_array<OpWord>({
    // What initial values are drawn from (jax/_src/random.py).
    {"erf_inv", Cause::weights},
    {"random_bits", Cause::weights},
    {"threefry", Cause::weights},
    {"_normal", Cause::weights},
    {"_uniform", Cause::weights},
    {"all_gather", Cause::weights},
    {"cross_entropy", Cause::logits},
    {"log_softmax", Cause::logits},
    {"logits", Cause::logits},
    {"lm_head", Cause::logits},
});
inline constexpr auto behind_shape = std::to_array<OpWord>({
    {"cache", Cause::kv_cache},
    {"vision", Cause::vision_tiles},
    {"visual", Cause::vision_tiles},
    {"image", Cause::vision_tiles},
    {"siglip", Cause::vision_tiles},
    {"patch", Cause::vision_tiles},
});

template <class Words>
Cause first_of(const Words& words, std::string_view op) {
  const auto found =
      std::find_if(words.begin(), words.end(), [&](const OpWord& w) { return log_prefix::has(op, w.word); });
  return found == words.end() ? Cause::unknown : found->cause;
}

inline bool is_training(std::string_view op) {
  return log_prefix::has(op, "jvp(") || log_prefix::has(op, "train_step") || log_prefix::has(op, "update_step");
}

/// "f32[19298688,2]" in vlmest's words, or the size alone.
inline std::string buffer_words(const XlaBuffer& b) {
  return b.shape.rank() == 0 ? in_words(b.size.value)
                             : to_string(b.shape) + " in " + b.dtype + ", " + in_words(b.size.value);
}

}  // namespace program_verdict

VLMEST_INLINE Cause cause_of(const XlaBuffer& b, bool trains) {
  using namespace program_verdict;
  const std::string op = log_prefix::lower_case(b.op);
  // A weight in another type than it is given in.
  if (log_prefix::has(op, "convert_element_type") && log_prefix::has(b.label, "convert(param")) return Cause::weights;
  if (const Cause c = first_of(before_shape, op); c != Cause::unknown) return c;
  // Of two dimensions it may as well be a weight.
  if (const Cause c = shape_cause(b.shape); c != Cause::unknown && b.shape.rank() > 2) return c;
  // What a training keeps of a tower is activations, as of any layer.
  const Cause c = trains ? Cause::unknown : first_of(behind_shape, op);
  return c == Cause::unknown ? Cause::activations : c;
}

VLMEST_INLINE std::optional<Verdict> judge_program(const Failure& f) {
  using namespace program_verdict;
  if (!f.compiled) return std::nullopt;
  const XlaProgram& p = *f.compiled;
  const bool trains = (f.told && f.told->mode == Mode::training) ||
                      std::any_of(p.buffers.begin(), p.buffers.end(),
                                  [](const XlaBuffer& b) { return is_training(log_prefix::lower_case(b.op)); });
  Verdict v{.confidence = confidence(Basis::compiled_program)};
  if (p.arguments && p.temporaries)
    v.why = "the program that XLA compiled is given " + in_words(p.arguments->value) + " and makes " +
            in_words(p.temporaries->value) + " on the way.";
  if (p.arguments && p.temporaries && p.arguments->value > p.temporaries->value) {
    v.cause = trains ? Cause::optimizer_state : Cause::weights;
    v.why += trains ? " What a training step is given are weights and an optimizer's states, most of it the latter."
                    : " What it is given are its weights first.";
  } else if (!p.buffers.empty()) {
    v.cause = cause_of(p.buffers.front(), trains);
  } else {
    return std::nullopt;
  }
  if (p.buffers.empty()) return v;
  const XlaBuffer& b = p.buffers.front();
  v.tensor = DescribedTensor{.name = b.op.substr(b.op.rfind('/') + 1),
                             .scope = b.op,
                             .role = Role::activation,
                             .shape = b.shape,
                             .dtype = b.dtype,
                             .bytes = b.size.value};
  v.why += (v.why.empty() ? "The" : " The") + std::string(" largest buffer that it makes is ") + buffer_words(b) +
           (b.op.empty() ? "." : ", of " + b.op + ".");
  if (b.padding >= 2)
    v.why +=
        " That is " + std::to_string(std::llround(b.padding)) +
        " times what its elements take: a TPU stores tiles of 8 x 128, which a short last dimension does not fill.";
  return v;
}

}  // namespace vlmest::diagnose
