// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <vlmest/nn/vlm.hpp>
#include <vlmest/report/measured_run.hpp>
#include <vlmest/unit/error.hpp>

namespace vlmest::tool {

/// Models that measured rows name, each read once.
class RowModels {
 public:
  /// `folders` are looked through before anything else: FOLDER/NAME.json, FOLDER/NAME/config.json.
  explicit RowModels(std::vector<std::string> folders) : folders_(std::move(folders)) {}

  /// A run's model: by its name in one of the folders; the config that the row names; the name as a path; or a shipped
  /// model of that name. Paths are seen from here, then from the folder of the rows' file. Throws Error, the same each
  /// time.
  const Vlm& find(const MeasuredRun& run, const std::string& rows_file);

 private:
  struct Found {
    std::optional<Vlm> vlm;
    std::optional<Error> error;
  };
  std::string path_of(const MeasuredRun& run, const std::string& rows_file) const;

  std::vector<std::string> folders_;
  std::map<std::string, Found> found_;
};

}  // namespace vlmest::tool
