// SPDX-License-Identifier: Apache-2.0
// The program as it is called: exit codes, where output goes, what errors say, and the JSON that others read.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#ifdef VLMEST_PROGRAM
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// A folder of this test alone, gone when it ends.
struct Folder {
  fs::path path;
  Folder() {
    static int count = 0;
    path = fs::path(testing::TempDir()) / ("vlmest-cli-" + std::to_string(getpid()) + "-" + std::to_string(count++));
    fs::create_directories(path);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  std::string write(const std::string& name, const std::string& text) const {
    fs::create_directories((path / name).parent_path());
    std::ofstream(path / name, std::ios::binary) << text;
    return (path / name).string();
  }
};

std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Called {
  int code = -1;
  std::string out, err;
};

/// What `vlmest ARGUMENTS` does, called by a shell; `before` stands in front of it (variables, a cd).
Called run(const std::string& arguments, const std::string& input = {}, const std::string& before = {}) {
  const Folder f;
  const std::string in = f.write("in", input), err = (f.path / "err").string();
  const std::string command = before + " '" + VLMEST_PROGRAM "' " + arguments + " <'" + in + "' 2>'" + err + "'";
  Called r;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return r;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) r.out += static_cast<char>(c);
  const int status = pclose(pipe);
  r.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  r.err = slurp(err);
  return r;
}

std::string good(const std::string& arguments, const std::string& input = {}, const std::string& before = {}) {
  const Called r = run(arguments, input, before);
  EXPECT_EQ(r.code, 0) << arguments << "\n" << r.err;
  EXPECT_EQ(r.err, "") << arguments;
  return r.out;
}

/// The call fails with `code` and says no more than these two lines; nothing goes to standard output.
void refused(const std::string& arguments, int code, const std::string& error, const std::string& hint,
             const std::string& input = {}) {
  const Called r = run(arguments, input);
  EXPECT_EQ(r.code, code) << arguments;
  EXPECT_EQ(r.out, "") << arguments;
  EXPECT_EQ(r.err, "error: " + error + "\nhint: " + hint + "\n") << arguments;
}

const std::string model = "--config llava-next-7b ";

// --- usage: exit code 2

TEST(Usage, UnknownWordsAreToldTheNearestOne) {
  refused("--confg x", 2, "arguments: unknown '--confg'", "did you mean --config?");
  refused("estimate " + model + "--batchs 2", 2, "arguments: unknown '--batchs'", "did you mean --batch?");
  refused(model + "--image-sizes 3x3", 2, "arguments: unknown '--image-sizes'", "did you mean --image-size?");
  refused(model + "leftover", 2, "arguments: unknown 'leftover'", "see 'vlmest estimate --help'");
  refused("modls", 2, "arguments: unknown 'modls'", "did you mean models?");
  refused("op --devce x", 2, "arguments: unknown '--devce'", "did you mean --device?");
  refused("qqqqqqqqqqqq", 2, "arguments: unknown 'qqqqqqqqqqqq'", "see 'vlmest --help'");
}

TEST(Usage, WordsOfAListAreToldTheNearestOne) {
  refused(model + "--dtype bf17", 2, "--dtype: 'bf17' is not one of bf16, fp16, fp32", "did you mean bf16?");
  refused(model + "--attention sdpaa", 2, "--attention: 'sdpaa' is not one of eager, sdpa, flash",
          "did you mean sdpa?");
  refused(model + "--freeze visio", 2, "--freeze: 'visio' is not one of vision, projector, language",
          "did you mean vision?");
  refused(model + "--phase inferense", 2, "--phase: inferense not in {inference,train,all}", "did you mean inference?");
  refused(model + "--format jsno", 2, "--format: 'jsno' is not one of text, json, markdown, csv", "did you mean json?");
  refused(model + "--color alwys", 2, "--color: alwys not in {auto,always,never}", "did you mean always?");
  refused(model + "--fail-on ooom", 2, "--fail-on: ooom not in {oom}", "did you mean oom?");
  refused(model + "--optimizer adamv", 2,
          "--optimizer: 'adamv' is not one of adamw, adamw-fused, adamw-8bit, sgd, sgd-momentum, adafactor",
          "did you mean adamw?");
  refused(model + "--weights int9", 2, "--weights: 'int9' is not one of bf16, fp16, fp8, int8, int4, nf4",
          "did you mean int8?");
  refused(model + "--dtype zzzzzzzzz", 2, "--dtype: 'zzzzzzzzz' is not one of bf16, fp16, fp32",
          "see 'vlmest estimate --help'");
}

