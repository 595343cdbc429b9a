// SPDX-License-Identifier: Apache-2.0
#include "lines.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/core.h>

#include <vlmest/unit/sort_stably.hpp>

#include "units.hpp"

namespace vlmest::tool {
namespace {

std::string in_steps(std::int64_t steps, const SizeScale& s) {
  if (s.digits == 0) return grouped(steps);
  return fmt::format("{:.{}f}", static_cast<double>(steps) / std::pow(10, s.digits), s.digits);
}

std::int64_t rounded(Bytes b, const SizeScale& s) {
  return std::llround(static_cast<double>(b.value()) / static_cast<double>(s.step));
}

}  // namespace

std::string wrapped(const std::string& text, std::size_t indent, std::size_t width) {
  std::string out;
  std::size_t from = 0, blanks = 0;
  while (text.size() - from > width - blanks) {
    std::size_t cut = text.rfind(' ', from + width - blanks);
    if (cut == std::string::npos || cut <= from) cut = text.find(' ', from + width - blanks);
    if (cut == std::string::npos) break;
    out += std::string(blanks, ' ') + text.substr(from, cut - from) + "\n";
    from = cut + 1;
    blanks = indent;
  }
  return out + std::string(blanks, ' ') + text.substr(from);
}

std::vector<std::string> code_lines(const std::string& code, std::size_t indent, bool comments) {
  std::vector<std::string> lines;
  std::string line(indent, ' ');
  std::size_t breakable = 0;  // where the line can be cut
  std::size_t outside = 0;    // likewise outside of brackets, with a backslash
  char quote = 0;
  int depth = 0;
  const auto end_line = [&](std::size_t next_indent) {
    lines.push_back(line);
    line = std::string(next_indent, ' ');
    breakable = outside = 0;
  };
  for (std::size_t i = 0; i < code.size(); ++i) {
    const char c = code[i];
    if (quote == 0 && code.compare(i, 4, "  # ") == 0) {
      end_line(indent);
      if (comments) {
        const std::string mark = std::string(indent, ' ') + "# ";
        std::string rest = wrapped(mark + code.substr(i + 4), 0, line_width);
        for (std::size_t from = 0; from < rest.size();) {
          const std::size_t to = std::min(rest.find('\n', from), rest.size());
          lines.push_back((from == 0 ? "" : mark) + rest.substr(from, to - from));
          from = to + 1;
        }
      }
      return lines;
    }
    if (quote == 0 && depth == 0 && code.compare(i, 2, "; ") == 0) {
      end_line(indent);
      ++i;
      continue;
    }
    line += c;
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      --depth;
    }
    if (const std::size_t cut = breakable > 0 ? breakable : outside; line.size() > line_width && cut > 0) {
      const std::string rest = line.substr(cut);
      line.resize(line.find_last_not_of(' ', cut - 1) + 1);
      if (breakable == 0) line += " \\";
      end_line(indent + 4);
      line += rest.substr(std::min(rest.size(), rest.find_first_not_of(' ')));
    }
    if (quote == 0 && depth > 0 && (c == '(' || c == ' ')) breakable = line.size();
    if (quote == 0 && depth == 0 && c == ' ' && line.size() < line_width - 1) outside = line.size();
  }
  lines.push_back(line);
  return lines;
}

std::vector<std::string> command_lines(const std::string& command, std::size_t indent, std::size_t width) {
  const std::string text = wrapped(std::string(indent, ' ') + command, indent + 4, width - 2);
  std::vector<std::string> lines;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t to = std::min(text.find('\n', from), text.size());
    lines.push_back(text.substr(from, to - from) + (to < text.size() ? " \\" : ""));
    from = to + 1;
  }
  return lines;
}

std::string shortened(const std::string& path, std::size_t width) {
  if (path.size() <= width || width < 4) return path;
  const std::size_t least = path.size() - (width - 3);  // characters that have to go
  const std::size_t dot = path.find('.', least - 1), blank = path.find(' ');
  const std::size_t from = dot != std::string::npos && (blank == std::string::npos || dot < blank) ? dot + 1 : least;
  return "..." + path.substr(from);
}

Table without_empty_columns(Table t) {
  for (std::size_t i = t.head.size(); i-- > 1;) {
    const bool empty =
        std::all_of(t.rows.begin(), t.rows.end(), [i](const auto& r) { return r[i].empty() || r[i] == "-"; });
    if (!empty) continue;
    const auto at = static_cast<std::ptrdiff_t>(i);
    t.head.erase(t.head.begin() + at);
    for (auto& r : t.rows) r.erase(r.begin() + at);
    if (i < t.left) --t.left;
  }
  return t;
}

SizeScale scale_of(Bytes largest) {
  constexpr std::int64_t mib = std::int64_t{1} << 20, gib = std::int64_t{1} << 30;
  // A hundredth of a GiB is no whole number of bytes; what that leaves is far below the last digit.
  return largest.value() < 2 * gib ? SizeScale{"MiB", mib, 0} : SizeScale{"GiB", gib / 100, 2};
}

std::string show(Bytes b, const SizeScale& s) { return in_steps(rounded(b, s), s); }

std::vector<std::string> show_parts(const std::vector<Bytes>& parts, Bytes whole, const SizeScale& s) {
  std::vector<std::int64_t> steps;
  for (const Bytes b : parts) steps.push_back(b.value() / s.step);
  std::vector<std::size_t> order(parts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  sort_stably(order,
              [&](std::size_t a, std::size_t b) { return parts[a].value() % s.step > parts[b].value() % s.step; });
  std::int64_t left = rounded(whole, s) - std::accumulate(steps.begin(), steps.end(), std::int64_t{0});
  for (const std::size_t i : order)
    if (left-- > 0) ++steps[i];
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < parts.size(); ++i) shown.push_back(parts[i] == Bytes{} ? "-" : in_steps(steps[i], s));
  return shown;
}

}  // namespace vlmest::tool
