#include <sotto/base/frame.h>

#include <xxhash.h>

#include <array>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/xxh3.h>

namespace sotto::test::frame_test {

namespace {

FrameHeader example_header(std::size_t payload_bytes) {
  return {.run_id = 0x1122334455667788,
          .algorithm = 3,
          .compressor = 7,
          .round = 41,
          .sender = 5,
          .settings = 2,
          .phase = 1,
          .bucket = 9,
          .elements = 1000,
          .payload_bytes = payload_bytes};
}

std::vector<std::byte> example_frame(std::size_t payload_bytes) {
  std::vector<std::byte> frame(kFrameHeaderBytes + payload_bytes);
  for (std::size_t i = 0; i < payload_bytes; ++i) {
    frame[kFrameHeaderBytes + i] = static_cast<std::byte>(i * 37);
  }
  seal_frame(example_header(payload_bytes), frame);
  return frame;
}

}  // namespace

TEST_CASE("a sealed frame parses back to what was sealed") {
  for (const std::size_t size : {0U, 1U, 63U, 64U, 1000U}) {
    CAPTURE(size);
    const auto frame = example_frame(size);
    const auto view = parse_frame(frame);
    REQUIRE(view.ok());
    CHECK(view->header.run_id == 0x1122334455667788);
    CHECK(view->header.algorithm == 3);
    CHECK(view->header.compressor == 7);
    CHECK(view->header.round == 41);
    CHECK(view->header.sender == 5);
    CHECK(view->header.settings == 2);
    CHECK(view->header.phase == 1);
    CHECK(view->header.bucket == 9);
    CHECK(view->header.elements == 1000);
    CHECK(view->payload.size() == size);
    CHECK(announced_frame_bytes(frame, 5000).value() == frame.size());
    CHECK(announced_elements(frame) == 1000);
  }
}

TEST_CASE("checksums are XXH3-64's, of all lengths and seeds") {
  std::vector<std::byte> bytes(5000);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(i * 37 + i / 256);
  }
  // Where its ways part, and stripes and blocks of it begin and end.
  for (const std::size_t size :
       {0U,   1U,   3U,   4U,   8U,    9U,    16U,   17U,   128U,  129U, 240U,
        241U, 256U, 257U, 511U, 1023U, 1024U, 1025U, 2048U, 4097U, 4999U}) {
    for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}}) {
      CAPTURE(size);
      CAPTURE(seed);
      for (const std::size_t offset : {0U, 1U}) {
        const auto piece = std::span(bytes).subspan(offset, size);
        CHECK(xxh3(piece, seed) == XXH3_64bits_withSeed(piece.data(), piece.size(), seed));
      }
    }
  }
}

TEST_CASE("less than a header announces no elements") {
  const auto frame = example_frame(8);
  CHECK(announced_elements(std::span(frame).first(kFrameHeaderBytes - 1)) == 0);
}

TEST_CASE("every truncation and every extension of a frame is refused") {
  const auto frame = example_frame(40);
  for (std::size_t size = 0; size < frame.size(); ++size) {
    CAPTURE(size);
    CHECK(parse_frame(std::span(frame).first(size)).status().fault() == Fault::malformed);
  }
  auto longer = frame;
  longer.push_back(std::byte{0});
  CHECK(parse_frame(longer).status().fault() == Fault::malformed);
}

TEST_CASE("every flipped bit of a frame is noticed") {
  const auto frame = example_frame(40);
  for (std::size_t bit = 0; bit < 8 * frame.size(); ++bit) {
    CAPTURE(bit);
    auto damaged = frame;
    damaged[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    CHECK(parse_frame(damaged).status().fault() == Fault::malformed);
  }
}

TEST_CASE("lengths that would wrap are refused before use") {
  for (const std::uint64_t length :
       {~std::uint64_t{0}, ~std::uint64_t{0} - 63, std::uint64_t{1} << 62, std::uint64_t{41}}) {
    CAPTURE(length);
    auto frame = example_frame(40);
    std::memcpy(frame.data() + 48, &length, sizeof length);
    CHECK(parse_frame(frame).status().fault() == Fault::malformed);
    CHECK(announced_frame_bytes(frame, frame.size()).status().fault() == Fault::malformed);
  }
}

TEST_CASE("the worked example of docs/wire.md is what the code writes and reads") {
  std::ifstream file(std::string(SOTTO_GOLDEN_DIR) + "/frame_v1.hex");
  std::vector<std::byte> golden;
  for (std::string digits; file >> digits;) {
    golden.push_back(static_cast<std::byte>(std::stoi(digits, nullptr, 16)));
  }
  REQUIRE(golden.size() == 72);

  const std::array<float, 2> values{1.0F, -2.0F};
  std::vector<std::byte> frame(kFrameHeaderBytes + sizeof values);
  std::memcpy(frame.data() + kFrameHeaderBytes, values.data(), sizeof values);
  seal_frame({.run_id = 0x0123456789abcdef,
              .algorithm = 2,
              .compressor = 1,
              .round = 41,
              .sender = 3,
              .elements = 2,
              .payload_bytes = sizeof values},
             frame);
  CHECK(frame == golden);
  const auto view = parse_frame(golden);
  REQUIRE(view.ok());
  CHECK(view->header.round == 41);
  CHECK(view->header.sender == 3);
}

}  // namespace sotto::test::frame_test
