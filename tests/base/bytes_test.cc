#include <sotto/base/bytes.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/digest.h>
#include <sotto/base/enum_reader.h>
#include <sotto/base/error.h>
#include <sotto/base/status.h>

namespace sotto::test::bytes_test {

TEST_CASE("a reader takes back what a buffer wrote") {
  ByteBuffer out;
  out.write(std::uint32_t{7});
  out.write(-2.5);
  out.write_string("layer1.weight");
  const std::array<float, 3> values{1, 2, 3};
  out.write_span(std::span<const float>(values));
  ByteReader in(out.bytes());
  CHECK(in.read<std::uint32_t>() == 7);
  CHECK(in.read<double>() == -2.5);
  CHECK(in.read_string(64) == "layer1.weight");
  std::array<float, 3> back{};
  CHECK(in.read_into(std::span<float>(back)));
  CHECK(back == values);
  CHECK(in.finished());
}

TEST_CASE("a reader that ran out stays failed and yields zeros") {
  const std::vector<std::byte> bytes(3, std::byte{0xFF});
  ByteReader in(bytes);
  CHECK(in.read<std::uint32_t>() == 0);
  CHECK(in.failed());
  CHECK(in.read<std::uint8_t>() == 0);
  CHECK(in.remaining() == 0);
  CHECK_FALSE(in.finished());
}

TEST_CASE("a count that would wrap is refused") {
  const std::vector<std::byte> bytes(16);
  ByteReader in(bytes);
  in.read<std::uint64_t>();
  CHECK(in.take(~std::size_t{0}).empty());
  CHECK(in.failed());
}

TEST_CASE("an enumerator is taken from its range alone and one that is cut is none") {
  enum class Colour : std::uint8_t { none, red, green, blue };
  for (std::uint32_t number = 0; number < 256; ++number) {
    const auto byte = static_cast<std::byte>(number);
    ByteReader in(std::span(&byte, 1));
    const bool known = number == 1 || number == 2;
    const auto expected = known ? std::optional(static_cast<Colour>(number)) : std::nullopt;
    CHECK(read_enum(in, Colour::red, Colour::green) == expected);
    CHECK(in.finished());
    CHECK_FALSE(read_enum(in, Colour::none, Colour::blue));  // zeros come of a reader that failed
    CHECK(in.failed());
  }
  // In more bytes than the enumeration has, no bits are cut off.
  ByteBuffer out;
  out.write(std::uint32_t{0x102});
  ByteReader wide(out.bytes());
  CHECK_FALSE((read_enum<Colour, std::uint32_t>(wide, Colour::red, Colour::blue)));
}

TEST_CASE("a string longer than its bound is refused") {
  ByteBuffer out;
  out.write_string("longer than allowed");
  ByteReader in(out.bytes());
  CHECK(in.read_string(4).empty());
  CHECK(in.failed());
}

TEST_CASE(
    "a buffer says how long what is written will be, and writes it into memory that it is given") {
  const std::vector<float> values(1000, 1);
  const auto save = [&](ByteBuffer& out) {
    out.write_string("a state");
    out.write(std::uint64_t{7});
    out.write_span(std::span<const float>(values));
  };
  const std::size_t size = ByteBuffer::size_of(save);
  ByteBuffer first;
  save(first);
  CHECK(size == first.bytes().size());

  const std::vector<std::byte> written(first.bytes().begin(), first.bytes().end());
  std::vector<std::byte> room = std::move(first).take();
  room.reserve(size);
  const std::byte* const place = room.data();
  ByteBuffer again(std::move(room));
  CHECK(again.bytes().empty());
  again.reserve(size);
  save(again);
  CHECK(again.bytes().data() == place);
  CHECK(std::ranges::equal(again.bytes(), written));
}

TEST_CASE("SHA-256 gives the standard's example") {
  const std::string_view text = "abc";
  CHECK(sha256_hex(std::as_bytes(std::span(text.data(), text.size()))) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("a status carries its fault and its context") {
  const Status fine;
  CHECK(fine.ok());
  CHECK(fine.with_context("node 3").ok());
  const Status lost(Fault::peer_lost, "closed");
  CHECK_FALSE(lost.ok());
  CHECK(lost.with_context("node 3").message() == "node 3: closed");
  CHECK(fault_name(lost.fault()) == "peer_lost");
  const Result<int> value = 4;
  CHECK(*value == 4);
  const Result<int> fault = lost;
  CHECK(fault.status().fault() == Fault::peer_lost);
  CHECK_THROWS_WITH_AS(refuse("--nodes", "0", "at least one node is needed"),
                       "--nodes: '0' is refused: at least one node is needed", Error);
}

}  // namespace sotto::test::bytes_test
