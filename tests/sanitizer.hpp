// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Whether AddressSanitizer is compiled in: Clang, and GCC from 14 on, have a feature for it, older GCCs a macro.
#ifdef __has_feature
inline constexpr bool under_address_sanitizer = __has_feature(address_sanitizer);
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr bool under_address_sanitizer = true;
#else
inline constexpr bool under_address_sanitizer = false;
#endif
