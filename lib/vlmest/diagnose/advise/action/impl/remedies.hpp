// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/advise/action/remedies.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

namespace remedies {

inline std::string title(std::string_view id) {
  for (const auto& [known, words] : remedy_titles)
    if (known == id) return std::string(words);
  return std::string(id);
}

}  // namespace remedies

VLMEST_INLINE std::vector<Action> memory_remedies(const Verdict& v, const Failure& f) {
  std::vector<Action> r;
  const Bytes peak = v.predicted_peak.value_or(f.allocated ? f.allocated->value : Bytes{});
  const auto fits = [&](Bytes after) { return v.limit && after <= *v.limit; };
  const bool known = !v.explanation || v.explanation->holds;
  if (v.cause == Cause::leak && f.allocated) {
    const Bytes kept = f.growth ? f.allocated->value - std::min(f.growth->first, f.allocated->value)
                                : f.allocated->value - std::min(peak, f.allocated->value);
    r.push_back(
        {.id = "let-go",
         .title = remedies::title("let-go"),
         .saves = kept,
         .peak_after = peak,
         .fits = fits(peak),
         .fits_known = known || f.growth,
         .how = "losses.append(loss.item()); outputs.append(x.detach().cpu()); del output before the next step"});
  }
  if (v.cause == Cause::other_process && f.others)
    r.push_back(
        {.id = "free-the-gpu",
         .title = remedies::title("free-the-gpu"),
         .saves = f.others->value,
         .peak_after = peak,
         .fits = f.total && peak <= f.total->value,
         .fits_known = known && v.predicted_peak,
         .how = "nvidia-smi --query-compute-apps=pid,used_memory --format=csv; CUDA_VISIBLE_DEVICES=1 python ..."});
  // Pieces are worth joining wherever they would have served the request, whatever else fills the memory. Settings and
  // calls of torch (docs: notes/cuda, "Optimizing memory usage with PYTORCH_ALLOC_CONF"), the surest first: what they
  // leave of the pieces depends on the order of the run's allocations, so that only growing segments are counted on.
  if (const auto pieces = oom_verdict::in_pieces(f)) {
    const bool cause = v.cause == Cause::fragmentation;
    const auto add = [&](const char* id, const char* title, Bytes saves, bool fit, const char* how) {
      r.push_back({.id = id,
                   .title = title,
                   .saves = saves,
                   .of_reserved = true,
                   .peak_after = peak,
                   .fits = fit,
                   .fits_known = known && cause,
                   .how = how});
    };
    add("allocator-expandable", "let segments grow, so that what is free lies in one piece", *pieces,
        cause && fits(peak),
        "export PYTORCH_ALLOC_CONF=expandable_segments:True  # before 2.9 PYTORCH_CUDA_ALLOC_CONF");
    if (cause) {
      add("empty-cache", "give cached segments back before sizes change, as between evaluation and training", {}, false,
          "torch.cuda.empty_cache()  # between phases, not in every step");
      add("allocator-gc", "give old cached blocks back before memory is full", {}, false,
          "export PYTORCH_ALLOC_CONF=garbage_collection_threshold:0.8");
      add("allocator-max-split", "do not cut large blocks for smaller tensors", {}, false,
          "export PYTORCH_ALLOC_CONF=max_split_size_mb:512");
    }
  }
  return r;
}

VLMEST_INLINE std::vector<Action> time_remedies(const SlowRun& s) {
  std::vector<Action> r;
  const auto span = static_cast<double>(s.gpu.span());
  if (span <= 0) return r;
  const auto add = [&](const char* id, const char* title, double gain, const char* how) {
    const double pct = -100 * std::clamp(gain / span, 0.0, 1.0);
    if (pct > -2) return;
    r.push_back({.id = id, .title = title, .time_cost_pct = pct, .fits = true, .how = how});
  };
  const auto of = [&](Idle i) { return static_cast<double>(s.idle.of(i)); };
  add("launch-less", "replay CUDA graphs, or compile, so that the host launches once", of(Idle::launch),
      "model = torch.compile(model, mode=\"reduce-overhead\")  # decode: generate(..., "
      "cache_implementation=\"static\")");
  add("load-ahead", "load and preprocess inputs in workers, ahead of the step", of(Idle::data_loader),
      "DataLoader(..., num_workers=8, pin_memory=True, prefetch_factor=4, persistent_workers=True)");
  add("wait-less", "do not read values of the GPU in the step", of(Idle::synchronise),
      "collect tensors and read them once: torch.stack(losses).tolist(); no .item(), .cpu() or print in the loop");
  add("allocate-once", "keep the allocator's cache: no empty_cache() in the loop, segments that grow",
      of(Idle::allocation), "export PYTORCH_ALLOC_CONF=expandable_segments:True; remove torch.cuda.empty_cache()");
  add("host-work", "move the host's work out of the step, into workers or before the loop", of(Idle::host_work),
      "see the operator named above; py-spy record -- python train.py shows the Python behind it");
  add("pin-copies", "copy from page-locked memory while the GPU computes", static_cast<double>(s.gpu.exposed_copies),
      "DataLoader(..., pin_memory=True); x = x.to(\"cuda\", non_blocking=True)");
  add("overlap-communication", "let communication run beside the backward",
      static_cast<double>(s.gpu.exposed_communication),
      "DDP: gradient_as_bucket_view=True, bucket_cap_mb=100; FSDP: forward_prefetch=True; or accumulate gradients");
  add("pad-products", "pad the dimensions of the products named above to multiples of 8 (64 is best)",
      s.padding_saves.value * 1e9, "torch.nn.functional.pad on weight and input, or a config with padded widths");
  std::stable_sort(r.begin(), r.end(),
                   [](const Action& a, const Action& b) { return a.time_cost_pct < b.time_cost_pct; });
  return r;
}

}  // namespace vlmest::diagnose
