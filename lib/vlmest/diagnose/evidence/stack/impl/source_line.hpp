// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstdint>
#include <string>

#include <vlmest/diagnose/evidence/stack/frame_words.hpp>
#include <vlmest/diagnose/evidence/stack/source_line.hpp>
#include <vlmest/diagnose/evidence/stack/traceback_reader.hpp>
#include <vlmest/diagnose/evidence/text/size_text.hpp>
#include <vlmest/tensor/dtype.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/units.hpp>

namespace vlmest::diagnose {
namespace source_line {

/// The first "torch.NAME" that is a type.
inline std::optional<DType> torch_type(std::string_view code) {
  constexpr std::string_view torch = "torch.";
  for (auto at = code.find(torch); at != std::string_view::npos; at = code.find(torch, at + 1)) {
    auto end = at + torch.size();
    while (end < code.size() && (is_letter(code[end]) || is_digit(code[end]) || code[end] == '_')) ++end;
    try {
      return parse_dtype(code.substr(at + torch.size(), end - at - torch.size()));
    } catch (const Error&) {
      continue;  // "torch.device"
    }
  }
  return std::nullopt;
}

}  // namespace source_line

VLMEST_INLINE std::optional<DescribedTensor> tensor_made_in(std::string_view code) {
  using namespace source_line;
  for (const std::string_view maker : makers) {
    const auto at = code.find(maker);
    if (at == std::string_view::npos) continue;
    auto rest = code.substr(at + maker.size(), 300);
    if (!rest.starts_with('(') && !rest.starts_with('[')) return std::nullopt;
    rest.remove_prefix(1);
    DescribedTensor t{.name = std::string(maker.substr(0, maker.size() - 1)), .role = Role::activation};
    std::int64_t elements = 1;
    for (bool more = true; more;) {
      while (rest.starts_with(' ')) rest.remove_prefix(1);
      std::int64_t n = 0;
      const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), n);
      // A name in place of a number, as of a shape that is not fixed, tells nothing.
      if (error != std::errc() || n < 1 || t.shape.rank() == Shape::max_rank || n > (std::int64_t{1} << 50) / elements)
        return std::nullopt;
      t.shape.push_back(n);
      elements *= n;
      rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
      while (rest.starts_with(' ') || rest.starts_with(',')) rest.remove_prefix(1);
      more = !rest.starts_with(')') && !rest.starts_with(']');
    }
    const auto type = torch_type(rest);
    if (!type) return std::nullopt;
    t.dtype = std::string(name(*type));
    t.bytes = size_of(Elements(elements), *type);
    return t;
  }
  return std::nullopt;
}

VLMEST_INLINE std::optional<Frame> bare_source_line(const std::vector<std::string_view>& before) {
  for (std::size_t i = before.size(); i > 0 && before.size() - i < 3; --i) {
    const auto line = traceback_reader::trim(before[i - 1]);
    // Marks under a line that show its part.
    if (line.find_first_not_of("^~ ") == std::string_view::npos) continue;
    const bool assigns = line.find(" = ") != std::string_view::npos && line.find('(') != std::string_view::npos;
    if (line.size() > 300 || (!assigns && !line.starts_with("return "))) return std::nullopt;
    Frame f{.code = std::string(line)};
    const auto* m = frame_words::first(frame_words::low(f), [](const FrameMeaning& x) {
      return x.site.has_value() || x.kernel != AllocationSite::unknown;
    });
    return m != nullptr ? std::optional(std::move(f)) : std::nullopt;
  }
  return std::nullopt;
}

VLMEST_INLINE bool attends_with_mask(const std::vector<Frame>& frames) {
  constexpr std::string_view call = "scaled_dot_product_attention(";
  for (auto f = frames.rbegin(); f != frames.rend(); ++f) {
    if (f->code.empty()) continue;
    const std::string low = frame_words::low(*f).code;
    const auto at = low.find(call);
    if (at == std::string::npos) continue;
    const auto mask = low.find("mask", at + call.size());
    return mask != std::string::npos && low.compare(mask, 9, "mask=none") != 0;
  }
  return false;
}

}  // namespace vlmest::diagnose
