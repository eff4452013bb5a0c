// ConnectionLimiter: which connections it ends when a listening socket has no room left, and which
// attempts to connect the kernel drops.
#ifdef SOTTO_HAVE_ZMQ
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/file_descriptor.h>

#include "../../comm/internal/address/tcp.h"
#include "../../comm/zmq/socket/connection_limiter.h"
#include "../../comm/zmq/socket/listening_socket.h"
#include "nodes.h"
#include "support/free_port.h"

namespace sotto::test::connection_limiter_test {

using sotto::internal::ConnectionLimiter;
using sotto::internal::DropRule;
using sotto::internal::ListeningSocket;
using sotto::internal::Source;
using sotto::internal::source_of;
using namespace std::chrono_literals;

namespace {

constexpr ConnectionLimiter::Time kStart{};

Source ipv4(std::uint64_t address) { return {false, address}; }

sockaddr_storage parsed(const std::string& text) {
  sockaddr_storage storage{};
  sockaddr_in ipv4{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {}, .sin_zero = {}};
  sockaddr_in6 ipv6{};
  ipv6.sin6_family = AF_INET6;
  if (::inet_pton(AF_INET, text.c_str(), &ipv4.sin_addr) == 1) {
    std::memcpy(&storage, &ipv4, sizeof ipv4);
  } else {
    REQUIRE(::inet_pton(AF_INET6, text.c_str(), &ipv6.sin6_addr) == 1);
    std::memcpy(&storage, &ipv6, sizeof ipv6);
  }
  return storage;
}

/// A socket that has begun to connect to 127.0.0.1 from an address of this host.
FileDescriptor dial(int port, const std::string& from) {
  FileDescriptor made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  auto source = parsed(from);
  REQUIRE(::bind(made.get(), reinterpret_cast<const sockaddr*>(&source), sizeof(sockaddr_in)) == 0);
  auto to = parsed("127.0.0.1");
  sockaddr_in address{};
  std::memcpy(&address, &to, sizeof address);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  (void)::connect(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  return made;
}

bool connected(const FileDescriptor& socket, std::chrono::milliseconds patience) {
  return internal::await_ready(socket.get(), POLLOUT, Deadline::after(patience));
}

}  // namespace

TEST_CASE("a source is an IPv4 address or half of an IPv6 address") {
  CHECK(source_of(parsed("10.0.0.1")) == ipv4(0x0A000001));
  CHECK(source_of(parsed("::ffff:10.0.0.1")) == ipv4(0x0A000001));
  CHECK(source_of(parsed("2001:db8:1:2:3::4")) == Source{true, 0x20010DB800010002});
  CHECK(source_of(parsed("2001:db8:1:2:ffff::")) == source_of(parsed("2001:db8:1:2::1")));
  CHECK(internal::source_of_endpoint("tcp://10.0.0.1:9001") == ipv4(0x0A000001));
  CHECK_FALSE(internal::source_of_endpoint("tcp://host.example:9001"));
  CHECK(source_of(parsed("2001:db8:1:3::1")) != source_of(parsed("2001:db8:1:2::1")));
}

TEST_CASE("a full listener ends the oldest connection of the source with the most of them") {
  ConnectionLimiter limiter({.strangers = 4});
  for (int i = 0; i < 4; ++i) {
    limiter.arrived(i, ipv4(1), kStart);
  }
  CHECK(limiter.crowded().empty());
  limiter.arrived(4, ipv4(2), kStart);
  CHECK(limiter.crowded() == std::vector<int>{0});
  CHECK(limiter.crowded().empty());  // each is named once
  limiter.arrived(5, ipv4(1), kStart);
  CHECK(limiter.crowded() == std::vector<int>{1});
  limiter.arrived(6, ipv4(2), kStart);
  limiter.arrived(7, ipv4(2), kStart);
  CHECK(limiter.crowded() ==
        std::vector<int>{2, 4});  // two of three, then the older of two and two
  CHECK(limiter.waiting() == 4);
  CHECK(limiter.cut() == 4);
}

TEST_CASE("one connection from a source of its own outlasts any number of others") {
  ConnectionLimiter limiter({.strangers = 16});
  limiter.arrived(10'000, ipv4(7), kStart);
  for (int i = 0; i < 9'000; ++i) {
    limiter.arrived(i, ipv4(static_cast<std::uint64_t>(100 + i % 15)), kStart);
    for (const int named : limiter.crowded()) {
      REQUIRE(named != 10'000);
    }
  }
  CHECK(limiter.waiting() == 16);
}

TEST_CASE("connections that end without a proof are counted, others are not") {
  ConnectionLimiter limiter({.strangers = 2});
  const ConnectionLimiter::Time now{};
  const Source one = {.ipv6 = false, .prefix = 1};
  limiter.arrived(1, one, now);
  limiter.arrived(2, one, now);
  limiter.proved(2, "key");
  limiter.ended(1);
  limiter.ended(2);
  limiter.ended(3);  // never came
  CHECK(limiter.left() == 1);
  const Source two = {.ipv6 = false, .prefix = 2};  // no peer's
  for (int connection = 10; connection < 14; ++connection) {
    limiter.arrived(connection, two, now);
  }
  for (const int connection : limiter.crowded()) {
    limiter.ended(connection);
  }
  CHECK(limiter.cut() == 2);
  CHECK(limiter.left() == 1);
}

TEST_CASE("who has proved a key takes no room of strangers, and a number may come again") {
  ConnectionLimiter limiter({.strangers = 2});
  limiter.arrived(1, ipv4(1), kStart);
  limiter.proved(1, "key");
  limiter.arrived(2, ipv4(1), kStart);
  limiter.arrived(3, ipv4(1), kStart);
  CHECK(limiter.waiting() == 2);
  CHECK(limiter.crowded().empty());
  limiter.ended(2);
  limiter.ended(2);
  CHECK(limiter.waiting() == 1);
  limiter.arrived(3, ipv4(2), kStart);  // its end was not seen
  CHECK(limiter.waiting() == 1);
  limiter.ended(1);
  CHECK(limiter.waiting() == 1);
}

TEST_CASE("sources of peers have room of their own: by the list, or by where a key came from") {
  ConnectionLimiter limiter({.strangers = 2, .each_peer = 3});
  limiter.expect({ipv4(1)});
  limiter.arrived(100, ipv4(2), kStart);
  limiter.proved(100, "key");  // from now on its source is a peer's
  int number = 0;
  for (const std::uint64_t source : {1U, 2U}) {
    for (int i = 0; i < 3; ++i) {
      limiter.arrived(number++, ipv4(source), kStart);
    }
  }
  CHECK(limiter.crowded().empty());
  for (int i = 0; i < 50; ++i) {
    limiter.arrived(200 + i, ipv4(static_cast<std::uint64_t>(10 + i)), kStart);
  }
  auto named = limiter.crowded();
  CHECK(named.size() == 48);
  CHECK(std::ranges::none_of(named, [](int connection) { return connection < 100; }));
  // Beyond that room they are like others: a peer's address is not a way to crowd a listener.
  for (int i = 0; i < 10; ++i) {
    limiter.arrived(300 + i, ipv4(1), kStart);
  }
  named = limiter.crowded();
  CHECK(named.size() == 10);
  CHECK(limiter.waiting() == 8);
}

TEST_CASE("what comes too fast is dropped until the next window: by source, strangers first") {
  ConnectionLimiter limiter({.source_arrivals = 3, .stranger_arrivals = 5});
  limiter.expect({ipv4(1), ipv4(2)});
  CHECK(limiter.rule(kStart) == DropRule());
  CHECK_FALSE(limiter.next_change());
  for (int i = 0; i < 3; ++i) {
    limiter.arrived(i, ipv4(9), kStart);
  }
  CHECK(limiter.rule(kStart) == DropRule{true, {ipv4(9)}});
  CHECK(limiter.next_change() == kStart + ConnectionLimiter::kWindow);
  limiter.arrived(10, ipv4(8), kStart);
  limiter.arrived(11, ipv4(7), kStart);
  for (int i = 20; i < 23; ++i) {
    limiter.arrived(i, ipv4(2), kStart);
  }
  // Only the sources of peers get in, and of those not the one that came often enough.
  CHECK(limiter.rule(kStart) == DropRule{false, {ipv4(1)}});
  CHECK(limiter.rule(kStart + ConnectionLimiter::kWindow) == DropRule());
  CHECK_FALSE(limiter.next_change());
}

TEST_CASE("the kernel drops attempts of the sources that a rule names, and no packet of others") {
  const int port = free_port();
  ListeningSocket socket("tcp://127.0.0.1:" + std::to_string(port));
  const FileDescriptor before = dial(port, "127.0.0.3");
  REQUIRE(connected(before, 10s));
  socket.admit({true, {ipv4(0x7F000003), Source{true, 5}}});
  const FileDescriptor dropped = dial(port, "127.0.0.3");
  const FileDescriptor other = dial(port, "127.0.0.4");
  CHECK(connected(other, 10s));
  CHECK_FALSE(connected(dropped, 0ms));
  // What was accepted under a rule, which it inherits, is not harmed by it.
  const FileDescriptor here(::accept(socket.descriptor(), nullptr, nullptr));
  const FileDescriptor there(::accept(socket.descriptor(), nullptr, nullptr));
  for (const FileDescriptor* one : {&before, &other}) {
    CHECK(::send(one->get(), "x", 1, MSG_NOSIGNAL) == 1);
  }
  for (const FileDescriptor* one : {&here, &there}) {
    REQUIRE(internal::await_ready(one->get(), POLLIN, Deadline::after(10s)));
    char heard = 0;
    CHECK(::recv(one->get(), &heard, 1, 0) == 1);
  }
  socket.admit({false, {ipv4(0x7F000005)}});
  const FileDescriptor stranger = dial(port, "127.0.0.4");
  const FileDescriptor peer = dial(port, "127.0.0.5");
  CHECK(connected(peer, 10s));
  CHECK_FALSE(connected(stranger, 0ms));
  socket.admit({});
  CHECK(connected(stranger, 30s));  // its system has tried again
  // More sources than the kernel's programs have room for.
  DropRule many{false, {}};
  for (std::uint64_t i = 0; i < 5000; ++i) {
    many.others.push_back(ipv4(0x7F000006 + i));
  }
  socket.admit(many);
  CHECK(connected(dial(port, "127.0.0.6"), 10s));
}
#endif

}  // namespace sotto::test::connection_limiter_test
