// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <vlmest/diagnose/evidence/trace/profile_trace.hpp>

/// One event of a Kineto trace, read without a tree. Fields: libkineto/src/output_json.cpp and CuptiActivity.cpp for
/// the device's, torch/csrc/profiler/collection.cpp and kineto_shim.cpp for the operators'.
namespace vlmest::json {

struct KinetoInput {
  std::vector<std::int64_t> sizes, strides;
  std::string type, value;
};

struct KinetoEvent {
  std::string category, name;
  char phase = 0;
  std::optional<diagnose::Ns> start, duration;
  std::int64_t process = 0, thread = 0;
  std::int64_t external_id = 0, correlation = 0, device = 0, stream = 0, bytes = 0, address = 0, allocated = 0,
               reserved = 0, device_type = 0, device_id = -1;
  std::vector<KinetoInput> inputs;
  bool valid = true;  ///< no number was out of range
};

namespace kineto_detail {

/// Microseconds as Kineto writes them, "123.456" or 123, in nanoseconds; nothing beyond the clock's range.
inline std::optional<diagnose::Ns> nanoseconds(std::int64_t us) {
  if (us > diagnose::latest_time / 1000 || us < -diagnose::latest_time / 1000) return std::nullopt;
  return us * 1000;
}
inline std::optional<diagnose::Ns> nanoseconds(double us, std::string_view text) {
  const auto dot = text.find('.');
  if (dot != std::string_view::npos && text.find_first_of("eE") == std::string_view::npos) {
    std::int64_t whole = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + dot, whole);
    if (fault == std::errc() && end == text.data() + dot) {
      std::int64_t below = 0, unit = 100;
      for (std::size_t i = dot + 1; i < text.size() && unit > 0; ++i, unit /= 10) below += (text[i] - '0') * unit;
      const auto ns = nanoseconds(whole);
      if (ns) return *ns + (text.front() == '-' ? -below : below);
    }
  }
  if (!(us < static_cast<double>(diagnose::latest_time) / 1000 &&
        us > -static_cast<double>(diagnose::latest_time) / 1000))
    return std::nullopt;
  return static_cast<diagnose::Ns>(us * 1000);
}

enum class Field : std::uint8_t {
  none,
  phase,
  category,
  name,
  start,
  duration,
  process,
  thread,
  args,
  external_id,
  correlation,
  device,
  stream,
  bytes,
  address,
  allocated,
  reserved,
  device_type,
  device_id,
  sizes,
  strides,
  types,
  values
};

inline Field top_field(std::string_view key) {
  if (key == "ph") return Field::phase;
  if (key == "cat") return Field::category;
  if (key == "name") return Field::name;
  if (key == "ts") return Field::start;
  if (key == "dur") return Field::duration;
  if (key == "pid") return Field::process;
  if (key == "tid") return Field::thread;
  return key == "args" ? Field::args : Field::none;
}
/// Kineto of torch 1.8 to 1.13 wrote some of them with other capitals.
inline Field arg_field(std::string_view key) {
  constexpr std::array<std::pair<std::string_view, Field>, 17> known{{{"External id", Field::external_id},
                                                                      {"external id", Field::external_id},
                                                                      {"correlation", Field::correlation},
                                                                      {"device", Field::device},
                                                                      {"stream", Field::stream},
                                                                      {"bytes", Field::bytes},
                                                                      {"Bytes", Field::bytes},
                                                                      {"Addr", Field::address},
                                                                      {"Total Allocated", Field::allocated},
                                                                      {"Total Reserved", Field::reserved},
                                                                      {"Device Type", Field::device_type},
                                                                      {"Device Id", Field::device_id},
                                                                      {"Input Dims", Field::sizes},
                                                                      {"Input dims", Field::sizes},
                                                                      {"Input Strides", Field::strides},
                                                                      {"Input type", Field::types},
                                                                      {"Concrete Inputs", Field::values}}};
  for (const auto& [word, field] : known)
    if (word == key) return field;
  return Field::none;
}

/// nlohmann's SAX interface. Arguments are kept up to `most` of them, and as many sizes of each.
class EventHandler {
 public:
  static constexpr std::size_t most = 64;
  explicit EventHandler(KinetoEvent& e) : e_(e) {}

