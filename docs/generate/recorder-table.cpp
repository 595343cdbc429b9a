// SPDX-License-Identifier: Apache-2.0
// Prints bench/recorder/inputs/table.py.
#include <cstdio>

#include "recorder_table.hpp"

int main() { std::fputs(generate::recorder_table(vlmest::json::families()).c_str(), stdout); }
