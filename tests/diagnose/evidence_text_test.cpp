// SPDX-License-Identifier: Apache-2.0
// The pieces that readers of text are made of: sizes, prefixes, escapes, stacks, and the kinds of files.
#include <algorithm>
#include <array>
#include <cstdlib>

#include <vlmest/diagnose/evidence/kind.hpp>
#include <vlmest/diagnose/evidence/stack/allocation_site.hpp>
#include <vlmest/diagnose/evidence/stack/traceback_reader.hpp>
#include <vlmest/diagnose/evidence/text/encoding.hpp>
#include <vlmest/diagnose/evidence/text/log_quantity.hpp>
#include <vlmest/diagnose/evidence/text/log_text.hpp>
#include <vlmest/diagnose/evidence/text/log_values.hpp>
#include <vlmest/diagnose/evidence/text/word_starts.hpp>

#include "read_data.hpp"

namespace vlmest::evidence_text_test {
namespace {

using namespace diagnose;

TEST(SizeText, AnIntervalForEachSpelling) {
  const auto is = [](const char* text, std::int64_t value, std::int64_t low, std::int64_t high) {
    const auto f = size_at(text, 0);
    ASSERT_TRUE(f && f->size) << text;
    EXPECT_EQ(*f->size, (PrintedSize{Bytes(value), Bytes(low), Bytes(high)})) << text;
  };
  is("512 bytes", 512, 512, 512);
  is("2.00 MiB", 2097152, 2091910, 2102394);  // +- 0.005 MiB = 5242.88
  is("6.10 GiB.", 6549825126, 6544456418, 6555193835);
  is("1,024.00KiB", 1048576, 1048571, 1048581);
  is("1,5 GB", 1610612736, 1556925645, 1664299827);
  is("24gib", 25769803776, 25232932864, 26306674688);
  is("12.5G;", 13421772800, 13368085709, 13475459891);
  is("1.024.000 bytes", 1024000, 1024000, 1024000);
  is("0 bytes is free", 0, 0, 0);
  EXPECT_FALSE(size_at("12 gallons", 0));
  EXPECT_FALSE(size_at("GiB", 0));
  EXPECT_FALSE(size_at("12", 0));
  EXPECT_EQ(size_at("12", 0, true)->size->value, Bytes(12));
  // 2^64 bytes and more digits than a number has: found, but no size.
  EXPECT_TRUE(size_at("17179869184.00 GiB", 0) && !size_at("17179869184.00 GiB", 0)->size);
  EXPECT_TRUE(size_at("99999999999999999999 bytes", 0) && !size_at("99999999999999999999 bytes", 0)->size);
}

TEST(SizeText, ReadBackwards) {
  const std::string text = "(gpu0;79.10gibtotalcapacity";
  const auto f = size_before(text, text.find("total"));
  ASSERT_TRUE(f);
  EXPECT_EQ(f->at, 6u);
  EXPECT_EQ(f->size->value, Bytes(84932978278));
  EXPECT_FALSE(size_before("totalcapacity", 5));
}

TEST(LogPrefix, LaunchersAndLoggers) {
  const auto rest = [](std::string_view line) { return std::string(line.substr(read_prefix(line).length)); };
  EXPECT_EQ(rest("[rank3]: boom"), "boom");
  EXPECT_EQ(rest("[default0]:boom"), "boom");
  EXPECT_EQ(rest("(EngineCore_DP0 pid=7) ERROR 09-25 10:53:36 [core.py:585] boom"), "boom");
  EXPECT_EQ(rest("(VllmWorkerProcess pid=123) boom"), "boom");
  EXPECT_EQ(rest("(Worker_TP3_EP3 pid=99) boom"), "boom");
  EXPECT_EQ(rest("name-1  | boom"), "boom");
  EXPECT_EQ(rest("2025-09-25T10:53:36.123Z boom"), "boom");
  EXPECT_EQ(rest("2025-09-25 10:53:36,123 - boom"), "boom");
  EXPECT_EQ(rest("2025-09-25 10:53:36,123 - ERROR - __main__ -   File \"x.py\""), "  File \"x.py\"");
  EXPECT_EQ(rest("2025-09-25 10:53:36.123 | ERROR    | pkg.mod:run:12 - boom"), "boom");
  EXPECT_EQ(rest("2025-09-25 10:53:36 | ERROR | stderr |   File"), "  File");
  EXPECT_EQ(rest("2025-09-25T10:53:36.123456789Z stderr F [rank1]: boom"), "boom");
  EXPECT_EQ(rest("Sep 25 10:53:36 node7 python3[4711]: boom"), "boom");
  EXPECT_EQ(rest("> [09/17/2025-21:24:19] [TRT-LLM] [RANK 2] [E] boom"), "boom");
  EXPECT_EQ(rest("2026-06-09 14:01:52.982 [Error] (Process) (EngineCore pid=7) ERROR 06-09 14:01:52 [c.py:1] boom"),
            "boom");
  EXPECT_EQ(rest("(raylet) boom"), "boom");
  EXPECT_EQ(rest("[2025-09-25 10:53:36,123] [INFO] [utils.py:1:f] boom"), "boom");
  EXPECT_EQ(rest("E0925 10:53:36.123456 140 file.cc:123] boom"), "boom");
  EXPECT_EQ(rest("[1,3]<stderr>: boom"), "boom");
  EXPECT_EQ(rest("[rank0]:   File \"x.py\", line 1, in f"), "  File \"x.py\", line 1, in f");
  // What a message itself begins with is no prefix.
  EXPECT_EQ(rest("23.69 GiB total capacity"), "23.69 GiB total capacity");
  EXPECT_EQ(rest("[enforce fail at alloc_cpu.cpp:114] x"), "[enforce fail at alloc_cpu.cpp:114] x");
  EXPECT_EQ(rest("(GPU 0; 8 GiB)"), "(GPU 0; 8 GiB)");
  EXPECT_EQ(rest("- a point of a list"), "- a point of a list");
  EXPECT_EQ(rest("step:1 - loss:0.5 - memory:3"), "step:1 - loss:0.5 - memory:3");
  EXPECT_EQ(rest("[rank0]: | Allocated memory | 1 |"), "| Allocated memory | 1 |");
  EXPECT_EQ(rest("[deepspeed] OVERFLOW!"), "[deepspeed] OVERFLOW!");
  EXPECT_EQ(read_prefix("[09/17/2025-21:24:19] [TRT-LLM] [RANK 2] [E] x").rank, 2);
  EXPECT_EQ(read_prefix("Sep 25 10:53:36 node7 python3[4711]: x").writer, "python3[4711]");
  EXPECT_EQ(read_prefix("[rank3]: x").rank, 3);
  EXPECT_EQ(read_prefix("[rank3]: x").writer, "rank3");
  EXPECT_EQ(read_prefix("vllm-1  | [rank2]: x").rank, 2);
  EXPECT_NE(read_prefix("(W pid=1) x").writer, read_prefix("(W pid=2) x").writer);
}

TEST(LogText, WhatTerminalsAndPagesAdd) {
  EXPECT_EQ(plain_text("\x1b[1;31mred\x1b[0m text"), "red text");
  EXPECT_EQ(plain_text("[36m(x)[0m y"), "(x) y");
  EXPECT_EQ(plain_text("\\u001b[31mred\\x1b[0m"), "red");
  EXPECT_EQ(plain_text("a &gt;&gt; b &#40;c&#x29; &nope; &"), "a >> b (c) &nope; &");
  EXPECT_EQ(plain_text(R"(a\nb \"c\" \\n)"), "a\nb \"c\" \n");
  EXPECT_EQ(plain_text(R"(File "C:\new\test.py")"), R"(File "C:\new\test.py")");
  EXPECT_EQ(plain_text("\xff\xfe ok \xc3"), "\xff\xfe ok \xc3");  // no UTF-8: kept as it is
  const auto lines = clean_lines("one\r\n[rank1]: two\r 50% three\n\nfour");
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[1].text, "two");
  EXPECT_EQ(lines[2].text, " 50% three");
  EXPECT_EQ(lines[4].text, "four");
}

/// Lines of every length about the parts that are searched at a time, with each of their ends.
TEST(LogText, LinesEndWhereTheyDo) {
  for (const std::size_t length : {0, 1, 7, 8, 511, 512, 513, 1023, 1024, 1025, 5000})
    for (const std::string end : {"\n", "\r", "\r\n"}) {
      const std::string line(length, 'x'), text = line + end + line + end + "last";
      std::size_t at = 0;
      EXPECT_EQ(next_line(text, at), line);
      EXPECT_EQ(next_line(text, at), line);
      EXPECT_EQ(next_line(text, at), "last");
      EXPECT_EQ(at, text.size());
      for (const std::size_t up_to : {std::size_t{0}, length, length + 1, text.size()})
        EXPECT_EQ(line_ends(text, up_to),
                  std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(up_to), '\n'));
    }
  std::string all;
  for (int round = 0; round < 3; ++round)
    for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_EQ(line_ends(all, all.size()), 3) << "no other byte is one";
}

