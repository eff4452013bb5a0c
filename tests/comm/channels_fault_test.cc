// Channels when processes die or stop, and when the network is slow, deaf, cut or gone.
#ifdef SOTTO_HAVE_ZMQ
#include <signal.h>
#include <unistd.h>

#include <functional>

#include <doctest/doctest.h>

#include <sotto/base/bytes.h>
#include <sotto/base/philox.h>

#include "bad_link.h"
#include "forked_process.h"
#include "sites.h"

namespace sotto::test::channels_fault_test {

using namespace std::chrono_literals;

namespace {

/// Rank 1 of two sites in a process of its own, which sends back what it gets.
ForkedProcess start_echo(const ChannelOptions& options) {
  return ForkedProcess([&] {
    const auto made = make_channels(options);
    while (made.ok()) {
      const auto event = (*made)->poll(generous());
      if (event.ok() && event->kind == ChannelEvent::Kind::message) {
        (void)(*made)->send(event->peer, event->message);
      }
    }
  });
}

void expect_echo(SiteEnd& site, std::uint64_t name, std::size_t bytes) {
  site.send(1, message_of(name, bytes));
  site.expect_message(1, message_of(name, bytes));
}

/// Two sites; rank 1 reaches rank 0, and rank 0 reaches rank 1, through bad links.
struct LinkedSites {
  explicit LinkedSites(std::chrono::milliseconds timeout, std::size_t max_message = 100'000)
      : to_0(sites.port(0)),
        to_1(sites.port(1)),
        met(with(sites.options(0, 1, to_1.port()), timeout, max_message),
            with(sites.options(1, 0, to_0.port()), timeout, max_message)) {}
  static ChannelOptions with(ChannelOptions options, std::chrono::milliseconds timeout,
                             std::size_t max_message) {
    options.timeout = timeout;
    options.max_message_bytes = max_message;
    options.max_queued_bytes = 10 * max_message;
    return options;
  }
  void both(BadLink::Mode mode) {
    to_0.both(mode);
    to_1.both(mode);
  }
  /// Messages go both ways again.
  void expect_healed() {
    met.a.wait_up(1);
    met.b.wait_up(0);
    met.a.send(1, message_of(5, 5000));
    met.b.send(0, message_of(6, 5000));
    met.a.expect_message(1, message_of(6, 5000));
    met.b.expect_message(0, message_of(5, 5000));
  }

  Sites sites{2};
  BadLink to_0;
  BadLink to_1;
  MetSites met;
};

}  // namespace

TEST_CASE("SIGKILL: a site that dies is noticed by its broken connection, and welcome again") {
  const Sites sites(2);
  auto options = sites.options(0);
  options.timeout = 1h;
  for (std::uint64_t life = 0; life < 2; ++life) {
    ForkedProcess echo = start_echo(sites.options(1));  // before there are threads
    SiteEnd a(options);
    a.expect_up(1);
    expect_echo(a, life, 50'000);
    echo.kill(SIGKILL);
    a.expect_down(1, "connection ended");
  }
}

TEST_CASE("SIGKILL in the middle of a message: nothing of it is delivered") {
  const Sites sites(2);
  auto options = sites.options(0);
  options.timeout = 1h;
  ForkedProcess echo = start_echo(sites.options(1));
  SiteEnd a(options);
  a.expect_up(1);
  a.send(1, message_of(1, 100'000));
  a.send(1, message_of(2, 100'000));
  echo.kill(SIGKILL);
  for (auto event = a.next(); event.kind != ChannelEvent::Kind::down; event = a.next()) {
    REQUIRE(event.kind == ChannelEvent::Kind::message);
    CHECK((event.message == message_of(1, 100'000) || event.message == message_of(2, 100'000)));
  }
}

TEST_CASE("SIGSTOP, later SIGCONT: a site that stands still is noticed, fenced, and comes back") {
  const Sites sites(2);
  auto options = sites.options(0);
  options.timeout = 1s;
  auto other = sites.options(1);
  other.timeout = 1h;  // it knows only from its connections
  ForkedProcess echo = start_echo(other);
  SiteEnd a(options);
  a.expect_up(1);
  expect_echo(a, 1, 1000);
  echo.kill(SIGSTOP);
  a.expect_down(1, "nothing was heard for");
  CHECK(a.channels().send(1, Bytes(1)).fault() == Fault::peer_lost);
  echo.kill(SIGCONT);
  a.expect_up(1);
  expect_echo(a, 2, 1000);
}

TEST_CASE("a site that is busy for longer than the timeout is not taken for dead") {
  const Sites sites(2);
  const auto options = [&](Rank rank) {
    auto made = sites.options(rank);
    made.timeout = 1s;
    return made;
  };
  MetSites met(options(0), options(1));
  // Neither asks for events meanwhile.
  const auto until = Deadline::after(2s);
  std::uint64_t sum = 0;
  while (!until.expired()) {
    ++sum;
  }
  CHECK(sum > 0);
  met.a.send(1, message_of(1, 10));
  met.b.expect_message(0, message_of(1, 10));
  CHECK(met.a.traffic(1).ups == 1);
  CHECK(met.b.traffic(0).ups == 1);
}

TEST_CASE("a partition that holds everything: both notice, and meet again when it heals") {
  LinkedSites linked(500ms);
  linked.both(BadLink::Mode::hold);
  linked.met.a.expect_down(1, "nothing was heard for");
  linked.met.b.expect_down(0, "");
  linked.both(BadLink::Mode::pass);
  linked.expect_healed();
}

TEST_CASE("one-way loss per edge: both notice, and meet again when it heals") {
  for (int way = 0; way < 4; ++way) {
    CAPTURE(way);
    LinkedSites linked(500ms);
    BadLink& link = way < 2 ? linked.to_0 : linked.to_1;
    const auto set = [&](BadLink::Mode mode) {
      way % 2 == 0 ? link.to_server(mode) : link.to_client(mode);
    };
    linked.met.a.send(1, message_of(1, 50'000));
    linked.met.b.expect_message(0, message_of(1, 50'000));
    // What a listener says on a connection is ZeroMQ's business alone: its loss is not noticed
    // until somebody connects anew.
    set(BadLink::Mode::lose);
    linked.to_0.cut();
    linked.met.a.expect_down(1, "");
    linked.met.b.expect_down(0, "");
    linked.met.a.expect_nothing(300ms);
    set(BadLink::Mode::pass);
    linked.expect_healed();
  }
}

TEST_CASE(
    "TCP reset at random offsets: within a session nothing is lost, doubled or out of order") {
  const std::uint64_t seed = 5;
  CAPTURE(seed);
  RandomStream random({.seed = seed});
  LinkedSites linked(10s);
  constexpr std::uint64_t kSessions = 6;
  std::uint64_t session = 0;
  const auto pour = [&] {  // as many messages as there is room for
    for (std::uint64_t i = 0;; ++i) {
      ByteBuffer out;
      out.write(session);
      out.write(i);
      out.append(message_of(i, 20'000));
      if (!linked.met.a.channels().send(1, out.bytes())) {
        return;
      }
    }
  };
  for (std::uint64_t ends = 0; ends < kSessions; ++session) {
    linked.to_1.cut_after(2000 + random.below(300'000));
    pour();
    std::uint64_t next = 0;
    for (bool up = true; up;) {
      const auto event = linked.met.b.next();
      up = event.kind != ChannelEvent::Kind::down;
      if (event.kind == ChannelEvent::Kind::message) {
        ByteReader in(event.message);
        REQUIRE(in.read<std::uint64_t>() == session);
        REQUIRE(in.read<std::uint64_t>() == next++);
        if (next == 5) {
          linked.to_1.cut();
        }
      }
    }
    ++ends;
    linked.to_1.cut_after(0);
    linked.met.a.wait_up(1);
    linked.met.b.wait_up(0);
  }
  CHECK(linked.met.b.traffic(0).ups >= kSessions);
}

TEST_CASE("a large message on a slow link with a short timeout completes, no disconnect") {
  // A chunk of full length alone takes longer than the timeout: 256 KiB at 400 kB/s.
  LinkedSites linked(600ms, 1 << 20);
  linked.to_0.limit(400'000);
  linked.to_1.limit(400'000);
  linked.met.a.send(1, message_of(1, 1 << 20));
  linked.met.a.send(1, message_of(2, 100'000));
  linked.met.b.send(0, message_of(3, 1 << 20));
  linked.met.b.expect_message(0, message_of(1, 1 << 20));
  linked.met.b.expect_message(0, message_of(2, 100'000));
  linked.met.a.expect_message(1, message_of(3, 1 << 20));
  CHECK(linked.met.a.traffic(1).ups == 1);
  CHECK(linked.met.b.traffic(0).ups == 1);
}

TEST_CASE("a peer that cannot be reached is tried for ever, and found when it comes") {
  const Sites sites(2);
  SiteEnd a(sites.options(0));
  a.expect_nothing(500ms);
  CHECK_MESSAGE(a.traffic(1).reason.find("nobody listens") != std::string::npos,
                a.traffic(1).reason);
  SiteEnd b(sites.options(1));
  a.expect_up(1);
  b.expect_up(0);
}

TEST_CASE("a peer that does not list this site yet lets it in as soon as it does") {
  const Sites sites(2);
  auto options = sites.options(1);
  options.security.peers->update_allow_list({sites.lines()[1]});
  SiteEnd b(options);
  SiteEnd a(sites.options(0));
  a.expect_nothing(500ms);
  CHECK_MESSAGE(a.traffic(1).reason.find("does not admit") != std::string::npos,
                a.traffic(1).reason);
  b.peers->update_allow_list(sites.lines());
  a.expect_up(1);
  b.expect_up(0);
}

TEST_CASE("names are looked up, and a host that is unknown is tried again") {
  const Sites sites(3);
  auto options = sites.options(0);
  auto lines = sites.lines();
  lines[1].address = fmt::format("localhost:{}", sites.port(1));
  lines[2].address = "no-such-host.invalid:1";
  options.security.peers->update_allow_list(lines);
  SiteEnd a(options);
  SiteEnd b(sites.options(1));
  a.expect_up(1);
  b.expect_up(0);
  for (const auto deadline = generous();
       a.traffic(2).reason.find("no host") == std::string::npos;) {
    REQUIRE_FALSE(deadline.expired());
    std::this_thread::yield();
  }
}
#endif

}  // namespace sotto::test::channels_fault_test
