// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <vlmest/device/device.hpp>
#include <vlmest/json/measured_file.hpp>
#include <vlmest/report/comparison.hpp>

namespace vlmest::tool {

/// One file of measured rows and what became of them.
struct ValidatedFile {
  std::string name;
  json::MeasuredFile::Kind kind = json::MeasuredFile::Kind::runs;
  std::string device;
  std::size_t rows = 0, compared = 0, throttled = 0;
  std::vector<json::SkippedRow> skipped;
  std::vector<json::FittedMark> fitted;
};

/// Everything that a validation's report speaks of.
struct Validated {
  const Device& device;
  std::vector<ValidatedFile> files;
  std::vector<Comparison> all;
  std::vector<ErrorLimit> limits;
  std::vector<std::string> quantities;  ///< those that are shown, in order
};

struct ValidationOptions {
  std::size_t top = 1;     ///< worst rows of each quantity that are listed
  bool every_row = false;  ///< all of them instead
  bool color = false;
};

/// A line for each limit that does not hold: by how much, or that nothing has measured what it limits.
std::vector<std::string> broken_limits(const Validated& v);

/// For a terminal: what was compared, the verdict, the table of quantities, rows beyond a limit, the worst ones.
std::string validation_text(const Validated& v, const ValidationOptions& options);
/// The same for a page or a pull request's comment.
std::string validation_markdown(const Validated& v, const ValidationOptions& options);
/// One line for each comparison, in plain numbers.
std::string validation_csv(const Validated& v);
/// As docs/reference/validation.schema.json describes it.
nlohmann::ordered_json validation_json(const Validated& v);

}  // namespace vlmest::tool
