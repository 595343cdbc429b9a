// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <vlmest/diagnose/evidence/stack/mode.hpp>
#include <vlmest/diagnose/evidence/stack/traceback.hpp>
#include <vlmest/diagnose/evidence/text/log_prefix.hpp>

/// What a name on a stack says. Stacks come from tracebacks, with source lines, and from memory snapshots, without; one
/// vocabulary reads both (frame_words.hpp).
namespace vlmest::diagnose {

/// Bits of a set of traits.
namespace trait {
enum Trait : std::uint32_t {
  in_torch = 1u << 0,    ///< torch itself, Python's library, C++, helpers such as einops
  in_library = 1u << 1,  ///< an installed package
  in_optimizer = 1u << 2,
  in_backward = 1u << 3,
  accumulates = 1u << 4,  ///< autograd's AccumulateGrad: the gradient of a leaf
  in_forward = 1u << 5,   ///< a module's call
  loads = 1u << 6,        ///< from_pretrained, load_state_dict, module.to and the like
  constructs = 1u << 7,   ///< __init__
  in_cache = 1u << 8,     ///< keys and values
  takes_input = 1u << 9,  ///< a batch on its way to the device
  workspace = 1u << 10,   ///< scratch of cuBLAS or cuDNN
  attention = 1u << 11,
  loss = 1u << 12,
  mask = 1u << 13,
  vision = 1u << 14,
  fft = 1u << 15,
  linear = 1u << 16,
  norm = 1u << 17,
  embedding = 1u << 18,
  zeroes = 1u << 19,      ///< zero_grad
  collective = 1u << 20,  ///< gathers of sharded parameters, buckets of gradients
  optimizes = 1u << 21,   ///< a step function, where the file is not known to be an optimizer's
  gathers = 1u << 22,     ///< parameters of FSDP and ZeRO-3 put together
  decoder = 1u << 23      ///< a layer of the language model
};
}  // namespace trait
using Traits = std::uint32_t;

/// All that one word tells; what it does not is left empty.
struct FrameMeaning {
  /// The tensor that was being made. `unknown` says that frames further out do not tell it either.
  std::optional<AllocationSite> site{};
  AllocationSite kernel = AllocationSite::unknown;  ///< the same, where no frame further out says more
  RunPhase phase = RunPhase::unknown;
  std::optional<Mode> mode{};    ///< whether it trains: decides
  std::optional<Mode> around{};  ///< the same of the program around it: where nothing further in decides
  Traits traits = 0;
};

namespace frame_words {

using Site = AllocationSite;

/// Where a word stands.
enum class Part : std::uint8_t {
  function,      ///< is the function's name
  code,          ///< in the source line (without blanks) or in the function's name
  file,          ///< in the path
  file_name,     ///< is the name of the file
  in_file_name,  ///< in it
  file_begins    ///< it begins so
};

/// A word in lower case with what it means.
struct FrameWord {
  Part part;
  std::string_view text;
  FrameMeaning means;
};

/// A frame as words are looked for in it: in lower case.
struct LowFrame {
  std::string function{}, code{}, file{};
  std::string_view file_name() const {
    const auto slash = file.rfind('/');
    return std::string_view(file).substr(slash == std::string::npos ? 0 : slash + 1);
  }
};

inline std::string low_path(std::string_view path) {
  std::string r = log_prefix::lower_case(path);
  std::replace(r.begin(), r.end(), '\\', '/');
  return r;
}
inline LowFrame low(const Frame& f) {
  LowFrame l{log_prefix::lower_case(f.function), log_prefix::lower_case(f.code), low_path(f.file)};
  std::erase(l.code, ' ');
  return l;
}

inline bool matches(const FrameWord& w, const LowFrame& f) {
  switch (w.part) {
    case Part::function: return f.function == w.text;
    case Part::code: return log_prefix::has(f.code, w.text) || log_prefix::has(f.function, w.text);
    case Part::file: return log_prefix::has(f.file, w.text);
    case Part::file_name: return f.file_name() == w.text;
    case Part::in_file_name: return log_prefix::has(f.file_name(), w.text);
    case Part::file_begins: return f.file_name().starts_with(w.text);
  }
  return false;
}

}  // namespace frame_words
}  // namespace vlmest::diagnose