TEST(Usage, WrongValues) {
  for (const char* flag : {"--batch 0",
                           "--batch -1",
                           "--batch x",
                           "--batch 1.5",
                           "--batch 99999999999999999999",
                           "--seq 0",
                           "--text -1",
                           "--images -1",
                           "--images 5000",
                           "--new-tokens 0",
                           "--top -1",
                           "--image-size 3",
                           "--image-size 3x",
                           "--image-size 0x3",
                           "--image-size 3x4x5",
                           "--image-size axb",
                           "--kv fp7",
                           "--profile torch",
                           "--logits some",
                           "--seq 100 --text 3",
                           "--batch",
                           "--config",
                           "--batch 1 --batch 2",
                           "--gradient-accumulation 0"}) {
    const Called r = run(model + flag);
    EXPECT_EQ(r.code, 2) << flag;
    EXPECT_EQ(r.out, "") << flag;
    EXPECT_EQ(r.err.rfind("error: --", 0), 0u) << flag << "\n" << r.err;
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 2) << flag << "\n" << r.err;
    EXPECT_NE(r.err.find("\nhint: "), std::string::npos) << flag << "\n" << r.err;
  }
}

TEST(Usage, NothingOrNoModel) {
  EXPECT_EQ(run("").code, 2);
  refused("estimate", 2, "arguments: --config is required", "see 'vlmest estimate --help'");
  refused("--batch 3", 2, "arguments: --config is required", "see 'vlmest estimate --help'");
  refused("completion", 2, "arguments: shell is required", "see 'vlmest completion --help'");
  EXPECT_EQ(run("completion tcsh").code, 2);
}

TEST(Usage, FlagsThatContradictTheModel) {
  refused(model + "--seq 10", 2, "--seq: 10 tokens, but the images alone need 2928",
          "raise --seq, or give fewer or smaller images");
  refused(model + "--images 0 --text 0", 2, "--seq: the sequence is empty", "give at least one text token or image");
}

// --- inputs that cannot be used: exit code 3

TEST(Inputs, UnknownNamesAreToldTheNearestOne) {
  refused("--config llava-nxt-7b", 3, "llava-nxt-7b: no such model or file",
          "did you mean llava-next-7b? 'vlmest models' shows all");
  refused("--config llava-nxt-7b.json", 3, "llava-nxt-7b.json: no such model or file",
          "did you mean llava-next-7b? 'vlmest models' shows all");
  refused("--config /nowhere/llava-next-7b", 3, "/nowhere/llava-next-7b: no such model or file",
          "see 'vlmest models' for the shipped ones");
  refused(model + "--device h20-sxm", 3, "--device: unknown device 'h20-sxm'",
          "did you mean h200-sxm? 'vlmest devices' shows all");
  refused("op --device qqqqqqqq", 3, "--device: unknown device 'qqqqqqqq'", "see 'vlmest devices' for the shipped ones",
          "[]");
  refused("op /nowhere/ops.json", 3, "/nowhere/ops.json: cannot be read", "check the path and its permissions");
  refused(model + "--output /nowhere/report", 3, "--output: cannot write /nowhere/report",
          "check the folder and its permissions");
  const Folder f;
  refused("--config '" + f.path.string() + "'", 3, f.path.string() + ": the folder holds no config.json",
          "name a file, or the folder of a checkpoint");
}

TEST(Inputs, UnknownFamiliesAreToldTheKnownOnes) {
  const Called r = run("--config -", R"({"model_type": "llava_previous"})");
  EXPECT_EQ(r.code, 3);
  EXPECT_EQ(r.err.rfind("error: standard input.model_type: unknown type 'llava_previous'\nhint: known: ", 0), 0u)
      << r.err;
  for (const char* word : {"llava_next", "qwen2_5_vl", "mllama", "blip-2", "docs/reference"})
    EXPECT_NE(r.err.find(word), std::string::npos) << word;
}

