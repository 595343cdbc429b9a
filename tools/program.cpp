// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include <algorithm>
#include <exception>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include <vlmest/unit/error.hpp>

#include "catalogue.hpp"
#include "command/command.hpp"
#include "foreign_flags.hpp"
#include "help.hpp"
#include "plan_flags.hpp"
#include "shipped.hpp"
#include "streams.hpp"

namespace vlmest::tool {
namespace {

int complain(int code, const std::string& what, const std::string& hint) {
  say("error: " + what);
  if (!hint.empty()) say("hint: " + hint);
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

/// The listed value that is written most like the refused one, where `what` says "--flag: 'x' is not one of a, b".
std::string nearest_value(const std::string& what) {
  static constexpr std::string_view mark = "' is not one of ";
  const auto at = what.find(mark), from = what.find('\'') + 1;
  if (at == std::string::npos || from > at) return {};
  std::string list = what.substr(at + mark.size());
  std::replace(list.begin(), list.end(), ',', ' ');
  std::vector<std::string> known;
  std::istringstream words(list);
  for (std::string w; words >> w;) known.push_back(w);
  return nearest(what.substr(from, at - from), known);
}

/// One line for a command line that cannot be understood, with what may have been meant.
int usage_error(const CLI::App& app, const CLI::ParseError& e) {
  const CLI::App* at = &app;
  for (const CLI::App* s : app.get_subcommands()) at = s;
  std::string hint = "see 'vlmest " + (at == &app ? std::string() : at->get_name() + " ") + "--help'";
  if (const auto rest = app.remaining(true); !rest.empty()) {
    const bool is_flag = rest.front().starts_with("-");
    const std::string word = rest.front().substr(0, rest.front().find('='));
    const std::vector<std::string> known = known_words(*at, is_flag);
    const std::string near = nearest(word, known), ours = is_flag ? our_flag(word, known) : std::string();
    if (!ours.empty())
      hint = ours;
    else if (!near.empty())
      hint = "did you mean " + near + "?";
    return complain(Exit::usage, "arguments: unknown '" + rest.front() + "'", hint);
  }
  std::string what = e.what();
  if (const auto line = what.find('\n'); line != std::string::npos) what.resize(line);
  const auto colon = what.find(": ");
  if (const std::string near = nearest_value(what); !near.empty()) hint = "did you mean " + near + "?";
  return complain(Exit::usage, what.starts_with("--") && colon != std::string::npos ? what : "arguments: " + what,
                  hint);
}

/// What a flag is wrong with, or an input that it names.
bool is_usage(const vlmest::Error& e) {
  return e.where.starts_with("--") && e.where != "--device" && e.where != "--output" && e.where != "--timeline" &&
         e.where != "--save";
}

int called_with(CLI::App& app, const Action& action, const std::vector<std::string>& args) try {
  app.parse(std::vector<std::string>(args.rbegin(), args.rend()));
  if (const auto rest = app.remaining(true); !rest.empty()) throw CLI::ExtrasError(rest);
  return action ? action() : Exit::usage;
} catch (const CLI::Success& e) {
  std::ostringstream out;
  app.exit(e, out, out);
  write_answer(out.str());
  return Exit::done;
} catch (const CLI::ParseError& e) {
  return usage_error(app, e);
}

}  // namespace

int program(int argc, char** argv) {
  keep_standard_streams();
  CLI::App app{"Memory, FLOPs and time of vision-language models, layer by layer"};
  app.name("vlmest");
  app.formatter_fn([](const CLI::App* a, const std::string&, CLI::AppFormatMode) { return help_text(*a); });
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
  std::vector<std::string> args(argv + std::min(argc, 1), argv + argc);
  if (!args.empty() && args.front().starts_with("-") && args.front() != "--help" && args.front() != "-h" &&
      args.front() != "--version")
    args.insert(args.begin(), "estimate");
  try {
    if (!args.empty()) return called_with(app, action, args);
    write_answer(short_help());
    return Exit::usage;
  } catch (const UsageError& e) {
    return complain(Exit::usage, e.where + ": " + e.what_happened, e.hint);
  } catch (const WriteError& e) {
    return complain(Exit::internal, e.where + ": " + e.what_happened, e.hint);
  } catch (const vlmest::Error& thrown) {
    const vlmest::Error e = in_flags(thrown);
    // A flag that contradicts the model or another flag is wrong usage; a file that a flag names is an input.
    return complain(is_usage(e) ? Exit::usage : Exit::unreadable, e.where + ": " + e.what_happened, e.hint);
  } catch (const std::bad_alloc&) {
    return complain(Exit::unreadable, "memory: the description asks for more than this machine has",
                    "check layer counts and dimensions");
  } catch (const std::exception& e) {
    return complain(Exit::internal, std::string("internal: ") + e.what(), "please report this with the command line");
  }
}

}  // namespace vlmest::tool
