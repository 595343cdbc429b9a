// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "snapshots.hpp"

namespace vlmest::pickle_test {
namespace {
using namespace diagnose;
using namespace std::string_literals;

/// A stack machine that writes down what it is told.
struct Log {
  std::string said;
  void none() { said += "None "; }
  void boolean(bool b) { said += b ? "True " : "False "; }
  void integer(std::int64_t n) { said += std::to_string(n) + " "; }
  void natural(std::uint64_t n) { said += std::to_string(n) + "u "; }
  void real(double x) { said += std::to_string(x) + " "; }
  void text(std::string_view s) { said += "'" + std::string(s) + "' "; }
  void new_list() { said += "[ "; }
  void new_dict() { said += "{ "; }
  void mark() { said += "( "; }
  void append_items() { said += "] "; }
  void append_item() { said += "append "; }
  void set_items() { said += "} "; }
  void set_item() { said += "set "; }
  void tuple(std::size_t n) { said += "tuple" + std::to_string(n) + " "; }
  void tuple_items() { said += "tuple "; }
  void memoize() { said += "memo "; }
  void put(std::size_t n) { said += "put" + std::to_string(n) + " "; }
  void get(std::size_t n) { said += "get" + std::to_string(n) + " "; }
  void stop() { said += "."; }
  std::pair<std::string_view, std::string_view> top_texts() const { return {"module", "name"}; }
};

std::string log(std::string_view pickle, std::size_t piece = 0) {
  Log out;
  ByteSource whole(pickle);
  ByteSource pieces(ByteSource::Refill([&] {
    const auto next = pickle.substr(0, piece);
    pickle.remove_prefix(next.size());
    return next;
  }));
  read_pickle(piece == 0 ? whole : pieces, "file", out);
  return out.said;
}

TEST(Pickle, ReadsEveryOpcodeOfPlainData) {
  EXPECT_EQ(log("\x80\x02N\x88\x89."), "None True False .");
  EXPECT_EQ(log("\x80\x02K\xffM\xff\xffJ\xfe\xff\xff\xff."s), "255 65535 -2 .");
  EXPECT_EQ(log("\x80\x02\x8a\x00\x8a\x01\xff\x8a\x02\x00\x80\x8a\x06\x00\x00\x00\x00\x20\x7f."s),
            "0 -1 -32768 139775415681024 .")
      << "two's complement in as many bytes as it needs";
  EXPECT_EQ(log("\x80\x02\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f."s), "9223372036854775807 .");
  EXPECT_EQ(log("\x80\x02G\x3f\xe0\x00\x00\x00\x00\x00\x00."s), "0.500000 .") << "the highest byte first";
  EXPECT_EQ(log("\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00\x8c\x02hi\x94X\x01\x00\x00\x00x\x8d\x01\x00\x00\x00"
                "\x00\x00\x00\x00y."s),
            "'hi' memo 'x' 'y' .");
  EXPECT_EQ(log("\x80\x03]q\x01(K\x01K\x02"
                "e}r\x05\x00\x00\x00K\x03K\x04su)\x85\x86\x87(th\x01j\x05\x00\x00\x00"
                "a."s),
            "[ put1 ( 1 2 ] { put5 3 4 set } tuple0 tuple1 tuple2 tuple3 ( tuple get1 get5 append .");
}

TEST(Pickle, AnAddressAboveTwoToThe63HasNineBytes) {
  EXPECT_EQ(log("\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\xf0\x00."s), "17293822569102704640u .");
  EXPECT_EQ(log("\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\xf0\xff."s), "-1152921504606846976 .");
  EXPECT_THROW(log("\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01."s), Error);
  EXPECT_THROW(log("\x80\x02\x8a\x0a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00."s), Error);
}

TEST(Pickle, PiecesOfAnySizeGiveTheSame) {
  const auto file = snapshot_file("training_protocol4.pickle");
  ASSERT_FALSE(file.empty());
  const auto whole = log(file);
  for (const std::size_t piece : {1, 2, 3, 7, 100, 4096}) EXPECT_EQ(log(file, piece), whole) << piece;
}

TEST(Pickle, NothingIsReadBehindStop) { EXPECT_EQ(log("\x80\x02N.\x00\x00cos\nsystem\n"s), "None ."); }

TEST(Pickle, WhatCouldRunCodeIsRefusedByName) {
  const auto why = [](const std::string& body) { return refusal("\x80\x04" + body); };
  EXPECT_EQ(
      why("cos\nsystem\n(X\x02\x00\x00\x00idtR."s),
      "file: is not a plain snapshot: it holds the opcode GLOBAL (os.system), with which a pickle can run any code; "
      "nothing was run (byte 2)");
  EXPECT_NE(why("\x8c\x05posix\x94\x8c\x06system\x94\x93."s).find("STACK_GLOBAL (posix.system)"), std::string::npos);
  EXPECT_NE(why("(S'id'\nios\nsystem\n."s).find("opcode"), std::string::npos);
  EXPECT_NE(why("(ios\nsystem\n."s).find("INST (os.system)"), std::string::npos);
  EXPECT_NE(why("c\x1b[31m\nx\n."s).find("GLOBAL (?[31m.x)"), std::string::npos) << "nothing that moves a cursor";
  const std::pair<char, const char*> all[] = {{'R', "REDUCE"},
                                              {'b', "BUILD"},
                                              {'o', "OBJ"},
                                              {'\x81', "NEWOBJ"},
                                              {'\x92', "NEWOBJ_EX"},
                                              {'\x82', "EXT1"},
                                              {'\x83', "EXT2"},
                                              {'\x84', "EXT4"},
                                              {'P', "PERSID"},
                                              {'Q', "BINPERSID"},
                                              {'\x96', "BYTEARRAY8"},
                                              {'\x97', "NEXT_BUFFER"},
                                              {'\x98', "READONLY_BUFFER"},
                                              {'C', "SHORT_BINBYTES"},
                                              {'\x8f', "EMPTY_SET"}};
  for (const auto& [code, name] : all)
    EXPECT_NE(why(std::string("N") + code + "..........").find("opcode "s + name), std::string::npos) << name;
  EXPECT_NE(why("\xfe.").find("opcode 0xfe"), std::string::npos);
}

TEST(Pickle, OldProtocolsAndOtherFilesAreNamed) {
  EXPECT_EQ(refusal(""), "file: the file is empty");
  EXPECT_EQ(refusal("(dp0\n."), "file: is not a pickle of protocol 2 to 5");
  EXPECT_EQ(refusal("\x80\x01}."), "file: is a pickle of protocol 1");
  EXPECT_EQ(refusal("\x80\x09}."), "file: is a pickle of protocol 9");
  EXPECT_EQ(refusal("\x80"), "file: is cut short");
  EXPECT_EQ(refusal("{\"segments\": []}"), "file: is not a pickle of protocol 2 to 5");
  EXPECT_TRUE(is_pickle("\x80\x05"));
  EXPECT_FALSE(is_pickle("\x80\x06"));
  EXPECT_FALSE(is_pickle("{}"));
}

TEST(Pickle, EveryCutIsRefused) {
  const auto file = snapshot_file("leak.pickle");
  ASSERT_GT(file.size(), 1000u);
  for (std::size_t n = 0; n < file.size(); n += n < 300 ? 1 : 13)
    ASSERT_NE(refusal(std::string_view(file).substr(0, n)), "accepted") << n << " bytes";
  EXPECT_EQ(refusal(file + "\0\0\0"s), "accepted") << "the viewer pads its pickles";
}

TEST(Pickle, FalseLengthsAndNumbersCostNothing) {
  EXPECT_NE(refusal("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7fxyz."s).find("is cut short"), std::string::npos);
  EXPECT_NE(refusal("\x80\x04X\xff\xff\xff\xffxyz."s).find("is cut short"), std::string::npos);
  EXPECT_NE(refusal("\x80\x04}r\xff\xff\xff\x7f."s).find("numbers an item of the memo 2147483647"), std::string::npos);
  EXPECT_NE(refusal("\x80\x04h\x07."s).find("item 7 of the memo, which is not set"), std::string::npos);
}

TEST(Pickle, AStackThatDoesNotHoldTogetherIsRefused) {
  const auto why = [](const std::string& body) { return refusal("\x80\x04" + body); };
  EXPECT_NE(why("."), "accepted");
  EXPECT_NE(why("a."), "accepted");
  EXPECT_NE(why("e."), "accepted");
  EXPECT_NE(why("u."), "accepted");
  EXPECT_NE(why("\x86."), "accepted");
  EXPECT_NE(why("\x94."), "accepted");
  EXPECT_NE(why("}(K\x01u."s).find("a key without a value"), std::string::npos);
  EXPECT_NE(why("K\x01K\x02"
                "a."s)
                .find("neither list nor dict"),
            std::string::npos);
  EXPECT_NE(why("}K\x02"
                "a."s)
                .find("no list"),
            std::string::npos);
  EXPECT_NE(why("](K\x02"
                "e"s),
            "accepted");
  EXPECT_NE(why("]]."s).find("ends inside"), std::string::npos);
}

double seconds(const std::string& pickle) {
  const auto begin = std::chrono::steady_clock::now();
  refusal(pickle);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

TEST(Pickle, DeepNestingNeitherRecursesNorGrows) {
  std::string lists = "\x80\x04", marks = "\x80\x04", tuples = "\x80\x04)", chain = "\x80\x04]";
  for (int i = 0; i < 500'000; ++i) {
    lists += ']';
    marks += "](";
    tuples += '\x85';
    chain += ']';
  }
  chain += std::string(500'000, 'a');
  EXPECT_NE(refusal(marks).find("nests more than 64 levels deep"), std::string::npos);
  for (const auto& bomb : {lists, tuples + ".", chain + "."}) {
    EXPECT_NE(refusal(bomb), "accepted");
    EXPECT_LT(seconds(bomb), 5);
  }
}

TEST(Pickle, SharingDoesNotMultiply) {
  // Ten lists, each of a hundred times the one before: 10^20 items if they were copied.
  std::string laughs =
      "\x80\x04]\x94(K\x01K\x01K\x01"
      "e";
  for (char i = 0; i < 10; ++i) {
    laughs += "]\x94(";
    for (int n = 0; n < 100; ++n) laughs += {'h', i};
    laughs += 'e';
  }
  EXPECT_NE(refusal(laughs + "."), "accepted");
  EXPECT_LT(seconds(laughs + "."), 1);
}

}  // namespace
}  // namespace vlmest::pickle_test
