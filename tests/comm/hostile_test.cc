// Peers and strangers of the zmq transport that break its rules.
#include <array>
#include <deque>
#include <optional>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/philox.h>
#include <sotto/comm/stores.h>

#include "../../comm/internal/meeting/rendezvous.h"
#include "decoys.h"
#include "nodes.h"
#include "raw_peer.h"
#include "support/skip.h"

namespace sotto::test::hostile_test {

namespace {

constexpr std::size_t kMostPayload = 1000;
constexpr std::size_t kMostFrame = kFrameHeaderBytes + kMostPayload;

/// A real rank 0 whose peer, rank 1, is made of bytes.
class Duel {
 public:
  Duel() {
    std::thread connecting([&] {
      auto made = make_transport("zmq", options_for(ring(2), 0, store_, kMostPayload));
      if (made.ok()) {
        node_ = std::move(*made);
      }
    });
    address_ = meet_rank_0(store_, decoys_.address);
    peer_.emplace(address_);
    peer_->send(hello_message(kRun, 1, 0));
    connecting.join();
    REQUIRE(node_ != nullptr);
  }

  RawPeer& peer() { return *peer_; }
  Transport& node() { return *node_; }
  const std::string& address() const { return address_; }

  /// Rank 0 listens for rank 1 in `round`; it sends nothing.
  void listen(Round round) {
    rooms_.emplace_back(kMostFrame);
    Exchange exchange;
    exchange.tag.round = round;
    exchange.receives.push_back({1, rooms_.back()});
    REQUIRE(node_->post(exchange).ok());
  }
  /// Why rank 0 gives up on rank 1.
  std::string reason() {
    for (;;) {
      const auto event = node_->poll(generous());
      REQUIRE_MESSAGE(event.ok(), event.status().message());
      if (event->kind == TransportEvent::Kind::peer_lost) {
        CHECK(event->peer == 1);
        return event->reason;
      }
    }
  }
  void expect_reason(std::string_view part) {
    const auto given = reason();
    CHECK_MESSAGE(given.find(part) != std::string::npos, given);
  }

