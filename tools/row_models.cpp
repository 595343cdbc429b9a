// SPDX-License-Identifier: Apache-2.0
#include "row_models.hpp"

#include <filesystem>

#include <vlmest/json/image_processor.hpp>

#include "catalogue.hpp"
#include "files.hpp"

namespace vlmest::tool {
namespace fs = std::filesystem;

namespace {

/// A config or description, or a folder with one. A row may name anything: only such files are opened.
bool holds_model(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) || fs::is_regular_file(path / "config.json", ignored);
}

}  // namespace

std::string RowModels::path_of(const MeasuredRun& run, const std::string& rows_file) const {
  for (const auto& folder : folders_)
    for (const fs::path& p : {fs::path(folder) / (run.model + ".json"), fs::path(folder) / run.model})
      if (holds_model(p)) return p.string();
  for (const auto& named : {run.config, run.model})
    for (const fs::path& p : {fs::path(named), fs::path(rows_file).parent_path() / named})
      if (!named.empty() && holds_model(p)) return p.string();
  if (const auto known = shipped_model(run.model)) return known->string();
  const std::string near = nearest(run.model, shipped("vlm"));
  throw Error("model", "no model '" + run.model + "'",
              (near.empty() ? "" : "did you mean " + near + "? ") +
                  std::string("--models DIR adds a folder with its config as NAME.json or NAME/config.json"));
}

const Vlm& RowModels::find(const MeasuredRun& run, const std::string& rows_file) {
  const auto [at, is_new] = found_.try_emplace(fs::path(rows_file).parent_path().string() + "\n" + run.config + "\n" +
                                               run.model + "\n" + run.image);
  Found& f = at->second;
  if (is_new) try {
      f.vlm = find_model(path_of(run, rows_file));
      json::set_image(run.image, run.model, *f.vlm);
    } catch (const Error& e) {
      f.error = e;
    }
  if (f.error) throw *f.error;
  return *f.vlm;
}

}  // namespace vlmest::tool
