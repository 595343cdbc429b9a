// SPDX-License-Identifier: Apache-2.0
#include "estimate_report.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/core.h>

#include <vlmest/nn/sequence_layout.hpp>
#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/unit/sort_stably.hpp>

#include "lines.hpp"
#include "numbers.hpp"
#include "peak_table.hpp"
#include "several_gpus.hpp"
#include "slow_shapes.hpp"
#include "table.hpp"
#include "training_report.hpp"
#include "units.hpp"

namespace vlmest::tool {
namespace {

std::string plural(std::int64_t n, const char* what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); }

/// A run that was asked for: what it needs, and whether it gets it.
struct Needs {
  const char* run = "";
  std::string_view phase;
  Bytes peak{}, reserved{};
  bool fits = false;
};

std::vector<Needs> needs(const Reported& r, const ReportOptions& o) {
  std::vector<Needs> n;
  const InferenceEstimate& i = r.estimate.inference;
  const TrainingEstimate& t = r.estimate.training;
  if (o.inference) n.push_back({"inference", name(i.peak_phase()), i.peak, i.decode.memory.reserved, i.fits});
  if (o.training) n.push_back({"training", name(t.peak_phase), t.peak, t.reserved, t.fits});
  sort_stably(n, [](const Needs& a, const Needs& b) { return a.fits < b.fits; });
  return n;
}

/// "peak 17.7 GiB in prefill, 3.93 GiB more than the 13.8 GiB of t4"
std::string need_words(const Needs& n, Bytes usable, const std::string& device) {
  const std::string peak = fmt::format("peak {} in {}", show(n.peak), n.phase);
  if (n.fits) return fmt::format("{}, {} of {} left on {}", peak, show(usable - n.peak), show(usable), device);
  if (n.peak <= usable)
    return fmt::format("{}, but with the allocator's gaps {} of {} on {}", peak, show(n.reserved), show(usable),
                       device);
  return fmt::format("{}, {} more than the {} of {}", peak, show(n.peak - usable), show(usable), device);
}

Table phases(const Reported& r) {
  const InferenceEstimate& e = r.estimate.inference;
  Table t{.head = {"phase", "peak", "reserved", "FLOPs", "kernels", "GPU time", "CUDA graph", "wall time", "bound"},
          .rows = {}};
  const auto row = [&](const std::string& what, const PhaseEstimate& p) {
    t.rows.push_back({what, show(p.memory.peak), show(p.memory.reserved), show_count(p.work.flops.value()),
                      grouped(p.work.kernels), show(p.gpu), show(p.graph), show(p.wall), std::string(name(p.bound))});
  };
  row("prefill", e.prefill);
  row(fmt::format("decode at {}", grouped(e.decode.kv_len)), e.decode);
  return t;
}

struct PartSum {
  Elements params{};
  Bytes weights{}, kv{}, activations{}, attention{}, fft{}, saved{};
  Work prefill, forward, backward;
};

PartSum sum(const std::vector<LayerRow>& rows, Part part) {
  PartSum s;
  for (const auto& r : rows) {
    if (r.part != part) continue;
    s.params += r.params;
    s.weights += r.weights;
    s.kv += r.kv;
    s.activations = std::max(s.activations, r.activations);
    s.attention = std::max(s.attention, r.attention);
    s.fft = std::max(s.fft, r.fft);
    s.saved += r.saved;
    s.prefill += r.prefill;
    s.forward += r.forward;
    s.backward += r.backward;
  }
  return s;
}

std::string bound_or_nothing(const Work& w) { return w.time.value == 0 ? "-" : std::string(name(bound(w))); }

/// The columns of components and layers: inference's, training's, or both.
template <class Row>
std::vector<std::string> cells(const std::string& first, const Row& r, const ReportOptions& o) {
  std::vector<std::string> c{first, r.params == Elements{} ? "-" : show_count(r.params.value()), nothing_or(r.weights)};
  const auto add = [&](std::initializer_list<std::string> more) { c.insert(c.end(), more); };
  if (o.inference)
    add({nothing_or(r.kv), nothing_or(r.activations), nothing_or(r.attention), nothing_or(r.fft),
         nothing_or(r.prefill.flops), nothing_or(r.prefill.time), bound_or_nothing(r.prefill)});
  if (!o.training) return c;
  add({nothing_or(r.saved)});
  if (!o.inference) add({nothing_or(r.fft), nothing_or(r.forward.flops)});
  add({nothing_or(r.backward.flops)});
  if (!o.inference) add({nothing_or(r.forward.time)});
  add({nothing_or(r.backward.time)});
  if (!o.inference) add({bound_or_nothing(r.forward)});
  return c;
}

Table headed(const char* first, const ReportOptions& o) {
  Table t{.head = {first, "params", "weights"}, .rows = {}};
  const auto add = [&](std::initializer_list<const char*> more) {
    t.head.insert(t.head.end(), more.begin(), more.end());
  };
  if (o.inference) add({"KV cache", "activations", "attention", "FFT", "FLOPs", "prefill time", "bound"});
  if (o.training && o.inference) add({"saved", "backward FLOPs", "backward time"});
  if (o.training && !o.inference)
    add({"saved", "FFT", "forward FLOPs", "backward FLOPs", "forward time", "backward time", "bound"});
  return t;
}

Table components(const Reported& r, const ReportOptions& o) {
  Table t = headed("component", o);
  for (Part p : {Part::vision, Part::audio, Part::projector, Part::language, Part::model}) {
    const PartSum s = sum(r.estimate.layers, p);
    if (s.params == Elements{} && s.prefill.kernels + s.forward.kernels == 0) continue;
    t.rows.push_back(cells(p == Part::model ? "joining" : std::string(name(p)), s, o));
  }
  return t;
}

bool alike(const LayerRow& a, const LayerRow& b) {
  const auto same = [](const Work& x, const Work& y) { return x.flops == y.flops && x.kernels == y.kernels; };
  return a.params == b.params && a.kv == b.kv && a.activations == b.activations && a.attention == b.attention &&
         a.fft == b.fft && a.saved == b.saved && same(a.prefill, b.prefill) && same(a.forward, b.forward) &&
         same(a.backward, b.backward);
}

/// One line per layer, or, where `fold`, one line for a run of equal layers with the values of each.
Table layers(const Reported& r, const ReportOptions& o, bool fold) {
  Table t = headed(fold ? "layer (values of each)" : "layer", o);
  const auto& rows = r.estimate.layers;
  const Graph& g = r.layers_graph(o);
  for (std::size_t i = 0; i < rows.size();) {
    if (rows[i].params == Elements{} &&
        rows[i].prefill.kernels + rows[i].forward.kernels + rows[i].backward.kernels == 0) {
      ++i;
      continue;
    }
    std::size_t n = 1;
    const auto numbered = [&](std::size_t k) {
      return g.scopes[static_cast<std::size_t>(rows[k].scope)].index != none;
    };
    while (fold && numbered(i) && i + n < rows.size() && numbered(i + n) && alike(rows[i], rows[i + n])) ++n;
    std::string label = path(g, rows[i].scope);
    if (label.empty()) label = "(model)";
    if (n > 1) label += fmt::format("-{}", g.scopes[static_cast<std::size_t>(rows[i + n - 1].scope)].index);
    t.rows.push_back(cells(label, rows[i], o));
    i += n;
  }
  return t;
}

std::string_view inference_peak(const Reported& r) { return name(r.estimate.inference.peak_phase()); }

Table inference_tensors(const Reported& r, std::size_t top) {
  Table t{.head = {"tensor", "role", "shape", "dtype", "bytes"}, .rows = {}, .left = 4};
  for (const auto& x : largest(r.estimator.graph(), r.estimate.inference.tensors, top)) {
    const std::string label = x.scope.empty() ? x.name : x.scope + " " + x.name;
    const bool other = x.name == "other" && x.dtype.empty();
    t.rows.push_back(
        {label, other ? "" : std::string(name(x.role)), other ? "" : to_string(x.shape), x.dtype, show(x.bytes)});
  }
  return t;
}
Table training_tensors(const Reported& r, std::size_t top) {
  const TrainingEstimate& e = r.estimate.training;
  return peak_table(r.estimator.training_graph(), e.tensors, e.peak, top);
}

/// The tensors of each peak.
std::string tensors_text(const Reported& r, const ReportOptions& o) {
  const TrainingEstimate& e = r.estimate.training;
  std::string out;
  if (o.inference) out += fmt::format("\npeak of {}\n", inference_peak(r)) + text(inference_tensors(r, o.top));
  if (o.training)
    out += fmt::format("\npeak of {}: {}\n", name(e.peak_phase),
                       by_role(r.estimator.training_graph(), e.tensors, e.peak)) +
           text(training_tensors(r, o.top));
  return out;
}

MemoryCurve step_curve(const Reported& r) {
  return memory_curve(r.estimator.training_graph(), r.training_timeline(), r.device, r.estimator.allocator);
}

/// "bf16, weights awq 4 bit in groups of 128 (config.json)"
std::string stored_words(const Vlm& vlm, const Plan& plan) {
  std::string s(name(plan.dtype));
  if (plan.own_dtype) s += " (config.json)";
  if (plan.weights) {
    s += fmt::format(", weights {}", name(*plan.weights));
    if (vlm.quantization) s += fmt::format(" (instead of {}'s {})", vlm.quantization->file, vlm.quantization->method);
  } else if (vlm.quantization) {
    s += fmt::format(", weights {} ({})", vlm.quantization->summary, vlm.quantization->file);
    if (vlm.quantization->unpacked_by_transformers && traits_of(plan.runtime).transformers_quantizers)
      s += fmt::format(", unpacked to {} by the first forward", name(plan.dtype));
  }
  return s;
}

/// "2,928 from 1 image of 672x672 in 5 tiles".
std::string image_words(const Plan& plan, const Sequences& s) {
  std::string line = fmt::format("{} from {} of {}x{}", grouped(s.image_tokens), plural(plan.images, "image"),
                                 s.image.height, s.image.width);
  for (const PixelSize& o : plan.more_sizes) line += fmt::format(", {}x{}", o.height, o.width);
  if (!plan.more_sizes.empty()) line += " in turn";
  std::int64_t fewest = 0, most = 0;
  for (const ImageLayout& i : s.images) {
    if (i.sampled > 0) continue;  // of a video
    fewest = fewest == 0 ? i.tiles : std::min(fewest, i.tiles);
    most = std::max(most, i.tiles);
  }
  if (most > 1) {
    line += fewest == most ? fmt::format(" in {} tiles", most) : fmt::format(" in {} to {} tiles", fewest, most);
    if (plan.images > 1) line += " each";
  }
  return line;
}

/// "2,048 from 16 frames of 448x448".
std::string video_words(const Vlm& vlm, const Plan& plan, const Sequences& s) {
  const VideoSource source = video_source(vlm, *plan.video);
  std::string line = fmt::format("{} from {} of {}x{}", grouped(s.video_tokens), plural(s.video->sampled, "frame"),
                                 source.size.height, source.size.width);
  if (!(s.video->resized == source.size))
    line += fmt::format(", resized to {}x{}", s.video->resized.height, s.video->resized.width);
  if (source.take) line += fmt::format(", sampled of {} s", plain(significant(source.seconds())));
  return line;
}

/// "374 from 2 clips of 7.5 s".
std::string audio_words(const Plan& plan, const Sequences& s) {
  std::string line = fmt::format("{} from {} of {} s", grouped(s.audio_tokens), plural(plan.audio->clips, "clip"),
                                 plain(significant(plan.audio->seconds)));
  if (s.audios.front().cut) line += ", of which the processor takes the beginning";
  return line;
}

}  // namespace

