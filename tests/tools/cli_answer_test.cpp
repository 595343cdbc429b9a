// SPDX-License-Identifier: Apache-2.0
// The default text of an estimate: one screen with the verdict first, figures that add up, and what helps.
#include <algorithm>

#include "../sanitizer.hpp"
#include "called.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_answer_test {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// What differs from one screen that begins with the verdict, or nothing.
std::string off_the_screen(const std::string& text) {
  const auto lines = lines_of(text);
  if (lines.empty()) return "nothing is printed";
  if (!lines[0].starts_with("fits: ") && !lines[0].starts_with("does not fit: ")) return "begins with " + lines[0];
  if (lines.size() > 40) return std::to_string(lines.size()) + " lines";
  for (const std::string& line : lines)
    if (line.size() > 100) return std::to_string(line.size()) + " columns: " + line;
  return "";
}

/// A printed size without its unit, in its last digit; "-" is nothing.
std::int64_t steps(std::string cell) {
  std::erase(cell, '.');
  std::erase(cell, ',');
  return cell == "-" ? 0 : std::stoll(cell);
}

/// The columns of the table of memory: each one's parts, and behind them the peak.
std::vector<std::vector<std::int64_t>> memory_columns(const std::string& text) {
  std::vector<std::vector<std::int64_t>> columns;
  bool inside = false;
  for (const std::string& line : lines_of(text)) {
    if (line.starts_with("  peak of GPU memory, ")) {
      inside = true;
      continue;
    }
    if (!inside) continue;
    // The label ends where two blanks follow.
    std::istringstream cells(line.substr(line.find("  ", 2)));
    std::vector<std::int64_t> row;
    for (std::string cell; cells >> cell;) row.push_back(steps(cell));
    columns.resize(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) columns[i].push_back(row[i]);
    if (line.starts_with("  peak ")) break;
  }
  return columns;
}

/// What is not modelled of an encoder and decoder, or is not there (a classifier has no loss, one instruction or prompt
/// goes with one picture), which says so and nothing else.
bool is_refused(const std::string& model, std::string_view flags) {
  if (model == "shieldgemma-2-4b" && flags.find("--phase train") != flags.npos) return true;
  if ((model.starts_with("instructblip-") || model == "deepseek-ocr") && flags.find("--images 3") != flags.npos)
    return true;
  if (model.starts_with("diffusiongemma-") &&
      (flags.find("--phase train") != flags.npos || flags.find("--weights") != flags.npos))
    return true;
  // Its code runs one picture of one sequence, in bf16, by one function; training is its own.
  if (model == "moondream2" && !flags.empty() && flags != "--device t4") return true;
  // Its linears have other names; its code asks one of their weights for a type, and takes no gradient of its
  // embeddings.
  if (model.starts_with("molmo2-") && flags.find("--lora") != flags.npos) return true;
  // Features are written over embeddings, which adapters over checkpointed layers make a leaf.
  if ((model.starts_with("kimi-vl-") || model.starts_with("minicpm-v-2") || model == "deepseek-ocr" ||
       model.starts_with("nemotron-")) &&
      flags.find("--lora 16 --checkpointing full") != flags.npos)
    return true;
  // Quantised weights were not compared with a run of its code.
  if ((model.starts_with("minicpm-v-2") || model.starts_with("phi-3.5-vision") || model.starts_with("phi-3-vision") ||
       model == "dots.ocr" || model.starts_with("nemotron-")) &&
      flags.find("--weights") != flags.npos)
    return true;
  // They take pictures in bf16 alone.
  if ((model == "dots.ocr" || model.starts_with("nemotron-")) && flags.find("--dtype fp16") != flags.npos) return true;
  const bool two_stacks = model.find("-t5-") != model.npos || model.starts_with("florence-2-");
  return two_stacks && (flags.find("--checkpointing full") != flags.npos || flags.find("--weights") != flags.npos);
}

class EveryModel : public testing::TestWithParam<const char*> {};

