// The grammar of channels and what is made of it, without a network: every malformed message, every
// broken rule of chunks and receipts, and the bounds of what is kept.
#ifdef SOTTO_HAVE_ZMQ
#include <limits>

#include <doctest/doctest.h>

#include <sotto/base/philox.h>

#include "../../comm/zmq/channels/channel_events.h"
#include "../../comm/zmq/channels/message_receiver.h"
#include "../../comm/zmq/channels/message_sender.h"
#include "sites.h"

namespace sotto::test::channel_wire_test {

using namespace sotto::internal;
using namespace sotto::internal::channel_wire;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

Status fault_of(std::span<const std::byte> bytes) {
  const auto parsed = parse(bytes);
  return parsed.ok() ? Status() : parsed.status();
}

/// MessageReceiver that have let their peer send all that they ever let.
MessageReceiver open_arrivals(std::size_t max_message_bytes) {
  MessageReceiver arrivals(max_message_bytes);
  arrivals.said(arrivals.receipt(0));
  return arrivals;
}

}  // namespace

TEST_CASE("a channel's messages are read as they were written") {
  const auto bytes = message_of(1, 100);
  const auto chunk = parse(write(Chunk{7, {1000, 900, bytes}}));
  REQUIRE(chunk.ok());
  const auto& read = std::get<Chunk>(*chunk);
  CHECK(read.number == 7);
  CHECK(read.piece.total == 1000);
  CHECK(read.piece.offset == 900);
  const auto written = write(Chunk{7, {1000, 900, bytes}});
  CHECK(written.size() == kChunkHeaderBytes + 100);
  CHECK(std::get<Greeting>(*parse(write(Greeting{kMost}))).session == kMost);
  CHECK(std::get<Accept>(*parse(write(Accept{5}))).session == 5);
  const auto receipt = std::get<Receipt>(*parse(write(Receipt{3, 4})));
  CHECK(receipt.received == 3);
  CHECK(receipt.allowed == 4);
  CHECK(parse(write(Bye{})).ok());
}

TEST_CASE("a channel's messages: every truncation and every trailing byte is refused") {
  for (const Bytes& whole :
       {write(Greeting{1}), write(Accept{1}), write(Receipt{1, 2}), write(Bye{}),
        write(Chunk{0, {1, 0, std::vector<std::byte>(1)}}), write(Chunk{0, {0, 0, {}}})}) {
    CHECK(fault_of(whole).ok());
    for (std::size_t size = 0; size < whole.size(); ++size) {
      CAPTURE(size);
      CHECK(fault_of(std::span(whole).first(size)).fault() == Fault::malformed);
    }
    auto longer = whole;
    longer.push_back({});
    CHECK(fault_of(longer).fault() == Fault::malformed);
  }
}

TEST_CASE("a channel's messages: unknown kinds, versions, sessions, and chunks that leave theirs") {
  for (int kind = 0; kind < 256; ++kind) {
    if (kind < 1 || kind > 5) {
      CHECK(fault_of(Bytes(17, static_cast<std::byte>(kind))).fault() == Fault::malformed);
    }
  }
  auto version = write(Greeting{1});
  version[1] = std::byte{2};
  CHECK(fault_of(version).fault() == Fault::malformed);
  CHECK(fault_of(write(Greeting{0})).fault() == Fault::malformed);
  CHECK(fault_of(write(Accept{0})).fault() == Fault::malformed);
  const Bytes ten(10);
  const Bytes much(kMostChunkBytes + 1);
  for (const Chunk& chunk :
       {Chunk{0, {9, 0, ten}}, Chunk{0, {10, 1, ten}}, Chunk{0, {10, 10, ten}},
        Chunk{0, {10, 11, ten}}, Chunk{0, {kMost, kMost, ten}}, Chunk{0, {kMost, kMost - 9, ten}},
        Chunk{0, {5, kMost - 4, ten}}, Chunk{0, {10, 0, {}}}, Chunk{0, {10, 10, {}}},
        Chunk{0, {0, 1, {}}}, Chunk{0, {much.size(), 0, much}}}) {
    CHECK(fault_of(write(chunk)).fault() == Fault::malformed);
  }
  CHECK(fault_of(write(Chunk{kMost, {kMost, kMost - 10, ten}})).ok());
}

