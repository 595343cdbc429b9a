// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <set>

#include <vlmest/json/measured_file.hpp>
#include <vlmest/json/parse.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::json {
namespace measured_file {

VLMEST_INLINE void add_run(MeasuredFile& f, const nlohmann::json& row, const std::string& where,
                           const RunHeader& header) {
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

VLMEST_INLINE void add_benchmarks(MeasuredFile& f, const nlohmann::json& document, const std::string& where, int sm) {
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

VLMEST_INLINE void add(MeasuredFile& f, const nlohmann::json& document, const std::string& where, int sm) {
  if (document.is_array()) return add_runs(f, document, where, {});
  if (!document.is_object() || !document.contains("model")) f.fitted = read_fitted_marks(document, where);
  if (document.is_object() && document.contains("benchmarks") && document["benchmarks"].is_array())
    return add_benchmarks(f, document, where, sm);
  if (document.is_object() && document.contains("rows") && document["rows"].is_array()) {
    f.device = text_or_nothing(document, "device");
    const std::string kv = text_or_nothing(document, "decode_kv_len");
    return add_runs(f, document["rows"], where + ".rows",
                    {.decode_kv_len_after_step = kv.find("after the step") != std::string::npos,
                     .cache_emptied = Reader(document, where, "docs/reference/measured-rows.md lists the keys")
                                          .boolean("cache_emptied", false)});
  }
  if (document.is_object() && document.contains("model")) return add_run(f, document, where, {});
  throw Error(where, "holds neither measured rows nor a benchmark's results",
              "give the recorder's rows, or JSON that Google Benchmark wrote");
}

}  // namespace measured_file

VLMEST_INLINE MeasuredFile read_measured(std::string_view text, const std::string& where, int compute_capability) {
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