  bool null() { return scalar(); }
  bool boolean(bool) { return scalar(); }
  bool number_integer(std::int64_t n) { return number(n); }
  bool number_unsigned(std::uint64_t n) {
    if (n <= static_cast<std::uint64_t>(INT64_MAX)) return number(static_cast<std::int64_t>(n));
    if (field_ == Field::address) return number(0);  // an address of the upper half says nothing here
    return out_of_range();
  }
  bool number_float(double x, const std::string& text) {
    if (wanted() && lists_ == 0 && (field_ == Field::start || field_ == Field::duration)) {
      auto& to = field_ == Field::start ? e_.start : e_.duration;
      to = nanoseconds(x, text);
      e_.valid = e_.valid && to.has_value();
      return scalar();
    }
    return out_of_range();
  }
  bool string(std::string& s) {
    if (wanted() && lists_ == 0) {
      if (field_ == Field::phase) e_.phase = s.size() == 1 ? s[0] : '?';
      if (field_ == Field::category) e_.category.swap(s);
      if (field_ == Field::name) e_.name.swap(s);
    } else if (wanted() && lists_ == 1 && item_ < most) {
      if (field_ == Field::types) input().type.swap(s);
      if (field_ == Field::values) input().value.swap(s);
    }
    return scalar();
  }
  template <class Binary>
  bool binary(Binary&) {
    return scalar();
  }
  bool start_object(std::size_t) {
    ++objects_;
    return true;
  }
  bool end_object() {
    --objects_;
    if (objects_ == 1) field_ = Field::none;
    return scalar();
  }
  bool key(std::string& k) {
    if (objects_ == 1) {
      field_ = top_field(k);
      in_args_ = field_ == Field::args;
      lists_ = 0;
    } else if (objects_ == 2 && in_args_) {
      field_ = arg_field(k);
      lists_ = 0;
    }
    item_ = 0;
    return true;
  }
  bool start_array(std::size_t) {
    if (objects_ <= 2) ++lists_;
    return true;
  }
  bool end_array() {
    if (objects_ <= 2) --lists_;
    return scalar();
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) { return false; }

 private:
  bool wanted() const { return field_ != Field::none && objects_ == (field_ < Field::args ? 1 : 2); }
  KinetoInput& input() {
    if (e_.inputs.size() <= item_) e_.inputs.resize(item_ + 1);
    return e_.inputs[item_];
  }
  /// After a value: in a list of arguments, the next one.
  bool scalar() {
    if (lists_ == 1) ++item_;
    return true;
  }
  bool out_of_range() {
    if (wanted() && field_ != Field::values) e_.valid = false;
    return scalar();
  }
  bool number(std::int64_t n) {
    if (!wanted()) return scalar();
    if (lists_ == 2 && item_ < most && (field_ == Field::sizes || field_ == Field::strides)) {
      auto& list = field_ == Field::sizes ? input().sizes : input().strides;
      if (list.size() < most) list.push_back(n);
    }
    if (lists_ > 0) return scalar();
    switch (field_) {
      case Field::start: e_.start = nanoseconds(n), e_.valid = e_.valid && e_.start.has_value(); break;
      case Field::duration: e_.duration = nanoseconds(n), e_.valid = e_.valid && e_.duration.has_value(); break;
      case Field::process: e_.process = n; break;
      case Field::thread: e_.thread = n; break;
      case Field::external_id: e_.external_id = n; break;
      case Field::correlation: e_.correlation = n; break;
      case Field::device: e_.device = n; break;
      case Field::stream: e_.stream = n; break;
      case Field::bytes: e_.bytes = n; break;
      case Field::address: e_.address = n; break;
      case Field::allocated: e_.allocated = n; break;
      case Field::reserved: e_.reserved = n; break;
      case Field::device_type: e_.device_type = n; break;
      case Field::device_id: e_.device_id = n; break;
      default: break;
    }
    return scalar();
  }

  KinetoEvent& e_;
  Field field_ = Field::none;
  int objects_ = 0, lists_ = 0;
  std::size_t item_ = 0;
  bool in_args_ = false;
};

}  // namespace kineto_detail

/// The event in `text`, one JSON object; nothing where it is no JSON, or its numbers are beyond any clock or memory.
inline bool read_kineto_event(std::string_view text, KinetoEvent& e) {
  e = {};
  kineto_detail::EventHandler handler(e);
  return nlohmann::json::sax_parse(text.data(), text.data() + text.size(), &handler) && e.valid;
}

}  // namespace vlmest::json