/// One line says where and what, one what to do; a broken document never gets further.
TEST(Inputs, BrokenDocuments) {
  const std::string whole = slurp(fs::path(VLMEST_SOURCE_DIR) / "models" / "vlm" / "llava-next-7b.json");
  const auto damaged = [&](const std::string& from, const std::string& to) {
    std::string s = whole;
    EXPECT_NE(s.find(from), std::string::npos) << from;
    return s.replace(s.find(from), from.size(), to);
  };
  const std::vector<std::string> texts{"",
                                       " \n",
                                       "{",
                                       "nonsense",
                                       "[]",
                                       "7",
                                       "null",
                                       "\"llava\"",
                                       "{}",
                                       "{\"model\": 3}",
                                       "{\"model\": {}}",
                                       "{\"model_type\": 7}",
                                       std::string("\0\1\2\3", 4),
                                       "\xff\xfe{}",
                                       std::string(100000, '['),
                                       "{\"a\":" + std::string(5000, '{'),
                                       whole + "x",
                                       whole.substr(0, whole.size() / 2),
                                       damaged("\"hidden_size\": 4096", "\"hidden_size\": 0"),
                                       damaged("\"hidden_size\": 4096", "\"hidden_size\": -4096"),
                                       damaged("\"hidden_size\": 4096", "\"hidden_size\": \"4096\""),
                                       damaged("\"hidden_size\": 4096", "\"hidden_size\": 4096.5"),
                                       damaged("\"hidden_size\": 4096", "\"hidden_size\": 1e400"),
                                       damaged("\"hidden_size\": 4096", "\"hidden_size\": 99999999999999999999"),
                                       damaged("\"hidden_size\": 4096", "\"hidden_size\": 4611686018427387904"),
                                       damaged("\"hidden_size\": 4096", "\"hidden_size\": [4096]"),
                                       damaged("\"num_hidden_layers\": 32", "\"num_hidden_layers\": 1000000000"),
                                       damaged("\"num_attention_heads\": 32", "\"num_attention_heads\": 31"),
                                       damaged("\"num_key_value_heads\": 32", "\"num_key_value_heads\": 5"),
                                       damaged("\"num_attention_heads\": 16", "\"num_attention_heads\": 15"),
                                       damaged("\"patch_size\": 14", "\"patch_size\": 1000"),
                                       damaged("\"vision_feature_layer\": -2", "\"vision_feature_layer\": 99"),
                                       damaged("[336, 672]", "[336, 671]"),
                                       damaged("\"hidden_act\": \"silu\"", "\"hidden_act\": \"sigh\""),
                                       damaged("\"source\"", "\"sauce\"")};
  for (const auto& text : texts) {
    const Called r = run("--config -", text);
    const std::string shown = text.substr(0, 60);
    EXPECT_EQ(r.code, 3) << shown << "\n" << r.err;
    EXPECT_EQ(r.out, "") << shown;
    EXPECT_EQ(r.err.rfind("error: ", 0), 0u) << shown;
    EXPECT_NE(r.err.find("\nhint: "), std::string::npos) << shown;
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 2) << shown << "\n" << r.err;
  }
}

TEST(Inputs, ErrorsNameFileAndKey) {
  const Folder f;
  const std::string bad =
      R"({"model_type": "llava_next", "text_config": {"model_type": "llama", "num_attention_heads": 33}})";
  f.write("checkpoint/config.json", bad);
  f.write("mine.json", bad);
  const std::string folder = "'" + f.path.string() + "/checkpoint'", file = "'" + f.path.string() + "/mine.json'";
  EXPECT_NE(run("--config " + folder).err.find("checkpoint/config.json.text_config.num_attention_heads: "),
            std::string::npos);
  EXPECT_EQ(run("--config " + file).err.rfind("error: mine.json.text_config.num_attention_heads: ", 0), 0u);
}

// --- where a model comes from

TEST(Models, AreFoundByNameFileFolderAndInput) {
  const std::string expected = good(model + "--json");
  EXPECT_EQ(good("estimate " + model + "--json"), expected);
  EXPECT_EQ(good("--config llava-next-7b.json --json"), expected);
  EXPECT_EQ(good("--config=llava-next-7b --format=json"), expected);
  EXPECT_EQ(good("--json " + model), expected);
  EXPECT_EQ(good(model + "--json", "", "cd / &&"), expected);
  const fs::path shipped = fs::path(VLMEST_SOURCE_DIR) / "models" / "vlm" / "llava-next-7b.json";
  EXPECT_EQ(good("--config '" + shipped.string() + "' --json"), expected);
  EXPECT_EQ(good("--config - --json", slurp(shipped)), expected);

  // The assembly alone is a config.json; its folder names the model.
  const std::string config = Json::parse(slurp(shipped))["model"].dump();
  const Folder f;
  f.write("my-model/config.json", config);
  Json named = Json::parse(expected);
  named["model"]["name"] = "my-model";
  EXPECT_EQ(Json::parse(good("--config '" + (f.path / "my-model").string() + "' --json")), named);
  EXPECT_EQ(Json::parse(
                good("--config config.json --json", "", "cd '" + (f.path / "my-model").string() + "' &&"))["inference"],
            named["inference"]);
  EXPECT_EQ(Json::parse(good("--config - --json", config))["inference"], named["inference"]);

  // A file in the way of a shipped name wins.
  f.write("llava-next-7b.json", slurp(shipped.parent_path() / "smolvlm-256m.json"));
  EXPECT_EQ(
      Json::parse(good("--config llava-next-7b.json --json", "", "cd '" + f.path.string() + "' &&"))["model"]["name"],
      "smolvlm-256m");
}

