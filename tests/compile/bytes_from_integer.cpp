// SPDX-License-Identifier: Apache-2.0
// rejected with: conversion from 'int' to non-scalar type|no viable conversion
#include <vlmest/unit/units.hpp>

using namespace vlmest;

#ifdef REJECT
constexpr Bytes bytes = 1;
#else
constexpr Bytes bytes = Bytes(1);
#endif
