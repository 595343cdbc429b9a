// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include <vlmest/diagnose/evidence/text/log_text.hpp>
#include <vlmest/diagnose/evidence/text/sentence.hpp>
#include <vlmest/diagnose/evidence/text/size_text.hpp>

/// What a sentence tells by several words together, of which none alone would. All take it in lower case, as plain()
/// makes it.
namespace vlmest::diagnose::story {

/// Whether a sentence says that memory goes up, and goes on to: a word of memory, one of growth and one of time.
inline bool speaks_of_growth(std::string_view low) {
  return has_any(low, {"memory", " ram ", "usage", "vram"}) &&
         has_any(low, {"increas", "grow", "climb", " rise", "rising", "accumulat", "expand", "goes up", "going up",
                       "decreas", "balloon", "clog"}) &&
         has_any(low, {"continu", "keeps ", "keep ", "gradual", "stead", "constant", "over time", "each ", "every ",
                       "until", "eventual", "slowly", "linear", "more and more", "during ", "after several", "rapidly",
                       "over days", "hours"});
}

/// Whether a sentence says that memory is not given back: "never releases", "is not being freed".
inline bool speaks_of_kept_memory(std::string_view low) {
  if (!has_any(low, {"memory", " ram ", "vram", "显存"})) return false;
  for (const std::string_view not_ : {" not ", "n't ", " never ", " without "})
    for (auto at = low.find(not_); at != std::string_view::npos; at = low.find(not_, at + 1))
      if (const auto rest = low.substr(at + not_.size(), 24);
          has_any(rest, {"releas", "freed", "freeing", "reclaim", "give back", "given back", "go down", "be cleared",
                         "get cleared"}))
        return true;
  return false;
}

/// Whether a sentence says that the CPU is at its limit and the GPU is not.
inline bool speaks_of_busy_host(std::string_view low) {
  return has_any(low, {" cpu"}) && has_any(low, {"100%", "fully", "maxed", "saturated", "full load"}) &&
         has_any(low, {"underutil", "under-util", "low util", "gpu is idle", "gpus are idle", "gpu is not used"});
}

/// Whether a sentence says that the GPU works by turns: that its utilisation goes up and down, or is at none for a part
/// of the time.
inline bool speaks_of_gpu_by_turns(std::string_view low) {
  return has_any(low, {"gpu util", "gpu-util", "gpu usage", "gpu load", "utilization of the gpu", "gpu利用率",
                       "gpu 利用率", "显卡利用率"}) &&
         has_any(low, {"fluctuat",
                       "vibrat",
                       "oscillat",
                       "up and down",
                       "goes between",
                       "jumps between",
                       "varies between",
                       "drops to 0",
                       "drop to 0",
                       "falls to 0",
                       "most of the time is 0",
                       "often 0",
                       "periodic",
                       "0 and 100",
                       "0% and 100",
                       "0% to 100",
                       "0 to 100",
                       "0-100",
                       "波动",
                       "忽高忽低",
                       "时高时低"});
}

/// "1.5T of my memory": no GPU has a terabyte.
inline bool speaks_of_terabytes(std::string_view low) {
  if (!has_any(low, {" memory"}) || has_any(low, {"gpu", "cuda", "vram"})) return false;
  for (auto at = low.find('t', 1); at != std::string_view::npos; at = low.find('t', at + 1)) {
    auto end = low.substr(at + 1);
    if (end.starts_with("ib ") || end.starts_with("b ")) end = " ";
    if (is_digit(low[at - 1]) && end.starts_with(' ')) return true;
  }
  return false;
}

/// "CPU out of memory", "system OOM", "host RSS": a lack or a size of memory right behind a word of the machine. Of a
/// server or a node it may be the GPU's.
inline bool speaks_of_host_memory(std::string_view low) {
  if (has_any(low, {" rss ", "resident set size", "resident memory"})) return true;
  // Limits of containers and jobs are on the memory of the machine.
  if (has_any(low, {"container", "docker", " pod ", "kubernetes", "cgroup", "slurm"}) &&
      has_any(low, {"memory limit", "mem limit", "limit of memory", "oom-kill", "memory cap"}) &&
      !has_any(low, {"gpu", "vram", "cuda"}))
    return true;
  for (const std::string_view machine : {" cpu ", " host ", " system ", " cpu-", " host-"})
    for (auto at = low.find(machine); at != std::string_view::npos; at = low.find(machine, at + 1)) {
      const auto rest = low.substr(at + machine.size());
      // "offload to CPU OOM", "on the host CUDA ..." speak of what was done there.
      const auto before = low.substr(0, at);
      if (before.ends_with(" to") || before.ends_with(" to the")) continue;
      for (const std::string_view lack :
           {"out of memory", "out-of-memory", "oom", "ran out of memory", "runs out of memory"})
        if (rest.starts_with(lack)) return true;
    }
  return false;
}

/// Whether a sentence says when it failed, that a checkpoint was being written: "during the saving step", "on save
/// steps". Who saves memory speaks of something else.
inline bool speaks_of_saving(std::string_view low) {
  for (const std::string_view word : {"saving", "save", "checkpointing"})
    for (auto at = low.find(word); at != std::string_view::npos; at = low.find(word, at + word.size())) {
      auto before = low.substr(0, at);
      auto rest = low.substr(at + word.size());
      if (before.ends_with("the ")) before.remove_suffix(4);
      if (before.ends_with("model ")) before.remove_suffix(6);
      if (before.ends_with("gradient ") || before.ends_with("activation ") || rest.starts_with("_")) continue;
      const bool when = before.ends_with(" during ") || before.ends_with(" while ") || before.ends_with(" when ") ||
                        before.ends_with(" upon ") || before.ends_with(" on ") || before.ends_with(" at ") ||
                        before.ends_with(" after ") || before.ends_with(" before ");
      const bool what = rest.starts_with(" step") || rest.starts_with(" stage") || rest.starts_with(" phase") ||
                        rest.starts_with(" time");
      if ((when && (what || rest.starts_with(" ")) && !has_any(rest.substr(0, 24), {"memory", "vram", "ram "})) ||
          (what && word != "checkpointing"))
        return true;
    }
  return false;
}

/// Whether a sentence says that an evaluation keeps what it predicted: rows of logits for each token of each batch.
inline bool speaks_of_kept_predictions(std::string_view low) {
  return has_any(low, {"prediction", " preds ", "logits"}) &&
         has_any(low, {"accumulat", "aggregat", "concatenat", "累积"}) &&
         has_any(low, {"eval", "predict(", "validation", "评估"});
}

/// Numbers of a sentence: those at the beginning of a word.
inline int numbers_in(std::string_view low) {
  int n = 0;
  for (std::size_t at = 1; at < low.size(); ++at) n += is_digit(low[at]) && (low[at - 1] == ' ' || low[at - 1] == '(');
  return n;
}

/// Whether a sentence says that memory ran out in the optimizer's step, whose first one makes its states.
inline bool speaks_of_the_step(std::string_view low) {
  return has_any(low, {"oom", "out of memory", "out-of-memory"}) &&
         has_any(low, {"optimizer.step", "optimizer step", "optimizer's step", "step of the optimizer", "optim.step",
                       "creating the optimizer", "initializing the optimizer"});
}

/// Whether a sentence says that memory ran out where a loss was computed.
inline bool speaks_of_the_loss(std::string_view low) {
  return has_any(low, {"oom", "out of memory", "out-of-memory"}) &&
         has_any(low, {"computing the loss", "computing loss", "loss computation", "loss calculation",
                       "calculating the loss", "calculating loss", "loss is computed", "compute the loss"});
}

/// Whether a sentence sets two inputs against each other, of which one fails: what is there whatever the inputs are
/// does not tell them apart.
inline bool speaks_of_larger_inputs(std::string_view low) {
  return has_any(low, {"images", "frames", "pictures", "samples", "pages", "张图", "张图像", "帧"}) &&
         has_any(low, {"oom", "out of memory", "out-of-memory", "爆显存", "显存不足"}) &&
         has_any(low, {" but ", "as soon as", "only handle", "can handle", "works with", "fine with", "works for",
                       "while with", "但是", "不会", "没问题"}) &&
         numbers_in(low) >= 2;
}

/// Whether a sentence says that steps went well before one failed: "after 4 steps", "after tens of batches". What a run
/// holds whatever its inputs are, weights, gradients and an optimizer's states, is there after the first.
inline bool speaks_of_later_steps(std::string_view low) {
  if (!has_any(low, {"oom", "out of memory", "out-of-memory", "爆显存"})) return false;
  for (auto at = low.find(" after "); at != std::string_view::npos; at = low.find(" after ", at + 1)) {
    const auto rest = low.substr(at + 7, 40);
    const bool many = has_any(rest.substr(0, 16), {"few ", "several ", "some ", "tens of", "hundreds of", "many ",
                                                   "thousands of", "couple "}) ||
                      (is_digit(rest.empty() ? ' ' : rest[0]) && !rest.starts_with("1 "));
    const auto what =
        std::min({rest.find("steps"), rest.find("iterations"), rest.find("batches"), rest.find(" iters")});
    if (many && what != std::string_view::npos) return true;
  }
  return false;
}

/// "只用了一张", "只占一张卡": one alone, whatever it does. "只有一张卡" is who has no other.
inline bool speaks_of_only_one(std::string_view low) {
  constexpr std::string_view only = "只";
  for (auto at = low.find(only); at != std::string_view::npos; at = low.find(only, at + only.size()))
    if (const auto rest = low.substr(at + only.size(), 6 * only.size());
        !rest.starts_with("有") && has_any(rest, {"一张", "一块", "一个gpu"}))
      return true;
  return false;
}

/// Whether a sentence says that of several GPUs one alone is used.
inline bool speaks_of_one_of_several(std::string_view low) {
  if (!has_any(low, {"gpus", " cards", "multi-gpu", "multi gpu", "multiple gpu", "多卡", "多张", "多gpu"}) &&
      gpus_in(low) < 2)
    return false;
  if (has_any(low, {"works", "fine", "succe", "no problem", "faster"})) return false;
  return has_any(low, {"but only one", "on only one", "only on one", "on the same card", "on the same gpu",
                       "only uses one", "only use one", "uses only one", "use only one", "only one is used",
                       "only one gpu is", "only one card is", "only the first", "only gpu 0", "only cuda:0",
                       "on a single card", "on a single gpu", "都在一张卡"}) ||
         speaks_of_only_one(low);
}

/// Whether a sentence speaks of requests that a server answers, one or many at once: it has started.
inline bool speaks_of_requests(std::string_view low) {
  return has_any(low, {"concurren", "one request", "a request", "each request", "every request", "per request",
                       "simultaneous", "clients", "in parallel", "并发", "每次请求", "个请求", "请求时"});
}

/// The number behind "batch size" or a name that ends in it, with at most a few words between; 0 where there is none.
inline int batch_in(std::string_view low) {
  for (const std::string_view word : {"batch size", "batch_size", "batch-size"})
    for (auto at = low.find(word); at != std::string_view::npos; at = low.find(word, at + word.size())) {
      auto rest = low.substr(at + word.size(), 40);
      std::size_t i = 0;
      while (i < rest.size() && !is_digit(rest[i])) ++i;
      // Another word of a figure, or a new clause, is not its.
      if (has_any(rest.substr(0, i), {".", " gb", "memory", "epoch", "step", "gpu"})) continue;
      int n = 0;
      while (i < rest.size() && is_digit(rest[i]) && n < 100000) n = n * 10 + (rest[i++] - '0');
      if (n > 0) return n;
    }
  return 0;
}

}  // namespace vlmest::diagnose::story
