// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

int main(int argc, char** argv) { return vlmest::tool::program(argc, argv); }
