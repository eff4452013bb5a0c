// The end of a connection: it is named once all that came before can be received, and not earlier;
// and a channel whose peer dies loses nothing that had come.
#ifdef SOTTO_HAVE_ZMQ
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/bytes.h>
#include <sotto/base/file_descriptor.h>

#include "../../comm/zmq/socket/authenticator.h"
#include "../../comm/zmq/socket/connection_end.h"
#include "../../comm/zmq/socket/listener.h"
#include "../../comm/zmq/socket/peer_connection.h"
#include "forked_process.h"
#include "raw_peer.h"
#include "sites.h"

namespace sotto::test::connection_end_test {

using namespace std::chrono_literals;

namespace {

using internal::ConnectionEnd;
using internal::Listener;
using internal::OpenFile;

std::array<FileDescriptor, 2> socket_pair() {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

/// A client in plain text that says `count` messages, the first its number, and ends.
void say_and_end(const std::string& endpoint, std::uint64_t count) {
  zmq::context_t context;
  zmq::socket_t client(context, zmq::socket_type::dealer);
  client.set(zmq::sockopt::linger, 60'000);
  client.set(zmq::sockopt::sndhwm, 0);
  client.connect(endpoint);
  for (std::uint64_t k = 0; k < count; ++k) {
    client.send(zmq::buffer(&k, sizeof k), zmq::send_flags::none);
  }
}

/// Numbers of the messages that are there now.
std::vector<std::uint64_t> drain(Listener& listener) {
  std::vector<std::uint64_t> numbers;
  while (const auto incoming = listener.receive()) {
    REQUIRE(incoming->body.size() == sizeof(std::uint64_t));
    std::memcpy(&numbers.emplace_back(), incoming->body.data(), sizeof(std::uint64_t));
  }
  return numbers;
}

void wait_for_news(Listener& listener) {
  zmq::pollitem_t items[] = {{listener.socket().handle(), 0, ZMQ_POLLIN, 0},
                             {listener.monitor().handle(), 0, ZMQ_POLLIN, 0}};
  zmq::poll(items, 2, listener.ending() ? internal::kEndLook : 100ms);
}

/// Rank 0 of two, in a process of its own: says `count` messages, and dies once it is answered.
ForkedProcess start_teller(const ChannelOptions& options, std::uint64_t count) {
  return ForkedProcess([&, count] {
    const auto made = make_channels(options);
    for (bool told = false; made.ok();) {
      const auto event = (*made)->poll(generous());
      if (event.ok() && event->kind == ChannelEvent::Kind::message) {
        ::raise(SIGKILL);
      }
      for (std::uint64_t k = 0; event.ok() && !told && k < count; ++k) {
        (void)(*made)->send(1, message_of(k, 1'000));
      }
      told = told || event.ok();
    }
  });
}

}  // namespace

TEST_CASE("the end of a connection is complete once its descriptor is closed, or another's") {
  const ConnectionEnd::Time now{};
  auto [one, other] = socket_pair();
  const int number = one.get();
  const auto file = OpenFile::at(number);
  REQUIRE(file);
  CHECK(file != OpenFile::at(other.get()));
  const ConnectionEnd end(number, file, now);
  CHECK_FALSE(end.complete(now));
  CHECK(end.complete(now + internal::kSettle));  // in any case
  REQUIRE(::dup2(other.get(), number) == number);
  CHECK(end.complete(now));  // the number is another file's
  CHECK(one.close());
  CHECK_FALSE(OpenFile::at(number));
  CHECK(end.complete(now));
}

TEST_CASE("a listener names an end when all that came before can be received") {
  // More messages than ZeroMQ holds, so that some come while those before are taken.
  for (const std::uint64_t count : {1U, 3U, 40U, 3'000U}) {
    for (int life = 0; life < 10; ++life) {
      CAPTURE(count);
      zmq::context_t context;
      Listener listener(context, "tcp://127.0.0.1:*", {1024, 8}, nullptr);
      say_and_end(listener.endpoint(), count);
      std::vector<std::uint64_t> heard;
      const auto hear = [&] {
        const auto more = drain(listener);
        heard.insert(heard.end(), more.begin(), more.end());
      };
      for (const auto deadline = generous(); listener.ended().empty(); hear()) {
        REQUIRE_FALSE(deadline.expired());
        wait_for_news(listener);
      }
      hear();  // once: nothing may come later
      REQUIRE(heard.size() == count);
      for (std::uint64_t k = 0; k < count; ++k) {
        CHECK(heard[k] == k);
      }
      CHECK(listener.connections() == 0);
      CHECK_FALSE(listener.ending());
    }
  }
}

TEST_CASE("what came on this side's connection is received after its end") {
  zmq::context_t context;
  const KeyPair own = keys_of(1);
  const KeyPair keys = keys_of(0);
  constexpr std::uint64_t kCount = 3;
  std::optional<internal::PeerConnection> connection;
  const auto look_until = [&](internal::PeerConnection::State state) {
    for (const auto deadline = generous(); connection->look() != state;) {
      REQUIRE_FALSE(deadline.expired());
      zmq::pollitem_t item = {connection->monitor()->handle(), 0, ZMQ_POLLIN, 0};
      zmq::poll(&item, 1, connection->ending() ? internal::kEndLook : 100ms);
    }
  };
  {
    zmq::context_t peer;
    const internal::Authenticator everybody(peer, [](auto, auto) { return true; });
    Listener listener(peer, "tcp://127.0.0.1:*", {1024, 8}, &keys);
    listener.linger(60'000);
    connection.emplace(
        context, internal::ConnectionOptions{.endpoint = listener.endpoint(),
                                             .max_message_bytes = 1024,
                                             .curve = internal::CurveClient{own, keys.public_key},
                                             .directions = internal::Directions::both,
                                             .participant = "site"});
    look_until(internal::PeerConnection::State::open);
    zmq::message_t none;
    CHECK_FALSE(connection->receive(none));  // ZeroMQ is to wake this side
    REQUIRE(connection->send(message_of(0, 8)));
    for (const auto deadline = generous();;) {
      REQUIRE_FALSE(deadline.expired());
      if (const auto incoming = listener.receive()) {
        for (std::uint64_t k = 0; k < kCount; ++k) {
          REQUIRE(listener.send(incoming->route, zmq::message_t(&k, sizeof k)));
        }
        break;
      }
      wait_for_news(listener);
    }
  }
  // Nobody touches the socket before its connection has ended.
  look_until(internal::PeerConnection::State::broken);
  for (std::uint64_t k = 0; k < kCount; ++k) {
    zmq::message_t message;
    REQUIRE(connection->receive(message));
    REQUIRE(message.size() == sizeof k);
    CHECK(std::memcmp(message.data(), &k, sizeof k) == 0);
  }
  zmq::message_t more;
  CHECK_FALSE(connection->receive(more));
}

TEST_CASE("SIGKILL of a peer that speaks on this side's connection: what had come is delivered") {
  const Sites sites(2);
  auto lines = sites.lines();
  lines[1].address.clear();  // site 1 only dials, and its one connection carries both directions
  auto options = sites.options(1);
  options.security.peers = std::make_shared<AllowList>(lines);
  options.timeout = 1h;
  auto other = sites.options(0);
  other.security.peers = std::make_shared<AllowList>(lines);
  constexpr std::uint64_t kCount = 20;
  for (int life = 0; life < 5; ++life) {
    const ForkedProcess teller = start_teller(other, kCount);  // before there are threads
    SiteEnd site(options);
    site.expect_up(0);
    CHECK(site.traffic(0).one_connection);
    for (std::uint64_t k = 0; k < kCount; ++k) {
      site.expect_message(0, message_of(k, 1'000));
    }
    site.send(0, message_of(1, 1));
    site.expect_down(0, "connection ended");
  }
}

TEST_CASE("strangers whose connections come and go end nobody's channel") {
  const Sites sites(2);
  MetSites met(sites.options(0), sites.options(1));
  for (int k = 0; k < 300; ++k) {
    const RawConnection stranger("tcp://" + sites.lines()[0].address);
    CHECK(stranger.connected());
    if (k % 50 == 0) {
      met.a.send(1, message_of(static_cast<std::uint64_t>(k), 1'000));
      met.b.expect_message(0, message_of(static_cast<std::uint64_t>(k), 1'000));
    }
  }
  met.b.send(0, message_of(7, 1'000));
  met.a.expect_message(1, message_of(7, 1'000));
  CHECK(met.a.traffic(1).ups == 1);
  CHECK(met.b.traffic(0).ups == 1);
}
#endif

}  // namespace sotto::test::connection_end_test
