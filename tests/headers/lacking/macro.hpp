// SPDX-License-Identifier: Apache-2.0
#pragma once

inline int four() { return BASE_TWICE(2); }
