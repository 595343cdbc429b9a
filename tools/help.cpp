// SPDX-License-Identifier: Apache-2.0
#include "help.hpp"

#include <sstream>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace vlmest::tool {
namespace {

constexpr std::size_t help_width = 100, help_column = 28;

/// `left` and, from a column on, `right` in lines of at most the width.
std::string help_entry(const std::string& left, const std::string& right) {
  std::string out = "  " + left;
  // What does not fit before the column has a line of its own.
  std::size_t at = out.size() + 2 > help_column ? help_width : out.size();
  std::istringstream words(right);
  bool first = true;
  for (std::string w; words >> w; first = false) {
    if (at + 1 + w.size() > help_width || first) {
      if (at > help_column || !first) {
        out += "\n";
        at = 0;
      }
      out += std::string(help_column - at, ' ');
      at = help_column;
    } else {
      out += ' ';
      ++at;
    }
    out += w;
    at += w.size();
  }
  return out + "\n";
}

std::string flag_words(const CLI::Option& o) {
  std::string r;
  for (const auto& s : o.get_snames()) r += (r.empty() ? "-" : ", -") + s;
  for (const auto& l : o.get_lnames()) r += (r.empty() ? "--" : ", --") + l;
  if (r.empty()) r = o.get_name();
  const std::string type = o.get_type_name();
  if (o.get_items_expected_max() != 0 && !type.empty() && !o.get_positional()) r += " " + type;
  return r;
}

bool shown(const CLI::Option& o) { return !o.get_group().empty(); }

std::string usage_line(const CLI::App& app) {
  std::string r = "Usage: " + (app.get_parent() != nullptr ? "vlmest " : std::string()) + app.get_name();
  if (app.get_parent() == nullptr) return r + " COMMAND [FLAGS]\n";
  bool flags = false;
  for (const CLI::Option* o : app.get_options()) {
    if (!shown(*o) || o->get_positional()) continue;
    if (o->get_required())
      r += " " + flag_words(*o);
    else
      flags = true;
  }
  if (flags) r += " [FLAGS]";
  for (const CLI::Option* o : app.get_options())
    if (o->get_positional()) {
      const std::string word = o->get_type_name() + (o->get_items_expected_max() > 1 ? "..." : "");
      r += " " + (o->get_required() ? word : "[" + word + "]");
    }
  return r + "\n";
}

}  // namespace

std::string help_text(const CLI::App& app) {
  std::string out = app.get_description() + "\n" + usage_line(app);
  std::vector<std::pair<std::string, std::string>> groups;
  const auto add = [&](const std::string& group, const std::string& entry) {
    for (auto& [name, text] : groups)
      if (name == group) {
        text += entry;
        return;
      }
    groups.emplace_back(group, entry);
  };
  for (const CLI::Option* o : app.get_options())
    if (shown(*o) && o->get_positional()) add("Arguments", help_entry(o->get_type_name(), o->get_description()));
  for (const CLI::Option* o : app.get_options())
    if (shown(*o) && !o->get_positional() && o != app.get_help_ptr())
      add(o->get_group(), help_entry(flag_words(*o), o->get_description()));
  for (const CLI::App* s : app.get_subcommands([](const CLI::App*) { return true; }))
    add("Commands", help_entry(s->get_name(), s->get_description()));
  // Every command has it, and nobody looks for it first.
  const std::string last = groups.empty() ? "Options" : groups.back().first;
  add(app.get_parent() == nullptr ? "Options" : last,
      help_entry(flag_words(*app.get_help_ptr()), app.get_help_ptr()->get_description()));
  for (const auto& [name, text] : groups) out += "\n" + name + ":\n" + text;
  return out;
}

std::string short_help() {
  return "vlmest tells what a vision-language model takes before it runs: memory, FLOPs and time.\n"
         "\n"
         "  vlmest --config qwen2.5-vl-7b --device l40s --batch 4             what inference and training take\n"
         "  vlmest plan --config qwen2.5-vl-7b --device rtx-4090 --lora 16    settings that fit a GPU\n"
         "  vlmest diagnose train.log --config qwen2.5-vl-7b --batch 4        why a run is out of memory\n"
         "\n"
         "'vlmest models' and 'vlmest devices' list what --config and --device know by name; --config also\n"
         "takes a config.json. 'vlmest --help' lists the commands, 'vlmest COMMAND --help' their flags.\n";
}

}  // namespace vlmest::tool
