// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The library is headers alone. A program of many sources may compile its large functions once instead: with
/// VLMEST_COMPILED in every source, headers hold declarations, and the target vlmest::compiled (cmake/compiled.cmake)
/// their definitions, which stand below impl/ in each folder.
#ifdef VLMEST_COMPILED
#define VLMEST_INLINE
#else
#define VLMEST_INLINE inline
#endif
