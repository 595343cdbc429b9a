// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vlmest/json/benchmark.hpp>
#include <vlmest/json/fitted_marks.hpp>
#include <vlmest/json/measured_run.hpp>
#include <vlmest/json/parse.hpp>

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

inline void add_run(MeasuredFile& f, const nlohmann::json& row, const std::string& where, const RunHeader& header) {
  ++f.rows;
  if (f.device.empty()) f.device = text_or_nothing(row, "device");
  if (const std::string failed = text_or_nothing(row, "error"); !failed.empty()) {
    f.skipped.push_back({where, first_line(failed)});
    return;
  }
  try {
    f.runs.push_back({where, read_measured_run(row, where, header), own_mark(row, where)});
  } catch (const Error& e) {
    f.problems.push_back(e);
  }
}

inline void add_runs(MeasuredFile& f, const nlohmann::json& rows, const std::string& where, const RunHeader& header) {
  for (std::size_t i = 0; i < rows.size(); ++i) add_run(f, rows[i], where + "[" + std::to_string(i) + "]", header);
}

/// {"context": {…}, "benchmarks": […]}. Of repeated runs every repetition counts; where the file holds their
/// aggregates alone, the median does.
inline void add_benchmarks(MeasuredFile& f, const nlohmann::json& document, const std::string& where, int sm) {
  f.kind = MeasuredFile::Kind::benchmarks;
  if (document.contains("context")) f.device = text_or_nothing(document["context"], "device");
  const nlohmann::json& list = document["benchmarks"];
  const auto run_name = [](const nlohmann::json& e) {
    const std::string s = text_or_nothing(e, "run_name");
    return s.empty() ? text_or_nothing(e, "name") : s;
  };
  std::set<std::string> iterated;
  for (const auto& e : list)
    if (text_or_nothing(e, "run_type") != "aggregate") iterated.insert(run_name(e));
  for (std::size_t i = 0; i < list.size(); ++i) {
    const nlohmann::json& e = list[i];
    if (text_or_nothing(e, "run_type") == "aggregate" &&
        (text_or_nothing(e, "aggregate_name") != "median" || iterated.contains(run_name(e))))
      continue;
    ++f.rows;
    const std::string at = where + ".benchmarks[" + std::to_string(i) + "]";
    try {
      if (const auto why = nothing_measured(e, at)) {
        f.skipped.push_back({first_line(text_or_nothing(e, "name")), first_line(*why)});
        continue;
      }
      f.ops.push_back({at, read_benchmark(e, at, sm), own_mark(e, at)});
      if (e.contains("throttled") && e["throttled"].is_number() && e["throttled"] != 0) ++f.throttled;
    } catch (const Error& error) {
      f.problems.push_back(error);
    }
  }
}

/// A document, or a row. Throws Error where it is neither.
inline void add(MeasuredFile& f, const nlohmann::json& document, const std::string& where, int sm) {
  if (document.is_array()) return add_runs(f, document, where, {});
  if (!document.is_object() || !document.contains("model")) f.fitted = read_fitted_marks(document, where);
  if (document.is_object() && document.contains("benchmarks") && document["benchmarks"].is_array())
    return add_benchmarks(f, document, where, sm);
  if (document.is_object() && document.contains("rows") && document["rows"].is_array()) {
    f.device = text_or_nothing(document, "device");
    const std::string kv = text_or_nothing(document, "decode_kv_len");
    return add_runs(f, document["rows"], where + ".rows",
                    {.decode_kv_len_after_step = kv.find("after the step") != std::string::npos});
  }
  if (document.is_object() && document.contains("model")) return add_run(f, document, where, {});
  throw Error(where, "holds neither measured rows nor a benchmark's results",
              "give the recorder's rows, or JSON that Google Benchmark wrote");
}

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
inline MeasuredFile read_measured(std::string_view text, const std::string& where, int compute_capability = 90) {
  MeasuredFile f;
  try {
    if (!measured_file::is_lines(text)) {
      measured_file::add(f, parse(text, where), where, compute_capability);
      return f;
    }
  } catch (const Error& e) {
    if (e.where != where) throw;
    throw Error(e.where, e.what_happened, "give the recorder's rows, or JSON that Google Benchmark wrote");
  }
  std::size_t line = 1;
  for (std::size_t begin = 0; begin < text.size(); ++line) {
    const auto end = std::min(text.find('\n', begin), text.size());
    const std::string_view one = text.substr(begin, end - begin);
    begin = end + 1;
    if (one.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string at = where + ":" + std::to_string(line);
    try {
      measured_file::add_run(f, parse(one, at), at, {});
    } catch (const Error& e) {
      ++f.rows;
      f.problems.push_back(Error(e.where, "not JSON", "a recorder that was stopped leaves half a line: remove it"));
    }
  }
  return f;
}

}  // namespace vlmest::json