/// A line is copied only where something in it is resolved.
TEST(LogText, EscapesAreWhatIsResolved) {
  for (int c = 0; c < 256; ++c) {
    const std::string line = "a" + std::string(1, static_cast<char>(c)) + "b";
    EXPECT_TRUE(has_escapes(line) || plain_text(line) == line) << c;
  }
  EXPECT_FALSE(has_escapes("[rank0]: step 1, loss [2.5]"));
  EXPECT_TRUE(has_escapes("[1;36mcolour[0m"));
  EXPECT_TRUE(has_escapes("a &gt; b"));
  EXPECT_EQ(clean_lines("\x1b[0m").at(0).text, "") << "nothing but a colour";
}

TEST(WordScan, FindsEachWordAndNoOther) {
  static constexpr std::array<std::string_view, 3> words{"abc", "abcd", "xyz"};
  static constexpr WordScan scan(words);
  const auto in = scan.in("..abcd..");
  EXPECT_TRUE(in[0] && in[1] && !in[2]);
  EXPECT_TRUE(scan.any("xyz"));
  EXPECT_FALSE(scan.any("xy abx ab"));
  EXPECT_FALSE(scan.any(""));
}

TEST(LogValues, NumbersAsStrtodReadsThem) {
  for (const std::string number :
       {"12", "-1.5", "+1.5", "1.0E+01", "1,234", "1e400", "-1e400", "1e-400", "0.1", "1.2.3"})
    EXPECT_EQ(log_values::to_double(number),
              std::strtod(std::string(number == "1,234" ? "1234" : number).c_str(), nullptr))
        << number;
}

