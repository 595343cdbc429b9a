// SPDX-License-Identifier: Apache-2.0
// Prints lib/vlmest/diagnose/verdict/report_words_table.hpp.
#include <cstdio>

#include "report_words.hpp"

int main() { std::fputs(generate::report_words_table().c_str(), stdout); }
