// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include <vlmest/diagnose/watch/prometheus.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace prometheus {

VLMEST_INLINE std::string escaped(std::string_view s, bool quotes) {
  std::string r;
  while (!s.empty()) {
    const auto lead = static_cast<unsigned char>(s.front());
    std::size_t n = lead < 0x80 ? 1 : lead >= 0xC2 && lead < 0xE0 ? 2 : lead >= 0xE0 && lead < 0xF0 ? 3 : 0;
    if (lead >= 0xF0 && lead < 0xF5) n = 4;
    if (n > s.size()) n = 0;
    for (std::size_t i = 1; i < n; ++i)
      if ((static_cast<unsigned char>(s[i]) & 0xC0) != 0x80) n = 0;
    if (n == 3 || n == 4) {  // too long a spelling, a surrogate, beyond U+10FFFF (RFC 3629, section 4)
      const auto next = static_cast<unsigned char>(s[1]);
      if ((lead == 0xE0 && next < 0xA0) || (lead == 0xED && next > 0x9F) || (lead == 0xF0 && next < 0x90) ||
          (lead == 0xF4 && next > 0x8F))
        n = 0;
    }
    if (n == 0) {
      r += "\xEF\xBF\xBD";
      n = 1;
    } else if (s.front() == '\\') {
      r += "\\\\";
    } else if (s.front() == '\n') {
      r += "\\n";
    } else if (s.front() == '"' && quotes) {
      r += "\\\"";
    } else {
      r += s.substr(0, n);
    }
    s.remove_prefix(n);
  }
  return r;
}

}  // namespace prometheus

VLMEST_INLINE std::string prometheus_text(std::span<const Metric> metrics) {
  std::string r;
  for (const Metric& m : metrics) {
    prometheus::check_name(m.name, false);
    if (m.samples.empty()) continue;
    r += "# HELP " + m.name + " " + prometheus::escaped(m.help, false) + "\n";
    r += "# TYPE " + m.name + " " + std::string(name(m.type)) + "\n";
    for (const MetricSample& s : m.samples) {
      r += m.name;
      char before = '{';
      for (const MetricLabel& l : s.labels) {
        prometheus::check_name(l.name, true);
        r += std::exchange(before, ',') + l.name + "=\"" + prometheus::escaped(l.value, true) + "\"";
      }
      if (!s.labels.empty()) r += '}';
      r += " " + std::visit([](auto v) { return prometheus::text(v); }, s.value) + "\n";
    }
  }
  return r;
}

}  // namespace vlmest::diagnose