std::string inputs_line(const Vlm& vlm, const Plan& plan, const Sequences& s) {
  std::string line = fmt::format("{}: {} of {} tokens", vlm.name, plural(s.batch, "sequence"), grouped(s.seq));
  if (plan.images > 0 || s.video || plan.audio) {
    line += fmt::format(" ({} text, {}", grouped(s.text), s.markers > 0 ? plural(s.markers, "marker") + ", " : "");
    if (plan.images > 0) line += image_words(plan, s);
    if (s.video) line += (plan.images > 0 ? ", " : "") + video_words(vlm, plan, s);
    if (plan.audio) line += (plan.images > 0 || s.video ? ", " : "") + audio_words(plan, s);
    if (s.padded())
      line += fmt::format(", {} of {} positions are padding",
                          grouped(std::accumulate(s.padding.begin(), s.padding.end(), std::int64_t{0})),
                          grouped(s.seq * s.batch));
    if (plan.vision_chunk > 0) line += fmt::format(", {} at a time", plan.vision_chunk);
    line += ")";
  }
  if (s.instruction > 0) line += ", instruction of " + plural(s.instruction, "token");
  if (s.target > 0) line += ", " + plural(s.target, "target token");
  return line + ", " + stored_words(vlm, plan);
}

std::vector<VerdictLine> verdicts(const Reported& r, const ReportOptions& o) {
  const Bytes usable = r.usable();
  const std::string device = r.device.name + (o.device_assumed ? " (assumed)" : "");
  const std::vector<Needs> n = needs(r, o);
  std::vector<VerdictLine> lines;
  if (n.size() == 2 && n[0].fits) {
    const Bytes most = std::max(n[0].peak, n[1].peak);
    lines.push_back({fmt::format("fits: peak {} in {}, {} in training; {} of {} left on {}", show(n[0].peak),
                                 n[0].phase, show(n[1].peak), show(usable - most), show(usable), device)});
  } else if (!n.empty()) {
    const std::string whose = n.size() == 2 ? std::string(n[0].run) + ", " : "";
    lines.push_back({(n[0].fits ? "fits: " : "does not fit: ") + whose + need_words(n[0], usable, device), n[0].fits});
    if (n.size() == 2)
      lines.push_back({fmt::format("{} {}: {}", n[1].run, n[1].fits ? "fits" : "does not fit either",
                                   need_words(n[1], usable, r.device.name)),
                       n[1].fits});
  }
  if (!o.no_training.empty()) lines.push_back({"training is not estimated: " + o.no_training, false});
  return lines;
}

