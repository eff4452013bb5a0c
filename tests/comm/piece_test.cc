// What the protocols over ZeroMQ say of pieces: where one may lie, which is next, and when a whole
// is there.
#ifdef SOTTO_HAVE_ZMQ
#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include <sotto/base/philox.h>

#include "../../comm/zmq/channels/channel_wire.h"
#include "../../comm/zmq/socket/piece.h"
#include "../../comm/zmq/store/tcp_store_wire.h"
#include "../../comm/zmq/transport/wire.h"

namespace sotto::test::piece_test {

using namespace sotto::internal;

namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
using Bytes = std::vector<std::byte>;

}  // namespace

TEST_CASE(
    "pieces: only what lies inside its whole is one, and only an empty whole has an empty one") {
  const Bytes ten(10);
  for (const Piece& piece : {Piece{10, 0, ten}, Piece{20, 10, ten}, Piece{kMost, kMost - 10, ten},
                             Piece{kMost, 0, ten}, Piece{0, 0, {}}}) {
    CHECK(lies_inside(piece, 10));
    CHECK_FALSE((!piece.bytes.empty() && lies_inside(piece, 9)));
  }
  for (const Piece& piece :
       {Piece{9, 0, ten}, Piece{10, 1, ten}, Piece{10, 11, ten}, Piece{10, kMost, ten},
        Piece{kMost, kMost - 9, ten}, Piece{kMost, kMost, ten}, Piece{0, 0, ten}, Piece{10, 0, {}},
        Piece{10, 10, {}}, Piece{0, 1, {}}}) {
    CAPTURE(piece.total);
    CAPTURE(piece.offset);
    CHECK_FALSE(lies_inside(piece, 10));
  }
}

TEST_CASE("pieces: a whole that is cut anywhere is put together, and nothing else is taken") {
  const std::uint64_t seed = 5;
  CAPTURE(seed);
  RandomStream random({.seed = seed});
  for (int round = 0; round < 200; ++round) {
    const std::size_t total = random.below(300);
    Progress progress;
    CHECK_FALSE(progress.under_way());
    progress.begin(total);
    Bytes whole(total, std::byte{1});
    bool complete = false;
    for (std::size_t at = 0; !complete;) {
      const Piece piece = piece_at(whole, at, 1 + random.below(100));
      REQUIRE(lies_inside(piece, 100));
      REQUIRE(progress.awaits(piece));
      CHECK_FALSE(progress.awaits({piece.total + 1, piece.offset, piece.bytes}));
      CHECK_FALSE(progress.awaits({piece.total, piece.offset + 1, piece.bytes}));
      complete = progress.take(piece);
      CHECK(complete == piece.last());
      at += piece.bytes.size();
      CHECK(progress.arrived() == at);
    }
    CHECK(progress.arrived() == total);
    CHECK_FALSE(progress.awaits({total, total, {}}));  // over
  }
}

TEST_CASE(
    "pieces: chunks of frames, of messages and of values keep the bytes that they had on the "
    "wire") {
  const Bytes bytes(3, std::byte{0xab});
  const auto hex = [](std::span<const std::byte> message) {
    std::string text;
    for (const std::byte byte : message) {
      constexpr const char* kDigits = "0123456789abcdef";
      text += kDigits[std::to_integer<unsigned>(byte) >> 4U];
      text += kDigits[std::to_integer<unsigned>(byte) & 15U];
    }
    return text;
  };
  const Piece piece{.total = 0x0102, .offset = 0x03, .bytes = bytes};
  CHECK(hex(view_of(zmq_wire::make_chunk({{.round = 7, .phase = 5, .bucket = 9}, piece}))) ==
        "02"
        "0700000000000000"
        "0500"
        "09000000"
        "0201000000000000"
        "0300000000000000"
        "ababab");
  CHECK(hex(channel_wire::write(channel_wire::Chunk{7, piece})) ==
        "03"
        "0700000000000000"
        "0201000000000000"
        "0300000000000000"
        "ababab");
  CHECK(hex(view_of(store_wire::make_request(
            {.kind = store_wire::Kind::set, .key = "k", .piece = piece, .wait_ms = 4}))) ==
        "01"
        "04000000"
        "0000000000000000"
        "0201000000000000"
        "0300000000000000"
        "0100"
        "6b"
        "ababab");
}
#endif

}  // namespace sotto::test::piece_test
