// Channels between sites as their users see them: both ways, in order, whole, and again after
// everything.
#ifdef SOTTO_HAVE_ZMQ
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>

#include <doctest/doctest.h>

#include <sotto/base/error.h>

#include "sites.h"

namespace sotto::test::channels_test {

namespace {

std::ptrdiff_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

/// ZeroMQ gives sockets back in its own time.
void expect_descriptors(std::ptrdiff_t count) {
  const auto deadline = generous();
  while (open_descriptors() > count && !deadline.expired()) {
    std::this_thread::yield();
  }
  CHECK(open_descriptors() <= count);
}

std::size_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::size_t pages = 0;
  in >> pages >> pages;
  return pages * 4096;
}

}  // namespace

TEST_CASE("channels carry messages both ways, whole, in order, once") {
  const Sites sites(2);
  MetSites met(sites.options(0), sites.options(1));
  CHECK(met.a.channels().address() == sites.lines()[0].address);
  const std::vector<std::size_t> sizes = {0, 1, 255, 4096, 4097, 65536, Sites::kMostMessage, 7, 0};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    met.a.send(1, message_of(i, sizes[i]));
    met.b.expect_message(0, message_of(i, sizes[i]));
    met.b.send(0, message_of(100 + i, sizes[i]));
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    met.a.expect_message(1, message_of(100 + i, sizes[i]));
  }
  CHECK(met.a.traffic(1).bytes_received == met.b.traffic(0).bytes_sent);
  CHECK(met.a.traffic(1).ups == 1);
  CHECK(met.a.traffic(1).offences == 0);
  met.a.expect_nothing();
  met.b.expect_nothing();
}

TEST_CASE("channels between many sites, all at once") {
  constexpr int kSites = 5;
  constexpr std::uint64_t kMessages = 30;
  const Sites sites(kSites);
  spawn(kSites, [&](Rank self) {
    SiteEnd site(sites.options(self));
    std::map<Rank, std::uint64_t> heard;
    std::set<Rank> done;
    // Each says when it has heard all; who leaves before would take the rest with it.
    while (done.size() + 1 < kSites) {
      const auto event = site.next();
      if (event.kind == ChannelEvent::Kind::up) {
        for (std::uint64_t i = 0; i < kMessages; ++i) {
          site.send(event.peer, message_of(i, 1000 + 10 * static_cast<std::size_t>(self)));
        }
      } else if (event.kind == ChannelEvent::Kind::message && event.message.size() == 1) {
        done.insert(event.peer);
      } else if (event.kind == ChannelEvent::Kind::message) {
        REQUIRE(event.message ==
                message_of(heard[event.peer]++, 1000 + 10 * static_cast<std::size_t>(event.peer)));
        if (heard[event.peer] == kMessages) {
          site.send(event.peer, Bytes(1));
        }
      } else {
        REQUIRE(done.contains(event.peer));
      }
    }
  });
}

TEST_CASE("a channel's long messages in both directions at once") {
  const Sites sites(2);
  auto options = [&](Rank rank) {
    auto made = sites.options(rank);
    made.max_message_bytes = 10'000'000;
    made.max_queued_bytes = 50'000'000;
    return made;
  };
  MetSites met(options(0), options(1));
  for (std::uint64_t i = 0; i < 4; ++i) {
    met.a.send(1, message_of(i, 10'000'000 - i));
    met.b.send(0, message_of(10 + i, 9'000'000 + i));
  }
  for (std::uint64_t i = 0; i < 4; ++i) {
    met.a.expect_message(1, message_of(10 + i, 9'000'000 + i));
    met.b.expect_message(0, message_of(i, 10'000'000 - i));
  }
}

TEST_CASE("a channel's queue is bounded while the peer takes nothing") {
  const Sites sites(2);
  MetSites met(sites.options(0), sites.options(1));
  const auto message = message_of(1, Sites::kMostMessage);
  std::uint64_t sent = 0;
  Status status;
  for (const auto deadline = generous(); status.ok() || sent < 5;) {
    REQUIRE_FALSE(deadline.expired());
    status = met.a.channels().send(1, message);
    sent += status.ok() ? 1U : 0U;
  }
  CHECK(status.fault() == Fault::backlog);
  CHECK(sent == 5);  // two over there, three here
  for (std::uint64_t i = 0; i < sent; ++i) {
    met.b.expect_message(0, message);
  }
  met.a.send(1, message);
  met.b.expect_message(0, message);
}

TEST_CASE("a message that is said again while it waits is queued once") {
  const Sites sites(2);
  MetSites met(sites.options(0), sites.options(1));
  const auto message = [](std::uint64_t k) { return message_of(k, Sites::kMostMessage); };
  for (std::uint64_t k = 0; k < 2; ++k) {  // as many as the peer takes before it is asked
    met.a.send(1, message(k));
  }
  const SharedBytes body(message(2));
  for (int again = 0; again < 20; ++again) {
    REQUIRE(met.a.channels().hand_over(1, {.head = {}, .body = body}).ok());
  }
  for (std::uint64_t k = 0; k < 3; ++k) {
    met.b.expect_message(0, message(k));
  }
  met.b.expect_nothing();
}

