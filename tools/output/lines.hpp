// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <vlmest/unit/units.hpp>

#include "table.hpp"

namespace vlmest::tool {

/// Columns that a default report keeps to.
inline constexpr std::size_t line_width = 100;

/// The text over as many lines as it needs, broken at blanks; those after the first begin with `indent` blanks. A word
/// that is longer than a line stays whole.
std::string wrapped(const std::string& text, std::size_t indent = 2, std::size_t width = line_width);

/// A line of Python, or of a shell, over as many lines as it needs, each with so many blanks before it: a statement a
/// line, long ones broken inside of brackets, never inside of a string. A comment comes below on lines of its own.
std::vector<std::string> code_lines(const std::string& code, std::size_t indent, bool comments = true);

/// A shell's command over as many lines as it needs, with a backslash at the end of all but the last.
std::vector<std::string> command_lines(const std::string& command, std::size_t indent, std::size_t width = line_width);

/// "model.language_model.layers.0-27.mlp weight" within so many columns: "...layers.0-27.mlp weight", cut at a dot
/// where there is one.
std::string shortened(const std::string& path, std::size_t width);

/// The table without the columns that say nothing: "-" or a blank in every row. The first one stays.
Table without_empty_columns(Table t);

/// One unit for a table of sizes, and the digits that it is printed with.
struct SizeScale {
  const char* unit = "GiB";
  std::int64_t step = 1;  ///< bytes of the last printed digit
  int digits = 2;
};
/// GiB with two digits; of less than 2 GiB, whole MiB.
SizeScale scale_of(Bytes largest);
std::string show(Bytes b, const SizeScale& s);

/// Parts of a whole, each rounded down or up so that what is printed adds up to the whole as it is printed. "-" where
/// there is nothing at all.
std::vector<std::string> show_parts(const std::vector<Bytes>& parts, Bytes whole, const SizeScale& s);

}  // namespace vlmest::tool
