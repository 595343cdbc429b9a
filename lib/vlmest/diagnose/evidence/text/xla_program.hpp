// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/evidence/text/printed_size.hpp>
#include <vlmest/tensor/shape.hpp>

/// What XLA tells of a program that does not fit: what it is given, what it makes on the way, and the largest buffers
/// of it, as its TPU compiler prints them ("Total hbm usage", "Largest program allocations in hbm") and its buffer
/// assignment on GPUs ("BufferAssignment stats", "Peak buffers"; xla/service/buffer_assignment.cc).
namespace vlmest::diagnose {

struct XlaBuffer {
  PrintedSize size;
  std::string op;      ///< op_name: the path of Python's functions and modules that it is of
  std::string label;   ///< XLA's own instruction
  Shape shape;         ///< empty where it is a tuple or not printed
  std::string dtype;   ///< in vlmest's words
  double padding = 1;  ///< bytes over those of its elements
};

struct XlaProgram {
  std::optional<PrintedSize> arguments;    ///< what it is given: weights, states, a batch
  std::optional<PrintedSize> temporaries;  ///< what it makes
  std::vector<XlaBuffer> buffers;          ///< the largest first
};

/// The first of a text, of which at most 64 buffers and 256 KiB are read.
std::optional<XlaProgram> find_xla_program(std::string_view text);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/text/impl/xla_program.hpp>
#endif
