// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include <vlmest/diagnose/evidence/trace/host_call.hpp>
#include <vlmest/diagnose/evidence/trace/profile_trace.hpp>
#include <vlmest/json/kineto_event.hpp>
#include <vlmest/json/parse.hpp>
#include <vlmest/json/trace_scanner.hpp>

namespace vlmest::json {

namespace kineto_detail {

enum class Category : std::uint8_t { other, op, kernel, copy, call, annotation, python, overhead, instant };

/// Names of libkineto/src/ActivityType.cpp; those with capitals were torch 1.8's to 1.12's.
Category category(std::string_view c);

/// The larger part of a trace may be Python's calls, of which only modules are kept, and arrows: told from the
/// beginning of an event as Kineto writes it, without reading the rest.
bool passed_over(std::string_view event);

class TraceBuilder {
 public:
  explicit TraceBuilder(diagnose::ProfileTrace& t) : t_(t) {}

  void member(std::string_view key, std::string_view text) {
    if (key != "deviceProperties" && key != "distributedInfo" && key != "baseTimeNanoseconds") return;
    nlohmann::json j;
    try {
      j = parse(text, "trace");
    } catch (const Error&) {
      return;  // what they say is said better elsewhere, or not needed
    }
    const auto integer = [](const nlohmann::json& o, const char* name, std::int64_t otherwise) {
      const auto v = o.is_object() ? o.find(name) : o.end();
      if (!o.is_object() || v == o.end() || !v->is_number_integer()) return otherwise;
      if (v->is_number_unsigned() && v->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) return otherwise;
      return v->get<std::int64_t>();
    };
    if (key == "baseTimeNanoseconds") {
      t_.base = std::max<std::int64_t>(0, integer({{"n", j}}, "n", 0));
    } else if (key == "distributedInfo") {
      t_.rank = small(integer(j, "rank", 0));
      t_.ranks = std::max(1, small(integer(j, "world_size", 1)));
    } else if (j.is_array()) {
      for (const auto& d : j) {
        if (!d.is_object() || t_.devices.size() >= 1024) continue;
        const auto name = d.find("name");
        t_.devices.push_back({.id = small(integer(d, "id", 0)),
                              .name = name != d.end() && name->is_string() ? name->get<std::string>() : std::string(),
                              .memory = Bytes(std::max<std::int64_t>(0, integer(d, "totalGlobalMem", 0))),
                              .multiprocessors = small(integer(d, "numSms", 0)),
                              .sm = small(10 * std::clamp<std::int64_t>(integer(d, "computeMajor", 0), 0, 1000) +
                                          std::clamp<std::int64_t>(integer(d, "computeMinor", 0), 0, 9))});
      }
    }
  }

  void event(const KinetoEvent& e) {
    using namespace diagnose;
    const Category c = category(e.category);
    if (e.phase == 'i' || e.phase == 'I') return instant(e);
    if (e.phase != 'X' || c == Category::other || !e.start) {
      ++t_.other_events;
      t_.foreign += e.category == "mtia_ccp_events" || e.category == "hpu_op" ? 1 : 0;
      return;
    }
    if (c == Category::python && !e.name.starts_with("nn.Module: ")) {
      ++t_.other_events;
      return;
    }
    const Ns length = e.duration.value_or(0);
    if (length < 0 || length > longest_time) {
      ++t_.broken;
      return;
    }
    const Interval time{*e.start, *e.start + length};
    const auto id = [&] { return t_.names.intern(e.name); };
    switch (c) {
      case Category::kernel:
        t_.kernels.push_back({time, e.correlation, e.external_id, id(), small(e.device), small(e.stream)});
        break;
      case Category::copy:
        t_.copies.push_back({time, Bytes(std::max<std::int64_t>(0, e.bytes)), e.correlation, e.external_id,
                             small(e.device), small(e.stream), copy_kind(e),
                             e.name.find("Pageable") != std::string::npos});
        break;
      case Category::call:
        t_.calls.push_back({time, e.correlation, e.thread, id(), host_call_kind(e.name), e.process});
        break;
      default: {
        const AnnotationKind kind = c == Category::overhead ? AnnotationKind::profiler : annotation_kind(e.name);
        if (c != Category::op || kind == AnnotationKind::step || kind == AnnotationKind::data_loader)
          t_.annotations.push_back({time, e.thread, id(), kind, e.process});
        else
          t_.ops.push_back({time, e.external_id, e.thread, id(), signature(e)});
      }
    }
  }