/// What follows a label decides for few; the others are known once they came by.
TEST(LogQuantity, KnownOnesAreAsReadAnew) {
  memory_log::KnownQuantities known;
  for (int round = 0; round < 2; ++round)
    for (const std::string label :
         {"loss", "train loss", "grad norm", "max mem allocated", "global step", "after", "steps after",
          "learning rate", "epoch", "", "a label that is longer than what is kept of any of them: loss"})
      for (const std::string after : {"", " iteration 3", "%"})
        EXPECT_EQ(known(label, after), memory_log::quantity(label, after)) << label << after;
}

TEST(Encoding, MarksAndSurrogates) {
  EXPECT_EQ(utf8_text("plain"), "plain");
  EXPECT_EQ(utf8_text("\xef\xbb\xbfplain"), "plain");
  const std::string little(
      "\xff\xfe"
      "A\0\xe4\0\x3d\xd8\x00\xde\n\0",
      12);
  EXPECT_EQ(utf8_text(little), "A\xc3\xa4\xf0\x9f\x98\x80\n");
  const std::string big("\xfe\xff\0A\xac\x20\xd8\0\0", 9);  // half a pair, and half a unit
  EXPECT_EQ(utf8_text(big), "A\xea\xb0\xa0\xef\xbf\xbd");
  EXPECT_EQ(utf8_text("\xff\xfe"), "");
}

std::vector<Frame> frames(const std::string& text) {
  std::vector<std::string_view> lines;
  for (std::size_t at = 0; at < text.size();) lines.push_back(next_line(text, at));
  return read_frames(lines);
}

