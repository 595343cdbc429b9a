// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/json/benchmark.hpp>
#include <vlmest/json/fitted_marks.hpp>
#include <vlmest/json/measured_run.hpp>
#include <vlmest/unit/error.hpp>

namespace vlmest::json {

/// A measured row, and its place for messages.
template <class Row>
struct Placed {
  std::string where;
  Row row;
  Fitted fitted = Fitted::unknown;  ///< as the row itself says; else its file's marks count
};

/// A row that holds nothing to compare, and why.
struct SkippedRow {
  std::string name, why;
};

/// Measured rows of whole models, or a benchmark's results. A row that cannot be read does not hide the others: it is
/// one of the problems.
struct MeasuredFile {
  enum class Kind : std::uint8_t { runs, benchmarks } kind = Kind::runs;
  std::string device;         ///< the GPU as the recorder names it; empty where it does not
  std::size_t rows = 0;       ///< all of them, aggregates of a benchmark's repetitions left out
  std::size_t throttled = 0;  ///< of them measured while the GPU held its clock down
  std::vector<Placed<MeasuredRun>> runs;
  std::vector<Placed<MeasuredOp>> ops;
  std::vector<SkippedRow> skipped;
  std::vector<Error> problems;
  std::vector<FittedMark> fitted;

  /// Whether anything was fitted to a quantity of a row that says `own` of itself.
  Fitted fitted_to(std::string_view quantity, Fitted own) const {
    if (own != Fitted::unknown) return own;
    const FittedMark* m = mark_of(fitted, quantity);
    return m ? m->fitted : Fitted::unknown;
  }
};

namespace measured_file {

inline std::string text_or_nothing(const nlohmann::json& o, const char* key) {
  return o.is_object() && o.contains(key) && o[key].is_string() ? o[key].get<std::string>() : "";
}
/// Of a message its first line.
inline std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

inline Fitted own_mark(const nlohmann::json& row, const std::string& where) {
  return row.is_object() && row.contains("fitted") ? read_fitted(row["fitted"], where + ".fitted") : Fitted::unknown;
}

void add_run(MeasuredFile& f, const nlohmann::json& row, const std::string& where, const RunHeader& header);

inline void add_runs(MeasuredFile& f, const nlohmann::json& rows, const std::string& where, const RunHeader& header) {
  for (std::size_t i = 0; i < rows.size(); ++i) add_run(f, rows[i], where + "[" + std::to_string(i) + "]", header);
}

/// {"context": {…}, "benchmarks": […]}. Of repeated runs every repetition counts; where the file holds their
/// aggregates alone, the median does.
void add_benchmarks(MeasuredFile& f, const nlohmann::json& document, const std::string& where, int sm);

/// A document, or a row. Throws Error where it is neither.
void add(MeasuredFile& f, const nlohmann::json& document, const std::string& where, int sm);

/// Lines that are a document each: the first one is a complete object, and more follow.
inline bool is_lines(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || text[begin] != '{') return false;
  const auto end = text.find('\n', begin);
  if (end == std::string_view::npos || text.find_first_not_of(" \t\r\n", end) == std::string_view::npos) return false;
  return nlohmann::json::accept(text.substr(begin, end - begin));
}

}  // namespace measured_file

/// Measured rows out of a file's text: an array, one row on each line, or an object that holds `rows`; or the JSON that
/// Google Benchmark writes. `compute_capability` is that of the device the operations are predicted for. Throws Error
/// where the text is none of these; rows that cannot be read are the result's problems.
MeasuredFile read_measured(std::string_view text, const std::string& where, int compute_capability = 90);

}  // namespace vlmest::json

#ifndef VLMEST_COMPILED
#include <vlmest/json/impl/measured_file.hpp>
#endif
