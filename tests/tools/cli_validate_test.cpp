// SPDX-License-Identifier: Apache-2.0
// vlmest validate: what is compared, limits and exit codes, rows that cannot be read.
#include "called.hpp"
#include "schema.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_validate_test {
namespace {

const std::string root = VLMEST_SOURCE_DIR;
const std::string rows = root + "/tests/validation/rows/h200-inference-fresh.json";
const std::string times = root + "/tests/validation/rows/h200-times.json";
/// Made by hand: its times are no measurements.
const std::string benchmarks = root + "/tests/data/measured/benchmarks.json";
const std::string configs = " --models " + root + "/tests/data/configs ";

/// A run whose figures are what `vlmest estimate` says, but for a `factor` on the prefill's peak.
Json run_row(const std::string& name, double factor = 1) {
  const Json e = Json::parse(good("--config " + name + " --json --phase inference --text 64 --batch 2 --top 0"));
  const auto peak = e["inference"]["prefill"]["peak_bytes"].get<double>() / factor;
  return {{"model", name},
          {"mode", "infer"},
          {"batch", 2},
          {"text", e["inputs"]["text_tokens"].get<int>() + e["inputs"]["marker_tokens"].get<int>()},
          {"images", 1},
          {"hw", e["inputs"]["image_size"]},
          {"dtype", "bfloat16"},
          {"attn", "sdpa"},
          {"alloc_base", 0},
          {"params", e["model"]["params"]["total"]},
          {"kv_bytes", e["inference"]["kv_cache_bytes"]},
          {"prefill_peak", peak},
          {"prefill_ms", 100.0}};
}

Json quantity(const Json& v, const std::string& name) {
  for (const auto& q : v["quantities"])
    if (q["quantity"] == name) return q;
  ADD_FAILURE() << "no quantity " << name;
  return {};
}

/// Of the only row and quantity of an answer in JSON.
Json predicted(const Called& r) { return Json::parse(r.out)["rows"][0]["predicted"]; }

TEST(Validate, ComparesMeasuredRuns) {
  const std::string text = good("validate " + rows + configs + "--json");
  EXPECT_TRUE(text == good("validate --json " + rows + configs)) << "is deterministic";
  const Json v = Json::parse(text);
  EXPECT_EQ(v["schema_version"], 1);
  EXPECT_EQ(v["holds"], true);
  EXPECT_EQ(v["files"][0]["kind"], "runs");
  EXPECT_EQ(v["files"][0]["compared"], 24);
  EXPECT_EQ(quantity(v, "params")["worst_pct"], 0);
  EXPECT_EQ(quantity(v, "prefill_peak")["rows"], 24);
  EXPECT_LT(quantity(v, "prefill_peak")["worst_pct"], 0.1);
  const Json timed = Json::parse(good("validate " + times + configs + "--json --quantity prefill_gpu_ms"));
  EXPECT_EQ(quantity(timed, "prefill_gpu_ms")["unit"], "ms");
  for (const auto& r : v["rows"]) EXPECT_TRUE(r["quantity"] != "params" || r["predicted"] == r["measured"]) << r;
}

TEST(Validate, TheSameRowsInEveryShape) {
  const Json row = run_row("smolvlm-256m");
  const std::string other = run_row("smolvlm-500m").dump();
  const auto compared = [](const std::string& text) {
    return Json::parse(good("validate - --json", text))["files"][0]["compared"].get<int>();
  };
  EXPECT_EQ(compared("[" + row.dump() + "," + other + "]"), 2);
  EXPECT_EQ(compared(row.dump() + "\n" + other + "\n"), 2);
  EXPECT_EQ(compared("\n" + row.dump() + "\n\n" + other), 2);
  EXPECT_EQ(compared(row.dump()), 1);
  EXPECT_EQ(compared(row.dump(1)), 1);
  EXPECT_EQ(compared(Json{{"rows", {row}}}.dump(2)), 1);
}

TEST(Validate, ALimitDecidesTheExitCode) {
  const std::string two = "[" + run_row("smolvlm-256m").dump() + "," + run_row("smolvlm-256m", 1.04).dump() + "]";
  const auto code = [&](const std::string& limits) { return run("validate - " + limits, two).code; };
  EXPECT_EQ(code("--limit kv_bytes=0 --limit params=0"), 0);
  EXPECT_EQ(code("--limit prefill_peak=4.1"), 0);
  EXPECT_EQ(code("--limit prefill_peak=3.9"), 1);
  EXPECT_EQ(code("--limit worst:prefill_peak=3.9%"), 1);
  EXPECT_EQ(code("--limit mean:prefill_peak=2.1 --limit median:prefill_peak=2.1"), 0);
  EXPECT_EQ(code("--limit mean:prefill_peak=1.9"), 1);
  EXPECT_EQ(code("--limit median:prefill_peak=1.9"), 1);
  EXPECT_EQ(code("--limit prefill_peak=5 --limit median:prefill_peak=1.9"), 1);
  // What nothing measured has not been shown.
  EXPECT_EQ(code("--limit step_peak=50"), 1);

  const Called failed = run("validate - --limit prefill_peak=1", two);
  EXPECT_EQ(failed.out.rfind("prefill_peak: worst 4.000 % is more than 1 %\n", 0), 0u) << failed.out;
  EXPECT_NE(failed.out.find("rows beyond a limit\n"), std::string::npos);
  EXPECT_NE(failed.out.find("smolvlm-256m b2 text 103 images 1 "), std::string::npos);
  EXPECT_EQ(failed.err, "");
  EXPECT_NE(run("validate - --limit step_peak=50", two).out.find("step_peak: no row has measured it\n"),
            std::string::npos);

  const Called told = run("validate - --limit prefill_peak=1 --limit kv_bytes=0 --json", two);
  EXPECT_EQ(told.err, "prefill_peak: worst 4.000 % is more than 1 %\n") << "where the output does not say it";
  const Json v = Json::parse(told.out);
  EXPECT_EQ(v["holds"], false);
  EXPECT_EQ(v["limits"][0]["holds"], false);
  EXPECT_EQ(v["limits"][1]["holds"], true);
  // The same run twice is one row, and not all that was measured of it is within the limit.
  EXPECT_EQ(quantity(v, "prefill_peak")["rows"], 1);
  EXPECT_EQ(quantity(v, "prefill_peak")["measurements"], 2);
  EXPECT_EQ(quantity(v, "prefill_peak")["within_limit_pct"], 0);
}

TEST(Validate, RefusesLimitsThatMeanNothing) {
  refused("validate " + benchmarks + " --limit sdpa_tim=3", 2, "--limit: unknown quantity 'sdpa_tim'",
          "did you mean sdpa_time?");
  refused("validate " + benchmarks + " --quantity linear_tine", 2, "--quantity: unknown quantity 'linear_tine'",
          "did you mean linear_time?");
  for (const char* wrong : {"sdpa_time", "sdpa_time=", "sdpa_time=x", "sdpa_time=-1", "sdpa_time=nan", "=3",
                            "mid:sdpa_time=3", "sdpa_time=3x"})
    refused("validate " + benchmarks + " --limit " + wrong, 2,
            "--limit: '" + std::string(wrong) + "' is not QUANTITY=PERCENT or worst|mean|median:QUANTITY=PERCENT",
            "see 'vlmest validate --help'");
}

TEST(Validate, ComparesBenchmarks) {
  const Json v = Json::parse(good("validate " + benchmarks + " --json"));
  EXPECT_EQ(v["files"][0]["kind"], "benchmarks");
  EXPECT_EQ(v["files"][0]["device"], "NVIDIA H200");
  EXPECT_EQ(v["files"][0]["rows"], 14) << "aggregates beside repetitions do not count";
  EXPECT_EQ(v["files"][0]["compared"], 12);
  EXPECT_EQ(v["files"][0]["throttled"], 1);
  ASSERT_EQ(v["files"][0]["skipped"].size(), 2u);
  EXPECT_EQ(v["files"][0]["skipped"][0]["why"], "device memory: takes 276 GB of 141 GB");
  EXPECT_EQ(v["files"][0]["skipped"][1]["why"], "its label holds no operation");
  // Two repetitions of one, one median without repetitions, one more.
  EXPECT_EQ(quantity(v, "memory_time")["rows"], 3);
  EXPECT_EQ(quantity(v, "memory_time")["measurements"], 4);
  EXPECT_EQ(quantity(v, "memory_dram_bytes")["worst_pct"], 0);
  // Other implementations than those that frameworks run, and operands in the cache, stand for themselves.
  for (const char* q : {"linear_time", "linear_time_hot", "linear_cublaslt_best_time", "sdpa_time", "sdpa_flash_time",
                        "decode_time", "memory_time_small"})
    EXPECT_EQ(quantity(v, q)["rows"], 1) << q;
  const auto measured = [&](const std::string& q) {
    for (const auto& r : v["rows"])
      if (r["quantity"] == q) return r["measured"].get<double>();
    return -1.0;
  };
  EXPECT_EQ(measured("sdpa_time"), 300) << "nanoseconds became microseconds";
  EXPECT_EQ(measured("linear_dram_bytes"), 268500000 + 134200000);
  EXPECT_EQ(measured("linear_tensor_ops"), 2.0 * 8192 * 8192 * 8192);
}

TEST(Validate, MixesFilesAndFilters) {
  const Json v =
      Json::parse(good("validate " + rows + " " + benchmarks + configs + "--json --quantity params,fft_time"));
  ASSERT_EQ(v["quantities"].size(), 2u);
  EXPECT_EQ(v["files"].size(), 2u);
  EXPECT_EQ(v["rows"].size(), 25u);
  const std::string text = good("validate " + times + " " + benchmarks + configs + "--quantity prefill_ms");
  EXPECT_EQ(text.rfind("45 runs and 12 benchmarks of 2 files, predicted for h200-sxm\n", 0), 0u) << text;
  EXPECT_NE(text.find("prefill_ms: wall time of eager runs, the host's noise included; in range: "), std::string::npos);
}

TEST(Validate, EveryFormat) {
  const std::string call = "validate " + benchmarks + " --quantity sdpa_time,linear_time ";
  EXPECT_EQ(good(call + "--format csv").rfind("where,row,quantity,unit,predicted,measured,error_percent\n", 0), 0u);
  EXPECT_NE(good(call + "--format markdown --top 0").find("\n| linear_time | 1 | "), std::string::npos);
  EXPECT_EQ(good(call + "--format markdown --top 0").find("| row |"), std::string::npos);
  EXPECT_NE(good(call + "--rows").find("\nevery row\n"), std::string::npos);
  const Folder f;
  const std::string file = (f.path / "out.md").string();
  EXPECT_EQ(good(call + "--format markdown --output " + file), "");
  EXPECT_EQ(slurp(file), good(call + "--format markdown"));
}

TEST(Validate, ARowThatCannotBeComparedDoesNotHideTheOthers) {
  Json unknown = run_row("smolvlm-256m");
  unknown["model"] = "smolvlm-265m";
  Json without = run_row("smolvlm-256m");
  without.erase("batch");
  Json failed = run_row("smolvlm-256m");
  failed["error"] = "RuntimeError: no kernel image";
  const std::string list = Json{run_row("smolvlm-256m"), unknown, without, unknown, failed}.dump();
  const Called r = run("validate - --limit prefill_peak=1 --json", list);
  EXPECT_EQ(r.code, 3) << "an incomplete check is no passed one";
  EXPECT_EQ(r.err,
            "error: standard input[2].batch: missing\n"
            "hint: docs/reference/measured-rows.md lists the keys\n"
            "error: standard input[1]: model: no model 'smolvlm-265m' (and 1 more)\n"
            "hint: did you mean smolvlm-256m? --models DIR adds a folder with its config as NAME.json or "
            "NAME/config.json\n");
  const Json v = Json::parse(r.out);
  EXPECT_EQ(v["files"][0]["rows"], 5);
  EXPECT_EQ(v["files"][0]["compared"], 1);
  EXPECT_EQ(v["files"][0]["skipped"][0]["why"], "RuntimeError: no kernel image");
  EXPECT_EQ(run("validate - --limit prefill_ms=1", list).code, 1) << "a limit that does not hold comes first";
}

/// Two steps reserve something else than the second of them behind an emptied cache: rows say which they are.
TEST(Validate, RowsSayWhatTheyReservedIn) {
  const auto reserved = [](const Json& list) {
    return predicted(run("validate - --json --quantity reserved_peak", list.dump()));
  };
  Json row = {
      {"model", "qwen2-vl-2b"}, {"mode", "train"},         {"batch", 1}, {"text", 64}, {"images", 1}, {"ckpt", true},
      {"hw", {224, 224}},       {"reserved_peak", 1 << 30}};
  const Json in_turn = reserved(Json::array({row}));
  const Json of_file = reserved({{"rows", Json::array({row})}, {"cache_emptied", true}});
  row["cache_emptied"] = true;
  EXPECT_EQ(reserved(Json::array({row})), of_file);
  EXPECT_NE(in_turn, of_file);
  row["cache_emptied"] = "yes";
  EXPECT_EQ(run("validate -", Json::array({row}).dump()).err,
            "error: standard input[0].cache_emptied: expected true or false\n"
            "hint: docs/reference/measured-rows.md lists the keys\n");
  row.erase("cache_emptied");
  EXPECT_EQ(run("validate -", Json{{"rows", Json::array({row})}, {"cache_emptied", 1}}.dump()).err,
            "error: standard input.cache_emptied: expected true or false\n"
            "hint: docs/reference/measured-rows.md lists the keys\n");
}

TEST(Validate, RowsNameThePackagesThatRan) {
  Json row = {{"model", "qwen3.5-4b"}, {"batch", 1}, {"text", 256}, {"images", 0}, {"prefill_peak", 1 << 30}};
  const auto peak = [](const Json& r) {
    return predicted(run("validate - --json --quantity prefill_peak", Json::array({r}).dump()));
  };
  const Json alone = peak(row);
  row["packages"] = "fla,causal-conv1d";
  EXPECT_NE(peak(row), alone);
  row["packages"] = "fla,xformers";
  EXPECT_EQ(run("validate -", Json::array({row}).dump()).err,
            "error: standard input[0].packages: unknown 'xformers'\nhint: known: fla, causal-conv1d\n");
  row["packages"] = "fla";
  row["model"] = "smolvlm-256m";
  EXPECT_NE(run("validate -", Json::array({row}).dump()).err.find("has nothing that fla runs"), std::string::npos);
}

TEST(Validate, FindsAModelWhereTheRowSaysItIs) {
  const Folder f;
  const std::string config = slurp(root + "/models/vlm/smolvlm-256m.json");
  Json row = run_row("smolvlm-256m");
  row["model"] = "mine";
  row["config"] = "configs/mine/config.json";
  f.write("configs/mine/config.json", config);
  const std::string file = f.write("rows.json", Json::array({row}).dump());
  const Json v = Json::parse(good("validate " + file + " --json"));
  EXPECT_EQ(quantity(v, "params")["worst_pct"], 0) << "beside the rows";
  row.erase("config");
  f.write("rows.json", Json::array({row}).dump());
  EXPECT_EQ(run("validate " + file).code, 3);
  EXPECT_EQ(run("validate " + file + " --models " + (f.path / "configs").string()).code, 0);
  row["model"] = "/dev/zero";
  f.write("rows.json", Json::array({row}).dump());
  EXPECT_EQ(run("validate " + file).code, 3) << "no file that could be a config";
}

/// What runs on several GPUs has figures of its own, which those of one would seem to fit or not.
TEST(Validate, RefusesRowsOfSeveralGpus) {
  Json row = run_row("smolvlm-256m");
  row["gpus"] = 2;
  refused("validate -", 3, "standard input[0].gpus: rows of several GPUs are not compared",
          "hold their ranks' peaks against estimate --gpus N --json, key parallel.ranks", Json::array({row}).dump());
  row["gpus"] = 1;
  EXPECT_EQ(run("validate -", Json::array({row}).dump()).code,
            run("validate -", Json::array({run_row("smolvlm-256m")}).dump()).code);
  row["gpus"] = 0;
  EXPECT_EQ(run("validate -", Json::array({row}).dump()).code, 3);
}

TEST(Validate, RefusesFilesWithoutRows) {
  const std::string hint = "give the recorder's rows, or JSON that Google Benchmark wrote";
  refused("validate -", 3, "standard input: the file is empty", hint);
  refused("validate -", 3, "standard input: holds no rows", "record some, or leave the file out", "[]");
  refused("validate -", 3, "standard input: holds neither measured rows nor a benchmark's results", hint, "{}");
  refused("validate -", 3, "standard input: not JSON at line 1, column 2", hint, "{]");
  refused("validate no-such-file", 3, "no-such-file: cannot be read", "check the path and its permissions");
  EXPECT_EQ(run("validate").code, 2);
  // A recorder that was stopped leaves half a line; the whole ones are compared.
  const Called half = run("validate -", run_row("smolvlm-256m").dump() + "\n{\"model\": \"smol");
  EXPECT_EQ(half.code, 3);
  EXPECT_EQ(half.out.rfind("1 run of 1 file", 0), 0u) << half.out;
  EXPECT_EQ(half.err.rfind("error: standard input:2: not JSON\n", 0), 0u) << half.err;
}

TEST(Validate, NotesRowsOfAnotherGpu) {
  const Called r = run("validate " + benchmarks + " --device l40s --quantity fft_time");
  EXPECT_EQ(r.code, 0);
  EXPECT_EQ(r.err, "note: " + benchmarks +
                       " was measured on NVIDIA H200, the figures are predicted for l40s: --device names another\n");
}

TEST(ValidationSchema, HoldsForWhatTheProgramPrints) {
  const Json s = Json::parse(slurp(root + "/docs/reference/validation.schema.json"));
  for (const std::string& arguments :
       {benchmarks, rows + configs,
        rows + " " + benchmarks + configs + " --limit prefill_peak=1 --limit fft_time=1000000000"})
    EXPECT_EQ(schema::faults(s, Json::parse(good("validate --json " + arguments))), std::vector<std::string>{});
  const Json v = Json::parse(run("validate --json --limit median:linear_time=0 " + benchmarks).out);
  EXPECT_EQ(schema::faults(s, v), std::vector<std::string>{});
  for (const char* pointer : {"/holds", "/files/0/rows", "/quantities/0/worst_pct", "/limits/0/rows", "/rows/0/row"}) {
    Json bad = v;
    bad[Json::json_pointer(pointer)] = nullptr;
    EXPECT_EQ(schema::faults(s, bad).size(), 1u) << pointer;
  }
}

}  // namespace
}  // namespace cli::cli_validate_test
#endif
