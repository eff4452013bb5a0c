// The secured transport against those who must not be heard: strangers, the revoked, thieves of
// identities, those who may only listen, and those who sit on the wire.
#ifdef SOTTO_HAVE_ZMQ
#include <algorithm>
#include <array>
#include <deque>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/philox.h>
#include <sotto/comm/stores.h>

#include "../../comm/zmq/socket/admission_probe.h"
#include "bad_link.h"
#include "outsider.h"

namespace sotto::test::security_test {

namespace {

constexpr std::size_t kPayload = 100;

/// Rank 0 of a ring of two, met by an honest rank 1.
struct Pair {
  Pair() {
    node.start();
    rank_1.send(hello_message(kRun, 1, 0));
    const Status ready = node.ready();
    REQUIRE_MESSAGE(ready.ok(), ready.message());
  }
  GuardedNode node{ring(2)};
  Outsider rank_1{node.endpoint(), keys_of(1)};
};

std::string words_of(std::string_view mechanism, char minor) {
  std::string words("\xff\0\0\0\0\0\0\0\0\x7f\x03", 11);
  words += minor;
  words += mechanism;
  words.append(20 - mechanism.size() + 32, '\0');
  return words;
}

/// What a client of each version and mechanism without encryption says, up to a hello as rank 1.
std::vector<std::string> plain_conversations() {
  const auto hello = hello_message(kRun, 1, 0);
  const std::string body(reinterpret_cast<const char*>(hello.data()), hello.size());
  const auto length = static_cast<char>(body.size());
  const std::string ready(
      "\x04\x1c\x05READY\x0bSocket-Type\0\0\0\x06"
      "DEALER",
      30);
  const std::string v2 = std::string("\0", 1) + length + body;
  const std::string login("\x04\x0c\x05HELLO\x02me\x02me", 14);
  return {words_of("NULL", 1) + ready + v2,
          words_of("NULL", 0) + ready + v2,
          words_of("PLAIN", 1) + login + v2,
          words_of("CURVE", 1) + ready + v2,
          std::string("\xff\0\0\0\0\0\0\0\x01\x7f\x01\x05\0\0", 14) + v2,
          std::string("\x01\0", 2) + static_cast<char>(length + 1) + std::string("\0", 1) + body};
}

}  // namespace

TEST_CASE("unknown key: not one message is delivered") {
  Pair pair;
  pair.node.listen(1, 5);
  Outsider stranger(pair.node.endpoint(), make_key_pair());
  stranger.send(hello_message(kRun, 1, 0));
  stranger.send_frame(1, 5, kPayload);
  CHECK_FALSE(stranger.let_in());
  pair.node.expect_nothing();
  pair.rank_1.send_frame(1, 5, kPayload);
  pair.node.expect_frame(1, 5, kPayload);
}

TEST_CASE("unknown key: a node does not start with a stranger for its peer") {
  GuardedNode node(ring(2));
  node.start();
  Outsider stranger(node.endpoint(), make_key_pair());
  stranger.send(hello_message(kRun, 1, 0));
  CHECK_FALSE(stranger.let_in());
  auto lines = node.peers->peers();
  lines.pop_back();
  node.peers->update_allow_list(lines);  // ends the wait for rank 1
  const Status status = node.ready();
  CHECK(status.fault() == Fault::peer_lost);
  CHECK_MESSAGE(status.message().find("node 1") != std::string::npos, status.message());
}

TEST_CASE("plain client: neither ZeroMQ's own nor raw ZMTP of any version is heard") {
  Pair pair;
  pair.node.listen(1, 5);
  Outsider plain(pair.node.endpoint(), std::nullopt);
  plain.send(hello_message(kRun, 1, 0));
  plain.send_frame(1, 5, kPayload);
  CHECK_FALSE(plain.let_in());
  for (const auto& words : plain_conversations()) {
    RawConnection raw(pair.node.endpoint());
    REQUIRE(raw.connected());
    raw.write(std::as_bytes(std::span(words)));
    CHECK(raw.read_to_end() <= 64);  // a greeting at most, and the connection is closed
  }
  pair.node.expect_nothing();
  pair.rank_1.send_frame(1, 5, kPayload);
  pair.node.expect_frame(1, 5, kPayload);
}

TEST_CASE("stolen identity: a listed key speaks for its own rank only") {
  GuardedNode node(complete(3));
  node.start();
  Outsider thief(node.endpoint(), keys_of(2));
  thief.send(hello_message(kRun, 1, 0));
  thief.send_frame(1, 5, kPayload);
  thief.send(hello_message(kRun, 2, 0));  // on the same connection, so it comes after
  Outsider rank_1(node.endpoint(), keys_of(1));
  rank_1.send(hello_message(kRun, 1, 0));
  const Status ready = node.ready();  // had the thief been taken for rank 1, rank 2 were missing
  REQUIRE_MESSAGE(ready.ok(), ready.message());
  node.listen(1, 5);
  node.expect_nothing();
  rank_1.send_frame(1, 5, kPayload);
  node.expect_frame(1, 5, kPayload);
  node.listen(2, 6);
  thief.send_frame(2, 6, kPayload);
  auto event = node.node().poll(generous());
  REQUIRE(event.ok());
  CHECK(event->kind == TransportEvent::Kind::exchange_done);  // round 5's
  node.expect_frame(2, 6, kPayload);
}

TEST_CASE("stolen identity: a second connection does not speak for a rank that is there") {
  Pair pair;
  pair.node.listen(1, 5);
  Outsider second(pair.node.endpoint(), keys_of(1));
  second.send(hello_message(kRun, 1, 0));
  second.send_frame(1, 5, kPayload);
  CHECK(second.let_in());
  pair.node.expect_nothing();
  pair.rank_1.send_frame(1, 5, kPayload);
  pair.node.expect_frame(1, 5, kPayload);
}

TEST_CASE("revoked key: nothing more is delivered, the peer is lost, and it cannot come back") {
  Pair pair;
  pair.node.listen(1, 5);
  pair.rank_1.send_frame(1, 5, kPayload);
  pair.node.expect_frame(1, 5, kPayload);
  pair.node.listen(1, 6);
  auto lines = pair.node.peers->peers();
  const TrustedPeer before = lines.back();
  SUBCASE("its line is gone") { lines.pop_back(); }
  SUBCASE("its rank has another key") { lines.back().key = keys_of(7).public_key; }
  SUBCASE("it may not send any more") { lines.back().may_send = false; }
  pair.node.peers->update_allow_list(lines);
  pair.rank_1.send_frame(1, 6, kPayload);
  pair.node.expect_loss(1, "does not trust it any more");
  pair.node.expect_nothing();
  if (lines.size() == 1 || lines.back().key != before.key) {
    Outsider again(pair.node.endpoint(), keys_of(1));
    CHECK_FALSE(again.let_in());
  }
}

TEST_CASE("revoked key: it is noticed while the node waits, and a new key is admitted") {
  Pair pair;
  pair.node.listen(1, 5);
  std::thread operating([&] {
    auto lines = pair.node.peers->peers();
    lines.back().key = keys_of(7).public_key;
    pair.node.peers->update_allow_list(lines);
  });
  pair.node.expect_loss(1, "does not trust it any more");
  operating.join();
  Outsider rotated(pair.node.endpoint(), keys_of(7));
  CHECK(rotated.let_in());
}

TEST_CASE("one-sided trust: a peer that is only sent to may take credit, and say nothing else") {
  GuardedNode node(graph_of(2, {{0, 1}}));
  node.start();
  Outsider rank_1(node.endpoint(), keys_of(1));
  rank_1.send(hello_message(kRun, 1, 0));
  const Status ready = node.ready();
  REQUIRE_MESSAGE(ready.ok(), ready.message());
  const auto frame = make_frame(0, 1, {.round = 1}, kPayload);
  REQUIRE(node.node().post({.tag = {.round = 1}, .sends = {{1, frame}}, .receives = {}}).ok());
  const auto done = node.node().poll(generous());
  REQUIRE(done.ok());
  CHECK(done->kind == TransportEvent::Kind::exchange_done);
  rank_1.send(credit_message(1));
  rank_1.send_frame(1, 1, kPayload);
  node.expect_loss(1, "nobody listens to it");
}

TEST_CASE("one-sided trust: a graph along edges that are not trusted is refused") {
  auto options = options_for(ring(3), 0, make_memory_store(), kPayload);
  const auto check_refused = [&](std::string_view part, const std::vector<TrustedPeer>& lines) {
    options.security = Security{keys_of(0), std::make_shared<AllowList>(lines)};
    try {
      (void)make_transport("zmq", options);
      FAIL_CHECK("not refused");
    } catch (const Error& error) {
      CHECK_MESSAGE(std::string_view(error.what()).find(part) != std::string_view::npos,
                    error.what());
    }
  };
  auto lines = lines_of(3);
  lines[1].may_send = false;
  check_refused("says may_send no", lines);
  lines[1] = {.rank = 1,
              .name = "",
              .key = keys_of(1).public_key,
              .address = {},
              .may_send = true,
              .send_to = false};
  check_refused("says send_to no", lines);
  lines.erase(lines.begin() + 1);
  check_refused("names no such rank", lines);
  lines = lines_of(3);
  lines[0].key = make_key_pair().public_key;
  check_refused("gives rank 0 another key", lines);
  lines = lines_of(3);
  std::swap(lines[0].key, lines[2].key);
  check_refused("key", lines);
  lines = lines_of(3);
  lines[1].address = "127.0.0.1:1";
  check_refused("one for each, or for none", lines);
  for (const auto& name : available_transports()) {
    if (name != "zmq") {
      CHECK_THROWS_AS((void)make_transport(name, options), Error);
    }
  }
}

TEST_CASE(
    "no ZAP handler: refused to start, and a door that does not hold is noticed, whatever is wrong "
    "with it") {
  const KeyPair keys = make_key_pair();
  zmq::context_t context;
  zmq::socket_t router(context, zmq::socket_type::router);
  std::optional<internal::Authenticator> gatekeeper;
  std::string expected;
  SUBCASE("guarded, and nobody decides") {
    internal::set_curve_server(router, keys);
    expected = "the node's own key is not let in";
  }
  SUBCASE("encrypted, and without a domain: ZeroMQ takes any key") {
    const int on = 1;
    const auto secret = keys.private_key.bytes();
    REQUIRE(zmq_setsockopt(router.handle(), ZMQ_CURVE_SERVER, &on, sizeof on) == 0);
    REQUIRE(zmq_setsockopt(router.handle(), ZMQ_CURVE_SECRETKEY, secret.data(), secret.size()) ==
            0);
    expected = "a key that nobody knows is not refused";
  }
  SUBCASE("a handler that takes everybody") {
    gatekeeper.emplace(context, [](std::string_view, std::string_view) { return true; });
    internal::set_curve_server(router, keys);
    expected = "a key that nobody knows is not refused";
  }
  SUBCASE("a handler that takes nobody") {
    gatekeeper.emplace(context, [](std::string_view, std::string_view) { return false; });
    internal::set_curve_server(router, keys);
    expected = "the node's own key is not let in";
  }
  SUBCASE("plain text") { expected = "the node's own key is not let in"; }
  SUBCASE("as it is meant") {
    gatekeeper.emplace(context, [&](std::string_view key, std::string_view) {
      return key == keys.public_key.text();
    });
    internal::set_curve_server(router, keys);
  }
  router.bind("tcp://127.0.0.1:*");
  const Status status = internal::probe_admission(router.get(zmq::sockopt::last_endpoint), keys);
  CHECK(status.ok() == expected.empty());
  CHECK_MESSAGE(status.message().find(expected) != std::string::npos, status.message());
}

TEST_CASE("a refused node asks again until its timeout, and is told what it was told") {
  std::string why;
  for (std::chrono::milliseconds patience(300); why.empty() && patience.count() < 60'000;
       patience *= 4) {
    GuardedNode node(ring(2));  // has another key for rank 1 than rank 1
    auto lines = node.peers->peers();
    lines[1].key = keys_of(5).public_key;
    node.peers->update_allow_list(lines);
    node.start(std::chrono::hours(1));
    const auto endpoint = node.endpoint();
    const int port = std::stoi(endpoint.substr(endpoint.rfind(':') + 1));
    auto options = on_ring(1, {port, free_port()}, 0);
    options.connect_timeout = patience;
    const auto transport = make_transport("zmq", options);
    REQUIRE_FALSE(transport.ok());
    CHECK(transport.status().fault() == Fault::deadline);
    const auto& message = transport.status().message();
    why = message.find("does not admit this node's key") != std::string::npos ? message : "";
    lines.pop_back();
    node.peers->update_allow_list(lines);  // ends its wait
    CHECK_FALSE(node.ready().ok());
  }
  CHECK_FALSE(why.empty());
}

TEST_CASE("what answers with another key than the list says is no peer") {
  std::string why;
  // How long the trial of the door takes is the machine's affair.
  for (std::chrono::milliseconds patience(300); why.empty() && patience.count() < 60'000;
       patience *= 4) {
    GuardedNode node(ring(2));
    auto lines = node.peers->peers();
    lines[1].key = keys_of(5).public_key;
    node.peers->update_allow_list(lines);
    node.start(patience);
    const Status status = node.ready();
    CHECK(status.fault() == Fault::deadline);
    const auto& message = status.message();
    why = message.find("another key than the list") != std::string::npos ? message : "";
  }
  CHECK_FALSE(why.empty());
}

TEST_CASE("replay: what was recorded on the wire says nothing a second time") {
  const std::array<int, 2> ports = {free_port(), free_port()};
  BadLink relay(ports[0]);
  relay.record();
  const auto local = make_memory_store();
  spawn(2, [&](Rank rank) {
    const auto transport = connect("zmq", on_ring(rank, ports, relay.port()));
    swap_frames(*transport, ring(2), rank, {.round = 0}, 3000);
    if (rank == 1) {
      REQUIRE(local->get("replayed", generous()).ok());
    } else {
      // Each connection's whole conversation, and the frames alone behind a fresh greeting.
      for (const auto& words : relay.heard()) {
        RawConnection again(fmt::format("tcp://127.0.0.1:{}", ports[0]));
        REQUIRE(again.connected());
        again.write(words);
        (void)again.read_to_end();  // the node closes it: the handshake does not fit
      }
      const auto nothing = transport->poll(Deadline::after(std::chrono::milliseconds(50)));
      CHECK(nothing.status().fault() == Fault::deadline);
      REQUIRE(local->set("replayed", {}).ok());
    }
    swap_frames(*transport, ring(2), rank, {.round = 1}, 3000);
  });
}

TEST_CASE("replay: a peer that repeats a frame of a round that is over is lost") {
  Pair pair;
  pair.node.listen(1, 5);
  pair.rank_1.send_frame(1, 5, kPayload);
  pair.node.expect_frame(1, 5, kPayload);
  pair.node.listen(1, 6);
  pair.rank_1.send_frame(1, 5, kPayload);
  pair.node.expect_loss(1, "nobody awaits");
}

TEST_CASE("tampering: a flipped bit ends the connection, and no frame is made of it") {
  const std::array<int, 2> ports = {free_port(), free_port()};
  BadLink relay(ports[0]);
  const auto local = make_memory_store();
  spawn(2, [&](Rank rank) {
    const Swap swap(ring(2), rank, {.round = 1}, 3000);
    const auto transport = connect("zmq", on_ring(rank, ports, relay.port()));
    swap_frames(*transport, ring(2), rank, {.round = 0}, 3000);
    if (rank == 0) {
      REQUIRE(local->set("heard", {}).ok());
    } else {
      REQUIRE(local->get("heard", generous()).ok());  // nothing of round 0 is on its way any more
      relay.tamper();
    }
    (void)transport->post(swap.exchange);  // the other may be gone already
    for (bool lost = false; !lost;) {
      const auto event = transport->poll(generous());
      REQUIRE_MESSAGE(event.ok(), event.status().message());
      REQUIRE((rank == 1 || event->kind != TransportEvent::Kind::frame));
      lost = event->kind == TransportEvent::Kind::peer_lost;
    }
  });
}

TEST_CASE("what passes over the wire is not what the nodes say") {
  const std::array<int, 2> ports = {free_port(), free_port()};
  BadLink relay(ports[0]);
  relay.record();
  const auto frame = make_frame(1, 0, {.round = 0}, 3000);
  spawn(2, [&](Rank rank) {
    const auto transport = connect("zmq", on_ring(rank, ports, relay.port()));
    swap_frames(*transport, ring(2), rank, {.round = 0}, 3000);
  });
  const auto contains = [](const std::vector<std::byte>& words, std::span<const std::byte> part) {
    return std::search(words.begin(), words.end(), part.begin(), part.end()) != words.end();
  };
  std::size_t heard = 0;
  for (const auto& words : relay.heard()) {
    heard += words.size();
    CHECK_FALSE(contains(words, std::span(frame).subspan(kFrameHeaderBytes, 16)));
    CHECK_FALSE(contains(words, std::span(frame).first(8)));
    CHECK_FALSE(contains(words, keys_of(1).public_key.bytes()));
  }
  CHECK(heard > frame.size());
}

TEST_CASE("too many connections: the door is shut while they stay, and opens when they go") {
  zmq::context_t context;
  internal::Listener listener(context, "tcp://127.0.0.1:*", {1024, 8}, nullptr);
  const auto wait_for = [&](std::size_t count) {
    const auto deadline = generous();
    while (listener.connections() != count) {
      REQUIRE_FALSE(deadline.expired());
      zmq::pollitem_t item = {listener.monitor().handle(), 0, ZMQ_POLLIN, 0};
      zmq::poll(&item, 1, std::chrono::milliseconds(100));
      (void)listener.ended();
    }
  };
  std::deque<RawConnection> idle;
  for (std::size_t count = 1; count <= 8; ++count) {
    idle.emplace_back(listener.endpoint());
    wait_for(count);
  }
  std::thread late([&] { CHECK(RawConnection(listener.endpoint()).connected()); });
  zmq::pollitem_t item = {listener.monitor().handle(), 0, ZMQ_POLLIN, 0};
  CHECK(zmq::poll(&item, 1, std::chrono::milliseconds(50)) == 0);
  CHECK(listener.connections() == 8);
  idle.clear();
  wait_for(0);
  late.join();  // its system has tried again
}
#endif

}  // namespace sotto::test::security_test
