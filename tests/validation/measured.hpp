// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <vlmest/json/device.hpp>
#include <vlmest/json/image_processor.hpp>
#include <vlmest/json/measured_file.hpp>
#include <vlmest/json/model.hpp>
#include <vlmest/report/compare_run.hpp>

/// The measured rows in tests/validation/rows and what they need to be predicted.
namespace validation {

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A file whose rows must all be readable.
inline vlmest::json::MeasuredFile rows(const std::string& root, const std::string& file) {
  auto f = vlmest::json::read_measured(read_text(root + "/tests/validation/rows/" + file), file);
  if (!f.problems.empty()) throw f.problems.front();
  return f;
}

/// The device that a file's rows were measured on.
inline vlmest::Device device(const std::string& root, const std::string& file) {
  return vlmest::load_device(root + "/models/device/" + (file.starts_with("h100-") ? "h100" : "h200") + "-sxm.json");
}

/// The configs that they were measured with, those of tests or shipped ones, each read once for each setting of the
/// image processor.
class Models {
 public:
  explicit Models(const std::string& root) : folders_{root + "/tests/data/configs/", root + "/models/vlm/"} {}
  const vlmest::Vlm& operator[](const vlmest::MeasuredRun& run) {
    const auto [at, is_new] = models_.try_emplace(run.model + run.image);
    if (is_new) {
      std::string path;
      for (const std::string& folder : folders_) {
        path = folder + run.model + ".json";
        if (std::filesystem::exists(path)) break;
      }
      at->second = vlmest::json::parse_model(read_text(path), run.model);
      vlmest::json::set_image(run.image, run.model, at->second);
    }
    return at->second;
  }

 private:
  std::vector<std::string> folders_;
  std::map<std::string, vlmest::Vlm> models_;
};

/// Every figure of every row of these files beside its estimate.
inline std::vector<vlmest::Comparison> compare(const std::string& root, std::initializer_list<const char*> files) {
  std::vector<vlmest::Comparison> all;
  vlmest::Estimator estimator;
  Models models(root);
  const auto add = [&](const vlmest::json::MeasuredFile& f, vlmest::Fitted own, std::vector<vlmest::Comparison> some) {
    for (auto& c : some) {
      c.fitted = f.fitted_to(c.quantity, own);
      all.push_back(std::move(c));
    }
  };
  for (const char* file : files) {
    const vlmest::json::MeasuredFile f = rows(root, file);
    const vlmest::Device on = device(root, file);
    for (const auto& [where, run, own] : f.runs) add(f, own, vlmest::compare(run, models[run], on, estimator));
    for (const auto& [where, op, own] : f.ops) add(f, own, vlmest::compare(op, on));
  }
  return all;
}

}  // namespace validation
