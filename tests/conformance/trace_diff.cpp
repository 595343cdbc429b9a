// SPDX-License-Identifier: Apache-2.0
// Shows where a model's graph and a recorded trace differ:
//   trace_diff CONFIG TRACE [--part KEY] [--batch N] [--images N] [--size HxW] [--text N] [--target N] [--dtype T]
//              [--frames N] [--audio-seconds S] [--clips N] [--layers N | --whole] [--eager] [--all-logits] [--dropout]
//              [--train] [--whole-images] [--square PIXELS] [--pixel-mask T] [--instruction N] [--tied-head]
//              [--pictures HxW/HxW] [--freeze-vision] [--checkpointing] [--lora RANK] [--lora-target NAME]...
//              [--package P]... [--phase P] [--max N]
//              [--list]
// --size HxW/HxW: sequences with images of different sizes take turns. --pictures HxW/HxW: each sequence has all of
// them. TRACE is a recording as trace.hpp describes, or a compact one (compact_trace.hpp) where its name has no header
// line.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "compact_trace.hpp"
#include "compare.hpp"
#include "recorded_model.hpp"

namespace conformance {
/// "980x735/504x980"
std::vector<vlmest::ImageSize> parse_sizes(const char* text) {
  std::vector<vlmest::ImageSize> r;
  for (const char* at = text; at != nullptr; at = std::strchr(at, '/')) {
    at += *at == '/';
    vlmest::ImageSize& s = r.emplace_back();
    std::sscanf(at, "%ldx%ld", &s.height, &s.width);
  }
  return r;
}
}  // namespace conformance

int main(int argc, char** argv) {
  conformance::Recording r;
  std::vector<vlmest::ImageSize> sizes{{336, 336}};
  std::vector<vlmest::ImageSize> pictures;
  int images = 1;
  std::string file;
  std::string phase = "prefill";
  int most = 20;
  bool list = false;
  for (int i = 1, n = 0; i < argc; ++i) {
    auto is = [&](const char* f) { return std::strcmp(argv[i], f) == 0; };
    if (is("--batch"))
      r.batch = std::atoll(argv[++i]);
    else if (is("--part"))
      r.part = argv[++i];
    else if (is("--train"))
      r.training = true;
    else if (is("--checkpointing"))
      r.checkpointing = true;
    else if (is("--package"))
      r.packages.add(vlmest::value_of<vlmest::KernelPackage>(argv[++i]).value());
    else if (is("--lora"))
      r.lora_rank = std::atoll(argv[++i]);
    else if (is("--lora-target"))
      r.lora_targets.emplace_back(argv[++i]);
    else if (is("--images"))
      images = std::atoi(argv[++i]);
    else if (is("--frames"))
      r.frames = std::atoll(argv[++i]);
    else if (is("--audio-seconds"))
      r.audio_seconds = std::atof(argv[++i]);
    else if (is("--clips"))
      r.clips = std::atoll(argv[++i]);
    else if (is("--target"))
      r.target = std::atoll(argv[++i]);
    else if (is("--instruction"))
      r.instruction = std::atoll(argv[++i]);
    else if (is("--tied-head"))
      r.tied_head = true;
    else if (is("--text"))
      r.text = std::atoll(argv[++i]);
    else if (is("--size"))
      sizes = conformance::parse_sizes(argv[++i]);
    else if (is("--pictures"))
      pictures = conformance::parse_sizes(argv[++i]);
    else if (is("--dtype"))
      r.dtype = vlmest::parse_dtype(argv[++i]);
    else if (is("--square"))
      r.square = std::atoll(argv[++i]);
    else if (is("--num-crops"))
      r.num_crops = std::atoll(argv[++i]);
    else if (is("--layers"))
      r.layers = std::atoi(argv[++i]);
    else if (is("--whole"))
      r.layers = std::nullopt;
    else if (is("--dropout"))
      r.dropout = true;
    else if (is("--eager"))
      r.eager = true;
    else if (is("--all-logits"))
      r.all_logits = true;
    else if (is("--whole-images"))
      r.whole_images = true;
    else if (is("--pixel-mask"))
      r.pixel_mask = vlmest::parse_dtype(argv[++i]);
    else if (is("--freeze-vision"))
      r.vision_frozen = true;
    else if (is("--phase"))
      phase = argv[++i];
    else if (is("--max"))
      most = std::atoi(argv[++i]);
    else if (is("--list"))
      list = true;
    else
      (n++ == 0 ? r.config : file) = argv[i];
  }
  try {
    r.sequences.clear();
    for (const vlmest::ImageSize s : sizes)
      r.sequences.push_back(std::vector<vlmest::ImageSize>(static_cast<std::size_t>(images), s));
    if (!pictures.empty()) r.sequences.assign(1, pictures);
    r.frame = sizes.front();
    auto trace = conformance::is_compact(file) ? conformance::read_compact_trace(file) : conformance::read_trace(file);
    r.routed = conformance::routed_rows(trace);
    vlmest::Builder b;
    conformance::build(b, r);
    std::erase_if(trace, [&](const conformance::TraceRow& t) { return t.phase != phase; });
    const auto rows = conformance::rows_of(b.graph, phase.c_str());
    if (list)
      for (const auto& g : rows) {
        std::printf("%s %s ->", g.module.c_str(), g.op.c_str());
        for (const auto& o : g.outputs) std::printf(" %s", o.c_str());
        std::printf(" | %ld %ld %ld\n", g.before, g.after, g.peak);
      }
    const auto c = conformance::compare(rows, trace);
    std::printf("%s %s: %zu graph ops, %zu trace ops, %zu matched, %zu differences\n", file.c_str(), phase.c_str(),
                rows.size(), trace.size(), c.matched, c.mismatches.size());
    for (const auto& m : c.mismatches) {
      if (most-- <= 0) break;
      std::printf("  %s\n", m.text().c_str());
    }
    return c.mismatches.empty() ? 0 : 1;
  } catch (const vlmest::Error& e) {
    std::printf("error: %s: %s\nhint: %s\n", e.where.c_str(), e.what_happened.c_str(), e.hint.c_str());
  } catch (const std::exception& e) {
    std::printf("error: %s\n", e.what());
  }
  return 3;
}