TEST(Models, ShippedOnesMayBeElsewhere) {
  const Folder f;
  const fs::path models = fs::path(VLMEST_SOURCE_DIR) / "models";
  f.write("vlm/mine.json", slurp(models / "vlm" / "smolvlm-256m.json"));
  f.write("device/card.json", slurp(models / "device" / "t4.json"));
  const std::string there = "VLMEST_MODELS='" + f.path.string() + "'";
  EXPECT_NE(good("models --format csv", "", there).find("\nmine,idefics3,"), std::string::npos);
  EXPECT_EQ(Json::parse(good("--config mine --device card --json", "", there))["device"]["name"], "t4");
  EXPECT_EQ(run(model, "", there).code, 3);
}

TEST(Devices, AreFoundByNameFileAndInput) {
  const fs::path t4 = fs::path(VLMEST_SOURCE_DIR) / "models" / "device" / "t4.json";
  const std::string expected = good(model + "--device t4 --json");
  EXPECT_EQ(Json::parse(expected)["device"]["name"], "t4");
  EXPECT_EQ(good(model + "--device '" + t4.string() + "' --json"), expected);
  EXPECT_EQ(good(model + "--device - --json", slurp(t4)), expected);
  EXPECT_EQ(run(model + "--device -", "{}").code, 3);
  EXPECT_EQ(Json::parse(good(model + "--json"))["device"]["name"], "h200-sxm");
}

TEST(Lists, NameWhatIsShipped) {
  for (const std::string kind : {"model", "device"}) {
    std::set<std::string> files;
    for (const auto& e :
         fs::directory_iterator(fs::path(VLMEST_SOURCE_DIR) / "models" / (kind == "model" ? "vlm" : "device")))
      if (e.path().extension() == ".json") files.insert(e.path().stem().string());
    std::set<std::string> listed;
    const Json list = Json::parse(good(kind + "s --json"));
    EXPECT_EQ(list["schema_version"], 1);
    for (const auto& item : list["items"]) listed.insert(item["name"].get<std::string>());
    EXPECT_EQ(listed, files);
    std::istringstream csv(good(kind + "s --format csv"));
    std::string line;
    std::getline(csv, line);
    EXPECT_EQ(line.rfind("name,", 0), 0u);
    std::size_t lines = 0;
    for (; std::getline(csv, line); ++lines) EXPECT_TRUE(files.contains(line.substr(0, line.find(',')))) << line;
    EXPECT_EQ(lines, files.size());
  }
  const Json models = Json::parse(good("models --json"));
  for (const auto& m : models["items"]) {
    const Json doc =
        Json::parse(slurp(fs::path(VLMEST_SOURCE_DIR) / "models" / "vlm" / (m["name"].get<std::string>() + ".json")));
    EXPECT_EQ(m["params"], doc["expect"]["params"]) << m;
    EXPECT_EQ(m["family"], doc["model"]["model_type"]) << m;
  }
}

// --- what comes out, and where

TEST(Output, HelpAndVersion) {
  EXPECT_EQ(good("--version").rfind("vlmest ", 0), 0u);
  const std::string help = good("--help");
  EXPECT_EQ(good("-h"), help);
  for (const std::string command : {"estimate", "op", "models", "devices", "completion"}) {
    EXPECT_NE(help.find("\n  " + command + " "), std::string::npos) << command;
    EXPECT_NE(good(command + " --help").find("Usage: "), std::string::npos) << command;
  }
  const std::string estimate = good("estimate --help");
  for (const char* flag : {"--config",
                           "--device",
                           "--batch",
                           "--seq",
                           "--text",
                           "--images",
                           "--image-size",
                           "--new-tokens",
                           "--phase",
                           "--dtype",
                           "--amp",
                           "--weights",
                           "--kv",
                           "--attention",
                           "--profile",
                           "--logits",
                           "--optimizer",
                           "--freeze",
                           "--gradient-accumulation",
                           "--per-layer",
                           "--top",
                           "--fail-on",
                           "--format",
                           "--json",
                           "--output",
                           "--color"})
    EXPECT_NE(estimate.find("  " + std::string(flag)), std::string::npos) << flag;
}

TEST(Output, Formats) {
  const std::string text = good(model), markdown = good(model + "--format markdown"),
                    csv = good(model + "--format csv");
  EXPECT_EQ(good(model + "--format text"), text);
  EXPECT_EQ(text.rfind("fits: peak ", 0), 0u);
  for (const char* part : {"\n  component ", "\n  vision ", "\n  prefill ", "\n  decode at ", "\npeak of ",
                           "model.language_model.layers.0-31"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
  EXPECT_EQ(markdown.rfind("# llava-next-7b\n\n**fits: ", 0), 0u);
  EXPECT_NE(markdown.find("\n|---|---:|"), std::string::npos);

  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line.rfind("scope,part,params,weights_bytes,", 0), 0u);
  const auto commas = std::count(line.begin(), line.end(), ',');
  std::int64_t params = 0;
  while (std::getline(lines, line)) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), commas) << line;
    std::istringstream cells(line);
    std::string scope, part, count;
    std::getline(std::getline(std::getline(cells, scope, ','), part, ','), count, ',');
    params += std::stoll(count);
  }
  EXPECT_EQ(params, 7063431168);
  EXPECT_NE(good(model + "--per-layer").find("model.language_model.layers.17 "), std::string::npos);
  EXPECT_EQ(text.find("model.language_model.layers.17 "), std::string::npos);
}