TEST_CASE("messages that channels do not take") {
  const Sites sites(2);
  MetSites met(sites.options(0), sites.options(1));
  CHECK(met.a.channels().send(1, Bytes(Sites::kMostMessage + 1)).fault() == Fault::malformed);
  CHECK(met.a.channels().send(7, Bytes(1)).fault() == Fault::peer_lost);
  met.a.channels().close(7, std::chrono::seconds(1));
  met.b.expect_nothing();
}

TEST_CASE("a site restarts while the other stays: down, up, and nothing of before") {
  const Sites sites(2);
  std::optional<SiteEnd> b(sites.options(1));
  SiteEnd a(sites.options(0));
  a.expect_up(1);
  for (std::uint64_t life = 0; life < 5; ++life) {
    b->expect_up(0);
    b->send(0, message_of(life, 1000));
    a.expect_message(1, message_of(life, 1000));
    b.reset();
    a.expect_down(1, "left");
    CHECK(a.channels().send(1, Bytes(1)).fault() == Fault::peer_lost);
    b.emplace(sites.options(1));
    a.expect_up(1);
  }
  CHECK(a.traffic(1).ups == 6);
}

TEST_CASE("what a site has queued when it ends still arrives") {
  const Sites sites(2);
  auto options = sites.options(1);
  options.close_timeout = std::chrono::seconds(60);
  std::optional<SiteEnd> b(options);
  SiteEnd a(sites.options(0));
  a.expect_up(1);
  b->expect_up(0);
  for (std::uint64_t i = 0; i < 3; ++i) {
    b->send(0, message_of(i, Sites::kMostMessage));
  }
  spawn(2, [&](Rank part) {
    if (part == 0) {
      b.reset();
      return;
    }
    for (std::uint64_t i = 0; i < 3; ++i) {
      a.expect_message(1, message_of(i, Sites::kMostMessage));
    }
    a.expect_down(1, "left");
  });
}

TEST_CASE("channels do not hang at their end: nobody there, a peer that takes nothing") {
  const Sites sites(3);
  const auto begin = std::chrono::steady_clock::now();
  {
    MetSites met(sites.options(0), sites.options(1));
    for (int i = 0; i < 3; ++i) {
      met.a.send(1, Bytes(Sites::kMostMessage));
    }
  }
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));
}

TEST_CASE("a closed channel is tried again after its pause") {
  const Sites sites(2);
  MetSites met(sites.options(0), sites.options(1));
  met.b.send(0, message_of(1, 100));
  met.a.expect_message(1, message_of(1, 100));
  met.b.send(0, message_of(2, 100));
  met.a.channels().close(1, std::chrono::milliseconds(300));
  CHECK(met.a.channels().send(1, Bytes(1)).fault() == Fault::peer_lost);
  met.a.expect_down(1, "closed here");  // and not message 2, whether it had come or not
  met.b.expect_down(0, "connection ended");
  met.a.expect_up(1);
  met.b.expect_up(0);
  met.b.send(0, message_of(3, 100));
  met.a.expect_message(1, message_of(3, 100));
  CHECK(met.a.traffic(1).offences == 0);
}

TEST_CASE("an edge that is trusted one way only has a channel, and one that is not has none") {
  const Sites sites(3);
  const auto trusting = [&](Rank rank, bool may_send, bool send_to) {
    auto options = sites.options(rank);
    auto lines = sites.lines();
    for (auto& line : lines) {
      line.may_send = line.rank == 2 ? false : may_send;
      line.send_to = line.rank == 2 ? false : send_to;
    }
    options.security.peers->update_allow_list(lines);
    return options;
  };
  MetSites met(trusting(0, true, false), trusting(1, false, true));
  SiteEnd third(sites.options(2));
  met.a.send(1, message_of(1, 10));
  met.b.expect_message(0, message_of(1, 10));
  met.b.send(0, message_of(2, 10));
  met.a.expect_message(1, message_of(2, 10));
  met.a.expect_nothing();
  third.expect_nothing();
}

TEST_CASE(
    "revoked key: a channel goes down at once, nothing more is delivered, and back when listed") {
  const Sites sites(2);
  MetSites met(sites.options(0), sites.options(1));
  met.b.send(0, message_of(1, 100));
  while (met.b.traffic(0).bytes_sent < 100) {  // on its way
    std::this_thread::yield();
  }
  auto lines = sites.lines();
  SUBCASE("its line is gone") { lines.pop_back(); }
  SUBCASE("its rank has another key") { lines[1].key = keys_of(7).public_key; }
  SUBCASE("it may do nothing any more") { lines[1].may_send = lines[1].send_to = false; }
  met.a.peers->update_allow_list(lines);
  CHECK(met.a.channels().send(1, Bytes(1)).fault() == Fault::peer_lost);
  met.a.expect_down(1, "does not trust it any more");
  met.b.expect_down(0, "connection ended");
  met.a.expect_nothing();
  met.a.peers->update_allow_list(sites.lines());
  met.a.expect_up(1);
  met.b.expect_up(0);
  met.b.send(0, message_of(2, 100));
  met.a.expect_message(1, message_of(2, 100));
}