TEST_CASE("a channel's messages: what any bytes parse to is what they are written as") {
  const std::uint64_t seed = 31;
  CAPTURE(seed);
  RandomStream random({.seed = seed});
  for (int i = 0; i < 20'000; ++i) {
    Bytes bytes(random.below(40));
    for (auto& byte : bytes) {
      byte = static_cast<std::byte>(random.below(4) == 0 ? random.next_u32() : random.below(6));
    }
    if (const auto parsed = parse(bytes)) {
      REQUIRE(write(*parsed) == bytes);
    }
  }
}

TEST_CASE(
    "arriving chunks: gaps, overlaps, totals that change, and numbers that jump are refused") {
  const Bytes ten(10);
  for (const Chunk& second :
       {Chunk{0, {100, 0, ten}}, Chunk{0, {100, 5, ten}}, Chunk{0, {100, 11, ten}},
        Chunk{0, {99, 10, ten}}, Chunk{0, {kMost, 10, ten}}, Chunk{1, {100, 10, ten}},
        Chunk{1, {10, 0, ten}}, Chunk{kMost, {100, 10, ten}}}) {
    auto arrivals = open_arrivals(1000);
    const auto first = arrivals.take({0, {100, 0, ten}});
    REQUIRE(first.ok());
    CHECK_FALSE(first->has_value());
    CHECK(arrivals.take(second).status().fault() == Fault::malformed);
  }
  for (const Chunk& first :
       {Chunk{1, {10, 0, ten}}, Chunk{kMost, {10, 0, ten}}, Chunk{0, {20, 10, ten}},
        Chunk{0, {1001, 0, ten}}, Chunk{0, {kMost, 0, ten}}}) {
    auto arrivals = open_arrivals(1000);
    CHECK(arrivals.take(first).status().fault() == Fault::malformed);
    CHECK_FALSE(arrivals.arriving());
  }
}

TEST_CASE("arriving chunks: nothing is let in beyond the allowance, however small") {
  auto arrivals = open_arrivals(1000);
  std::uint64_t held = 0;
  std::uint64_t number = 0;
  for (;; ++number) {
    const auto taken = arrivals.take({number, {0, 0, {}}});
    if (!taken.ok()) {
      CHECK(taken.status().fault() == Fault::unexpected);
      break;
    }
    held += cost_of(0);
  }
  CHECK(held <= arrivals.window());
  CHECK(held + cost_of(0) > arrivals.window());
  // Nothing has been taken: no news, and no room.
  const auto full = arrivals.receipt(held);
  arrivals.said(full);
  CHECK_FALSE(arrivals.news(held));
  CHECK_FALSE(arrivals.take({number, {0, 0, {}}}).ok());
  // All has been taken: room for two of the longest again.
  CHECK(arrivals.news(0));
  arrivals.said(arrivals.receipt(0));
  const Bytes longest(1000);
  CHECK(arrivals.take({number, {1000, 0, longest}}).ok());
  CHECK(arrivals.take({number + 1, {1000, 0, longest}}).ok());
  CHECK_FALSE(arrivals.take({number + 2, {0, 0, {}}}).ok());
}

TEST_CASE("arriving chunks: what older sessions left here counts, and an allowance never shrinks") {
  MessageReceiver arrivals(1000);
  const auto nothing = arrivals.receipt(arrivals.window() + 5);
  CHECK(nothing.allowed == 0);
  arrivals.said(nothing);
  CHECK_FALSE(arrivals.take({0, {0, 0, {}}}).ok());
  arrivals.said(arrivals.receipt(arrivals.window() / 2));
  const auto before = arrivals.receipt(0).allowed;
  arrivals.said(arrivals.receipt(0));
  CHECK(arrivals.receipt(arrivals.window()).allowed == before);
}