TEST(Traceback, EveryStyle) {
  EXPECT_EQ(frames("  File \"/a/b.py\", line 12, in f\n    x = g(y)\n        ^^^^\n"),
            (std::vector<Frame>{{"/a/b.py", 12, "f", "x = g(y)"}}));
  EXPECT_EQ(frames("  File \"/a/b.py\", line 12 in f\n  File \"/a/c.py\", line 3 in <module>\n"),
            (std::vector<Frame>{{"/a/b.py", 12, "f", ""}, {"/a/c.py", 3, "<module>", ""}}));
  EXPECT_EQ(frames("File ~/a/b.py:12, in M.f(self, x)\n     11 a\n---> 12 b(x)\n"),
            (std::vector<Frame>{{"~/a/b.py", 12, "M.f", "b(x)"}}));
  EXPECT_EQ(frames("/a/b.py in f(self)\n     11 a\n---> 12     b(x)\n"),
            (std::vector<Frame>{{"/a/b.py", 12, "f", "b(x)"}}));
  EXPECT_EQ(frames("/a/b.py:12 in f\n\n  11 a\n\xe2\x9d\xb1 12 \xe2\x94\x82 b(x)\n"),
            (std::vector<Frame>{{"/a/b.py", 12, "f", "b(x)"}}));
  EXPECT_EQ(frames("Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nTraceback (most recent call "
                   "last):\n  File \"b.py\", line 2, in g\n"),
            (std::vector<Frame>{{"b.py", 2, "g", ""}}));
  // Behind what a logger wrote, behind a broken line, behind the beginning of a JSON string.
  EXPECT_EQ(frames("node run:   File \"/a/b.py\", line 12, in f\nnode run:     x = g(y)\n"),
            (std::vector<Frame>{{"/a/b.py", 12, "f", "x = g(y)"}}));
  EXPECT_EQ(frames("  File \"/a/quite/long/pa\nth/b.py\", line 12, in f\n    x = g(y)\n"),
            (std::vector<Frame>{{"/a/quite/long/path/b.py", 12, "f", "x = g(y)"}}));
  EXPECT_EQ(frames("  File \"/a/quite/long/path/b.py\", line 12, in\nf\n    x = g(y)\n"),
            (std::vector<Frame>{{"/a/quite/long/path/b.py", 12, "f", "x = g(y)"}}));
  EXPECT_EQ(frames("{\"msg\": \"  File \"/a/b.py\", line 12, in f\n"), (std::vector<Frame>{{"/a/b.py", 12, "f", ""}}));
  EXPECT_EQ(frames("[<ipython-input-1-ab>](https://localhost/#) in <cell line: 29>()\n---> 29 b(x)\n"),
            (std::vector<Frame>{{"<ipython-input-1-ab>", 29, "<cell line: 29>", "b(x)"}}));
  // Equal lines are no terminal's width where the next one is indented.
  const std::string same =
      "  File \"/usr/lib/python3/dist-packages/torch/nn/modules/module.py\", line 1553, in _call\n";
  EXPECT_EQ(frames(same + "    return f(x)\n" + same + "    return f(x)\n").size(), 2u);
  EXPECT_TRUE(frames("File not found in cache\nwords in lines\nFile \"a\", line x\n").empty());
}

TEST(AllocationSite, TheInnermostWordDecides) {
  const std::vector<Frame> recompute{{"/p/trainer.py", 1, "training_step", "self.accelerator.backward(loss)"},
                                     {"/p/torch/autograd/graph.py", 2, "_engine_run_backward", "return run("},
                                     {"/p/modeling_qwen2.py", 3, "forward", "hidden_states = self.mlp(hidden_states)"},
                                     {"/p/torch/nn/functional.py", 4, "silu", "return torch._C._nn.silu(input)"}};
  EXPECT_EQ(name(run_phase(recompute)), "backward");
  EXPECT_EQ(name(allocation_site_of(recompute)), "mlp");
  const std::vector<Frame> closure{{"/p/m.py", 1, "optimizer_step", "optimizer.step(closure)"},
                                   {"/p/m.py", 2, "training_step", "loss = self(batch)"},
                                   {"/p/m.py", 3, "forward", "logits = self.lm_head(x)"}};
  EXPECT_EQ(name(run_phase(closure)), "forward");
  EXPECT_EQ(name(allocation_site_of(closure)), "logits");
  const std::vector<Frame> build{
      {"/p/modeling_x.py", 1, "__init__", "self.o_proj = nn.Linear(a, b)"},
      {"/p/torch/nn/modules/linear.py", 2, "__init__", "torch.empty((o, i), **factory_kwargs)"}};
  EXPECT_EQ(name(run_phase(build)), "load_weights");
  EXPECT_EQ(name(allocation_site_of(build)), "weights");
  const std::vector<Frame> gather{{"/p/engine.py", 1, "forward", "loss = self.module(x)"},
                                  {"/p/deepspeed/zero.py", 2, "fetch_sub_module", "self.__all_gather_params(p)"}};
  EXPECT_EQ(name(run_phase(gather)), "module_gather");
  const std::vector<Frame> saving{{"/p/train.py", 1, "save", "state = model.state_dict()"},
                                  {"/p/torch/distributed/fsdp/_state_dict_utils.py", 2, "_pre_state_dict_hook",
                                   "_pre_state_dict_hook_fn[fsdp_state._state_dict_type]("}};
  EXPECT_EQ(name(allocation_site_of(saving)), "module_gather");
  const std::vector<Frame> spectral{{"/w/mixer.py", 9, "forward", "y = torch.fft.rfft2(x.float(), dim=(1, 2))"}};
  EXPECT_EQ(name(allocation_site_of(spectral)), "fft");
  EXPECT_EQ(name(run_phase({})), "unknown");
}

