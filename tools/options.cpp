// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <algorithm>
#include <cctype>
#include <sstream>

#include <fmt/core.h>
#include <fmt/ranges.h>

namespace vlmest::tool {
namespace {

/// "bf16|fp16", "PART[,PART]": the words between marks.
std::vector<std::string> type_words(const CLI::Option& option) {
  std::string type = option.get_type_name();
  std::replace_if(
      type.begin(), type.end(), [](char c) { return c == '|' || c == '[' || c == ']' || c == ','; }, ' ');
  std::istringstream in(type);
  std::vector<std::string> r;
  for (std::string w; in >> w;) r.push_back(w);
  return r;
}

bool is_placeholder(const std::string& word) {
  return std::any_of(word.begin(), word.end(), [](unsigned char c) { return std::isupper(c) != 0; });
}

}  // namespace

std::string with_limits(const std::string& help, const std::string& least, const std::string& most) {
  const auto at = std::min(help.rfind(" ["), help.size());
  return help.substr(0, at) + ", " + least + " to " + most + help.substr(at);
}

std::int64_t whole_value(const std::string& flag, const std::string& text, std::int64_t least, std::int64_t most) {
  const auto n = whole_number(text);
  if (n && *n >= least && *n <= most) return *n;
  const std::string limits =
      most == no_upper_limit ? fmt::format("of {} or more", least) : fmt::format("from {} to {}", least, most);
  throw CLI::ValidationError(flag, "'" + text + "' is not a whole number " + limits);
}

double decimal_value(const std::string& flag, const std::string& text, double least, double most) {
  const auto x = decimal_number(text);
  if (x && *x >= least && *x <= most) return *x;
  throw CLI::ValidationError(flag, fmt::format("'{}' is not a number from {} to {}", text, plain(least), plain(most)));
}

CLI::Option* add_decimal(CLI::App& app, const std::string& flag, double& value, const std::string& help, double least,
                         double most, const std::string& type) {
  return app
      .add_option_function<std::string>(
          flag, [=, &value](const std::string& text) { value = decimal_value(flag, text, least, most); },
          with_limits(help, plain(least), plain(most)))
      ->type_name(type);
}

CLI::Option* add_decimal(CLI::App& app, const std::string& flag, std::optional<double>& value, const std::string& help,
                         double least, double most, const std::string& type) {
  return app
      .add_option_function<std::string>(
          flag, [=, &value](const std::string& text) { value = decimal_value(flag, text, least, most); },
          with_limits(help, plain(least), plain(most)))
      ->type_name(type);
}

std::string listed(const std::vector<std::string>& names) { return fmt::format("{}", fmt::join(names, ", ")); }

void expect_one_of(const std::string& flag, const std::string& text, const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), text) == names.end())
    throw CLI::ValidationError(flag, fmt::format("'{}' is not one of {}", text, listed(names)));
}

CLI::Option* add_choice(CLI::App& app, const std::string& flag, std::string& value, const std::string& help,
                        const std::vector<std::string>& names) {
  return app
      .add_option_function<std::string>(
          flag,
          [=, &value](const std::string& text) {
            expect_one_of(flag, text, names);
            value = text;
          },
          help)
      ->type_name(fmt::format("{}", fmt::join(names, "|")));
}

std::vector<std::string> values(const CLI::Option& option) {
  std::vector<std::string> r = type_words(option);
  std::erase_if(r, is_placeholder);
  return r;
}

bool takes(const CLI::Option& option, const std::string& placeholder) {
  const std::vector<std::string> words = type_words(option);
  return std::find(words.begin(), words.end(), placeholder) != words.end();
}

}  // namespace vlmest::tool
