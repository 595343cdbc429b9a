// SPDX-License-Identifier: Apache-2.0
inline int a_second_time() { return 2; }
