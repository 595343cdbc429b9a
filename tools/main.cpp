// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <sstream>
#include <string>
#include <string_view>
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

/// The listed value that is written most like the refused one, where `what` says "'x' is not one of a, b" or "x not in
/// {a,b}".
std::string nearest_value(const std::string& what) {
  static constexpr std::array<std::string_view, 2> marks{" is not one of ", " not in {"};
  for (const std::string_view mark : marks) {
    const auto at = what.find(mark);
    if (at == std::string::npos) continue;
    const auto from = what.rfind(' ', at - 1) + 1;  // behind "--flag: "
    std::string word = what.substr(from, at - from);
    std::erase(word, '\'');
    std::string list = what.substr(at + mark.size());
    std::replace_if(
        list.begin(), list.end(), [](char c) { return c == ',' || c == '}'; }, ' ');
    std::vector<std::string> known;
    std::istringstream words(list);
    for (std::string w; words >> w;) known.push_back(w);
    return nearest(word, known);
  }
  return {};
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
  if (const std::string near = nearest_value(what); !near.empty()) hint = "did you mean " + near + "?";
  return complain(Exit::usage, what.starts_with("--") && colon != std::string::npos ? what : "arguments: " + what,
                  hint);
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
  add_bench(app, action);
  add_calibrate(app, action);
  add_roofline(app, action);
  add_replay(app, action);
  add_diagnose(app, action);
  add_plan(app, action);
  add_watch(app, action);
  add_validate(app, action);
  add_models(app, action);
  add_devices(app, action);
  add_completion(app, action);
  for (CLI::App* s : app.get_subcommands([](CLI::App*) { return true; })) s->allow_extras();

  // Without a subcommand, the flags are estimate's.
  std::vector<std::string> args(argv + 1, argv + argc);
  if (!args.empty() && args.front().starts_with("-") && args.front() != "--help" && args.front() != "-h" &&
      args.front() != "--version")
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
    // A flag that contradicts the model or another flag is wrong usage; a file that a flag names is an input.
    const bool flag =
        e.where.starts_with("--") && e.where != "--device" && e.where != "--output" && e.where != "--timeline";
    return complain(flag ? Exit::usage : Exit::unreadable, e.where + ": " + e.what_happened, e.hint);
  } catch (const std::bad_alloc&) {
    return complain(Exit::unreadable, "memory: the description asks for more than this machine has",
                    "check layer counts and dimensions");
  } catch (const std::exception& e) {
    return complain(Exit::internal, std::string("internal: ") + e.what(), "please report this with the command line");
  }
}