TEST(Output, GoesToAFile) {
  const Folder f;
  for (const std::string format : {"text", "json", "markdown", "csv"}) {
    const std::string file = (f.path / format).string();
    EXPECT_EQ(good(model + "--format " + format + " --output '" + file + "'"), "") << format;
    EXPECT_EQ(slurp(file), good(model + "--format " + format)) << format;
  }
  const std::string file = (f.path / "ops").string();
  EXPECT_EQ(good("op --output '" + file + "'", R"([{"op": "silu", "elements": 8}])"), "");
  EXPECT_EQ(Json::parse(slurp(file)).size(), 1u);
}

TEST(Output, IsTheSameEveryTime) {
  for (const std::string arguments :
       {"", "--json --per-layer", "--format markdown --batch 3", "--format csv --images 2 --image-size 500x333"})
    EXPECT_EQ(good(model + arguments), good(model + arguments, "", "cd / && LC_ALL=C TZ=Asia/Tokyo")) << arguments;
}

/// What the program writes to a terminal.
std::string on_terminal(const std::string& arguments, const std::string& before) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) return "no terminal";
  const std::string command =
      before + " '" VLMEST_PROGRAM "' " + arguments + " </dev/null >'" + ptsname(terminal) + "' 2>&1";
  std::FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(terminal, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
  EXPECT_EQ(pclose(pipe), 0);
  close(terminal);
  return text;
}

TEST(Output, IsColouredOnTerminalsOnly) {
  const std::string green = "\033[32mfits: ";
  EXPECT_EQ(good(model).find('\033'), std::string::npos);
  EXPECT_EQ(good(model + "--color never").find('\033'), std::string::npos);
  EXPECT_EQ(good(model + "--color always").rfind(green, 0), 0u);
  EXPECT_EQ(good(model + "--color always", "", "NO_COLOR=1").rfind(green, 0), 0u);
  EXPECT_EQ(good(model + "--color always --json").find('\033'), std::string::npos);
  EXPECT_EQ(good(model + "--device t4 --color always").rfind("\033[31mdoes not fit: ", 0), 0u);
  const std::string auto_color = on_terminal(model, "unset NO_COLOR;");
  if (auto_color == "no terminal") GTEST_SKIP() << "this system gives no pseudo-terminals";
  EXPECT_EQ(auto_color.rfind(green, 0), 0u);
  EXPECT_EQ(on_terminal(model, "NO_COLOR=1").find('\033'), std::string::npos);
  EXPECT_EQ(on_terminal(model, "NO_COLOR=").rfind(green, 0), 0u);
  EXPECT_EQ(on_terminal(model + "--color never", "unset NO_COLOR;").find('\033'), std::string::npos);
}

TEST(Output, AnswersWithItsExitCode) {
  EXPECT_EQ(run(model + "--fail-on oom").code, 0);
  EXPECT_EQ(run(model + "--device t4").code, 0);
  const Called r = run(model + "--device t4 --fail-on oom --json");
  EXPECT_EQ(r.code, 1);
  EXPECT_EQ(r.err, "");
  const Json e = Json::parse(r.out);
  EXPECT_EQ(e["inference"]["fits"], false);
  EXPECT_GT(e["inference"]["peak"]["bytes"], e["device"]["memory_bytes"]);
  EXPECT_EQ(run(model + "--device t4 --fail-on oom").out.rfind("does not fit: ", 0), 0u);
}

// --- the estimate's JSON

void has(const Json& o, const std::string& types) {
  std::istringstream list(types);
  for (std::string entry; list >> entry;) {
    const Json::json_pointer key(entry.substr(0, entry.find(':')));
    const std::string type = entry.substr(entry.find(':') + 1);
    ASSERT_TRUE(o.contains(key)) << entry;
    const Json& v = o[key];
    if (type == "int")
      EXPECT_TRUE(v.is_number_integer()) << entry << " is " << v;
    else if (type == "number")
      EXPECT_TRUE(v.is_number()) << entry << " is " << v;
    else
      EXPECT_EQ(v.type_name(), type) << entry;
    EXPECT_FALSE(v.is_number() && v < 0) << entry << " is " << v;
    const bool known = v == "compute" || v == "memory" || v == "launch" || v == "network";
    EXPECT_TRUE(key.back() != "bound" || known) << v;
  }
}

