// SPDX-License-Identifier: Apache-2.0
// The command that watches: a log as it is, a log that grows, standard input, the driver, and what Prometheus gets.
#include <chrono>
#include <csignal>
#include <thread>

#include "called.hpp"
#include "http_client.hpp"
#include "running.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_watch_test {
namespace {

const std::string leak = VLMEST_SOURCE_DIR "/docs/examples/leak.log";
const std::string smi = VLMEST_SOURCE_DIR "/docs/examples/nvidia-smi.csv";

/// A line of a log, as Megatron writes it.
std::string at_step(int step, int allocated_mib, int rank = 0) {
  const std::string a = std::to_string(allocated_mib);
  return "[Rank " + std::to_string(rank) + "] (after " + std::to_string(step) +
         " iterations) memory (MB) | allocated: " + a + ".0 | max allocated: " + a + ".0 | reserved: " + a +
         ".0 | max reserved: " + a + ".0\n";
}

void append(const std::string& file, const std::string& text) {
  std::ofstream(file, std::ios::app | std::ios::binary) << text;
}

/// "note: serving http://127.0.0.1:N/metrics": N.
std::uint16_t served_port(Running& watch) {
  const std::string line = watch.error_line(), before = "note: serving http://127.0.0.1:";
  EXPECT_TRUE(line.starts_with(before) && line.ends_with("/metrics")) << line;
  return line.starts_with(before) ? static_cast<std::uint16_t>(std::stoul(line.substr(before.size()))) : 0;
}

/// The metrics once they hold `expected`; as they are after 20 seconds.
std::string scrape_until(std::uint16_t port, const std::string& expected) {
  std::string text;
  for (int i = 0; i < 400; ++i) {
    text = http::body(http::get(port, "/metrics"));
    if (text.find(expected) != std::string::npos) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return text;
}

/// The value of a sample, written as it is.
std::string sample(const std::string& metrics, const std::string& name) {
  std::istringstream lines(metrics);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(name + "{")) return line.substr(line.rfind(' ') + 1);
  return "absent";
}

TEST(Watch, TellsALogsGrowthAndWhenMemoryEnds) {
  const Json r = Json::parse(good("watch --once --json --gpu-memory 16GiB " + leak));
  EXPECT_EQ(r["schema_version"], 1);
  EXPECT_EQ(r["source"], "training_log");
  EXPECT_EQ(r["gpu"], "0");
  EXPECT_EQ(r["step"], 40);
  EXPECT_EQ(r["readings"], 40);
  EXPECT_EQ(r["total_bytes"], 16LL << 30);
  // What the run kept: 16 or 17 or 18 images' features of 577 x 1024 floats at each step.
  EXPECT_NEAR(r["growth_bytes_per_step"].get<double>(), 17 * 577 * 1024 * 4, 0.02 * 17 * 577 * 1024 * 4);
  const double left = r["total_bytes"].get<double>() - r["highest_bytes"].get<double>();
  // The highest peaks meet the end first.
  EXPECT_NEAR(r["steps_to_oom"].get<double>(), left / r["growth_bytes_per_step"].get<double>(), 5);
}

TEST(Watch, ReadsNvidiaSmi) {
  const Json r = Json::parse(good("watch --once --json " + smi));
  EXPECT_EQ(r["trend"], "growing");  // 38 MiB a step, two to three steps a second
  EXPECT_GT(r["growth_bytes_per_step"], 64 << 20);
  EXPECT_LT(r["growth_bytes_per_step"], 128 << 20);
  EXPECT_EQ(r["source"], "nvidia_smi");
  EXPECT_EQ(r["gpu"], "0");
  EXPECT_EQ(r["used_bytes"], 16791LL << 20);
  EXPECT_EQ(r["total_bytes"], 143771LL << 20);
  EXPECT_FALSE(r.contains("step"));
}

TEST(Watch, PredictsThePeakOfAModel) {
  const std::string flags = "--config smolvlm-256m --batch 2 ";
  const Json e = Json::parse(good(flags + "--json --top 0"));
  const Json all = Json::parse(good("watch --once --json " + flags + leak));
  EXPECT_EQ(all["predicted_peak_bytes"], e["training"]["peak_bytes"]);
  EXPECT_EQ(all["predicted_reserved_bytes"], e["training"]["reserved_in_loop_bytes"]);
  EXPECT_FALSE(all.contains("total_bytes"));  // the estimate's device need not be the one that runs
  const Json inference = Json::parse(good("watch --once --json --phase inference --device l4 " + flags + leak));
  const Json on_l4 = Json::parse(good(flags + "--json --top 0 --phase inference --device l4"));
  EXPECT_EQ(inference["predicted_peak_bytes"], on_l4["inference"]["peak"]["bytes"]);
  EXPECT_LE(inference["total_bytes"], on_l4["device"]["memory_bytes"]);
}

TEST(Watch, ReadsStandardInputToItsEnd) {
  std::string log;
  for (int step = 1; step <= 20; ++step) log += "epoch 1\n" + at_step(step, 1000 + 10 * step);
  const std::string at_once = good("watch --once -", log);
  EXPECT_EQ(good("watch -", log), at_once);
  EXPECT_EQ(good("watch --once /dev/stdin", log), at_once);
  EXPECT_NE(at_once.find("gpu 0  step 20  used 1.17 GiB"), std::string::npos) << at_once;
  EXPECT_NE(at_once.find("growing +10.0 MiB a step"), std::string::npos) << at_once;
}

TEST(Watch, TellsRanksApart) {
  std::string log;
  for (int step = 1; step <= 12; ++step)
    for (int rank = 0; rank < 2; ++rank) log += at_step(step, 1000 + 10 * rank * step, rank);
  const std::string out = good("watch --once --json -", log);
  const auto second = out.find('\n') + 1;
  const Json a = Json::parse(out.substr(0, second)), b = Json::parse(out.substr(second));
  EXPECT_EQ(a["gpu"], "0");
  EXPECT_EQ(a["growth_bytes_per_step"], 0);
  EXPECT_EQ(b["gpu"], "1");
  EXPECT_EQ(b["growth_bytes_per_step"], 10 << 20);
}

TEST(Watch, FollowsALogThatIsNotThereYetGrowsAndIsRotated) {
  const Folder f;
  const std::string log = (f.path / "train.log").string();
  Running watch({"watch", log, "--interval", "0.05", "--json"});
  EXPECT_EQ(watch.error_line(), "note: " + log + " is not there yet, waiting for it");
  append(log, at_step(1, 1000));
  EXPECT_EQ(Json::parse(watch.line())["step"], 1);
  append(log, at_step(2, 1010).substr(0, 30));
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  append(log, at_step(2, 1010).substr(30));
  const Json second = Json::parse(watch.line());
  EXPECT_EQ(second["step"], 2);
  EXPECT_EQ(second["used_bytes"], 1010 << 20);
  fs::rename(log, log + ".1");
  append(log, at_step(3, 1020));
  EXPECT_EQ(Json::parse(watch.line())["step"], 3);
  EXPECT_EQ(watch.error_line(), "note: " + log + " was replaced, reading the new file");
  fs::resize_file(log, 0);
  append(log, at_step(1, 500));
  const Json restarted = Json::parse(watch.line());
  EXPECT_EQ(restarted["step"], 1);
  EXPECT_EQ(restarted["readings"], 1);  // a run of its own
  watch.signal(SIGTERM);
  EXPECT_EQ(watch.wait(), 0);
}

TEST(Watch, ServesMetricsUntilItIsInterrupted) {
  const Folder f;
  const std::string log = f.write("train.log", "starting\n");
  Running watch({"watch", log, "--interval", "0.05", "--port", "0", "--gpu-memory", "2GiB"});
  const std::uint16_t port = served_port(watch);
  EXPECT_EQ(http::get(port, "/metrics").substr(0, 15), "HTTP/1.1 200 OK");
  for (int step = 1; step <= 20; ++step) append(log, at_step(step, 1000 + 10 * step));
  const std::string m = scrape_until(port, "vlmest_training_step{gpu=\"0\",source=\"training_log\"} 20\n");
  EXPECT_EQ(sample(m, "vlmest_memory_used_bytes"), std::to_string(1200 << 20));
  EXPECT_EQ(sample(m, "vlmest_memory_reserved_bytes"), std::to_string(1200 << 20));
  EXPECT_EQ(sample(m, "vlmest_memory_total_bytes"), std::to_string(2LL << 30));
  EXPECT_EQ(sample(m, "vlmest_memory_growth_bytes_per_step"), std::to_string(10 << 20));
  EXPECT_EQ(sample(m, "vlmest_estimated_steps_to_oom"), std::to_string((2048 - 1200) / 10));
  EXPECT_EQ(sample(m, "vlmest_memory_predicted_peak_bytes"), "absent");
  EXPECT_EQ(http::get(port, "/").substr(0, 12), "HTTP/1.1 404");
  const int silent = http::connect(port);  // does not keep it from ending
  watch.signal(SIGINT);
  EXPECT_EQ(watch.wait(), 0);
  close(silent);
  EXPECT_EQ(http::connect(port), -1);
}

TEST(Watch, StepsToTheEndAreAbsentWhileNothingGrows) {
  std::string log;
  for (int step = 1; step <= 20; ++step) log += at_step(step, 1000);
  const std::string m = good("watch --once --format prometheus --gpu-memory 2GiB -", log);
  EXPECT_EQ(sample(m, "vlmest_memory_growth_bytes_per_step"), "0");
  EXPECT_EQ(sample(m, "vlmest_estimated_steps_to_oom"), "absent");
}

TEST(Watch, AFileOfMetricsIsReplacedAtEachUpdate) {
  const Folder f;
  const std::string log = f.write("train.log", at_step(1, 1000)), prom = (f.path / "vlmest.prom").string();
  EXPECT_EQ(good("watch --once --format prometheus --output " + prom + " " + log), "");
  EXPECT_EQ(slurp(prom), good("watch --once --format prometheus " + log));
  append(log, at_step(2, 1000));
  good("watch --once --format prometheus --output " + prom + " " + log);
  EXPECT_EQ(sample(slurp(prom), "vlmest_training_step"), "2");
  EXPECT_EQ(std::distance(fs::directory_iterator(f.path), fs::directory_iterator()), 2);
  refused("watch --once --output /nowhere/f " + log, 3, "--output: cannot write /nowhere/f",
          "check the folder and its permissions");
}

TEST(Watch, EndsWhenNobodyReadsItsOutput) {
  const Folder f;
  const std::string log = f.write("train.log", at_step(1, 1000));
  Running watch({"watch", log, "--interval", "0.05"});
  EXPECT_NE(watch.line(), "<none>");
  watch.close_output();
  append(log, at_step(2, 1000));
  EXPECT_EQ(watch.wait(), 0);
}

TEST(Watch, FollowsAPipeAsItComes) {
  Running watch({"watch", "-", "--interval", "0.05", "--json"});
  watch.say(at_step(1, 1000));
  EXPECT_EQ(Json::parse(watch.line())["step"], 1);
  watch.say(at_step(2, 1000));
  EXPECT_EQ(Json::parse(watch.line())["step"], 2);
  watch.close_input();
  EXPECT_EQ(watch.wait(), 0);
}

TEST(Watch, SaysWhatIsWrong) {
  const Folder f;
  const std::string empty = f.write("empty.log", "nothing of memory here\n");
  const std::string hint =
      "give a training log with memory per step, or nvidia-smi --query-gpu=index,memory.used,memory.total --format=csv "
      "-l 1";
  refused("watch --once " + empty, 3, empty + ": has no line that tells a GPU's memory", hint);
  refused("watch -", 3, "standard input: has no line that tells a GPU's memory", hint, "loss 1\n");
  refused("watch --once /nowhere/train.log", 3, "/nowhere/train.log: cannot be read: No such file or directory",
          "check the path and its permissions");
  refused("watch " + f.path.string(), 3, f.path.string() + ": cannot be read: Is a directory",
          "check the path and its permissions");
  refused("watch", 2, "--nvml: is needed where no file is given, and no - for standard input",
          "see 'vlmest watch --help'");
  refused("watch --nvml " + leak, 2, "--nvml: cannot be given together with a file", "see 'vlmest watch --help'");
  refused("watch --once --port 0 " + leak, 2, "--once: cannot be given together with --port",
          "see 'vlmest watch --help'");
  for (const char* flag : {"--port 65536", "--port -1", "--port x", "--interval 0", "--interval nan", "--interval x",
                           "--format xml", "--gpu-memory x", "--config no-such-model"})
    EXPECT_GE(run(std::string("watch --once ") + flag + " " + leak).code, 2) << flag;
}

TEST(Watch, SaysThatAPortIsTaken) {
  Running first({"watch", "-", "--port", "0"});
  const std::string port = std::to_string(served_port(first));
  refused("watch - --port " + port, 2, "--port: cannot listen on 127.0.0.1:" + port + ": Address already in use",
          "choose another port, or 0 for any that is free");
}

TEST(Watch, SaysThatTheDriverIsMissing) {
  const Called r = run("watch --nvml --once", {}, "LD_LIBRARY_PATH=/nowhere");
  if (r.code == 0) GTEST_SKIP() << "this machine has a driver";
  EXPECT_EQ(r.code, 3);
  EXPECT_EQ(r.err.substr(0, 12), "error: NVML:");
  EXPECT_NE(r.err.find("\nhint: "), std::string::npos);
}

#ifdef VLMEST_FAKE_NVML
const std::string with_driver = "LD_LIBRARY_PATH=" VLMEST_FAKE_NVML;

TEST(WatchNvml, AsksTheDriver) {
  EXPECT_EQ(good("watch --nvml --once", {}, with_driver),
            "gpu 0  used 10.0 GiB  total 80.0 GiB  busy 93 %\ngpu 1  used 2.00 GiB  total 80.0 GiB\n");
  const std::string m = good("watch --nvml --once --format prometheus", {}, with_driver);
  EXPECT_EQ(sample(m, "vlmest_gpu_utilization_ratio"), "0.93");
  EXPECT_NE(m.find("vlmest_memory_used_bytes{gpu=\"1\",source=\"nvml\"} 2147483648\n"), std::string::npos) << m;
}

TEST(WatchNvml, AsksAnOldDriverThatCountsItsOwnMemory) {
  EXPECT_NE(good("watch --nvml --once", {}, "FAKE_NVML=old " + with_driver).find("gpu 1  used 3.00 GiB"),
            std::string::npos);
}

TEST(WatchNvml, SeesMemoryGrow) {
  Running watch({"watch", "--nvml", "--interval", "0.02", "--json"}, {with_driver});
  for (int i = 0; i < 2 * 19; ++i) watch.line();  // two GPUs a look
  const Json r = Json::parse(watch.line());
  EXPECT_EQ(r["used_bytes"], 29LL << 30);
  EXPECT_EQ(r["trend"], "growing");
  EXPECT_EQ(r["growth_bytes_per_step"], 1 << 30);
  EXPECT_EQ(r["steps_to_oom"], 80 - 29);
  watch.signal(SIGINT);
  EXPECT_EQ(watch.wait(), 0);
}

TEST(WatchNvml, SaysWhatTheDriverSays) {
  const Called driver = run("watch --nvml --once", {}, "FAKE_NVML=no-driver " + with_driver);
  EXPECT_EQ(driver.code, 3);
  EXPECT_EQ(driver.err, "error: NVML: nvmlInit_v2 failed: Driver Not Loaded\nhint: see whether nvidia-smi works\n");
  const Called gpu = run("watch --nvml --once", {}, "FAKE_NVML=no-gpu " + with_driver);
  EXPECT_EQ(gpu.code, 3);
  EXPECT_EQ(gpu.err, "error: NVML: the driver sees no GPU\nhint: see whether nvidia-smi -L lists one\n");
}
#endif

}  // namespace
}  // namespace cli::cli_watch_test
#endif
