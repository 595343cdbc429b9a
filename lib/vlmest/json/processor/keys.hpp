// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/json/known_keys.hpp>
#include <vlmest/nn/image_processor/image.hpp>

namespace vlmest::json {

/// `size`, `crop_size` or `max_image_size` of an image processor: what of it is given.
struct ProcessorSize {
  std::optional<std::int64_t> height, width, shortest_edge, longest_edge;
  bool given() const { return height || width || shortest_edge || longest_edge; }
};

/// The keys of a preprocessor_config.json or processor_config.json. Each key that is read is remembered: what is left
/// over at the end is named, not dropped. A contradiction to config.json is an error: the model would stop at it.
class ProcessorKeys {
 public:
  ProcessorKeys(const nlohmann::json& object, const std::string& where) : r_(checked(object, where), where, advice) {}

  bool given(const char* key) {
    read_.insert(key);
    return r_.given(key);
  }
  std::int64_t integer(const char* key, std::int64_t absent, std::int64_t low, std::int64_t high) {
    return given(key) ? r_.integer(key, absent, low, high) : absent;
  }
  bool boolean(const char* key, bool absent) { return given(key) ? r_.boolean(key, absent) : absent; }
  double number(const char* key, double absent) { return given(key) ? r_.number(key, absent) : absent; }
  std::string string(const char* key) { return given(key) ? r_.string(key, "") : ""; }
  Reader object(const char* key) {
    read_.insert(key);
    return r_.object(key);
  }

  /// A size as transformers takes it: an integer is a square, where the class does not say otherwise, a pair is height
  /// and width (image_processing_utils.py, get_size_dict).
  ProcessorSize size(const char* key, std::int64_t high = image_processor::max_side) {
    ProcessorSize s;
    if (!given(key)) return s;
    const nlohmann::json& v = r_.value()[key];
    if (v.is_number()) {
      s.height = s.width = r_.integer(key, 0, 1, high);
      return s;
    }
    if (v.is_array()) {
      const auto pair = r_.integers(key, {});
      if (pair.size() != 2 || pair[0] < 1 || pair[1] < 1 || pair[0] > high || pair[1] > high)
        r_.fail(key, "expected height and width");
      s.height = pair[0], s.width = pair[1];
      return s;
    }
    const Reader o = r_.object(key);
    s.height = o.optional_integer("height", 1, high);
    s.width = o.optional_integer("width", 1, high);
    s.shortest_edge = o.optional_integer("shortest_edge", 1, high);
    s.longest_edge = o.optional_integer("longest_edge", 1, high);
    static constexpr std::array<std::string_view, 6> known{"height",       "width",      "shortest_edge",
                                                           "longest_edge", "min_pixels", "max_pixels"};
    for (const auto& [inner, value] : o.value().items())
      if (!value.is_null() && std::find(known.begin(), known.end(), inner) == known.end())
        o.fail(inner.substr(0, 64).c_str(), "unknown key", "known: height, width, shortest_edge, longest_edge");
    return s;
  }
  /// The sides of what the processor hands over where that is one square: throws Error for another one than `side`.
  void square(const char* key, const ProcessorSize& s, std::int64_t side) const {
    if (s.height.value_or(side) != side || s.width.value_or(side) != side)
      differs(key, std::to_string(s.height.value_or(side)) + "x" + std::to_string(s.width.value_or(side)),
              "the vision tower takes " + std::to_string(side) + "x" + std::to_string(side));
  }
  /// A count that config.json says too, as an integer or as {height, width}.
  void same(const char* key, std::int64_t there, std::string_view name_there) {
    if (!given(key)) return;
    const nlohmann::json& v = r_.value()[key];
    std::vector<std::int64_t> said;
    if (v.is_object() && (v.empty() || std::any_of(v.items().begin(), v.items().end(), [](const auto& e) {
                            return e.key() != "height" && e.key() != "width";
                          })))
      r_.fail(key, "expected a count, or height and width");
    if (v.is_object())
      for (const char* side : {"height", "width"}) said.push_back(r_.object(key).integer(side, there, 1));
    else
      said.push_back(r_.integer(key, there, 0));
    for (const auto n : said)
      if (n != there)
        differs(key, std::to_string(n), std::string(name_there) + " of config.json makes it " + std::to_string(there));
  }
  [[noreturn]] void differs(const char* key, const std::string& here, const std::string& there) const {
    r_.fail(key, here + ", but " + there, "use the two files of one checkpoint");
  }
  [[noreturn]] void fail(const char* key, const std::string& what, const std::string& hint = {}) const {
    r_.fail(key, what, hint);
  }
  /// Settings under which the processor does something that no rule here does.
  void must_be(const char* key, bool value) {
    if (boolean(key, value) != value)
      r_.fail(key, std::string(value ? "false" : "true") + " is not known here: token counts would be others",
              "set it to " + std::string(value ? "true" : "false") + ", or describe the model without this file");
  }
  void ignore(std::initializer_list<const char*> keys) { read_.insert(keys.begin(), keys.end()); }
  void note(std::string line) { notes_.push_back(std::move(line)); }
  const nlohmann::json& value(const char* key) const { return r_.value()[key]; }
  const std::string& where() const { return r_.path(); }

  /// What has to be said after the last key was read. Texts name tokens and classes, they change no count.
  std::vector<std::string> notes() {
    std::string left;
    for (const auto& [key, value] : r_.value().items())
      if (!read_.contains(key) && !value.is_string() && !value.is_null())
        left += (left.empty() ? "" : ", ") + key.substr(0, 64);
    if (!left.empty()) notes_.push_back("not understood and not used: " + left);
    return notes_;
  }

 private:
  static constexpr std::string_view advice =
      "compare with the checkpoint's published file, or remove the file to use the family's own";
  static const nlohmann::json& checked(const nlohmann::json& object, const std::string& where) {
    if (!object.is_object()) throw Error(where, "expected an object", std::string(advice));
    return object;
  }
  Reader r_;
  std::set<std::string, std::less<>> read_;
  std::vector<std::string> notes_;
};

/// Keys of every image processor that leave token counts as they are.
inline void ignore_pixel_keys(ProcessorKeys& k) {
  k.ignore({"do_convert_rgb",
            "do_normalize",
            "do_rescale",
            "rescale_factor",
            "image_mean",
            "image_std",
            "resample",
            "do_pad",
            "pad_size",
            "return_row_col_info",
            "_valid_processor_keys",
            "valid_processor_keys",
            "model_input_names",
            "data_format",
            "input_data_format",
            "device",
            "return_tensors",
            "disable_grouping",
            "default_to_square",
            "auto_map",
            "offset",
            "do_flip_channel_order",
            "use_square_size"});
}

}  // namespace vlmest::json
