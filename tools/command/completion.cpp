// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "command.hpp"
#include "options.hpp"
#include "streams.hpp"

namespace vlmest::tool {
namespace {

constexpr const char* list_models = "vlmest models --format csv 2>/dev/null | tail -n +2 | cut -d, -f1";
constexpr const char* list_devices = "vlmest devices --format csv 2>/dev/null | tail -n +2 | cut -d, -f1";

std::vector<const CLI::App*> commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

/// The options of a command that --help shows, without its arguments.
std::vector<const CLI::Option*> flags(const CLI::App& app) {
  std::vector<const CLI::Option*> r;
  for (const CLI::Option* o : app.get_options())
    if (!o->get_group().empty() && !o->get_lnames().empty()) r.push_back(o);
  return r;
}

/// What may follow a flag, for the shells that this program writes scripts for.
enum class Completed { nothing, words, file, folder, model, device };

Completed completed(const CLI::Option& o) {
  if (o.get_items_expected_max() == 0 && !o.get_positional()) return Completed::nothing;
  if (takes(o, "MODEL")) return Completed::model;
  if (takes(o, "NAME") && takes(o, "FILE")) return Completed::device;
  if (takes(o, "FILE")) return Completed::file;
  if (takes(o, "DIR")) return Completed::folder;
  return values(o).empty() ? Completed::nothing : Completed::words;
}

/// The flags of a command, or the commands.
std::vector<std::string> words(const CLI::App& app, bool of_flags) {
  std::vector<std::string> r;
  if (of_flags)
    for (const CLI::Option* o : flags(app))
      for (const auto& l : o->get_lnames()) r.push_back("--" + l);
  else
    for (const CLI::App* s : commands(app)) r.push_back(s->get_name());
  return r;
}

/// The argument of a command, as one option says it.
const CLI::Option* argument(const CLI::App& app) {
  for (const CLI::Option* o : app.get_options())
    if (o->get_positional()) return o;
  return nullptr;
}

/// What bash offers after a flag or as an argument.
std::string bash_reply(const CLI::Option& o) {
  switch (completed(o)) {
    case Completed::model: return fmt::format("COMPREPLY=($(compgen -f -W \"$({})\" -- \"$cur\"))", list_models);
    case Completed::device: return fmt::format("COMPREPLY=($(compgen -f -W \"$({})\" -- \"$cur\"))", list_devices);
    case Completed::file: return "COMPREPLY=($(compgen -f -- \"$cur\"))";
    case Completed::folder: return "COMPREPLY=($(compgen -d -- \"$cur\"))";
    case Completed::words: return fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$cur\"))", fmt::join(values(o), " "));
    case Completed::nothing: break;
  }
  return "COMPREPLY=()";
}

std::string bash(const CLI::App& app) {
  std::string after, offered;
  for (const CLI::App* s : commands(app)) {
    const std::string name = s->get_name();
    for (const CLI::Option* o : flags(*s))
      if (o->get_items_expected_max() != 0)
        for (const auto& l : o->get_lnames())
          after += fmt::format("    {}:--{}) {}; return ;;\n", name, l, bash_reply(*o));
    offered += fmt::format("    {}) words='{}'", name, fmt::join(words(*s, true), " "));
    if (const CLI::Option* a = argument(*s))
      offered += fmt::format("; if [[ $cur != -* ]]; then {}; return; fi", bash_reply(*a));
    offered += " ;;\n";
  }
  return fmt::format(
      "_vlmest() {{\n"
      "  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}} words\n"
      "  if (( COMP_CWORD == 1 )); then\n"
      "    COMPREPLY=($(compgen -W '{} --help --version {}' -- \"$cur\")); return\n"
      "  fi\n"
      "  if [[ $command == -* ]]; then command=estimate; fi\n"
      "  if [[ $prev == = ]]; then prev=${{COMP_WORDS[COMP_CWORD-2]}}; fi\n"
      "  if [[ $cur == = ]]; then cur=; fi\n"
      "  case $command:$prev in\n{}  esac\n"
      "  case $command in\n{}  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
      "}}\ncomplete -F _vlmest vlmest\n",
      fmt::join(words(app, false), " "), fmt::join(words(*app.get_subcommand("estimate"), true), " "), after, offered);
}

/// In single quotes, for zsh's _arguments: brackets and colons there mean something.
std::string zsh_text(const std::string& s) {
  std::string r;
  for (const char c : s) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') r += '\\';
    r += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return r;
}

std::string zsh_action(const CLI::Option& o) {
  switch (completed(o)) {
    case Completed::model: return "_vlmest_models";
    case Completed::device: return "_vlmest_devices";
    case Completed::file: return "_files";
    case Completed::folder: return "_files -/";
    case Completed::words: return fmt::format("({})", fmt::join(values(o), " "));
    case Completed::nothing: break;
  }
  return " ";
}

std::string zsh(const CLI::App& app) {
  std::string names, cases;
  for (const CLI::App* s : commands(app)) {
    names += fmt::format("    '{}:{}'\n", s->get_name(), zsh_text(s->get_description()));
    cases += fmt::format("    {}) _arguments \\\n", s->get_name());
    for (const CLI::Option* o : flags(*s))
      for (const auto& l : o->get_lnames()) {
        const bool takes_value = o->get_items_expected_max() != 0;
        cases += fmt::format("      '--{}{}[{}]{}' \\\n", l, takes_value ? "=" : "", zsh_text(o->get_description()),
                             takes_value ? fmt::format(":{}:{}", zsh_text(l), zsh_action(*o)) : "");
      }
    if (const CLI::Option* a = argument(*s))
      cases += fmt::format("      '*:{}:{}' \\\n", zsh_text(a->get_name()), zsh_action(*a));
    cases += "      ;;\n";
  }
  return fmt::format(
      "#compdef vlmest\n"
      "_vlmest_models() {{ _alternative \"models:model:($({}))\" 'files:file:_files' }}\n"
      "_vlmest_devices() {{ _alternative \"devices:device:($({}))\" 'files:file:_files' }}\n"
      "_vlmest() {{\n"
      "  local -a commands=(\n{}  )\n"
      "  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then _describe command commands; return; fi\n"
      "  local command=$words[2]\n"
      "  if [[ $command == -* ]]; then command=estimate; else shift words; (( CURRENT-- )); fi\n"
      "  case $command in\n{}  esac\n"
      "}}\n"
      "if [[ $funcstack[1] == _vlmest ]]; then _vlmest \"$@\"; else compdef _vlmest vlmest; fi\n",
      list_models, list_devices, names, cases);
}

std::string fish_text(const std::string& s) {
  std::string r;
  for (const char c : s) r += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return r;
}

/// The end of a line of fish's `complete`: what follows a flag.
std::string fish_values(const CLI::Option& o) {
  switch (completed(o)) {
    case Completed::model: return fmt::format(" -r -F -a '({})'", list_models);
    case Completed::device: return fmt::format(" -r -F -a '({})'", list_devices);
    case Completed::file: return " -r -F";
    case Completed::folder: return " -x -a '(__fish_complete_directories)'";
    case Completed::words: return fmt::format(" -x -a '{}'", fmt::join(values(o), " "));
    case Completed::nothing: break;
  }
  return o.get_items_expected_max() == 0 ? "" : " -x";
}

std::string fish(const CLI::App& app) {
  std::string out = "complete -c vlmest -f\n";
  const auto names = words(app, false);
  for (const CLI::App* s : commands(app)) {
    const std::string name = s->get_name();
    out += fmt::format("complete -c vlmest -n __fish_use_subcommand -a {} -d '{}'\n", name,
                       fish_text(s->get_description()));
    // Flags without a command are estimate's.
    const std::string when =
        name == "estimate" ? fmt::format("not __fish_seen_subcommand_from {}; or __fish_seen_subcommand_from estimate",
                                         fmt::join(names, " "))
                           : "__fish_seen_subcommand_from " + name;
    for (const CLI::Option* o : flags(*s))
      for (const auto& l : o->get_lnames())
        out += fmt::format("complete -c vlmest -n '{}' -l {} -d '{}'{}\n", when, l, fish_text(o->get_description()),
                           fish_values(*o));
    if (const CLI::Option* a = argument(*s))
      out += fmt::format(
          "complete -c vlmest -n '{}'{}\n", when,
          completed(*a) == Completed::words ? fmt::format(" -a '{}'", fmt::join(values(*a), " ")) : std::string(" -F"));
  }
  return out;
}

}  // namespace

void add_completion(CLI::App& app, Action& action) {
  auto shell = std::make_shared<std::string>();
  CLI::App* sub = app.add_subcommand("completion", "a completion script for bash, zsh or fish");
  add_choice(*sub, "shell", *shell, "what it is for", {"bash", "zsh", "fish"})->required();
  sub->callback([shell, &app, &action] {
    action = [shell, &app] {
      write_answer(*shell == "bash" ? bash(app) : *shell == "zsh" ? zsh(app) : fish(app));
      return static_cast<int>(Exit::done);
    };
  });
}

}  // namespace vlmest::tool