TEST_P(EveryModel, IsAnsweredOnOneScreenThatAddsUp) {
  std::vector<std::string> models;
  for (const auto& entry : fs::directory_iterator(VLMEST_SOURCE_DIR "/models/vlm"))
    models.push_back(entry.path().stem().string());
  std::sort(models.begin(), models.end());
  EXPECT_GT(models.size(), 50u);
  // Of fewer, each command line asks others.
  for (std::size_t m = std::string_view(GetParam()).size() % one_in(16); m < models.size(); m += one_in(16)) {
    const std::string arguments = "--config " + models[m] + " " + GetParam();
    const Called answer = run(arguments);
    if (is_refused(models[m], GetParam())) {
      EXPECT_NE(answer.code, 0) << arguments;
      EXPECT_TRUE(answer.err.starts_with("error: ") || answer.err.find("\nerror: ") != answer.err.npos) << answer.err;
      EXPECT_EQ(answer.out, "");
      continue;
    }
    EXPECT_EQ(answer.code, 0) << arguments << "\n" << answer.err;
    EXPECT_TRUE(answer.err.empty() || answer.err.starts_with("note: ")) << answer.err;
    const std::string& text = answer.out;
    EXPECT_EQ(off_the_screen(text), "") << arguments << "\n" << text;
    const auto columns = memory_columns(text);
    EXPECT_FALSE(columns.empty()) << arguments;
    for (const auto& column : columns) {
      ASSERT_GT(column.size(), 1u) << arguments;
      std::int64_t sum = 0;
      for (std::size_t i = 0; i + 1 < column.size(); ++i) sum += column[i];
      EXPECT_EQ(sum, column.back()) << arguments << "\n" << text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Usual, EveryModel,
                         testing::Values("", "--phase inference --batch 8 --text 2048", "--phase train --batch 2",
                                         "--phase train --lora 16 --checkpointing full --device l40s",
                                         "--lora 16 --weights nf4 --device rtx-4090",
                                         "--phase train --gradient-accumulation 8 --device b200",
                                         "--images 3 --text 1024 --phase inference", "--dtype fp16 --phase inference",
                                         "--phase inference --attention eager --device l4", "--device t4"));

const std::string small = "--config smolvlm-256m ";

/// Kernels that a run may have and the estimate has not are named.
TEST(Answer, SaysWhichKernelsItIsOf) {
  for (const char* arguments : {"--config qwen3.5-4b --phase inference", "--config qwen3.5-4b --json"})
    EXPECT_NE(run(arguments).err.find("without fla,causal-conv1d"), std::string::npos) << arguments;
  EXPECT_EQ(run(small).err, "");
}

/// What grows with the sequence and what does not: 8 full layers of 2 x 4 heads x 256 x 2 bytes a token.
TEST(Answer, TellsStatesFromKeysAndValues) {
  const std::string text = run("--config qwen3.5-4b --phase inference --batch 2").out;
  EXPECT_TRUE(holds(text, "\nKV cache: 32.0 KiB a token, and ")) << text;
  EXPECT_FALSE(holds(good(small + "--phase inference"), "KV cache: ")) << text;
}

TEST(Answer, SaysWhoseDeviceItIs) {
  EXPECT_TRUE(holds(lines_of(good(small))[0], "on h200-sxm (assumed)"));
  EXPECT_TRUE(lines_of(good(small + "--device h200-sxm"))[0].ends_with("on h200-sxm"));
  EXPECT_TRUE(holds(lines_of(run("--config llava-1.5-7b --phase inference --device v100").out)[0], " v100"));
}

TEST(Answer, TheWorseVerdictComesFirst) {
  const auto mixed = lines_of(good("--config qwen2.5-vl-7b --device a100-40"));
  EXPECT_TRUE(mixed[0].starts_with("does not fit: training, peak ")) << mixed[0];
  EXPECT_TRUE(mixed[1].starts_with("inference fits: peak ")) << mixed[1];
  const auto both = lines_of(good(small));
  EXPECT_TRUE(both[0].starts_with("fits: peak ") && holds(both[0], " in training; ")) << both[0];
  EXPECT_TRUE(both[1].starts_with("smolvlm-256m: 1 sequence of ")) << both[1];
}

TEST(Answer, ShowsWhatThereIsAndNothingElse) {
  const std::string inference = good(small + "--phase inference"), training = good(small + "--phase train --images 3");
  for (const char* part : {"  weights ", "  KV cache ", "  peak ", "  reserved by the allocator ", "  prefill ",
                           "  decode, a token ", " tokens/s ", "  largest tensors at the peak of "})
    EXPECT_TRUE(holds(inference, part)) << part << "\n" << inference;
  for (const char* part : {"gradients", "optimizer", "saved", "training", "FFT", "component"})
    EXPECT_FALSE(holds(inference, part)) << part << "\n" << inference;
  for (const char* part : {"  saved activations ", "  optimizer states ", "  training step ", " sequences/s "})
    EXPECT_TRUE(holds(training, part)) << part << "\n" << training;
  for (const char* part : {"KV cache", "prefill", "decode"}) EXPECT_FALSE(holds(training, part)) << part;
  EXPECT_TRUE(holds(good("--config llava-next-7b-fft --phase inference"), "\nFFT buffers of a block: up to "));
  // Three tensors of each peak, those of equal layers in one line.
  EXPECT_TRUE(holds(good("--config llava-next-7b --phase inference"), "language_model.layers.0-31."));
}

TEST(Answer, SaysWhatHelpsWhereItDoesNotFit) {
  const std::string text = good("--config llava-1.5-7b --device l40s --phase train");
  EXPECT_TRUE(text.starts_with("does not fit: ")) << text;
  EXPECT_TRUE(holds(text, "\nwhat makes it fit:\n")) << text;
  EXPECT_TRUE(holds(text, ": saves ")) << text;
  EXPECT_TRUE(holds(text, " % time")) << text;
  EXPECT_TRUE(holds(text, "\n      ")) << text;
  EXPECT_FALSE(holds(good(small), "saves"));
  EXPECT_TRUE(holds(good("--config qwen2-vl-72b --device t4 --phase train"), "\nwhat saves most of it; vlmest plan "));
}

TEST(Answer, TablesFollowWhereTheyAreAskedFor) {
  const std::string plain = good(small), verbose = good(small + "--verbose"),
                    layers = good(small + "--phase inference --per-layer"), top = good(small + "--top 4");
  for (const std::string& text : {verbose, top}) EXPECT_TRUE(text.starts_with(plain));
  for (const char* part : {"\n  component ", "\n  phase ", "\n  what training holds ", "\n  layer (values of each) ",
                           "\npeak of prefill\n", "\nallocated over the step, ", "\nreserved at the peak: "})
    EXPECT_TRUE(holds(verbose, part)) << part;
  EXPECT_TRUE(holds(layers, "\n  layer ") && holds(layers, "text_model.layers.17 ")) << layers;
  EXPECT_FALSE(holds(layers, " FFT ")) << "a column with nothing in it";
  EXPECT_FALSE(holds(layers, "\npeak of "));
  EXPECT_TRUE(holds(top, "\npeak of prefill\n")) << top;
  EXPECT_FALSE(holds(top, "\n  component "));
  EXPECT_TRUE(holds(good(small + "--verbose --per-layer"), "text_model.layers.17 "));
}

TEST(Answer, PartsOfTheJsonAddUp) {
  const Json e = Json::parse(good(small + "--json --images 3"));
  const auto sum = [](const Json& parts) {
    std::int64_t all = 0;
    for (const auto& part : parts) all += part.get<std::int64_t>();
    return all;
  };
  const Json &i = e["inference"], &t = e["training"];
  EXPECT_EQ(sum(i["prefill"]["parts"]), i["prefill"]["peak_bytes"]);
  EXPECT_EQ(sum(i["decode"]["parts"]), i["decode"]["peak_bytes"]);
  EXPECT_EQ(sum(t["peak"]["parts"]), t["peak_bytes"]);
  EXPECT_GT(t["peak"]["parts"]["saved_activations_bytes"], 0);
  EXPECT_EQ(i["decode"]["parts"]["gradients_bytes"], 0);
}

}  // namespace
}  // namespace cli::cli_answer_test
#endif
