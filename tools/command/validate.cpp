// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <memory>

#include <fmt/core.h>

#include <vlmest/json/measured_file.hpp>
#include <vlmest/report/compare_run.hpp>

#include "args.hpp"
#include "catalogue.hpp"
#include "command.hpp"
#include "files.hpp"
#include "flag_rules.hpp"
#include "options.hpp"
#include "output/json_document.hpp"
#include "output/validation_report.hpp"
#include "plan_flags.hpp"
#include "row_models.hpp"
#include "streams.hpp"

namespace vlmest::tool {
namespace {

struct ValidateOptions {
  std::vector<std::string> files;
  std::string device = "h200-sxm";
  std::vector<std::string> models, limits, quantities;
  std::size_t top = 1;
  bool rows = false;
  Output output;
};

/// "prefill_peak=3", "median:prefill_peak=1", "mean:linear_time=5%": without a word in front it is the worst row's.
ErrorLimit parse_limit(const std::string& text) {
  const CLI::ValidationError wrong("--limit",
                                   "'" + text + "' is not QUANTITY=PERCENT or worst|mean|median:QUANTITY=PERCENT");
  const auto equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) throw wrong;
  ErrorLimit l{.quantity = text.substr(0, equals)};
  if (const auto colon = l.quantity.find(':'); colon != std::string::npos) {
    const auto known = value_of<Statistic>(l.quantity.substr(0, colon));
    if (!known) throw wrong;
    l.statistic = *known;
    l.quantity.erase(0, colon + 1);
  }
  const char *first = text.data() + equals + 1, *last = text.data() + text.size();
  if (first != last && last[-1] == '%') --last;
  const auto percent = decimal_number({first, static_cast<std::size_t>(last - first)});
  if (!percent || !(*percent >= 0)) throw wrong;
  l.percent = *percent;
  return l;
}

/// What can be named: the quantities of runs and operations, and those that the files measured besides.
std::vector<std::string> known_quantities(const std::vector<Comparison>& all) {
  std::vector<std::string> r;
  for (const auto& q : run_quantities) r.emplace_back(q.name);
  for (const auto c : words_of<OpKind>)
    for (const auto f : op_figures) r.push_back(std::string(c) + std::string(f));
  for (const auto& c : all)
    if (std::find(r.begin(), r.end(), c.quantity) == r.end()) r.push_back(c.quantity);
  return r;
}

void expect_known(const std::string& flag, const std::string& quantity, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), quantity) != known.end()) return;
  const std::string near = nearest(quantity, known);
  throw Error(flag, "unknown quantity '" + quantity + "'",
              near.empty() ? "docs/reference/measured-rows.md lists them" : "did you mean " + near + "?");
}

/// Those that are asked for (all where none is named) and were measured, in the order of reports.
std::vector<std::string> shown_quantities(const std::vector<std::string>& known, const std::vector<std::string>& asked,
                                          const std::vector<Comparison>& all) {
  std::vector<std::string> r;
  for (const auto& q : known) {
    const bool measured = std::any_of(all.begin(), all.end(), [&](const Comparison& c) { return c.quantity == q; });
    const bool wanted = asked.empty() || std::find(asked.begin(), asked.end(), q) != asked.end();
    if (measured && wanted) r.push_back(q);
  }
  return r;
}

/// Words and numbers in small letters: "nvidia", "a100", "sxm4", "80gb".
std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> r(1);
  for (const char c : text) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalnum(letter) != 0)
      r.back() += static_cast<char>(std::tolower(letter));
    else if (!r.back().empty())
      r.emplace_back();
  }
  return r;
}

/// Whether a GPU's name as the driver gives it holds the chip that a device is named after: "h200-sxm", "rtx-4090".
bool names_chip(const std::string& recorded, const std::string& device) {
  const auto has_digit = [](const std::string& w) { return w.find_first_of("0123456789") != std::string::npos; };
  const auto of_device = words(device), of_gpu = words(recorded);
  const auto chip = std::find_if(of_device.begin(), of_device.end(), has_digit);
  return chip == of_device.end() || std::find(of_gpu.begin(), of_gpu.end(), *chip) != of_gpu.end();
}

class Validation {
 public:
  explicit Validation(const ValidateOptions& o) : device_(find_device(o.device)), models_(o.models) {}

  void add(const std::string& file) {
    const std::string where = file == "-" ? "standard input" : file;
    json::MeasuredFile f;
    try {
      f = json::read_measured(read_file(file), where, device_.sm);
    } catch (const Error& e) {
      problems_.push_back(e);
      return;
    }
    ValidatedFile r{.name = where, .kind = f.kind, .device = f.device, .rows = f.rows, .throttled = f.throttled};
    for (const auto& e : f.problems) problems_.push_back(e);
    r.fitted = f.fitted;
    for (const auto& [at, run, own] : f.runs) try {
        r.compared += add(f, own, at, compare(run, models_.find(run, file), device_, estimator_));
      } catch (const Error& e) {
        // The model may be named by its key or by a file of its own; the row's place leads to both.
        problems_.push_back(in_flags(Error(at + ": " + e.where, e.what_happened, e.hint)));
      }
    for (const auto& [at, op, own] : f.ops) try {
        r.compared += add(f, own, at, compare(op, device_));
      } catch (const Error& e) {
        problems_.push_back(in_flags(Error(at + ": " + e.where, e.what_happened, e.hint)));
      }
    if (f.rows == 0) problems_.emplace_back(where, "holds no rows", "record some, or leave the file out");
    r.skipped = std::move(f.skipped);
    files_.push_back(std::move(r));
  }

