// What a peer may do with the pieces of a message: the tables behind the sockets, without sockets.
#ifdef SOTTO_HAVE_ZMQ
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/frame.h>
#include <sotto/base/philox.h>

#include "../../comm/zmq/channels/message_receiver.h"
#include "../../comm/zmq/channels/message_sender.h"
#include "../../comm/zmq/store/stored_values.h"
#include "../../comm/zmq/store/tcp_store_wire.h"
#include "../../comm/zmq/transport/frame_receiver.h"

namespace sotto::test::bad_inputs_test {

using namespace sotto::internal;

namespace {

constexpr std::size_t kMostFrame = 1000;
constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
constexpr int kReassemblies = 1 << 20;

const std::vector<std::byte> kTen(10);

/// Rank 0, which awaits a frame of rank 1 in `round`.
struct Hearing {
  explicit Hearing(Round round) : ledger(options()), room(kMostFrame) {
    Exchange exchange;
    exchange.tag = {.round = round};
    exchange.receives.push_back({1, room});
    REQUIRE(ledger.open(exchange).ok());
  }
  static TransportOptions options() {
    TransportOptions options;
    options.nodes = 2;
    options.from = {1};
    options.max_frame_bytes = kMostFrame;
    return options;
  }
  Fault hear(const ExchangeTag& tag, std::uint64_t total, std::uint64_t offset) {
    return inbox
        .take({.tag = tag, .piece = {.total = total, .offset = offset, .bytes = kTen}}, ledger)
        .status()
        .fault();
  }

  Ledger ledger;
  std::vector<std::byte> room;
  FrameReceiver inbox{1, kMostFrame, 2};
};

}  // namespace

TEST_CASE("bad input: chunks of frames: beyond total, a total that changes, overlaps") {
  const ExchangeTag tag{.round = 5};
  const auto second = [&](std::uint64_t total, std::uint64_t offset) {
    Hearing node(5);
    REQUIRE(node.hear(tag, 200, 0) == Fault::none);
    const Fault fault = node.hear(tag, total, offset);
    CHECK_FALSE(node.ledger.has_event());
    return fault;
  };
  CHECK(second(200, 10) == Fault::none);
  for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{5}, std::uint64_t{9},
                                     std::uint64_t{11}, std::uint64_t{200}, kMost, kMost - 9}) {
    CAPTURE(offset);
    CHECK(second(200, offset) == Fault::malformed);
  }
  for (const std::uint64_t total : {std::uint64_t{0}, std::uint64_t{199}, std::uint64_t{201},
                                    std::uint64_t{0xFFFFFFFF}, std::uint64_t{1} << 62U, kMost}) {
    CAPTURE(total);
    CHECK(second(total, 10) == Fault::malformed);
    Hearing first(5);
    if (total < kFrameHeaderBytes || total > kMostFrame) {
      CHECK(first.hear(tag, total, 0) == Fault::malformed);
    }
  }
}

TEST_CASE("bad input: 2^20 reassemblies at once: two frames wait at most, and none is mixed up") {
  Hearing node(5);
  int begun = 0;
  for (int i = 1; i <= kReassemblies; ++i) {
    // Whole frames ahead of time, each another one's.
    const std::vector<std::byte> frame(kFrameHeaderBytes);
    const auto taken = node.inbox.take({.tag = {.round = 5 + static_cast<Round>(i)},
                                        .piece = {.total = frame.size(), .bytes = frame}},
                                       node.ledger);
    begun += taken.ok() ? 1 : 0;
    if (!taken.ok()) {
      REQUIRE(taken.status().fault() == Fault::unexpected);
    }
  }
  CHECK(begun == 2);
  // Within a frame no other one begins.
  Hearing other(5);
  REQUIRE(other.hear({.round = 5}, 200, 0) == Fault::none);
  for (int i = 1; i <= 1000; ++i) {
    REQUIRE(other.hear({.round = 5 + static_cast<Round>(i)}, 200, 0) == Fault::malformed);
  }
}

TEST_CASE("bad input: 2^20 reassemblies at once on a channel: one message at a time") {
  MessageReceiver arrivals(kMostFrame);
  arrivals.said(arrivals.receipt(0));
  REQUIRE(arrivals.take({.number = 0, .piece = {.total = 200, .offset = 0, .bytes = kTen}}).ok());
  for (int i = 1; i <= kReassemblies; ++i) {
    REQUIRE_FALSE(arrivals
                      .take({.number = static_cast<std::uint64_t>(i),
                             .piece = {.total = 200, .offset = 0, .bytes = kTen}})
                      .ok());
  }
  CHECK(arrivals.arriving());
}