TEST(EstimateJson, HasWhatOthersRead) {
  const Json e = Json::parse(good(model + "--json --per-layer"));
  has(e,
      "/schema_version:int /model/name:string /model/family:string /model/params/total:int /model/params/vision:int "
      "/model/params/projector:int /model/params/language:int /model/trainable:int /inputs/batch:int /inputs/seq:int "
      "/inputs/text_tokens:int /inputs/image_tokens:int /inputs/images:int /inputs/image_size/0:int "
      "/inputs/image_size/1:int "
      "/device/name:string /device/memory_bytes:int /inference/weights_bytes:int /inference/kv_cache_bytes:int "
      "/inference/fft_bytes:int /inference/prefill/peak_bytes:int /inference/prefill/reserved_bytes:int "
      "/inference/prefill/flops:int /inference/prefill/flops_causal:int /inference/prefill/gpu_ms:number "
      "/inference/prefill/wall_ms:number /inference/prefill/kernels:int /inference/prefill/bound:string "
      "/inference/decode/kv_len:int /inference/decode/peak_bytes:int /inference/decode/flops:int "
      "/inference/decode/gpu_ms:number "
      "/inference/decode/wall_ms:number /inference/decode/kernels:int /inference/decode/bound:string "
      "/inference/decode/tokens_per_s:number /inference/peak/phase:string /inference/peak/bytes:int "
      "/inference/peak/tensors:array "
      "/inference/fits:boolean /training/weights_bytes:int /training/gradients_bytes:int /training/optimizer_bytes:int "
      "/layers:array");
  for (const auto& t : e["inference"]["peak"]["tensors"])
    has(t, "/name:string /scope:string /role:string /shape:array /dtype:string /bytes:int");
  for (const auto& l : e["layers"])
    has(l,
        "/scope:string /params:int /weights_bytes:int /kv_bytes:int /fft_bytes:int /flops_forward:int "
        "/forward_us:number "
        "/intensity:number /bound:string");
  EXPECT_EQ(e["schema_version"], 1);
  EXPECT_EQ(e["model"]["name"], "llava-next-7b");
  EXPECT_EQ(e["model"]["family"], "llava_next");
  EXPECT_EQ(e["model"]["params"],
            Json({{"total", 7063431168}, {"vision", 303507456}, {"projector", 20983808}, {"language", 6738939904}}));
  EXPECT_EQ(e["model"]["trainable"], 7063431168);
  EXPECT_EQ(e["device"]["name"], "h200-sxm");
}

TEST(EstimateJson, AddsUp) {
  const Json e = Json::parse(good(model + "--json --per-layer --top 4 --batch 2"));
  const Json& peak = e["inference"]["peak"];
  EXPECT_EQ(peak["tensors"].size(), 5u);
  EXPECT_EQ(peak["tensors"].back()["name"], "other");
  std::int64_t sum = 0, last = INT64_MAX;
  for (const auto& t : peak["tensors"]) {
    sum += t["bytes"].get<std::int64_t>();
    if (t["name"] == "other") continue;
    EXPECT_LE(t["bytes"].get<std::int64_t>(), last);
    last = t["bytes"];
  }
  EXPECT_EQ(peak["bytes"], sum);
  EXPECT_EQ(peak["bytes"], std::max(e["inference"]["prefill"]["peak_bytes"], e["inference"]["decode"]["peak_bytes"]));
  std::int64_t params = 0, kv = 0, flops = 0;
  for (const auto& l : e["layers"]) {
    params += l["params"].get<std::int64_t>();
    kv += l["kv_bytes"].get<std::int64_t>();
    flops += l["flops_forward"].get<std::int64_t>();
  }
  EXPECT_EQ(e["model"]["params"]["total"], params);
  EXPECT_EQ(e["inference"]["kv_cache_bytes"], kv);
  EXPECT_EQ(e["inference"]["prefill"]["flops"], flops);
  // 2 sequences, 32 layers, keys and values, 4,096 channels of 2 bytes.
  EXPECT_EQ(kv, 2 * 32 * 2 * 4096 * 2 * e["inputs"]["seq"].get<std::int64_t>());
}

