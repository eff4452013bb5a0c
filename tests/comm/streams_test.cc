// Frames over several connections to a peer: every piece gets to its place, in whatever order the
// connections bring them, and a peer is gone in good order once all have said so.
#ifdef SOTTO_HAVE_ZMQ
#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/frame.h>
#include <sotto/base/philox.h>

#include "../../comm/zmq/transport/frame_receiver.h"
#include "decoys.h"
#include "nodes.h"
#include "raw_peer.h"
#include "support/seed.h"

namespace sotto::test::streams_test {

using namespace sotto::internal;

namespace {

/// The pieces of a frame as a sender with so many streams cuts them.
std::vector<zmq_wire::Chunk> pieces_of(const ExchangeTag& tag, std::span<const std::byte> frame,
                                       std::uint8_t streams) {
  std::vector<zmq_wire::Chunk> chunks;
  const std::size_t size = zmq_wire::piece_bytes(frame.size(), streams);
  for (std::size_t offset = 0; offset < frame.size(); offset += size) {
    chunks.push_back({tag, piece_at(frame, offset, size)});
  }
  return chunks;
}

/// Rank 0, which hears rank 1 over several streams.
struct Ear {
  explicit Ear(std::uint8_t streams) : ledger(options()) { inbox.expect_streams(streams); }

  static TransportOptions options() {
    TransportOptions options;
    options.nodes = 2;
    options.from = {1};
    options.max_frame_bytes = std::size_t{4} << 20;
    return options;
  }
  void await(const ExchangeTag& tag, std::span<std::byte> room) {
    Exchange exchange;
    exchange.tag = tag;
    exchange.receives.push_back({1, room});
    REQUIRE(ledger.open(exchange).ok());
  }
  Fault hear(const Piece& piece) {
    return inbox.take({.tag = {.round = 3}, .piece = piece}, ledger).status().fault();
  }

