// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include <vlmest/unit/error.hpp>

#include "command/command.hpp"
#include "files.hpp"
#include "shipped.hpp"

namespace {

using namespace vlmest::tool;

int complain(int code, const std::string& what, const std::string& hint) {
  fmt::print(stderr, "error: {}\n", what);
  if (!hint.empty()) fmt::print(stderr, "hint: {}\n", hint);
  return code;
}

/// Names of the options or subcommands that `app` knows.
std::vector<std::string> known_words(const CLI::App& app, bool options) {
  std::vector<std::string> r;
  if (!options)
    for (const CLI::App* s : app.get_subcommands([](const CLI::App*) { return true; })) r.push_back(s->get_name());
  else
    for (const CLI::Option* o : app.get_options()) r.push_back(o->get_name());
  return r;
}

/// One line for a command line that cannot be understood, with what may have been meant.
int usage_error(const CLI::App& app, const CLI::ParseError& e) {
  const CLI::App* at = &app;
  for (const CLI::App* s : app.get_subcommands()) at = s;
  std::string hint = "see 'vlmest " + (at == &app ? std::string() : at->get_name() + " ") + "--help'";
  if (const auto rest = app.remaining(true); !rest.empty()) {
    const std::string near = nearest(rest.front(), known_words(*at, rest.front().starts_with("-")));
    if (!near.empty()) hint = "did you mean " + near + "?";
    return complain(Exit::usage, "arguments: unknown '" + rest.front() + "'", hint);
  }
  std::string what = e.what();
  if (const auto line = what.find('\n'); line != std::string::npos) what.resize(line);
  const auto colon = what.find(": ");
  return complain(Exit::usage, what.starts_with("--") && colon != std::string::npos ? what : "arguments: " + what, hint);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Memory, FLOPs and time of vision-language models, layer by layer"};
  app.name("vlmest");
  app.set_version_flag("--version", "vlmest " + std::string(version()));
  app.require_subcommand(1);
  app.allow_extras();
  Action action;
  add_estimate(app, action);
  add_op(app, action);
  add_models(app, action);
  add_devices(app, action);
  add_completion(app, action);
  for (CLI::App* s : app.get_subcommands([](CLI::App*) { return true; })) s->allow_extras();

  // Without a subcommand, the flags are estimate's.
  std::vector<std::string> args(argv + 1, argv + argc);
  if (!args.empty() && args.front().starts_with("-") && args.front() != "--help" && args.front() != "-h" && args.front() != "--version")
    args.insert(args.begin(), "estimate");
  std::vector<std::string> reversed(args.rbegin(), args.rend());
  try {
    app.parse(reversed);
    if (const auto rest = app.remaining(true); !rest.empty()) throw CLI::ExtrasError(rest);
    return action ? action() : Exit::usage;
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    return usage_error(app, e);
  } catch (const vlmest::Error& e) {
    return complain(Exit::unreadable, e.where + ": " + e.what_happened, e.hint);
  } catch (const std::bad_alloc&) {
    return complain(Exit::unreadable, "memory: the description asks for more than this machine has", "check layer counts and dimensions");
  } catch (const std::exception& e) {
    return complain(Exit::internal, std::string("internal: ") + e.what(), "please report this with the command line");
  }
}