TEST(EstimateJson, FollowsTheFlags) {
  const auto inputs = [](const std::string& flags) { return Json::parse(good(model + "--json " + flags))["inputs"]; };
  EXPECT_EQ(inputs(""), Json({{"batch", 1},
                              {"seq", 3184},
                              {"text_tokens", 256},
                              {"image_tokens", 2928},
                              {"images", 1},
                              {"image_size", {672, 672}}}));
  EXPECT_EQ(inputs("--batch 8 --seq 4096"), Json({{"batch", 8},
                                                  {"seq", 4096},
                                                  {"text_tokens", 1168},
                                                  {"image_tokens", 2928},
                                                  {"images", 1},
                                                  {"image_size", {672, 672}}}));
  EXPECT_EQ(inputs("--text 100 --images 2 --image-size 336x336")["image_tokens"],
            2 * inputs("--image-size 336x336")["image_tokens"].get<int>());
  EXPECT_EQ(inputs("--text 7 --images 0")["seq"], 7);
  EXPECT_EQ(inputs("--image-size 336x672")["image_size"], Json({336, 672}));
  const Json base = Json::parse(good(model + "--json"));
  EXPECT_FALSE(base.contains("layers"));
  EXPECT_EQ(base["inference"]["decode"]["kv_len"], 3184 + 128);
  const Json one = Json::parse(good(model + "--json --phase inference --new-tokens 1"));
  EXPECT_FALSE(one.contains("training"));
  EXPECT_EQ(one["inference"]["decode"]["kv_len"], 3184 + 1);
  const Json train = Json::parse(good(model + "--json --phase train --freeze vision,language"));
  EXPECT_FALSE(train.contains("inference"));
  EXPECT_EQ(train["model"]["trainable"], 20983808);
  EXPECT_EQ(Json::parse(good(model + "--json --freeze vision --freeze language"))["model"]["trainable"], 20983808);
  const Json fp32 = Json::parse(good(model + "--json --dtype fp32"));
  EXPECT_EQ(fp32["inference"]["kv_cache_bytes"], 2 * base["inference"]["kv_cache_bytes"].get<std::int64_t>());
  EXPECT_GT(Json::parse(good(model + "--json --logits all"))["inference"]["prefill"]["flops"],
            base["inference"]["prefill"]["flops"]);
  EXPECT_LT(Json::parse(good(model + "--json --profile fused"))["inference"]["prefill"]["kernels"],
            base["inference"]["prefill"]["kernels"]);
  EXPECT_GT(Json::parse(good(model + "--json --attention eager"))["inference"]["prefill"]["peak_bytes"],
            base["inference"]["prefill"]["peak_bytes"]);
  EXPECT_LT(Json::parse(good(model + "--json --weights int4"))["inference"]["weights_bytes"],
            base["inference"]["weights_bytes"]);
}

// --- single operations

const std::string operations = R"([
  {"op": "linear", "m": 4096, "n": 11008, "k": 4096, "dtype": "bf16"},
  {"op": "sdpa", "batch": 1, "heads": 32, "kv_heads": 8, "q_len": 4096, "kv_len": 4096, "head_dim": 128, "causal": true, "dtype": "bf16"},
  {"op": "fft2", "batch": 2, "channels": 4, "height": 24, "width": 24, "dtype": "fp32"},
  {"op": "ifft2", "batch": 2, "channels": 4, "height": 24, "width": 24, "dtype": "fp32"},
  {"op": "rfft2", "batch": 8, "channels": 1024, "height": 24, "width": 24, "dtype": "fp32"},
  {"op": "irfft2", "batch": 8, "channels": 1024, "height": 24, "width": 24, "dtype": "fp32"},
  {"op": "add", "elements": 16777216, "dtype": "bf16"},
  {"op": "silu", "elements": 16777216, "dtype": "bf16"},
  {"op": "copy", "elements": 16777216, "dtype": "fp32"},
  {"op": "softmax", "elements": 16777216, "dtype": "bf16"},
  {"op": "layernorm", "elements": 16777216, "dtype": "bf16"},
  {"op": "rmsnorm", "elements": 16777216, "width": 8192, "dtype": "bf16"}])";

TEST(Op, ListInSameListOut) {
  const Json in = Json::parse(operations), out = Json::parse(good("op -", operations));
  ASSERT_EQ(out.size(), in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    SCOPED_TRACE(in[i].dump());
    for (const auto& [key, value] : in[i].items()) EXPECT_EQ(out[i][key], value);
    has(out[i],
        "/time_us:number /flops:int /bytes_read:int /bytes_written:int /output_bytes:int /workspace_bytes:int "
        "/peak_bytes:int "
        "/intensity:number /bound:string");
    EXPECT_GT(out[i]["time_us"], 0);
    EXPECT_GE(out[i]["peak_bytes"],
              out[i]["output_bytes"].get<std::int64_t>() + out[i]["workspace_bytes"].get<std::int64_t>());
  }
  EXPECT_EQ(out[0]["flops"], 2ll * 4096 * 11008 * 4096);
  EXPECT_EQ(out[0]["output_bytes"], 2ll * 4096 * 11008);
  EXPECT_EQ(out[0]["bound"], "compute");
  EXPECT_EQ(out[4]["output_bytes"], 8ll * 1024 * 24 * 13 * 8);
  EXPECT_EQ(out[6]["bytes_read"], 2 * out[7]["bytes_read"].get<std::int64_t>());
  EXPECT_EQ(out[7]["bytes_written"], 2ll * 16777216);
  EXPECT_EQ(out[8]["bound"], "memory");
  const Folder f;
  EXPECT_EQ(good("op '" + f.write("ops.json", operations) + "'"), good("op", operations));
  EXPECT_EQ(good("op --json", operations), good("op --format text", operations));
  EXPECT_NE(good("op --format csv", operations).find("\nrmsnorm,"), std::string::npos);
  EXPECT_NE(good("op --format markdown", operations).find("| sdpa |"), std::string::npos);
  EXPECT_GT(Json::parse(good("op --device t4", operations))[8]["time_us"], out[8]["time_us"]);
  EXPECT_EQ(Json::parse(good("op", "[]")), Json::array());
}

