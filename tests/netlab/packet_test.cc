// Packets as they come from a device, also hostile ones.
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "bench/netlab/packet.h"

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

}  // namespace

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