TEST(AllocationSite, AFunctionOfTorchsNameIsSomebodysPython) {
  const auto site = [](const std::string& function, const std::string& code) {
    return allocation_site_of({{"/home/me/model.py", 12, function, code}});
  };
  EXPECT_EQ(site("scaled_dot_product_attention", ""), AllocationSite::score_matrix);
  EXPECT_EQ(site("scaled_dot_product_attention", "scores = q @ k.transpose(-2, -1)"), AllocationSite::score_matrix);
  EXPECT_EQ(site("scaled_dot_product_attention", "return F.scaled_dot_product_attention(q, k, v)"),
            AllocationSite::sdpa);
  EXPECT_EQ(site("forward", "y = torch.nn.functional.scaled_dot_product_attention(q, k, v)"), AllocationSite::sdpa);
}

TEST(EvidenceKind, ByContent) {
  using namespace std::string_literals;
  const auto kind = [](std::string_view head) {
    const auto k = evidence_kind(head);
    return std::string(name(k == EvidenceKind::text ? text_kind(head) : k));
  };
  EXPECT_EQ(kind("\x80\x04\x95\x10"s), "snapshot_pickle");
  EXPECT_EQ(kind("\x80\x02}q"s), "snapshot_pickle");
  EXPECT_EQ(kind("\x80\x01}q"s), "training_log");
  EXPECT_EQ(kind("\x1f\x8b\x08"s), "gzip");
  EXPECT_EQ(kind("SQLite format 3\0abc"s), "nsys_sqlite");
  EXPECT_EQ(kind("PK\x03\x04"s), "zip");
  for (const std::string& packed : {"\x28\xb5\x2f\xfd\x04"s, "\xfd\x37zXZ\0\0"s, "BZh91AY"s, "\x04\x22\x4d\x18\x64"s})
    EXPECT_EQ(kind(packed), "packed");
  EXPECT_EQ(packer_of("\x28\xb5\x2f\xfd\x04").undo, "zstd -d");
  EXPECT_EQ(kind("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02"s), "torch_save");
  EXPECT_EQ(kind("\n<!DOCTYPE html>\n<script type=\"module\">\nimport {add_local_files} from "
                 "\"https://cdn.jsdelivr.net/gh/pytorch/pytorch@main/torch/utils/viz/MemoryViz.js\"\n"),
            "snapshot_html");
  EXPECT_EQ(kind(" \n{\"schemaVersion\": 1, \"traceEvents\": ["), "trace_json");
  EXPECT_EQ(kind("[{\"ph\": \"X\", \"cat\": \"kernel\"}]"), "trace_json");
  EXPECT_EQ(kind("{\"segments\": [], \"device_traces\": []}"), "snapshot_json");
  EXPECT_EQ(kind("{\"active.all.allocated\": 3, \"allocated_bytes.all.current\": 0}"), "memory_stats_json");
  EXPECT_EQ(kind("{\"step\": 1, \"loss\": 2.0}\n{\"step\": 2, \"loss\": 1.9}\n"), "training_log");
  EXPECT_EQ(kind(""), "unknown");
  EXPECT_EQ(kind("a\0b"s), "unknown");
  EXPECT_EQ(kind(read_data("oom/json_string.txt")), "oom_message");
  EXPECT_EQ(kind(read_data("oom/v0_cached.txt")), "oom_message");
  EXPECT_EQ(kind(read_data("logs/vllm.txt")), "oom_message");  // with a server's refusal in it
  EXPECT_EQ(kind("\xff\xfe"
                 "A\0"s),
            "training_log");
  EXPECT_EQ(kind(read_data("summary/torch1.txt")), "memory_summary");
  EXPECT_EQ(kind(read_data("summary/torch2.txt")), "memory_summary");
  for (const char* csv : {"smi", "smi_noheader", "smi_nounits", "smi_bare", "smi_used_only"})
    EXPECT_EQ(kind(read_data("logs/"s + csv + ".csv")), "nvidia_smi_csv") << csv;
  for (const char* log : {"hf_trainer", "torchtitan", "megatron", "deepspeed", "generic", "smi_table"})
    EXPECT_EQ(kind(read_data("logs/"s + log + ".txt")), "training_log") << log;
  for (std::size_t k = 0; k < evidence_kinds.size(); ++k) {
    const auto word = evidence_word(static_cast<EvidenceKind>(k));
    EXPECT_TRUE(word.empty() || word == "oom_message" || word == "snapshot" || word == "trace" ||
                word == "memory_summary" || word == "training_log");
  }
}

}  // namespace
}  // namespace vlmest::evidence_text_test
