// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include <vlmest/tensor/dtype.hpp>
#include <vlmest/unit/words.hpp>

#include "numbers.hpp"

/// Options whose values are checked where they are read. What may be given stands in --help from the same words.
namespace vlmest::tool {

inline constexpr std::int64_t no_upper_limit = std::numeric_limits<std::int64_t>::max();

/// `help` with the limits before the default in brackets: "sequences per GPU [1]" becomes "sequences per GPU, 1 to 8
/// [1]". Without an upper limit, where the model or the device decides what is too much, nothing is said.
std::string with_limits(const std::string& help, const std::string& least, const std::string& most);

/// The number that `text` is, or CLI::ValidationError naming the flag and the limits.
std::int64_t whole_value(const std::string& flag, const std::string& text, std::int64_t least, std::int64_t most);
double decimal_value(const std::string& flag, const std::string& text, double least, double most);

/// A whole number from `least` to `most`.
template <class T>
CLI::Option* add_whole(CLI::App& app, const std::string& flag, T& value, const std::string& help, std::int64_t least,
                       std::int64_t most = no_upper_limit, const std::string& type = "N") {
  const bool open = most == no_upper_limit;
  return app
      .add_option_function<std::string>(
          flag, [=, &value](const std::string& text) { value = static_cast<T>(whole_value(flag, text, least, most)); },
          open ? help : with_limits(help, std::to_string(least), std::to_string(most)))
      ->type_name(type);
}
template <class T>
CLI::Option* add_whole(CLI::App& app, const std::string& flag, std::optional<T>& value, const std::string& help,
                       std::int64_t least, std::int64_t most = no_upper_limit) {
  const bool open = most == no_upper_limit;
  return app
      .add_option_function<std::string>(
          flag, [=, &value](const std::string& text) { value = static_cast<T>(whole_value(flag, text, least, most)); },
          open ? help : with_limits(help, std::to_string(least), std::to_string(most)))
      ->type_name("N");
}

/// A number from `least` to `most`, fractions too.
CLI::Option* add_decimal(CLI::App& app, const std::string& flag, double& value, const std::string& help, double least,
                         double most, const std::string& type);
CLI::Option* add_decimal(CLI::App& app, const std::string& flag, std::optional<double>& value, const std::string& help,
                         double least, double most, const std::string& type);

/// The words of an enum, and of some values alone.
template <HasWords E>
std::vector<std::string> words() {
  return {words_of<E>.begin(), words_of<E>.end()};
}
template <class E, std::size_t N>
std::vector<std::string> words(const std::array<E, N>& some) {
  std::vector<std::string> r;
  for (const E e : some) r.emplace_back(name(e));
  return r;
}
/// "a, b, c".
std::string listed(const std::vector<std::string>& names);

/// Throws CLI::ValidationError that lists `names` where `text` is none of them.
void expect_one_of(const std::string& flag, const std::string& text, const std::vector<std::string>& names);
/// The value that `text` names; likewise.
template <HasWords E>
E choice(const std::string& flag, const std::string& text) {
  expect_one_of(flag, text, words<E>());
  return *value_of<E>(text);
}
template <class E, std::size_t N>
E choice(const std::string& flag, const std::string& text, const std::array<E, N>& some) {
  expect_one_of(flag, text, words(some));
  return *std::find_if(some.begin(), some.end(), [&](E e) { return name(e) == text; });
}

/// One of `names`, which --help and the completion list.
CLI::Option* add_choice(CLI::App& app, const std::string& flag, std::string& value, const std::string& help,
                        const std::vector<std::string>& names);

/// The values that an option takes, from its type's name: "bf16|fp16|fp32", where placeholders such as FILE are in
/// capitals.
std::vector<std::string> values(const CLI::Option& option);
/// Whether FILE or DIR is among the placeholders of its type.
bool takes(const CLI::Option& option, const std::string& placeholder);

}  // namespace vlmest::tool
