// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vlmest::tool {

/// Does what the command line says and returns the program's exit code.
int program(int argc, char** argv);

}  // namespace vlmest::tool