 private:
  std::shared_ptr<Store> store_ = make_memory_store();
  std::deque<std::vector<std::byte>> rooms_;
  Decoys decoys_;
  std::string address_;
  std::optional<RawPeer> peer_;
  std::unique_ptr<Transport> node_;
};

}  // namespace

TEST_CASE("a peer that keeps the rules is heard, in chunks of any size") {
  if (!have_zmq()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  Duel duel;
  const auto frame = make_frame(1, 0, {.round = 3}, kMostPayload);
  duel.listen(3);
  for (std::size_t offset = 0; offset < frame.size(); offset += 97) {
    const auto size = std::min<std::size_t>(97, frame.size() - offset);
    auto message = chunk_message({.round = 3}, frame.size(), offset, size);
    std::memcpy(message.data() + message.size() - size, frame.data() + offset, size);
    duel.peer().send(message);
  }
  const auto event = duel.node().poll(generous());
  REQUIRE_MESSAGE(event.ok(), event.status().message());
  CHECK(event->kind == TransportEvent::Kind::frame);
  CHECK(event->bytes == frame.size());
}

TEST_CASE("a peer's first broken rule ends it, by name") {
  if (!have_zmq()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const ExchangeTag tag{.round = 5};
  struct Offence {
    std::string_view reason;
    std::vector<std::vector<std::byte>> messages;
  };
  const std::vector<Offence> offences = {
      {"unknown", {{std::byte{9}}}},
      {"unknown", {{}}},
      {"wrong length", {{std::byte{4}, std::byte{0}}}},
      {"wrong length", {{std::byte{3}, std::byte{1}}}},
      {"introduced itself twice", {hello_message(kRun, 1, 0)}},
      {"protocol version", {hello_message(kRun, 1, 0, 3)}},
      {"more credit", {credit_message(1)}},
      {"more credit", {credit_message(0xFFFFFFFF)}},
      {"inside", {chunk_message(tag, 100, 0, 0)}},
      {"inside", {chunk_message(tag, 100, 0, 101)}},
      {"inside", {chunk_message(tag, 100, 101, 1)}},
      {"inside", {chunk_message(tag, 100, ~std::uint64_t{0}, 1)}},
      {"shorter than its header", {chunk_message(tag, 63, 0, 63)}},
      {"due at most", {chunk_message(tag, kMostFrame + 1, 0, 10)}},
      {"due at most", {chunk_message(tag, std::uint64_t{1} << 62, 0, 10)}},
      {"due at most", {chunk_message({.round = 6}, ~std::uint64_t{0}, 0, 10)}},
      {"began a frame at byte 7", {chunk_message(tag, 100, 7, 10)}},
      {"was due", {chunk_message(tag, 100, 0, 10), chunk_message(tag, 100, 20, 10)}},
      {"was due", {chunk_message(tag, 100, 0, 10), chunk_message(tag, 100, 0, 10)}},
      {"was due", {chunk_message(tag, 100, 0, 10), chunk_message(tag, 101, 10, 10)}},
      {"was due", {chunk_message(tag, 100, 0, 10), chunk_message({.round = 6}, 100, 10, 10)}},
      {"nobody awaits", {chunk_message({.round = 4}, 100, 0, 10)}},
      {"frames ahead",
       {chunk_message({.round = 6}, 100, 0, 100), chunk_message({.round = 7}, 100, 0, 100),
        chunk_message({.round = 8}, 100, 0, 100)}},
      {"closed", {chunk_message(tag, 100, 0, 10), bye_message()}},
  };
  for (const Offence& offence : offences) {
    CAPTURE(offence.reason);
    Duel duel;
    duel.listen(5);
    for (const auto& message : offence.messages) {
      duel.peer().send(message);
    }
    duel.expect_reason(offence.reason);
  }
}

TEST_CASE("every truncation of a chunk is refused") {
  if (!have_zmq()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const auto message = chunk_message({.round = 5}, 100, 0, 1);
  for (std::size_t size = 1; size < message.size(); size += 3) {
    CAPTURE(size);
    Duel duel;
    duel.listen(5);
    duel.peer().send(std::span(message).first(size));
    CHECK_FALSE(duel.reason().empty());
  }
}

TEST_CASE("a peer whose connection ends in the middle of anything is lost") {
  if (!have_zmq()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  SUBCASE("in the middle of a frame") {
    Duel duel;
    duel.listen(5);
    duel.peer().send(chunk_message({.round = 5}, 100, 0, 10));
    duel.peer().close();
    duel.expect_reason("without a goodbye");
  }
  SUBCASE("in the middle of a message") {
    Duel duel;
    duel.listen(5);
    duel.peer().send_length(100);
    duel.peer().close();
    duel.expect_reason("without a goodbye");
  }
  SUBCASE("with a message longer than any") {
    Duel duel;
    duel.listen(5);
    duel.peer().send_length(std::uint64_t{1} << 62);
    duel.expect_reason("without a goodbye");
  }
  SUBCASE("while nothing is under way") {
    Duel duel;
    duel.peer().close();
    duel.expect_reason("without a goodbye");
  }
}

TEST_CASE("strangers are not heard, whatever they say, and nobody can take over a rank") {
  if (!have_zmq()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  Duel duel;
  duel.listen(5);
  std::deque<RawPeer> strangers;
  for (const auto& message :
       {hello_message(kRun, 1, 0), hello_message(kRun + 1, 1, 0), hello_message(kRun, 7, 0),
        hello_message(kRun, 1, 1), hello_message(kRun, 0, 0), hello_message(kRun, -1, 0),
        chunk_message({.round = 5}, 100, 0, 100), credit_message(7), bye_message(),
        std::vector<std::byte>{}}) {
    strangers.emplace_back(duel.address());
    strangers.back().send(message);
    strangers.back().send(chunk_message({.round = 5}, 100, 0, 100));
  }
  const auto nothing = duel.node().poll(Deadline::after(std::chrono::milliseconds(50)));
  CHECK(nothing.status().fault() == Fault::deadline);
  strangers.clear();
  const auto frame = make_frame(1, 0, {.round = 5}, 100);
  auto message = chunk_message({.round = 5}, frame.size(), 0, frame.size());
  std::memcpy(message.data() + message.size() - frame.size(), frame.data(), frame.size());
  duel.peer().send(message);
  const auto event = duel.node().poll(generous());
  REQUIRE_MESSAGE(event.ok(), event.status().message());
  CHECK(event->kind == TransportEvent::Kind::frame);
  CHECK(event->bytes == frame.size());
}

TEST_CASE("garbage at the port does not disturb the peers") {
  if (!have_zmq()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const std::uint64_t seed = 20;
  CAPTURE(seed);
  const Graph graph = ring(2);
  const auto store = std::make_shared<KeepingStore>();
  spawn(3, [&](Rank rank) {
    if (rank < 2) {
      const auto transport = connect("zmq", options_for(graph, rank, store, 1000));
      for (Round round = 0; round < 200; ++round) {
        swap_frames(*transport, graph, rank, {.round = round}, 1000);
      }
      return;
    }
    RandomStream random({.seed = seed});
    const auto address = listening_address(*store, kRun, 0, 1);
    for (int i = 0; i < 50; ++i) {
      std::vector<std::byte> garbage(random.below(4096));
      for (auto& byte : garbage) {
        byte = static_cast<std::byte>(random.next_u32());
      }
      RawConnection(address).write(garbage);  // refused once the nodes are done
    }
  });
}

}  // namespace sotto::test::hostile_test
