// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "shipped.hpp"

int main(int argc, char** argv) {
  CLI::App app{"Memory, FLOPs and time of vision-language models"};
  app.set_version_flag("--version", "vlmest " + std::string(vlmest::tool::version()));
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    return app.exit(done);
  } catch (const CLI::ParseError& wrong) {
    fmt::print(stderr, "error: arguments: {}\nhint: try vlmest --help\n", wrong.what());
    return 2;
  }
  return 0;
}
