// Packets as they come from a device, also hostile ones.
#include <random>
#include <span>
#include <vector>

#include <doctest/doctest.h>

#include "bench/netlab/network/packet.h"

namespace sotto::test::packet_test {

using namespace sotto::netlab;

namespace {

constexpr std::size_t kIp = kOffloadBytes;

/// A packet of TCP from 10.77.0.1 to 10.77.0.2, behind an empty offload header.
std::vector<std::byte> tcp(std::size_t payload) {
  std::vector<std::byte> bytes(kIp + 52 + payload);
  const auto set = [&](std::size_t at, unsigned value) { bytes[at] = std::byte(value); };
  const std::size_t total = 52 + payload;
  set(kIp, 0x45);
  set(kIp + 2, static_cast<unsigned>(total >> 8U));
  set(kIp + 3, static_cast<unsigned>(total & 255U));
  set(kIp + 9, 6);
  const unsigned addresses[] = {10, 77, 0, 1, 10, 77, 0, 2};
  for (std::size_t i = 0; i < 8; ++i) {
    set(kIp + 12 + i, addresses[i]);
  }
  set(kIp + 20 + 12, 8U << 4U);  // 32 bytes of TCP header
  return bytes;
}

void make_piece(std::vector<std::byte>& bytes, unsigned segment) {
  bytes[1] = std::byte{1};
  bytes[4] = std::byte(segment & 255U);
  bytes[5] = std::byte(segment >> 8U);
}

unsigned word(std::span<const std::byte> bytes, std::size_t at) {
  return std::to_integer<unsigned>(bytes[at]) << 8U | std::to_integer<unsigned>(bytes[at + 1]);
}

void set_word(std::span<std::byte> bytes, std::size_t at, unsigned value) {
  bytes[at] = std::byte(value >> 8U & 255U);
  bytes[at + 1] = std::byte(value & 255U);
}

unsigned ones_complement_sum(std::span<const std::byte> bytes, std::size_t from, std::size_t to) {
  unsigned sum = 0;
  for (std::size_t i = from; i < to; i += 2) {
    sum += word(bytes, i);
  }
  return (sum & 0xFFFFU) + (sum >> 16U);
}

/// What a kernel leaves for the card to complete (RFC 9293, 3.1): addresses, protocol, TCP's
/// length.
unsigned pseudo_header_sum(std::span<const std::byte> bytes) {
  const unsigned sum = ones_complement_sum(bytes, kIp + 12, kIp + 20) + 6 +
                       static_cast<unsigned>(bytes.size() - kIp - 20);
  return (sum & 0xFFFFU) + (sum >> 16U);
}

constexpr std::size_t kHeaders = kIp + 52;
constexpr std::size_t kTcp = kIp + 20;

/// A piece of a stream of random payload, as Linux hands it over.
std::vector<std::byte> random_piece(std::mt19937& random, std::size_t payload, unsigned segment) {
  auto bytes = tcp(payload);
  make_piece(bytes, segment);
  for (std::size_t i = kHeaders; i < bytes.size(); ++i) {
    bytes[i] = std::byte(random() & 255U);
  }
  set_word(bytes, kIp + 4, 0xFFFE);    // IP's number, about to wrap
  set_word(bytes, kTcp + 4, 0xFFFFU);  // a sequence number about to wrap
  set_word(bytes, kTcp + 6, 0xFFF0U);
  bytes[kTcp + 13] = std::byte{0x80 | 0x18 | 1};  // CWR, ACK, PSH, FIN
  set_word(bytes, kTcp + 16, pseudo_header_sum(bytes));
  return bytes;
}

}  // namespace

TEST_CASE("a piece of a stream is cut into what a card would make of it") {
  std::mt19937 random(3);
  for (int repeat = 0; repeat < 300; ++repeat) {
    const unsigned segment = 1 + static_cast<unsigned>(random() % 1448);
    const std::size_t payload = 1 + random() % 20'000;
    const auto at_once = static_cast<std::uint32_t>(1 + random() % 8);
    CAPTURE(segment);
    CAPTURE(payload);
    CAPTURE(at_once);
    const auto bytes = random_piece(random, payload, segment);
    const auto whole = read_packet(bytes, 0, 2);
    REQUIRE(whole);
    CHECK(whole->segments == (payload + segment - 1) / segment);
    const auto parts = cut(*whole, bytes, at_once);
    CHECK(parts.size() == (whole->segments + at_once - 1) / at_once);
    std::vector<std::byte> stream;
    std::uint32_t wire = 0;
    std::uint32_t before = 0;
    for (const Packet& part : parts) {
      const std::span<const std::byte> own = part.bytes;
      const auto read = read_packet(own, 0, 2);
      REQUIRE(read);
      CHECK(read->segments == part.segments);
      CHECK(read->wire_bytes == part.wire_bytes);
      CHECK(part.segments <= at_once);
      wire += part.wire_bytes;
      const bool last = &part == &parts.back();
      const bool first = &part == &parts.front();
      if (parts.size() > 1) {
        CHECK(ones_complement_sum(own, kIp, kIp + 20) == 0xFFFF);
        CHECK(word(own, kTcp + 16) % 0xFFFF == pseudo_header_sum(own) % 0xFFFF);
      }
      CHECK(word(own, kIp + 4) == ((word(bytes, kIp + 4) + before) & 0xFFFFU));
      const std::uint32_t sequence = word(own, kTcp + 4) << 16U | word(own, kTcp + 6);
      CHECK(sequence == static_cast<std::uint32_t>(0xFFFFFFF0U + stream.size()));
      CHECK(std::to_integer<unsigned>(own[kTcp + 13]) ==
            (0x10U | (first ? 0x80U : 0U) | (last ? 9U : 0U)));
      stream.insert(stream.end(), own.begin() + kHeaders, own.end());
      before += part.segments;
    }
    CHECK(wire == whole->wire_bytes);
    CHECK(before == whole->segments);
    CHECK(stream == std::vector(bytes.begin() + kHeaders, bytes.end()));
  }
}

TEST_CASE("what is no piece of a stream, or a small one, is left as it is") {
  auto bytes = tcp(1448);
  CHECK(cut(*read_packet(bytes, 0, 2), bytes, 1).at(0).bytes == bytes);
  bytes = tcp(3000);
  make_piece(bytes, 1448);
  const auto parts = cut(*read_packet(bytes, 0, 2), bytes, 3);
  REQUIRE(parts.size() == 1);
  CHECK(parts[0].bytes == bytes);
}

TEST_CASE("a packet weighs what its IP header says") {
  const auto found = read_packet(tcp(1448), 0, 2);
  REQUIRE(found);
  CHECK(found->to == 1);
  CHECK(found->shaped);
  CHECK(found->wire_bytes == 1500);
}

TEST_CASE("a piece of a stream weighs as much as its segments") {
  auto bytes = tcp(10 * 1448 + 1);
  make_piece(bytes, 1448);
  const auto found = read_packet(bytes, 0, 2);
  REQUIRE(found);
  CHECK(found->wire_bytes == 10 * 1448 + 1 + 11 * 52);
}

TEST_CASE("the net beside the links is told apart") {
  auto bytes = tcp(0);
  bytes[kIp + 13] = bytes[kIp + 17] = std::byte{78};
  const auto found = read_packet(bytes, 0, 2);
  REQUIRE(found);
  CHECK_FALSE(found->shaped);
}

TEST_CASE("what is no packet between two hosts is refused") {
  const auto refused = [](auto change) {
    auto bytes = tcp(100);
    change(bytes);
    return !read_packet(bytes, 0, 2);
  };
  CHECK(refused([](auto& b) { b.clear(); }));
  CHECK(refused([](auto& b) { b.resize(kIp + 19); }));
  CHECK(refused([](auto& b) { b.pop_back(); }));                  // shorter than it says
  CHECK(refused([](auto& b) { b[kIp] = std::byte{0x65}; }));      // IPv6
  CHECK(refused([](auto& b) { b[kIp] = std::byte{0x44}; }));      // a header of 16 bytes
  CHECK(refused([](auto& b) { b[kIp + 15] = std::byte{2}; }));    // from somebody else
  CHECK(refused([](auto& b) { b[kIp + 19] = std::byte{3}; }));    // to nobody
  CHECK(refused([](auto& b) { b[kIp + 19] = std::byte{1}; }));    // to itself
  CHECK(refused([](auto& b) { b[kIp + 17] = std::byte{78}; }));   // from one net to the other
  CHECK(refused([](auto& b) { b[kIp + 16] = std::byte{224}; }));  // multicast
  CHECK(refused([](auto& b) { b[1] = std::byte{1}; }));           // segments of no size
  CHECK(refused([](auto& b) { make_piece(b, 50), b[1] = std::byte{3}; }));  // UDP's pieces
  CHECK(refused([](auto& b) {
    make_piece(b, 50);
    b[kIp + 32] = std::byte{0x40};  // a TCP header of 16 bytes
  }));
  CHECK(refused([](auto& b) {
    b.resize(kIp + 39);
    b[kIp + 3] = std::byte{39};
    make_piece(b, 50);  // the end of the TCP header is missing
  }));
}

TEST_CASE("no bytes whatever are read past their end") {
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    auto bytes = tcp(random() % 64);
    for (int k = 0; k < 4; ++k) {
      bytes[random() % bytes.size()] = std::byte(random() & 255U);
    }
    bytes.resize(random() % (bytes.size() + 1));
    bytes.shrink_to_fit();
    const auto found = read_packet(bytes, 0, 2);
    if (found) {
      CHECK(found->to == 1);
      CHECK(found->wire_bytes + kOffloadBytes >= bytes.size());
    }
  }
}

}  // namespace sotto::test::packet_test
