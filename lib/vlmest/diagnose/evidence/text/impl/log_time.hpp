// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/evidence/text/log_time.hpp>
#include <vlmest/diagnose/evidence/text/size_text.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE std::optional<double> log_time(std::string_view line) {
  line = line.substr(0, 120);
  const auto number = [&](std::size_t at, std::size_t digits) -> std::int64_t {
    if (at + digits > line.size()) return -1;
    std::int64_t n = 0;
    for (std::size_t i = at; i < at + digits; ++i) {
      if (!is_digit(line[i])) return -1;
      n = n * 10 + (line[i] - '0');
    }
    return n;
  };
  for (auto colon = line.find(':'); colon != std::string_view::npos; colon = line.find(':', colon + 1)) {
    if (colon < 2 || colon + 6 > line.size() || line[colon + 3] != ':') continue;
    const auto h = number(colon - 2, 2), m = number(colon + 1, 2), s = number(colon + 4, 2);
    if (h < 0 || h > 23 || m < 0 || m > 59 || s < 0 || s > 60) continue;
    double t = static_cast<double>(h * 3600 + m * 60 + s);
    auto at = colon + 6;
    if (at < line.size() && (line[at] == '.' || line[at] == ',')) {
      double unit = 0.1;
      for (++at; at < line.size() && is_digit(line[at]); ++at, unit /= 10) t += unit * (line[at] - '0');
    }
    const auto begin = colon - 2;
    if (begin < 6 || (line[begin - 1] != ' ' && line[begin - 1] != 'T')) return t;
    const auto day = number(begin - 3, 2), month = number(begin - 6, 2);
    const char mark = line[begin - 4];
    if (day < 1 || day > 31 || month < 1 || month > 12 || (mark != '-' && mark != '/')) return t;
    const auto year = begin >= 11 && line[begin - 7] == mark ? number(begin - 11, 4) : -1;
    // Days from civil (Hinnant, "chrono-compatible low-level date algorithms").
    const std::int64_t y0 = (year < 0 ? 1970 : year) - (month <= 2 ? 1 : 0);
    const std::int64_t era = y0 / 400, yoe = y0 - era * 400;
    const std::int64_t doy = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    const std::int64_t days = era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
    return t + static_cast<double>(days) * 86400;
  }
  return std::nullopt;
}

}  // namespace vlmest::diagnose