std::string header_lines(const Reported& r, const ReportOptions& o) {
  std::string out = wrapped(inputs_line(r.vlm, r.plan, r.estimate.sequences)) + "\n";
  if (r.vlm.quantization && !r.plan.weights && traits_of(r.plan.runtime).transformers_quantizers &&
      r.device.sm < r.vlm.quantization->dequantised_below)
    out += fmt::format("transformers makes wide weights of {} on this GPU when it loads them\n",
                       r.vlm.quantization->method);
  if (const Parameters& p = r.estimate.params; p.idle > Elements{})
    out += fmt::format("experts: {} of {} parameters are active for a token\n", show_count(p.active().value()),
                       show_count(p.total().value()));
  if (o.training) out += wrapped(training_inputs(r)) + "\n";
  return out;
}

std::string tables_text(const Reported& r, const ReportOptions& o) {
  if (!o.verbose)
    return (o.per_layer ? "\n" + text(without_empty_columns(layers(r, o, false))) : std::string()) +
           (o.tensors ? tensors_text(r, o) : std::string());
  std::string out = "\n" + text(components(r, o));
  if (o.inference) out += "\n" + text(phases(r));
  if (o.training) {
    const MemoryCurve curve = step_curve(r);
    out += "\n" + text(training_phases(r)) + "\n" + text(training_peaks(r, curve)) + "\n" + text(training_states(r)) +
           "\n" + curve_text(curve, o.unicode) + "\n" + reserved_text(r.estimate.training) + "\n";
  }
  if (const Table slow = slow_shapes_table(r, o); !slow.rows.empty()) out += "\n" + text(slow);
  return out + "\n" + text(layers(r, o, !o.per_layer)) + tensors_text(r, o);
}

