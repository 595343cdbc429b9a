// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "command.hpp"

namespace vlmest::tool {
namespace {

/// The long flags of a command, or its subcommands.
std::vector<std::string> words(const CLI::App& app, bool flags) {
  std::vector<std::string> r;
  if (flags) {
    for (const CLI::Option* o : app.get_options())
      if (!o->get_group().empty())  // those without are hidden from --help as well
        for (const auto& l : o->get_lnames()) r.push_back("--" + l);
  } else {
    for (const CLI::App* s : app.get_subcommands([](const CLI::App*) { return true; })) r.push_back(s->get_name());
  }
  return r;
}

std::string bash(const CLI::App& app) {
  std::string cases;
  for (const CLI::App* s : app.get_subcommands([](const CLI::App*) { return true; }))
    cases += fmt::format("    {}) words='{}' ;;\n", s->get_name(), fmt::join(words(*s, true), " "));
  return fmt::format(
      "_vlmest() {{\n"
      "  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} words\n"
      "  case $prev in\n"
      "    --config) COMPREPLY=($(compgen -f -W \"$(vlmest models --format csv 2>/dev/null | tail -n +2 | cut -d, "
      "-f1)\" -- \"$cur\")); return ;;\n"
      "    --device) COMPREPLY=($(compgen -f -W \"$(vlmest devices --format csv 2>/dev/null | tail -n +2 | cut -d, "
      "-f1)\" -- \"$cur\")); return ;;\n"
      "  esac\n"
      "  case ${{COMP_WORDS[1]}} in\n{}    *) words='{} {}' ;;\n  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
      "}}\ncomplete -o default -F _vlmest vlmest\n",
      cases, fmt::join(words(app, false), " "), fmt::join(words(*app.get_subcommand("estimate"), true), " "));
}

std::string zsh(const CLI::App& app) {
  return "#compdef vlmest\nautoload -U +X bashcompinit && bashcompinit\n" + bash(app);
}

std::string fish(const CLI::App& app) {
  std::string out;
  for (const CLI::App* s : app.get_subcommands([](const CLI::App*) { return true; })) {
    out +=
        fmt::format("complete -c vlmest -n __fish_use_subcommand -a {} -d '{}'\n", s->get_name(), s->get_description());
    for (const CLI::Option* o : s->get_options())
      for (const auto& l : o->get_group().empty() ? std::vector<std::string>{} : o->get_lnames())
        out += fmt::format("complete -c vlmest -n '__fish_seen_subcommand_from {}' -l {}\n", s->get_name(), l);
  }
  return out;
}

}  // namespace

void add_completion(CLI::App& app, Action& action) {
  auto shell = std::make_shared<std::string>();
  CLI::App* sub = app.add_subcommand("completion", "a completion script for bash, zsh or fish");
  sub->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}))
      ->type_name("SHELL");
  sub->callback([shell, &app, &action] {
    action = [shell, &app] {
      const std::string s = *shell == "bash" ? bash(app) : *shell == "zsh" ? zsh(app) : fish(app);
      std::fwrite(s.data(), 1, s.size(), stdout);
      return static_cast<int>(Exit::done);
    };
  });
}

}  // namespace vlmest::tool