 private:
  static std::int32_t small(std::int64_t n) {
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(n, INT32_MIN, INT32_MAX));
  }
  /// CuptiActivity.cpp: "Memcpy HtoD (Pageable -> Device)", "Memset (Device)".
  static diagnose::CopyKind copy_kind(const KinetoEvent& e) {
    using diagnose::CopyKind;
    const std::string_view n = e.name;
    if (n.starts_with("Memset")) return CopyKind::fill;
    if (n.find("HtoD") != n.npos) return CopyKind::host_to_device;
    if (n.find("DtoH") != n.npos) return CopyKind::device_to_host;
    if (n.find("DtoD") != n.npos) return CopyKind::device_to_device;
    return n.find("PtoP") != n.npos ? CopyKind::peer : CopyKind::other;
  }
  /// torch/csrc/profiler/kineto_shim.cpp and collection.cpp: [memory] and [OutOfMemory]; Device Type 0 is the CPU.
  void instant(const KinetoEvent& e) {
    const bool failed = e.name == "[OutOfMemory]";
    if ((e.name != "[memory]" && !failed) || !e.start) {
      ++t_.other_events;
      return;
    }
    const auto total = [](std::int64_t n) { return Bytes(std::max<std::int64_t>(0, n)); };
    t_.memory.push_back({*e.start, e.address, e.bytes, total(e.allocated), total(e.reserved),
                         e.device_type == 0 ? -1 : small(e.device_id), failed});
  }
  std::int32_t signature(const KinetoEvent& e) {
    if (std::none_of(e.inputs.begin(), e.inputs.end(), [](const KinetoInput& i) { return !i.sizes.empty(); })) return 0;
    t_.with_shapes = true;
    key_.clear();
    const auto add = [&](const std::vector<std::int64_t>& list) {
      for (const auto n : list) key_.append(reinterpret_cast<const char*>(&n), sizeof n);
      key_.push_back(';');
    };
    for (const KinetoInput& i : e.inputs) {
      add(i.sizes);
      add(i.strides);
      key_ += i.type;
      key_.push_back('\0');
      key_ += i.value;
      key_.push_back('\0');
    }
    const auto [known, is_new] = signatures_.try_emplace(key_, static_cast<std::int32_t>(t_.signatures.size()));
    if (is_new) {
      auto& list = t_.signatures.emplace_back();
      list.reserve(e.inputs.size());
      for (const KinetoInput& i : e.inputs)
        list.push_back({i.sizes, i.strides, t_.names.intern(i.type), t_.names.intern(i.value)});
    }
    return known->second;
  }

  diagnose::ProfileTrace& t_;
  std::unordered_map<std::string, std::int32_t> signatures_;
  std::string key_;
};

}  // namespace kineto_detail

/// A trace of torch.profiler (Kineto, torch 1.8 and later), from a source of pieces of its text: a callable that gives
/// std::string_view, an empty one at the end. `where` names it in messages. Both time bases are read: microseconds
/// relative to baseTimeNanoseconds with three decimals, and absolute ones. Events that are no JSON are left out and
/// counted; a text that ends early is read to its end. Throws Error for a text that is no trace.
template <class Source>
requires std::is_invocable_r_v<std::string_view, Source&> diagnose::ProfileTrace read_kineto(Source&& source,
                                                                                             const std::string& where) {
  diagnose::ProfileTrace t;
  kineto_detail::TraceBuilder builder(t);
  TraceScanner scanner([&source]() -> std::string_view { return source(); }, where);
  std::string text;
  KinetoEvent e;
  std::int64_t good = 0;
  while (scanner.next(text, [&](std::string_view key, std::string_view value) { builder.member(key, value); })) {
    if (kineto_detail::passed_over(text)) {
      ++t.other_events;
      ++good;
    } else if (read_kineto_event(text, e) && e.phase != 0) {
      builder.event(e);
      ++good;
    } else {
      ++t.broken;
    }
  }
  t.broken += scanner.broken();
  t.truncated = scanner.truncated();
  if (good == 0 && (t.broken > 0 || t.truncated))
    throw Error(where, "has no event that can be read",
                "give the file that torch.profiler's export_chrome_trace wrote");
  return t;
}

/// The same from a whole text.
inline diagnose::ProfileTrace read_kineto(std::string_view text, const std::string& where) {
  return read_kineto([rest = text]() mutable { return std::exchange(rest, std::string_view()); }, where);
}

}  // namespace vlmest::json

#ifndef VLMEST_COMPILED
#include <vlmest/json/impl/kineto.hpp>
#endif