std::string markdown_report(const Reported& r, const ReportOptions& o) {
  const TrainingEstimate& e = r.estimate.training;
  std::string out = "# " + r.vlm.name + "\n\n";
  for (const auto& v : verdicts(r, o)) out += "**" + v.text + "**\n\n";
  out += inputs_line(r.vlm, r.plan, r.estimate.sequences) + "\n";
  if (o.training) out += "\n" + training_inputs(r) + "\n";
  out += "\n## Components\n\n" + markdown(components(r, o));
  if (o.inference) out += "\n## Phases\n\n" + markdown(phases(r));
  if (o.training) {
    const MemoryCurve curve = step_curve(r);
    out += "\n## Training\n\n" + markdown(training_phases(r)) + "\n" + markdown(training_peaks(r, curve)) + "\n" +
           markdown(training_states(r)) + "\n```text\n" + curve_text(curve, o.unicode) + "```\n\n" + reserved_text(e) +
           "\n";
  }
  if (const Table slow = slow_shapes_table(r, o); !slow.rows.empty()) out += "\n## Slow shapes\n\n" + markdown(slow);
  out += several_gpus_markdown(r);
  out += "\n## Layers\n\n" + markdown(layers(r, o, !o.per_layer));
  if (o.inference) out += "\n## Tensors at the peak\n\n" + markdown(inference_tensors(r, o.top));
  if (o.training)
    out += fmt::format("\n## Tensors at the peak of {}\n\n", name(e.peak_phase)) +
           by_role(r.estimator.training_graph(), e.tensors, e.peak) + "\n\n" + markdown(training_tensors(r, o.top));
  return out;
}

std::string csv_report(const Reported& r, const ReportOptions& o) {
  Table t{.head = {"scope", "part", "params", "weights_bytes", "saved_bytes", "kv_bytes", "activation_bytes",
                   "attention_bytes", "fft_bytes", "flops_forward", "flops_backward", "forward_us", "backward_us",
                   "intensity", "bound"},
          .rows = {}};
  const Graph& g = r.layers_graph(o);
  for (const auto& x : r.estimate.layers) {
    const Work& forward = o.inference ? x.prefill : x.forward;
    t.rows.push_back({path(g, x.scope), std::string(name(x.part)), std::to_string(x.params.value()),
                      std::to_string(x.weights.value()), std::to_string(x.saved.value()), std::to_string(x.kv.value()),
                      o.inference ? std::to_string(x.activations.value()) : "",
                      o.inference ? std::to_string(x.attention.value()) : "", std::to_string(x.fft.value()),
                      std::to_string(forward.flops.value()), std::to_string(x.backward.flops.value()),
                      fmt::format("{:.3f}", forward.time.us()), fmt::format("{:.3f}", x.backward.time.us()),
                      fmt::format("{:.3f}", intensity(forward)), std::string(name(bound(forward)))});
  }
  return csv(t);
}

}  // namespace vlmest::tool