TEST_CASE("bad input: old and far-future rounds, and a tag nobody awaits") {
  constexpr Round kNow = 1000;
  for (const Round round : {Round{0}, Round{1}, kNow - 1}) {
    CAPTURE(round);
    CHECK(Hearing(kNow).hear({.round = round}, 200, 0) == Fault::unexpected);
  }
  for (const Round round : {kNow + 1, kNow + (Round{1} << 32U), kMost - 1, kMost}) {
    CAPTURE(round);
    Hearing node(kNow);
    // A frame ahead waits, and only for its own round.
    const std::vector<std::byte> frame(kFrameHeaderBytes);
    const auto taken = node.inbox.take(
        {.tag = {.round = round}, .piece = {.total = frame.size(), .offset = 0, .bytes = frame}},
        node.ledger);
    REQUIRE(taken.ok());
    CHECK(*taken == 0);
    CHECK_FALSE(node.ledger.has_event());
  }
  for (const ExchangeTag tag : {ExchangeTag{.round = kNow, .phase = 7},
                                ExchangeTag{.round = kNow, .phase = 0, .bucket = 0xFFFFFFFF}}) {
    Hearing node(kNow);
    (void)node.hear(tag, 200, 0);
    CHECK_FALSE(node.ledger.has_event());
  }
}

TEST_CASE("bad input: sequence wrap: numbers and counts of 2^64-1 are no next ones") {
  const auto first = [](const channel_wire::Chunk& chunk) {
    MessageReceiver arrivals(kMostFrame);
    arrivals.said(arrivals.receipt(0));
    return arrivals.take(chunk).ok();
  };
  CHECK(first({.number = 0, .piece = {.total = 20, .offset = 0, .bytes = kTen}}));
  for (const std::uint64_t number : {kMost, kMost - 1, std::uint64_t{1} << 63U, std::uint64_t{1}}) {
    CAPTURE(number);
    CHECK_FALSE(first({.number = number, .piece = {.total = 20, .offset = 0, .bytes = kTen}}));
  }
  for (const std::uint64_t total :
       {kMost, kMost - channel_wire::kMessageCost, kMost - channel_wire::kMessageCost + 1,
        std::uint64_t{1} << 62U, std::uint64_t{0xFFFFFFFF}}) {
    CAPTURE(total);  // its cost wraps
    CHECK_FALSE(first({.number = 0, .piece = {.total = total, .offset = 0, .bytes = kTen}}));
  }
  for (const channel_wire::Receipt receipt :
       {channel_wire::Receipt{kMost, 0}, channel_wire::Receipt{1, kMost},
        channel_wire::Receipt{std::uint64_t{1} << 62U, kMost}}) {
    MessageSender departures(std::chrono::seconds(1));
    departures.add({.head = std::vector<std::byte>(100), .body = {}});
    CHECK_FALSE(departures.take(receipt, MessageSender::Clock::time_point()).ok());
  }
  // The largest allowance is one like any other.
  MessageSender departures(std::chrono::seconds(1));
  departures.add({.head = std::vector<std::byte>(100), .body = {}});
  REQUIRE(departures.take({0, kMost}, MessageSender::Clock::time_point()).ok());
  CHECK(departures.ready());
}

TEST_CASE("bad input: a store's pieces: offset + length that wraps, totals that change") {
  using namespace sotto::internal::store_wire;
  const auto sent = [](std::uint64_t total, std::uint64_t offset) {
    const auto message = make_request(
        {.kind = Kind::set, .key = "model/1", .piece = {.total = 100, .offset = 0, .bytes = kTen}});
    std::vector<std::byte> bytes(message.size());
    std::memcpy(bytes.data(), message.data(), message.size());
    constexpr std::size_t kTotalAt = 1 + 4 + 8;
    std::memcpy(bytes.data() + kTotalAt, &total, sizeof total);
    std::memcpy(bytes.data() + kTotalAt + sizeof total, &offset, sizeof offset);
    return parse_request(bytes).has_value();
  };
  CHECK(sent(100, 0));
  CHECK(sent(100, 90));
  for (const std::uint64_t offset :
       {std::uint64_t{91}, std::uint64_t{1} << 62U, kMost, kMost - 9}) {
    CAPTURE(offset);
    CHECK_FALSE(sent(100, offset));
    CHECK_FALSE(sent(kMost, offset));
  }
  for (const std::uint64_t total : {std::uint64_t{9}, std::uint64_t{kMostStoreValueBytes} + 1,
                                    std::uint64_t{1} << 62U, kMost}) {
    CAPTURE(total);
    CHECK_FALSE(sent(total, 0));
  }
  StoredValues values(10'000);
  REQUIRE(values.set(1, "line", {"model/1", {100, 0, kTen}}).ok());
  CHECK(values.set(1, "line", {"model/1", {101, 10, kTen}}).status().fault() == Fault::malformed);
  REQUIRE(values.set(1, "line", {"model/1", {100, 0, kTen}}).ok());
  CHECK(values.set(1, "line", {"model/1", {100, 5, kTen}}).status().fault() == Fault::malformed);
  CHECK_FALSE(values.set(1, "line", {"model/1", {20'000, 0, kTen}}).ok());  // more than its room
}
#endif

}  // namespace sotto::test::bad_inputs_test