TEST(Op, RefusesWhatItCannotCost) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"[{\"op\": \"sofmax\", \"elements\": 8}]", "error: standard input[0].op: unknown op 'sofmax'\n"},
      {"[{\"op\": \"add\", \"elements\": 8}, {}]", "error: standard input[1].op: missing\n"},
      {"[{\"op\": \"linear\", \"m\": 8, \"n\": 8}]", "error: standard input[0].k: missing\n"},
      {"[{\"op\": \"linear\", \"m\": 8, \"n\": 8, \"k\": 0}]", "error: standard input[0].k: "},
      {"[{\"op\": \"linear\", \"m\": 8, \"n\": 8, \"k\": \"8\"}]", "error: standard input[0].k: expected an integer\n"},
      {"[{\"op\": \"silu\", \"elements\": 8, \"dtype\": \"bf17\"}]", "error: standard input[0].dtype: "},
      {"[{\"op\": \"softmax\", \"elements\": 8}]",
       "error: standard input[0].elements: is no multiple of the width 4096\n"},
      {"[{\"op\": \"sdpa\", \"heads\": 3, \"kv_heads\": 2, \"q_len\": 4, \"head_dim\": 8}]",
       "error: standard input[0].kv_heads: "},
      {"[3]", "error: standard input[0]: expected an object\n"},
      {"", "error: standard input: the file is empty\n"},
      {"[{]", "error: standard input: not JSON at line 1, column "}};
  for (const auto& [input, error] : cases) {
    const Called r = run("op", input);
    EXPECT_EQ(r.code, 3) << input;
    EXPECT_EQ(r.out, "") << input;
    EXPECT_EQ(r.err.rfind(error, 0), 0u) << input << "\n" << r.err;
    EXPECT_NE(r.err.find("\nhint: "), std::string::npos) << input << "\n" << r.err;
  }
}

// --- completion

TEST(Completion, ScriptsNameCommandsFlagsAndModels) {
  const std::string bash = good("completion bash"), zsh = good("completion zsh"), fish = good("completion fish");
  for (const char* word :
       {"estimate", "op", "models", "devices", "completion", "--config", "--image-size", "--fail-on"}) {
    EXPECT_NE(bash.find(word), std::string::npos) << word;
    EXPECT_NE(
        fish.find(std::string(word).starts_with("--") ? "-l " + std::string(word + 2) : "-a " + std::string(word)),
        std::string::npos)
        << word;
  }
  EXPECT_EQ(zsh.rfind("#compdef vlmest\n", 0), 0u);
}

/// The script at work: what bash offers for a command line that is typed so far.
TEST(Completion, WorksInBash) {
  if (std::system("bash -c true >/dev/null 2>&1") != 0) GTEST_SKIP() << "no bash";
  const auto offers = [](const std::string& words, int at) {
    const Folder f;
    const std::string script = good("completion bash") + "vlmest() { '" VLMEST_PROGRAM "' \"$@\"; }\nCOMP_WORDS=(" +
                               words + ")\nCOMP_CWORD=" + std::to_string(at) +
                               "\n_vlmest\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n";
    const std::string command = "bash '" + f.write("script", script) + "' 2>&1";
    std::FILE* pipe = popen(command.c_str(), "r");
    std::set<std::string> words_offered;
    std::string line;
    for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) {
      if (c != '\n')
        line += static_cast<char>(c);
      else
        words_offered.insert(std::exchange(line, {}));
    }
    EXPECT_EQ(pclose(pipe), 0);
    return words_offered;
  };
  EXPECT_EQ(offers("vlmest es", 1), std::set<std::string>{"estimate"});
  EXPECT_EQ(offers("vlmest estimate --image-", 2), std::set<std::string>{"--image-size"});
  EXPECT_EQ(offers("vlmest --config llava-next-7", 2).count("llava-next-7b"), 1u);
  EXPECT_EQ(offers("vlmest estimate --device h200", 3).count("h200-sxm"), 1u);
}

}  // namespace
#endif
