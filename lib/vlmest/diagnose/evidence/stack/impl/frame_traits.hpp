// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/evidence/stack/frame_traits.hpp>
#include <vlmest/diagnose/evidence/stack/frame_words.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace naming {

/// The traits of the words for which `counts(part)` holds.
template <class Counts>
Traits told_by(const frame_words::LowFrame& f, Counts&& counts) {
  Traits t = 0;
  for (const frame_words::FrameWord& w : frame_words::all)
    if (w.means.traits != 0 && counts(w.part) && matches(w, f)) t |= w.means.traits;
  return t;
}

inline bool of_function_name(frame_words::Part p) {
  return p == frame_words::Part::function || p == frame_words::Part::code;
}

VLMEST_INLINE Traits origin_of(std::string_view file) {
  using namespace trait;
  const bool python = base(file).ends_with(".py");
  const bool installed = has(file, {"site-packages/", "dist-packages/"});
  Traits t = installed ? Traits{in_library} : Traits{};
  // Helpers that a model's code calls as it calls torch, and the code that Inductor writes
  // (torch/_inductor/codecache.py).
  const bool helper = has(file, {"/einops/", "/opt_einsum/", "/jaxtyping/", "/beartype/", "/torchinductor_"});
  if (!python || helper || has(file, {"/torch/", "<frozen"}) || (!installed && has(file, {"lib/python"}))) {
    // A notebook's cell is a file like /tmp/ipykernel_7/1.py or <ipython-input-3>: the user's.
    if (!has(file, {"<ipython", "<stdin>", "<string>"})) t |= in_torch | in_library;
  }
  return t;
}

VLMEST_INLINE Traits of_file(std::string_view file) {
  file = file.substr(file.size() > longest ? file.size() - longest : 0);
  const frame_words::LowFrame f{.file = frame_words::low_path(file)};
  Traits t = origin_of(file) | told_by(f, [](frame_words::Part p) { return !of_function_name(p); });
  // Not "vision": modeling_llava_onevision.py and modeling_aya_vision.py hold whole models.
  if (f.file_name().starts_with("modeling_") && has(f.file_name(), {"siglip", "clip", "vit", "dino"}))
    t |= trait::vision;
  return t;
}

VLMEST_INLINE Traits of_function(std::string_view function) {
  using namespace trait;
  const frame_words::LowFrame f{.function = log_prefix::lower_case(function.substr(0, longest))};
  Traits t = told_by(f, of_function_name);
  if (has(f.function, {"kv_cache"}) && has(f.function, {"alloc", "init", "create"})) t |= in_cache;
  if ((t & mask) != 0) t &= ~Traits{attention};
  return t;
}

}  // namespace naming

VLMEST_INLINE std::vector<CallStackTraits> stack_traits(const StackTable& stacks) {
  constexpr Traits unset = 1u << 31;
  std::vector<Traits> files(stacks.strings.size(), unset), functions(stacks.strings.size(), unset);
  std::vector<Traits> frames(stacks.frame_count());
  for (std::uint32_t i = 0; i < frames.size(); ++i) {
    const auto& w = stacks.words(i);
    if (files[w.file] == unset) files[w.file] = naming::of_file(stacks.file(i));
    if (functions[w.function] == unset) functions[w.function] = naming::of_function(stacks.function(i));
    auto& t = frames[i] = files[w.file] | functions[w.function];
    if (naming::moves_module(stacks.file(i), stacks.function(i))) t |= trait::loads;
    // lr_scheduler.step and a user's own step() are no optimizer's; DeepSpeed's engine steps under another name.
    if ((t & trait::optimizes) != 0 && naming::has(stacks.file(i), {"deepspeed"})) t |= trait::in_optimizer;
    if ((t & trait::zeroes) != 0) t &= ~Traits{trait::in_optimizer};
  }
  std::vector<CallStackTraits> out(stacks.stack_count());
  for (std::uint32_t s = 0; s < out.size(); ++s)
    for (const auto f : stacks.stack(s)) {
      auto& o = out[s];
      Traits t = frames[f];
      // Some optimizers call the step's forward and backward themselves, as LBFGS and Lightning's all do: the
      // innermost of the three is what runs.
      if ((o.all & (trait::in_forward | trait::in_backward)) != 0) t &= ~Traits{trait::in_optimizer};
      o.all |= t;
      if (o.program == CallStackTraits::no_frame) o.innermost |= frames[f];
      if (o.program == CallStackTraits::no_frame && (frames[f] & trait::in_torch) == 0) o.program = f;
      if (o.user == CallStackTraits::no_frame && (frames[f] & trait::in_library) == 0) o.user = f;
    }
  return out;
}

}  // namespace vlmest::diagnose