  Ledger ledger;
  FrameReceiver inbox{1, std::size_t{4} << 20, 2};
};

}  // namespace

TEST_CASE("pieces of overlapping frames come in any order, posted before or behind them") {
  const std::uint64_t seed = drawn_seed();
  CAPTURE(seed);
  RandomStream random({.seed = seed, .purpose = Purpose::test});
  for (int trial = 0; trial < 50; ++trial) {
    const auto streams = static_cast<std::uint8_t>(2 + random.below(kMostStreams - 1));
    Ear ear(streams);
    // Two posted frames, and two early ones.
    std::vector<std::vector<std::byte>> frames;
    std::vector<std::vector<std::byte>> rooms;
    std::vector<zmq_wire::Chunk> chunks;
    for (std::uint32_t bucket = 0; bucket < 4; ++bucket) {
      const ExchangeTag tag{.round = 3, .bucket = bucket};
      frames.push_back(make_frame(1, 0, tag, random.below(600'000)));
      rooms.emplace_back(frames.back().size());
    }
    for (std::uint32_t bucket = 0; bucket < 4; ++bucket) {
      const ExchangeTag tag{.round = 3, .bucket = bucket};
      if (bucket < 2) {
        ear.await(tag, rooms[bucket]);
      }
      const auto cut = pieces_of(tag, frames[bucket], streams);
      chunks.insert(chunks.end(), cut.begin(), cut.end());
    }
    for (std::size_t k = chunks.size(); k > 1; --k) {
      std::swap(chunks[k - 1], chunks[random.below(k)]);
    }
    std::size_t heard = 0;
    const std::size_t late = random.below(chunks.size());
    for (std::size_t k = 0; k < chunks.size(); ++k) {
      if (k == late) {
        ear.await({.round = 3, .bucket = 2}, rooms[2]);
        const auto matched = ear.inbox.match(ear.ledger);
        REQUIRE(matched.ok());
        heard += *matched;
      }
      const auto taken = ear.inbox.take(chunks[k], ear.ledger);
      REQUIRE_MESSAGE(taken.ok(), taken.status().message());
      heard += *taken;
    }
    CHECK(heard == 3);
    ear.await({.round = 3, .bucket = 3}, rooms[3]);
    const auto matched = ear.inbox.match(ear.ledger);
    REQUIRE(matched.ok());
    CHECK(*matched == 1);
    for (std::size_t k = 0; k < frames.size(); ++k) {
      CHECK(rooms[k] == frames[k]);
    }
  }
}

TEST_CASE("bad input: pieces over several streams: off the grid, too short, twice, too early") {
  constexpr std::uint8_t kStreams = 4;
  const std::vector<std::byte> frame(300'000);
  const std::size_t size = zmq_wire::piece_bytes(frame.size(), kStreams);
  std::vector<std::byte> room(frame.size());
  const auto fresh = [&] {
    auto ear = std::make_unique<Ear>(kStreams);
    ear->await({.round = 3}, room);
    return ear;
  };
  CHECK(fresh()->hear(piece_at(frame, size, size)) == Fault::none);
  CHECK(fresh()->hear(piece_at(frame, size + 1, size)) == Fault::malformed);
  CHECK(fresh()->hear(piece_at(frame, size, size - 1)) == Fault::malformed);
  CHECK(fresh()->hear({.total = frame.size(), .offset = frame.size(), .bytes = {}}) ==
        Fault::malformed);
  auto ear = fresh();
  CHECK(ear->hear(piece_at(frame, 0, size)) == Fault::none);
  CHECK(ear->hear(piece_at(frame, 0, size)) == Fault::malformed);
  ear = fresh();
  CHECK(ear->hear(piece_at(frame, 0, size)) == Fault::none);
  CHECK(ear->hear(piece_at(std::span(frame).first(frame.size() - 1), size, size)) ==
        Fault::malformed);
  // Frames that have begun count as early ones, however little of them is there.
  ear = fresh();
  for (std::uint32_t bucket = 1; bucket <= 3; ++bucket) {
    const auto taken = ear->inbox.take(
        {.tag = {.round = 3, .bucket = bucket}, .piece = piece_at(frame, 0, size)}, ear->ledger);
    CHECK(taken.status().fault() == (bucket <= 2 ? Fault::none : Fault::unexpected));
  }
}

TEST_CASE("a short frame takes all streams, and pieces are no longer than chunks") {
  for (const std::uint64_t total : {64ULL, 20'000ULL, 300'000ULL, 10'000'000ULL}) {
    for (std::uint8_t streams = 1; streams <= kMostStreams; ++streams) {
      const std::size_t size = zmq_wire::piece_bytes(total, streams);
      CHECK(size <= zmq_wire::kChunkBytes);
      CHECK(size > 0);
      if (total >= 16'384ULL * streams && streams > 1) {
        CHECK((total + size - 1) / size >= streams);
      }
    }
    CHECK(zmq_wire::piece_bytes(total, 1) == zmq_wire::kChunkBytes);
  }
}

TEST_CASE("nodes with as many streams as each likes swap frames of any size") {
  const std::uint64_t seed = drawn_seed();
  CAPTURE(seed);
  RandomStream random({.seed = seed, .purpose = Purpose::test});
  for (int trial = 0; trial < 4; ++trial) {
    const Graph graph = trial % 2 == 0 ? ring(3) : directed_ring(3);
    std::vector<int> streams(3);
    std::vector<std::size_t> bytes(5);
    for (int& count : streams) {
      count = 1 + static_cast<int>(random.below(kMostStreams));
    }
    for (std::size_t& size : bytes) {
      size = std::size_t{1} << random.below(22);
    }
    CAPTURE(streams[0]);
    CAPTURE(streams[1]);
    CAPTURE(streams[2]);
    const auto store = make_memory_store();
    spawn(3, [&](Rank rank) {
      auto options = options_for(graph, rank, store, std::size_t{1} << 22);
      options.streams = streams[static_cast<std::size_t>(rank)];
      const auto transport = connect("zmq", options);
      for (std::size_t round = 0; round < bytes.size(); ++round) {
        swap_frames(*transport, graph, rank, {.round = round}, bytes[round]);
      }
    });
  }
}

TEST_CASE(
    "a peer has left once all its streams say goodbye, and is lost with the first that ends") {
  const auto store = make_memory_store();
  std::unique_ptr<Transport> node;
  Decoys decoys;
  std::thread connecting([&] {
    auto made = make_transport("zmq", options_for(ring(2), 0, store, kDecoyPayload));
    if (made.ok()) {
      node = std::move(*made);
    }
  });
  const std::string address = meet_rank_0(store, decoys.address);
  RawPeer first(address);
  RawPeer second(address);
  second.send(hello_message(kRun, 1, 0, 2, 1, 2));
  first.send(hello_message(kRun, 1, 0, 2, 0, 2));
  connecting.join();
  REQUIRE(node != nullptr);
  const auto frame = make_frame(1, 0, {.round = 0}, 100);
  std::vector<std::byte> room(frame.size());
  Exchange exchange;
  exchange.receives.push_back({1, room});
  REQUIRE(node->post(exchange).ok());
  const auto next = [&] {
    const auto event = node->poll(generous());
    REQUIRE_MESSAGE(event.ok(), event.status().message());
    return *event;
  };
  SUBCASE("one stream goes in good order, and the other brings the frame") {
    first.send(bye_message());
    first.close();
    auto chunk = chunk_message({.round = 0}, frame.size(), 0, frame.size());
    std::memcpy(chunk.data() + chunk.size() - frame.size(), frame.data(), frame.size());
    second.send(chunk);
    CHECK(next().kind == TransportEvent::Kind::frame);
    CHECK(room == frame);
    CHECK(next().kind == TransportEvent::Kind::exchange_done);
    exchange.tag.round = 1;
    REQUIRE(node->post(exchange).ok());
    second.send(bye_message());
    const auto gone = next();
    CHECK(gone.kind == TransportEvent::Kind::peer_lost);
    CHECK(gone.reason == "closed");
  }
  SUBCASE("one stream ends without a goodbye") {
    second.close();
    const auto gone = next();
    CHECK(gone.kind == TransportEvent::Kind::peer_lost);
    CHECK(gone.reason.find("without a goodbye") != std::string::npos);
  }
}

TEST_CASE("streams are refused where there is one connection, and beyond what there may be") {
  const auto refused = [](const std::string& transport, int streams) {
    auto options = options_for(ring(2), 0, make_memory_store(), 100);
    options.streams = streams;
    try {
      check_transport(transport, options);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refused("inproc", 2).find("take zmq") != std::string::npos);
  CHECK(refused("zmq", 0).find("1 to 16") != std::string::npos);
  CHECK(refused("zmq", kMostStreams + 1).find("1 to 16") != std::string::npos);
  CHECK(refused("zmq", kMostStreams).empty());
}
#endif

}  // namespace sotto::test::streams_test
