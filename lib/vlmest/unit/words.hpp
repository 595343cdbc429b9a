// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace vlmest {

/// The words of an enum in the order of its values: what is read, printed, offered as a choice and listed in messages.
/// Its array of them stands beside the enum: `template <> inline constexpr std::array<std::string_view, N>
/// words_of<E>`.
template <class E>
inline constexpr int words_of = 0;

/// An enum with such an array.
template <class E>
concept HasWords = requires {
  words_of<E>.size();
};

template <HasWords E>
constexpr std::string_view name(E e) {
  return words_of<E>[static_cast<std::size_t>(e)];
}

/// The value of that word; nothing where there is none.
template <HasWords E>
constexpr std::optional<E> value_of(std::string_view word) {
  for (std::size_t i = 0; i < words_of<E>.size(); ++i)
    if (words_of<E>[i] == word) return static_cast<E>(i);
  return std::nullopt;
}

}  // namespace vlmest
