// Bytes that break one rule each, their checksums right, so that nothing else can refuse them.
#include <xxhash.h>

#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/bytes.h>
#include <sotto/base/error.h>
#include <sotto/base/frame.h>
#include <sotto/base/parameter_layout.h>

namespace sotto::test::bad_inputs_test {

namespace {

constexpr std::size_t kChecksumOffset = 56;

std::vector<std::byte> frame_of(std::size_t payload) {
  std::vector<std::byte> frame(kFrameHeaderBytes + payload, std::byte{3});
  seal_frame({.run_id = 7, .round = 4, .sender = 1, .payload_bytes = payload}, frame);
  return frame;
}

/// As docs/wire.md has it, whatever the bytes are.
void put_checksum(std::vector<std::byte>& frame) {
  const std::uint64_t seed = XXH3_64bits(frame.data(), kChecksumOffset);
  const std::uint64_t sum = XXH3_64bits_withSeed(frame.data() + kFrameHeaderBytes,
                                                 frame.size() - kFrameHeaderBytes, seed);
  std::memcpy(frame.data() + kChecksumOffset, &sum, sizeof sum);
}

template <typename T>
std::vector<std::byte> with(std::size_t offset, T value) {
  auto frame = frame_of(40);
  std::memcpy(frame.data() + offset, &value, sizeof value);
  put_checksum(frame);
  return frame;
}

void check_refused(const std::vector<std::byte>& frame, std::string_view why) {
  const auto view = parse_frame(frame);
  REQUIRE_FALSE(view.ok());
  CHECK(view.status().fault() == Fault::malformed);
  CHECK_MESSAGE(view.status().message().find(why) != std::string::npos, view.status().message());
}

}  // namespace

TEST_CASE("bad input: wrong magic, version, endianness of a frame, and reserved flags set") {
  auto right = frame_of(40);
  put_checksum(right);
  REQUIRE(right == frame_of(40));
  check_refused(with(0, std::uint32_t{0}), "magic");
  check_refused(with(0, std::uint32_t{0x534F544F}), "magic");  // the other byte order
  for (const unsigned version : {0U, 2U, 255U}) {
    check_refused(with(4, static_cast<std::uint8_t>(version)), "version");
  }
  for (unsigned flag = 0; flag < 8; ++flag) {
    check_refused(with(5, static_cast<std::uint8_t>(1U << flag)), "flags");
  }
  // A length in the other byte order is far too long.
  check_refused(with(48, std::uint64_t{40} << 56U), "announced");
  check_refused(with(24, Rank{-1}), "no rank");
  check_refused(with(24, std::numeric_limits<Rank>::min()), "no rank");
}

TEST_CASE("bad input: every truncation and trailing bytes of a frame, and an empty one") {
  const auto frame = frame_of(40);
  for (std::size_t size = 0; size < frame.size(); ++size) {
    CAPTURE(size);
    auto shorter = std::vector(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(size));
    if (size >= kFrameHeaderBytes) {
      put_checksum(shorter);
    }
    CHECK(parse_frame(shorter).status().fault() == Fault::malformed);
  }
  for (const std::size_t more : {1U, 8U, 64U, 1000U}) {
    auto longer = frame;
    longer.resize(frame.size() + more, std::byte{0});
    put_checksum(longer);
    check_refused(longer, "follow");
  }
}

TEST_CASE("bad input: lengths of 2^62 and 2^64-1, and offset + length that wraps") {
  for (const std::uint64_t length :
       {std::uint64_t{1} << 62U, std::uint64_t{1} << 63U, ~std::uint64_t{0}, ~std::uint64_t{0} - 63,
        ~std::uint64_t{0} - 64, std::uint64_t{0xFFFFFFFF}}) {
    CAPTURE(length);
    const auto frame = with(48, length);
    check_refused(frame, "announced");
    for (const std::size_t capacity : {frame.size(), std::size_t{0}, std::size_t{63}}) {
      CHECK_FALSE(announced_frame_bytes(frame, capacity).ok());
    }
    // The reader of everything else.
    ByteReader in(frame);
    in.take(50);
    CHECK(in.take(length).empty());
    CHECK(in.failed());
    CHECK(in.remaining() == 0);
  }
}

TEST_CASE("bad input: counts of 0xFFFFFFFF, to which 1 must not be added") {
  for (const std::uint32_t count : {0xFFFFFFFFU, 0xFFFFFFFEU, 0x80000000U, 9U}) {
    CAPTURE(count);
    ByteBuffer text;
    text.write(count);
    text.append(std::vector<std::byte>(8, std::byte{'a'}));
    for (const std::size_t bound : {std::size_t{0}, std::size_t{8}, ~std::size_t{0}}) {
      ByteReader in(text.bytes());
      CHECK(in.read_string(bound).empty());
      CHECK(in.failed());
    }
  }
}

TEST_CASE("bad input: shape products that overflow, and tensors of more than 8 dimensions") {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  for (const std::vector<std::size_t>& shape :
       std::vector<std::vector<std::size_t>>{{std::size_t{1} << 32U, std::size_t{1} << 32U},
                                             {kMost, kMost},
                                             {std::size_t{1} << 62U, 4},
                                             {3, kMost / 3 + 1},
                                             {kMost, 2, 0},
                                             std::vector<std::size_t>(9, std::size_t{1} << 8U),
                                             std::vector<std::size_t>(64, 2)}) {
    ParameterLayout layout;
    CHECK_THROWS_AS(append_block(layout, "w", shape), Error);
    CHECK(layout.empty());
  }
}

}  // namespace sotto::test::bad_inputs_test