TEST_CASE("revoked key: it is noticed while the site waits, and a new key gets the channel") {
  const Sites sites(2);
  SiteEnd a(sites.options(0));
  std::optional<SiteEnd> b(sites.options(1));
  a.expect_up(1);
  auto lines = sites.lines();
  lines[1].key = keys_of(7).public_key;
  std::thread operating([&] { a.peers->update_allow_list(lines); });
  a.expect_down(1, "does not trust it any more");
  operating.join();
  b.reset();
  auto options = sites.options(1);
  options.security = {keys_of(7), std::make_shared<AllowList>(lines)};
  b.emplace(options);
  a.expect_up(1);
  b->expect_up(0);
}

TEST_CASE("peers that leave the list for ever leave nothing behind, however many they are") {
  const Sites sites(2);
  MetSites met(sites.options(0), sites.options(1));
  met.a.send(1, message_of(1, 1000));
  met.b.expect_message(0, message_of(1, 1000));
  const auto sent = [&] {
    std::uint64_t sum = 0;
    for (const ChannelTraffic& one : met.a.channels().traffic()) {
      sum += one.bytes_sent;
    }
    return sum;
  };
  CHECK(sent() == 1000);
  const std::vector<TrustedPeer> own = {sites.lines()[0]};
  constexpr Rank kComings = 300;
  for (Rank rank = 2; rank < kComings; ++rank) {
    auto lines = own;
    lines.push_back({.rank = rank,
                     .name = fmt::format("n{}", rank),
                     .key = make_key_pair().public_key,
                     .address = "127.0.0.1:1"});
    met.a.peers->update_allow_list(lines);
    CHECK(met.a.channels().send(rank, Bytes(1)).fault() == Fault::peer_lost);
  }
  met.a.peers->update_allow_list(own);
  met.a.expect_down(1, "does not trust it any more");
  while (met.a.channels().traffic().size() > 65) {
    std::this_thread::yield();
  }
  CHECK(sent() == 1000);  // also where the channel of what was sent is gone
  met.a.peers->update_allow_list(sites.lines());
  met.a.expect_up(1);
}

TEST_CASE("spawn and kill at random: descriptors and memory stay flat") {
  const Sites sites(3);
  SiteEnd stays(sites.options(0));
  const auto live = [&](std::uint64_t life) {
    const Rank rank = life % 2 == 0 ? 1 : 2;
    SiteEnd comes(sites.options(rank));
    stays.expect_up(rank);
    comes.wait_up(0);
    comes.send(0, message_of(life, 10'000));
    stays.expect_message(rank, message_of(life, 10'000));
    return rank;
  };
  const auto lives = [&](std::uint64_t count) {
    for (std::uint64_t life = 0; life < count; ++life) {
      const Rank rank = live(life);
      stays.expect_down(rank, "");
    }
  };
  lives(4);
  const auto descriptors = open_descriptors();
  const auto memory = resident_bytes();
  lives(16);
  expect_descriptors(descriptors + 4);  // an attempt to reach a site that is not there
#ifndef SOTTO_SANITIZED
  CHECK(resident_bytes() < memory + (std::size_t{16} << 20));
#else
  (void)memory;
#endif
}

TEST_CASE("settings of channels that are refused") {
  const Sites sites(2);
  const auto refused = [](const ChannelOptions& options, std::string_view field) {
    try {
      (void)make_channels(options);
      FAIL("not refused");
    } catch (const Error& error) {
      CHECK_MESSAGE(std::string_view(error.what()).starts_with(field), error.what());
    }
  };
  auto options = sites.options(0);
  options.rank = 1;
  refused(options, "peers");
  options = sites.options(0);
  options.security.own = keys_of(9);
  refused(options, "peers");
  options = sites.options(0);
  options.security.peers = nullptr;
  refused(options, "peers");
  options = sites.options(0);
  options.security.peers->update_allow_list(lines_of(2));
  refused(options, "address");
  options = sites.options(0);
  options.bind = "nowhere";
  refused(options, "bind");
  options = sites.options(0);
  options.max_message_bytes = 0;
  refused(options, "max_message_bytes");
  options = sites.options(0);
  options.max_queued_bytes = options.max_message_bytes - 1;
  refused(options, "max_queued_bytes");
  options = sites.options(0);
  options.timeout = std::chrono::milliseconds(99);
  refused(options, "timeout");
}

TEST_CASE("an address that is taken is a fault") {
  const Sites sites(2);
  SiteEnd first(sites.options(0));
  const auto second = make_channels(sites.options(0));
  REQUIRE_FALSE(second.ok());
  CHECK(second.status().fault() == Fault::io);
}
#endif

}  // namespace sotto::test::channels_test
