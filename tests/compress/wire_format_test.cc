// The payloads byte by byte, worked out by hand: a change here breaks nodes of other versions.
#include <fmt/format.h>

#include "cases.h"

namespace sotto::test::wire_format_test {

using namespace sotto_test;

namespace {

std::string hex(std::string_view spec, const std::vector<float>& x) {
  std::string text;
  const auto compressor = make_compressor(spec);
  for (const std::byte byte : encoded(*compressor, x, key_of(0))) {
    text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  }
  return text;
}

/// Without the spaces that part the fields.
std::string joined(std::string text) {
  std::erase(text, ' ');
  return text;
}

}  // namespace

TEST_CASE("wire ids never change") {
  const std::vector<std::pair<std::string_view, int>> ids = {
      {"none", 1}, {"fp16", 2},  {"bf16", 3},    {"quant", 4},    {"grid", 5},        {"sign", 6},
      {"topk", 7}, {"randk", 8}, {"lowrank", 9}, {"outlier", 10}, {"per_tensor", 11}, {"dct", 14}};
  CHECK_MESSAGE(ids.size() == compressors().size(), "a new family's number is pinned here");
  for (const auto& [name, id] : ids) {
    const auto found = std::ranges::find(compressors(), name, &CompressorInfo::name);
    REQUIRE(found != compressors().end());
    CHECK(found->wire_id == id);
    const int coded = name == "topk" ? 12 : name == "randk" ? 13 : 0;
    CHECK(found->coded_wire_id == coded);
  }
}

TEST_CASE("none: little-endian float32") { CHECK(hex("none", {1, -2}) == "0000803f000000c0"); }

TEST_CASE("half precision: little-endian bit patterns") {
  CHECK(hex("fp16", {1, -2, 0.1F}) == "003c00c0662e");
  CHECK(hex("bf16", {1, -2, 0.1F}) == "803f00c0cd3d");
}

TEST_CASE("quant: bits, chunk, origins and steps, codes") {
  // Range −1 … 2 in three steps of 1; the values are on the grid, so no noise enters:
  // codes 0 1 3 2 give the planes 0110 and 0011, first element lowest.
  CHECK(hex("quant:2,chunk=0", {-1, 0, 2, 1}) == joined("02 00000000 000080bf0000803f 06 0c"));
  // 8 bits: range 0 … 255, plain bytes, two chunks.
  CHECK(hex("quant:8,chunk=2", {0, 255, 255, 0}) ==
        joined("08 02000000 000000000000803f 000000000000803f 00ff ff00"));
  // Nearest: zero lies on the grid. −0.9 … 2.1 in steps of 1: z = ⌊0.9 + 0.5⌋ = 1, origin −1.
  CHECK(hex("quant:2,chunk=0,rounding=nearest", {-0.9F, 0, 2.1F, 0.4F}) ==
        joined("02 00000000 000080bf0000803f 0e 04"));
}

TEST_CASE("grid: bits, step, codes") {
  // −1 … 0.5 in steps of 0.5: codes 0 3 2 1.
  CHECK(hex("grid:2:0.5", {-1, 0.5F, 0, -0.5F}) == joined("02 0000003f 0a 06"));
}

TEST_CASE("sign: chunk, scales, sign bits") {
  // Means 2 and 4; +, − and +: 0b01 and 0b1.
  CHECK(hex("sign,chunk=2", {1, -3, 4}) == joined("02000000 00000040 00008040 01 01"));
}

TEST_CASE("topk: count, parameter, values, gaps") {
  // Elements 1 and 3 of 4; gaps 1 and 1. p = 0 is bounded by 4 bits, p = 1 by 5: 1 0 1 0
  // in unary, first bit lowest.
  CHECK(hex("topk:0.5", {0, 2, 1, -3}) == joined("02000000 00 00000040 000040c0 05"));
}

TEST_CASE("topk with few bits: bits, run, count, levels, codes, gaps of each run") {
  // Elements 1 and 3 of 4; levels 2 and 3, codes 0 and 1 + 2 for the sign. The gaps are as above.
  CHECK(hex("topk:0.5,values=2,chunk=0", {0, 2, 1, -3}) ==
        joined("02 00000000 02000000 00000040 00004040 02 02 05"));
  // Runs of 4 and 2, of which 2 and 1 are kept; level 3 for 2, −3 and 4. Gaps 1, 1 and, counted
  // from the second run, 0: 1 0 1 0 0.
  CHECK(hex("topk:0.5,values=1,chunk=4", {0, 2, 1, -3, 4, 0}) ==
        joined("01 04000000 03000000 00004040 02 05"));
  // A step of 1; codes 15, 1 + 16 and 0, in five planes. Of a run that is kept whole no indices.
  CHECK(hex("topk:1,values=5,chunk=0", {15, -1, 0}) ==
        joined("05 00000000 03000000 0000803f 03 01 01 01 02"));
  // Values as they are: element 1 of the first run, and the whole of the second.
  CHECK(hex("topk:0.5,values=32,chunk=2", {1, -2, 3}) ==
        joined("20 02000000 02000000 000000c0 00004040 01"));
}

TEST_CASE("randk: count, selection key, values") {
  // The selection is pinned too, here elements 3 and 1: both sides must walk the same permutation.
  CHECK(hex("randk:0.5,scale=none", {1, 2, 3, 4}) ==
        joined("02000000 16118997a25c31b9 00008040 00000040"));
}

TEST_CASE("randk with few bits: count, selection key, an encoding of topk") {
  // Elements 3 and 1 are chosen: 4 and 2, whose level is 3; or of the two the first.
  CHECK(hex("randk:0.5,values=1", {1, 2, 3, 4}) ==
        joined("02000000 16118997a25c31b9 01 00000000 02000000 00004040 00"));
  CHECK(hex("randk:0.5/topk:0.5,values=1,chunk=0", {1, 2, 3, 4}) ==
        joined("02000000 16118997a25c31b9 01 00000000 01000000 00008040 00 00"));
}

TEST_CASE("outlier: bits, chunk, count, parameter, scales, codes, values, gaps") {
  // σ = √(38/4), so −6 lies beyond 1.5 σ; the others are 1, 1 and 0 in steps of 1: codes 3 2 2 3
  // with 2 for the outlier give the planes 1001 and 1111. Index 1 of 4: p = 1 is bounded by 3 bits,
  // gap 1 stands as 0 1.
  CHECK(hex("outlier:2,chunk=0,k=1.5", {1, -6, 0, 1}) ==
        joined("02 00000000 01000000 01 0000803f 09 0f 0000c0c0 02"));
}

TEST_CASE("dct: number of the compressor within, and its encoding of the coefficients") {
  // The coefficients of two elements are (3 + 1) √½ and (3 − 1) √½.
  CHECK(hex("dct/none", {3, 1}) == joined("0100 f304 3540 f304 b53f"));
  // One of three is kept, the first of equals: gap 0, with p = 0.
  CHECK(hex("dct/topk:0.3", {0, 0, 0}) == joined("0700 01000000 00 00000000 00"));
}

TEST_CASE("per_tensor: length and encoding of each tensor") {
  ParameterLayout layout;
  append_block(layout, "a", {1, 2});
  append_block(layout, "b", {1});
  const auto compressor = make_compressor("fp16; 1d=none", ContractKind::any, host_ops(), layout);
  std::string text;
  for (const std::byte byte : encoded(*compressor, std::vector<float>{1, -2, 1}, key_of(0))) {
    text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  }
  CHECK(text == joined("04000000 003c00c0 04000000 0000803f"));
}

}  // namespace sotto::test::wire_format_test
