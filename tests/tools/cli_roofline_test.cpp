// SPDX-License-Identifier: Apache-2.0
// vlmest roofline: the same points in every form, well-formed markup that needs no network, measured ops beside them.
#include <cmath>

#include "called.hpp"
#include "schema.hpp"
#include "xml.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_roofline_test {
namespace {

const std::string small = "roofline --config smolvlm-256m ";

Json points(const std::string& flags) { return Json::parse(good(small + flags + " --format json")); }

xml::Element svg(const std::string& text) {
  xml::Parser p(text);
  const xml::Element e = p.document();
  EXPECT_EQ(p.fault, "");
  EXPECT_EQ(e.name, "svg");
  EXPECT_EQ(e.attributes.at("xmlns"), "http://www.w3.org/2000/svg");
  return e;
}

/// The points that the markers of a class stand for.
std::multiset<int> drawn(const xml::Element& chart, const std::string& prefix) {
  std::multiset<int> r;
  xml::each(chart, [&](const xml::Element& e) {
    const auto c = e.attributes.find("class");
    if (e.name != "g" || !e.attributes.contains("data-points") || c->second.rfind(prefix, 0) != 0) return;
    EXPECT_EQ(e.children.front().name, "title");
    EXPECT_NE(e.children.front().text, "");
    EXPECT_EQ(e.attributes.at("tabindex"), "0");
    std::istringstream ids(e.attributes.at("data-points"));
    for (int id; ids >> id;) r.insert(id);
  });
  return r;
}

TEST(RooflineCommand, TimesAreThoseOfTheEstimate) {
  const Json estimate = Json::parse(good("--config smolvlm-256m --json"));
  for (const std::string phase : {"prefill", "decode", "train"}) {
    const Json r = points("--phase " + phase);
    const Json& of = phase == "train" ? estimate["training"] : estimate["inference"][phase];
    double time = 0, share = 0;
    std::int64_t kernels = 0, flops = 0;
    for (const auto& p : r["points"]) {
      time += p["total_us"].get<double>();
      share += p["share"].get<double>();
      kernels += p["count"].get<std::int64_t>() * p["kernels"].get<std::int64_t>();
      flops += p["count"].get<std::int64_t>() * p["flops"].get<std::int64_t>();
    }
    EXPECT_NEAR(time, 1e3 * of["gpu_ms"].get<double>(), 1e-5 * time) << phase;
    EXPECT_NEAR(time, r["time_us"].get<double>(), 1e-5 * time) << phase;
    EXPECT_NEAR(share, 1, 1e-6) << phase;
    EXPECT_EQ(kernels, of["kernels"]) << phase;
    EXPECT_EQ(flops, of["flops"]) << phase;
  }
}

std::vector<std::string> faults(const Json& r) {
  static const Json rules = Json::parse(slurp(std::string(VLMEST_SOURCE_DIR) + "/docs/reference/roofline.schema.json"));
  return schema::faults(rules, r);
}

TEST(RooflineCommand, JsonIsAsItsSchemaSays) {
  for (const char* flags : {"", "--phase decode --device t4 --dtype fp16", "--phase train --gradient-accumulation 3"})
    EXPECT_EQ(faults(points(flags)), std::vector<std::string>{}) << flags;
  Json bad = points("");
  bad["points"][0].erase("bound");
  bad["host"] = "mine";
  EXPECT_EQ(faults(bad).size(), 2u);
}

TEST(RooflineCommand, EveryPointIsDrawnOnce) {
  for (const std::string flags : {"", "--phase decode", "--phase train --lora 4", "--images 0 --device l4"}) {
    const Json r = points(flags);
    const auto seen = drawn(svg(good(small + flags + " --format svg")), "point");
    for (std::size_t i = 0; i < r["points"].size(); ++i) {
      const Json& p = r["points"][i];
      const bool placed = p["bytes_read"].get<std::int64_t>() + p["bytes_written"].get<std::int64_t>() > 0;
      EXPECT_EQ(seen.count(static_cast<int>(i)), placed ? 1u : 0u) << flags << " " << p;
    }
  }
}

TEST(RooflineCommand, APageNeedsNothingElse) {
  const Folder f;
  const std::string file = (f.path / "roofline.html").string();
  EXPECT_EQ(good(small + "--output '" + file + "'"), "");
  const std::string page = slurp(file);
  std::size_t found = 0;
  for (const std::string scheme : {"http:", "https:", "//cdn", "src=", "@import", "url(h"})
    for (auto at = page.find(scheme); at != std::string::npos; at = page.find(scheme, at + 1)) {
      EXPECT_EQ(page.substr(at - 7, 40), "xmlns=\"http://www.w3.org/2000/svg\" class") << page.substr(at - 20, 80);
      ++found;
    }
  EXPECT_EQ(found, 1u);
  const auto begin = page.find("<svg"), end = page.find("</svg>");
  ASSERT_NE(end, std::string::npos);
  svg(page.substr(begin, end + 6 - begin));
  const Json r = points("");
  for (std::size_t i = 0; i < r["points"].size(); ++i)
    EXPECT_NE(page.find("<tr id=\"op-" + std::to_string(i) + "\""), std::string::npos) << i;
  EXPECT_EQ(page.find("{{"), std::string::npos);
  EXPECT_EQ(good(small + "--format html"), page);
}

TEST(RooflineCommand, NamesAreText) {
  const Folder f;
  Json model = Json::parse(slurp(std::string(VLMEST_SOURCE_DIR) + "/models/vlm/smolvlm-256m.json"));
  const std::string name = "</title><script>alert('1')</script> & \"{{rows}}\"";
  model["name"] = name;
  const std::string config = f.write("model.json", model.dump());
  const std::string page = good("roofline --config '" + config + "' --format html");
  std::size_t scripts = 0;
  for (auto at = page.find("<script"); at != std::string::npos; at = page.find("<script", at + 1)) ++scripts;
  EXPECT_EQ(scripts, 1u);
  EXPECT_NE(page.find("&lt;script&gt;alert(&#39;1&#39;)"), std::string::npos);
  const xml::Element chart = svg(good("roofline --config '" + config + "' --format svg"));
  EXPECT_EQ(chart.children.front().text, name + ", prefill on h200-sxm");
}

TEST(RooflineCommand, TheNameOfTheOutputSaysTheFormat) {
  const Folder f;
  for (const auto& [extension, begins] :
       std::vector<std::pair<std::string, std::string>>{{"html", "<!doctype html>"},
                                                        {"svg", "<svg xmlns"},
                                                        {"json", "{\n"},
                                                        {"md", "# smolvlm-256m"},
                                                        {"csv", "scope,op,shape"},
                                                        {"txt", "smolvlm-256m, pre"}}) {
    const std::string file = (f.path / ("x." + extension)).string();
    EXPECT_EQ(good(small + "--output '" + file + "'"), "");
    EXPECT_EQ(slurp(file).substr(0, begins.size()), begins);
  }
  const std::string odd = (f.path / "x.png").string();
  EXPECT_EQ(good(small + "--format svg --output '" + odd + "'"), "");
  EXPECT_EQ(slurp(odd).substr(0, 4), "<svg");
  EXPECT_EQ(good(small + "--phase decode").substr(0, 33), "smolvlm-256m, decode on h200-sxm:");
}

TEST(RooflineCommand, MeasuredOpsStandBesideTheirPoints) {
  const Json r = points("");
  // A product, an op of memory, one that the model does not run, an error, and a peak that is no op.
  const Json* product = nullptr;
  for (const auto& p : r["points"])
    if (product == nullptr && p["shape"].get<std::string>().rfind("m ", 0) == 0) product = &p;
  ASSERT_NE(product, nullptr);
  std::int64_t m = 0, n = 0, k = 0;
  ASSERT_EQ(std::sscanf((*product)["shape"].get<std::string>().c_str(), "m %ld n %ld k %ld", &m, &n, &k), 3);
  const Json label = {{"op", "linear"}, {"m", m}, {"n", n}, {"k", k}, {"dtype", "bf16"}};
  Json other = label;
  other["n"] = n + 1;
  const auto entry = [](const std::string& name, const std::string& l, double us) {
    return Json{{"name", name}, {"run_type", "iteration"}, {"label", l}, {"real_time", us}, {"time_unit", "us"}};
  };
  Json file = {{"context", {{"device", "NVIDIA H200"}}}, {"benchmarks", Json::array()}};
  file["benchmarks"].push_back(entry("linear/cublaslt/<m>&/cold", label.dump(), 100));
  file["benchmarks"].back()["dram_read_bytes"] = 3e6;
  file["benchmarks"].back()["dram_written_bytes"] = 1e6;
  file["benchmarks"].push_back(entry("linear/cublaslt/hot", label.dump(), 50));
  file["benchmarks"].push_back(entry("linear/cublaslt/other/cold", other.dump(), 100));
  file["benchmarks"].push_back(entry("peak", "", 100));
  file["benchmarks"].push_back({{"name", "linear/x"}, {"error_occurred", true}, {"error_message", "too large"}});
  const Folder f;
  const std::string flags = "--measured '" + f.write("bench.json", file.dump()) + "'";
  const Json with = points(flags);
  EXPECT_EQ(with["points"], r["points"]);
  EXPECT_EQ(faults(with), std::vector<std::string>{});
  EXPECT_EQ(with["measured_elsewhere"], 1);
  ASSERT_GE(with["measured"].size(), 2u);
  for (const auto& x : with["measured"]) {
    const Json& p = with["points"][x["point"].get<std::size_t>()];
    EXPECT_EQ(p["shape"], (*product)["shape"]);
    const bool cold = x["name"] == "linear/cublaslt/<m>&/cold";
    EXPECT_EQ(x["bytes_counted"], cold);
    const std::int64_t predicted = p["bytes_read"].get<std::int64_t>() + p["bytes_written"].get<std::int64_t>();
    EXPECT_EQ(x["bytes"], cold ? 4000000 : predicted);
    EXPECT_NEAR(x["flops_per_s"].get<double>(), p["flops"].get<double>() / (cold ? 100e-6 : 50e-6),
                1e-5 * x["flops_per_s"].get<double>());
  }
  const xml::Element chart = svg(good(small + flags + " --format svg"));
  EXPECT_EQ(drawn(chart, "measured").size(), with["measured"].size());
  // Joined to the point: the line begins where a point stands and ends where the marker does.
  xml::each(chart, [&](const xml::Element& e) {
    if (!e.attributes.contains("data-points") || e.attributes.at("class") != "measured") return;
    const auto& line = e.children.at(1).attributes;
    EXPECT_EQ(e.children.at(2).attributes.at("d").rfind("M" + line.at("x2") + " ", 0), 0u);
    bool begins = false;
    xml::each(chart, [&](const xml::Element& c) {
      // Points within a pixel of each other share a marker.
      const auto near = [&](const char* of_circle, const char* of_line) {
        return std::abs(std::stod(c.attributes.at(of_circle)) - std::stod(line.at(of_line))) < 1.2;
      };
      begins = begins || (c.name == "circle" && near("cx", "x1") && near("cy", "y1"));
    });
    EXPECT_TRUE(begins) << e.children.front().text;
  });
  EXPECT_NE(good(small + flags).find("linear/cublaslt/hot"), std::string::npos);
}

TEST(RooflineCommand, IsDeterministic) {
  for (const std::string format : {"html", "json", "svg"})
    EXPECT_EQ(good(small + "--phase train --format " + format), good(small + "--phase train --format " + format));
}

TEST(RooflineCommand, WrongUsage) {
  refused(small + "--phase inference", 2, "--phase: 'inference' is not one of prefill, decode, train",
          "see 'vlmest roofline --help'");
  refused(small + "--format htm", 2, "--format: 'htm' is not one of text, json, markdown, csv, html, svg",
          "did you mean html?");
  refused(small + "--outptu x.svg", 2, "arguments: unknown '--outptu'", "did you mean --output?");
  refused("roofline", 2, "arguments: --config is required", "see 'vlmest roofline --help'");
  EXPECT_EQ(run(small + "--output roofline.png").code, 2);
  EXPECT_EQ(run(small + "--seq 9 --text 3").code, 2);
  EXPECT_EQ(run(small + "--output /nowhere/x.svg").code, 3);
  EXPECT_EQ(run(small + "--measured /nowhere.json").code, 3);
  const Folder f;
  EXPECT_EQ(run(small + "--measured '" + f.write("a.json", "{\"benchmarks\": 3}") + "'").code, 3);
  EXPECT_EQ(run(small + "--measured '" + f.write("b.json", "no JSON") + "'").code, 3);
  const Called wrong = run(small + "--measured -",
                           R"({"benchmarks": [{"name": "x", "label": "{\"op\": \"linear\"}", "real_time": 1}]})");
  EXPECT_EQ(wrong.code, 3);
  EXPECT_EQ(wrong.err.rfind("error: standard input.benchmarks[0].label", 0), 0u) << wrong.err;
}

}  // namespace
}  // namespace cli::cli_roofline_test
#endif