  /// Rows of another GPU than the one that is predicted say nothing about the prediction.
  void note_other_devices() const {
    for (const auto& f : files_)
      if (!f.device.empty() && !names_chip(f.device, device_.name))
        say(fmt::format("note: {} was measured on {}, the figures are predicted for {}: --device names another", f.name,
                        f.device, device_.name));
  }

  /// Each problem once, with the number of rows that have it.
  void complain() const {
    std::vector<std::pair<const Error*, std::size_t>> distinct;
    for (const auto& e : problems_) {
      const auto same = std::find_if(distinct.begin(), distinct.end(), [&](const auto& d) {
        return d.first->what_happened == e.what_happened && d.first->hint == e.hint;
      });
      if (same == distinct.end())
        distinct.emplace_back(&e, 0);
      else
        ++same->second;
    }
    for (const auto& [e, more] : distinct) {
      say(fmt::format("error: {}: {}{}", e->where, e->what_happened,
                      more == 0 ? "" : fmt::format(" (and {} more)", more)));
      if (!e->hint.empty()) say("hint: " + e->hint);
    }
  }

  bool complete() const { return problems_.empty(); }
  const std::vector<Comparison>& all() const { return all_; }
  Validated take(std::vector<ErrorLimit> limits, std::vector<std::string> quantities) {
    return {device_, std::move(files_), std::move(all_), std::move(limits), std::move(quantities)};
  }

 private:
  std::size_t add(const json::MeasuredFile& f, Fitted own, const std::string& at, std::vector<Comparison> some) {
    for (auto& c : some) {
      c.where = at;
      c.fitted = f.fitted_to(c.quantity, own);
      all_.push_back(std::move(c));
    }
    return 1;
  }

  Device device_;
  RowModels models_;
  Estimator estimator_;
  std::vector<ValidatedFile> files_;
  std::vector<Comparison> all_;
  std::vector<Error> problems_;
};

/// The report, and on standard error what is wrong where the report does not say it or is not seen.
void write(const ValidateOptions& o, const Validated& v) {
  const ValidationOptions shown{.top = o.top, .every_row = o.rows, .color = o.output.colored()};
  switch (o.output.format) {
    case Format::text: o.output.write(validation_text(v, shown)); break;
    case Format::markdown: o.output.write(validation_markdown(v, shown)); break;
    case Format::csv: o.output.write(validation_csv(v)); break;
    case Format::json: o.output.write(json_document(validation_json(v))); break;
  }
  if (o.output.file.empty() && (o.output.format == Format::text || o.output.format == Format::markdown)) return;
  for (const auto& line : broken_limits(v)) say(line);
}

int validate(const ValidateOptions& o) {
  std::vector<ErrorLimit> limits;
  for (const auto& l : o.limits) limits.push_back(parse_limit(l));
  Validation validation(o);
  for (const auto& file : o.files) validation.add(file);

  const auto known = known_quantities(validation.all());
  for (const auto& l : limits) expect_known("--limit", l.quantity, known);
  for (const auto& q : o.quantities) expect_known("--quantity", q, known);
  validation.note_other_devices();
  if (validation.all().empty()) {
    if (validation.complete())
      throw Error(o.files.front() == "-" ? "standard input" : o.files.front(), "no row has anything to compare",
                  "docs/reference/measured-rows.md lists what can be");
    validation.complain();
    return Exit::unreadable;
  }
  auto quantities = shown_quantities(known, o.quantities, validation.all());
  const Validated v = validation.take(std::move(limits), std::move(quantities));
  write(o, v);
  validation.complain();
  if (!broken_limits(v).empty()) return Exit::no;
  return validation.complete() ? Exit::done : Exit::unreadable;
}

}  // namespace

void add_validate(CLI::App& app, Action& action) {
  auto o = std::make_shared<ValidateOptions>();
  CLI::App* sub = app.add_subcommand("validate", "measured rows beside their estimates, and limits of the errors");
  sub->add_option("files", o->files, "rows of whole models, or Google Benchmark's JSON; - for standard input")
      ->type_name("FILE")
      ->required();
  sub->add_option("--device", o->device, "the GPU they were measured on: a shipped device or a file [h200-sxm]")
      ->type_name("NAME|FILE");
  sub->add_option("--models", o->models, "a folder with configs of the rows' models; may be repeated")
      ->type_name("DIR")
      ->allow_extra_args(false);
  sub->add_option("--limit", o->limits, "exit with 1 where an error is larger; may be repeated")
      ->type_name("[worst|mean|median:]QUANTITY=PERCENT")
      ->allow_extra_args(false);
  sub->add_option("--quantity", o->quantities, "show these alone")
      ->delimiter(',')
      ->type_name("NAME[,NAME]")
      ->allow_extra_args(false);
  sub->add_flag("--rows", o->rows, "list every row");
  add_whole(*sub, "--top", o->top, "worst rows of each quantity to list [1]", 0);
  o->output.add_to(*sub);
  sub->callback([o, sub, &action] {
    const GivenFlags given(*sub);
    o->output.resolve(*sub);
    if (o->output.format == Format::json || o->output.format == Format::csv)
      given.no_effect({"--rows", "--top"}, "on JSON and CSV, which hold every row", "leave it out");
    if (o->rows) given.no_effect({"--top"}, "with --rows, which lists them all", "leave one of them out");
    action = [o] { return validate(*o); };
  });
}

}  // namespace vlmest::tool