TEST_CASE("departing messages wait for an allowance, and arrive in chunks") {
  const auto start = MessageSender::Clock::time_point();
  MessageSender out(8s);
  auto in = open_arrivals(100'000);
  const auto message = message_of(3, 50'000);
  out.add({.head = message, .body = {}});
  out.add({});
  CHECK_FALSE(out.ready());
  REQUIRE(out.take({0, cost_of(50'000) - 1}, start).ok());
  CHECK_FALSE(out.ready());
  REQUIRE(out.take({0, cost_of(50'000)}, start).ok());
  Bytes arrived;
  std::size_t chunks = 0;
  for (; out.ready(); out.gone(start), ++chunks) {
    CHECK(out.next().piece.bytes.size() <=
          ChunkSizer::kLeastChunkBytes);  // nothing is known of the link
    auto taken = in.take(out.next());
    REQUIRE(taken.ok());
    if (*taken) {
      arrived = **taken;
    }
  }
  CHECK(arrived == message);
  CHECK(chunks == 13);
  CHECK(out.sent_bytes() == 50'000);
  CHECK(out.queued_messages() == 1);
  CHECK(out.queued_bytes() == 0);
  REQUIRE(out.take({50'000, 2 * cost_of(50'000)}, start).ok());
  REQUIRE(out.ready());
  REQUIRE(in.take(out.next())->has_value());
  out.gone(start);
  CHECK(out.empty());
}

TEST_CASE("a message is known as queued by its head and by where its body lies") {
  const auto start = MessageSender::Clock::time_point();
  MessageSender out(8s);
  const SharedBytes body(message_of(1, 10'000));
  out.add({.head = message_of(2, 20), .body = body});
  out.add({.head = message_of(3, 20), .body = {}});
  CHECK(out.holds({.head = message_of(2, 20), .body = body}));
  CHECK_FALSE(out.holds({.head = message_of(4, 20), .body = body}));
  CHECK_FALSE(out.holds({.head = message_of(2, 20), .body = message_of(1, 10'000)}));
  CHECK_FALSE(out.holds({.head = message_of(3, 20), .body = {}}));
  REQUIRE(out.take({0, cost_of(10'020)}, start).ok());
  out.gone(start);
  CHECK(out.holds({.head = message_of(2, 20), .body = body}));  // a part of it is out
  for (; out.ready(); out.gone(start)) {
  }
  CHECK_FALSE(out.holds({.head = message_of(2, 20), .body = body}));
}

TEST_CASE("a message in two runs of bytes goes out as one, wherever its chunks end") {
  const auto start = MessageSender::Clock::time_point();
  constexpr std::size_t kChunk = ChunkSizer::kLeastChunkBytes;
  for (const std::size_t head : {std::size_t{0}, std::size_t{25}, kChunk - 1, kChunk, kChunk + 1}) {
    for (const std::size_t body : {std::size_t{1}, kChunk - 25, kChunk, 3 * kChunk}) {
      CAPTURE(head);
      CAPTURE(body);
      const auto whole = message_of(5, head + body);
      MessageSender out(8s);
      auto in = open_arrivals(100'000);
      out.add({.head = {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(head)},
               .body = Bytes(whole.begin() + static_cast<std::ptrdiff_t>(head), whole.end())});
      CHECK(out.queued_bytes() == whole.size());
      REQUIRE(out.take({0, cost_of(whole.size())}, start).ok());
      Bytes arrived;
      std::size_t chunks = 0;
      for (; out.ready(); out.gone(start), ++chunks) {
        const auto written = write(out.next());
        const auto sent = write_zmq(out.next());
        CHECK(std::ranges::equal(view_of(sent), written));
        const auto parsed = parse(written);
        REQUIRE(parsed.ok());
        auto taken = in.take(std::get<Chunk>(*parsed));
        REQUIRE(taken.ok());
        if (*taken) {
          arrived = **taken;
        }
      }
      CHECK(arrived == whole);
      CHECK(chunks == (whole.size() + kChunk - 1) / kChunk);
      CHECK(out.empty());
      CHECK(out.queued_bytes() == 0);
      CHECK(out.sent_bytes() == whole.size());
    }
  }
}

TEST_CASE("memory of messages that nobody needs serves for those that come") {
  BytePool pool;
  MessageReceiver in(BytePool::kLeast, &pool);
  in.said({0, kMost});
  const auto message = message_of(6, BytePool::kLeast);
  const std::byte* first = nullptr;
  for (std::uint64_t number = 0; number < 3; ++number) {
    auto taken = in.take({number, {message.size(), 0, message}});
    REQUIRE(taken.ok());
    REQUIRE(taken->has_value());
    const SharedBytes kept = pool.share(*std::move(*taken));
    CHECK(std::ranges::equal(kept, message));
    first = first == nullptr ? kept.data() : first;
    CHECK(kept.data() == first);
  }
}

TEST_CASE("receipts for what was never sent, and allowances that shrink, are refused") {
  const auto start = MessageSender::Clock::time_point();
  for (const Receipt& bad : {Receipt{101, 1000}, Receipt{kMost, 1000}, Receipt{49, 1000},
                             Receipt{50, 999}, Receipt{50, 0}}) {
    MessageSender out(8s);
    out.add({.head = Bytes(100), .body = {}});
    REQUIRE(out.take({0, 1000}, start).ok());
    out.gone(start);
    REQUIRE(out.take({50, 1000}, start).ok());
    CHECK(out.take(bad, start).fault() == Fault::malformed);
  }
  MessageSender out(8s);
  out.add({.head = Bytes(100), .body = {}});
  CHECK_FALSE(out.take({1, 1000}, start).ok());
  CHECK(out.take({0, kMost}, start).ok());
  CHECK(out.ready());
}

TEST_CASE("64 MiB message at 1 Mbit/s with a short timeout: no chunk is on its way for long") {
  const double rate = 125'000;
  const auto timeout = 2s;
  MessageSender out(timeout);
  out.add({.head = Bytes(std::size_t{64} << 20), .body = {}});
  auto now = MessageSender::Clock::time_point();
  std::uint64_t arrived = 0;
  REQUIRE(out.take({0, cost_of(std::size_t{64} << 20)}, now).ok());
  std::chrono::duration<double> longest{};
  while (out.ready()) {
    const auto bytes = out.next().piece.bytes.size();
    const std::chrono::duration<double> took(static_cast<double>(bytes) / rate);
    longest = std::max(longest, took);
    out.gone(now);
    now += std::chrono::duration_cast<MessageSender::Clock::duration>(took);
    arrived += bytes;
    REQUIRE(out.take({arrived, cost_of(std::size_t{64} << 20)}, now).ok());
  }
  CHECK(arrived == std::size_t{64} << 20);
  CHECK(longest < timeout / 4.0);
}

TEST_CASE("chunks grow on a fast link and shrink on one that becomes slow") {
  const auto start = ChunkSizer::Clock::time_point();
  ChunkSizer pace(1s);
  pace.begin(start);
  for (int i = 1; i <= 10; ++i) {
    pace.arrived(10'000'000, start + i * 100ms);
  }
  CHECK(pace.chunk_bytes() == kMostChunkBytes);
  pace.arrived(kMostChunkBytes, start + 11s);
  CHECK(pace.chunk_bytes() < 5000);
  pace.arrived(10, start + 111s);
  CHECK(pace.chunk_bytes() == ChunkSizer::kLeastChunkBytes);
}

TEST_CASE("receipts that come all at once, behind what went the other way, make no link fast") {
  const auto start = ChunkSizer::Clock::time_point();
  ChunkSizer pace(500ms);
  pace.begin(start);
  // 4 KiB take an eighth of a second, and of eight receipts seven wait for the eighth.
  auto now = start;
  for (int second = 1; second <= 20; ++second) {
    now = start + std::chrono::seconds(second);
    for (int receipt = 0; receipt < 8; ++receipt) {
      pace.arrived(4096, now + std::chrono::microseconds(receipt));
    }
    CHECK(pace.chunk_bytes() <= 2 * ChunkSizer::kLeastChunkBytes);
  }
  // What was true long ago counts no more: the link has become fast.
  for (int step = 1; step <= 2000; ++step) {
    pace.arrived(1 << 20, now + step * 1ms);
  }
  CHECK(pace.chunk_bytes() == kMostChunkBytes);
}

TEST_CASE("events that nobody asks for do not pile up") {
  ChannelEvents events;
  for (int i = 0; i < 1000; ++i) {
    events.up(1);
    CHECK_FALSE(events.known(1));
    events.down(1, "gone");
  }
  CHECK(events.empty());
  CHECK(events.known(1));
  events.up(1);
  events.message(1, Bytes(10));
  events.up(2);
  events.down(1, "gone");
  CHECK(events.held(1) == cost_of(10));
  events.up(1);
  events.down(1, "gone again");
  using Kind = ChannelEvent::Kind;
  for (const Kind kind : {Kind::up, Kind::message, Kind::up, Kind::down}) {
    const auto event = events.take();
    REQUIRE(event.has_value());
    CHECK(event->kind == kind);
  }
  CHECK_FALSE(events.take().has_value());
  CHECK(events.held(1) == 0);
  CHECK(events.known(1));
}

TEST_CASE("events of a peer that is given up are forgotten, and no other's") {
  ChannelEvents events;
  events.up(1);
  events.up(2);
  REQUIRE(events.take().has_value());
  events.message(1, Bytes(10));
  events.message(2, Bytes(20));
  events.forget(1);
  events.down(1, "revoked");
  CHECK(events.held(1) == 0);
  CHECK(events.held(2) == cost_of(20));
  CHECK(events.take()->peer == 2);
  CHECK(events.take()->peer == 2);
  CHECK(events.take()->reason == "revoked");
  CHECK(events.empty());
}
#endif

}  // namespace sotto::test::channel_wire_test
