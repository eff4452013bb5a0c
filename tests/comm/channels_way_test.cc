// Which way the two directions of a channel take: a connection each, or one for both, where one of
// the sites cannot be dialled; and which of a peer's addresses and keys is tried.
#ifdef SOTTO_HAVE_ZMQ
#include <algorithm>
#include <functional>
#include <optional>
#include <thread>

#include <doctest/doctest.h>

#include <sotto/base/error.h>

#include "bad_link.h"
#include "outsider.h"
#include "raw_site.h"
#include "sites.h"

namespace sotto::test::channels_way_test {

using namespace sotto::internal::channel_wire;
using namespace std::chrono_literals;

namespace {

void await(const std::function<bool()>& condition) {
  for (const auto deadline = generous(); !condition();) {
    REQUIRE_FALSE(deadline.expired());
    std::this_thread::sleep_for(5ms);
  }
}

ChannelOptions with_lines(const Sites& sites, Rank rank, const std::vector<TrustedPeer>& lines) {
  auto options = sites.options(rank);
  options.security.peers = std::make_shared<AllowList>(lines);
  return options;
}

/// Site 1 listens nowhere.
std::vector<TrustedPeer> lines_with_dialler(const Sites& sites) {
  auto lines = sites.lines();
  lines[1].address.clear();
  return lines;
}

void expect_exchange(SiteEnd& a, SiteEnd& b, std::uint64_t name) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{5000}, Sites::kMostMessage}) {
    a.send(1, message_of(name, size));
    b.expect_message(0, message_of(name, size));
    b.send(0, message_of(name + 1, size));
    a.expect_message(1, message_of(name + 1, size));
  }
}

}  // namespace

TEST_CASE("a site that only dials: one connection carries both directions, again after restarts") {
  const Sites sites(2);
  const auto lines = lines_with_dialler(sites);
  std::optional<SiteEnd> a(with_lines(sites, 0, lines));
  CHECK(a->traffic(1).trouble == ChannelTrouble::awaited);
  std::optional<SiteEnd> b(with_lines(sites, 1, lines));
  CHECK(b->channels().address().empty());
  CHECK(b->channels().strangers().room == 0);
  a->expect_up(1);
  b->expect_up(0);
  CHECK(a->traffic(1).one_connection);
  CHECK(b->traffic(0).one_connection);
  expect_exchange(*a, *b, 1);
  b.reset();
  a->expect_down(1, "it left");
  b.emplace(with_lines(sites, 1, lines));
  a->expect_up(1);
  b->expect_up(0);
  expect_exchange(*a, *b, 3);
  a.reset();
  b->expect_down(0, "left");
  a.emplace(with_lines(sites, 0, lines));
  a->expect_up(1);
  b->expect_up(0);
  expect_exchange(*a, *b, 5);
  CHECK(a->traffic(1).offences == 0);
  CHECK(b->traffic(0).offences == 0);
}

TEST_CASE("one connection carries long messages in both directions at once") {
  const Sites sites(2);
  const auto lines = lines_with_dialler(sites);
  const auto longer = [&](Rank rank) {
    auto options = with_lines(sites, rank, lines);
    options.max_message_bytes = 10'000'000;
    options.max_queued_bytes = 50'000'000;
    return options;
  };
  MetSites met(longer(0), longer(1));
  for (std::uint64_t i = 0; i < 4; ++i) {
    met.a.send(1, message_of(i, 10'000'000 - i));
    met.b.send(0, message_of(10 + i, 9'000'000 + i));
  }
  for (std::uint64_t i = 0; i < 4; ++i) {
    met.a.expect_message(1, message_of(10 + i, 9'000'000 + i));
    met.b.expect_message(0, message_of(i, 10'000'000 - i));
  }
}

TEST_CASE("where both can dial, each direction has its connection, however often they meet") {
  const Sites sites(2);
  SiteEnd a(sites.options(0));
  for (int start = 0; start < 5; ++start) {
    SiteEnd b(sites.options(1));
    a.wait_up(1);
    b.expect_up(0);
    CHECK_FALSE(a.traffic(1).one_connection);
    CHECK_FALSE(b.traffic(0).one_connection);
    CHECK(b.traffic(0).ups == 1);
  }
  CHECK(a.traffic(1).ups == 5);
}

TEST_CASE("an address that nobody answers at is no hindrance where the other side can dial") {
  const Sites sites(3);
  // Site 0 takes site 1 to be where nobody is.
  MetSites met(sites.options(0, 1, sites.port(2)), sites.options(1));
  CHECK(met.a.traffic(1).one_connection);
  expect_exchange(met.a, met.b, 1);
}

TEST_CASE("behind a forwarder, the second of a peer's addresses: both directions, and again") {
  const Sites sites(3);
  BadLink forwarder(sites.port(0));
  auto lines = lines_with_dialler(sites);
  auto of_dialler = lines;
  of_dialler[0].address = fmt::format("127.0.0.1:{} 127.0.0.1:{}", sites.port(2), forwarder.port());
  SiteEnd a(with_lines(sites, 0, lines));
  SiteEnd b(with_lines(sites, 1, of_dialler));
  a.expect_up(1);
  b.expect_up(0);
  expect_exchange(a, b, 1);
  forwarder.cut();
  a.expect_down(1, "connection ended");
  b.expect_down(0, "connection ended");
  a.expect_up(1);
  b.expect_up(0);
  expect_exchange(a, b, 3);
  // What the forwarder passes on is noise to it.
  forwarder.record();
  forwarder.cut();
  a.expect_down(1, "connection ended");
  b.expect_down(0, "connection ended");
  a.expect_up(1);
  b.expect_up(0);
  const Bytes secret(10'000, std::byte{0x5A});
  b.send(0, secret);
  a.expect_message(1, secret);
  for (const auto& heard : forwarder.heard()) {
    const auto found = std::search_n(heard.begin(), heard.end(), 16, std::byte{0x5A});
    CHECK(found == heard.end());
  }
}

TEST_CASE("several addresses to listen at, a name to dial, and an address to dial from") {
  const Sites sites(2);
  auto lines = sites.lines();
  const int second = free_port();
  lines[0].address = fmt::format("localhost:{}", second);
  auto listens = with_lines(sites, 0, lines);
  listens.bind = fmt::format("127.0.0.1:{} localhost:{}", sites.port(0), second);
  lines[1].address.clear();
  SiteEnd a(listens);
  a.peers->update_allow_list({lines[0]});
  CHECK(a.channels().address() == fmt::format("127.0.0.1:{} 127.0.0.1:{}", sites.port(0), second));
  auto dials = with_lines(sites, 1, lines);
  dials.source = "[::1] 127.0.0.9";
  SiteEnd b(dials);
  await([&] { return !a.channels().refused_keys().latest.empty(); });
  CHECK(a.channels().refused_keys().latest[0].address == "127.0.0.9");
  a.peers->update_allow_list(lines);
  a.expect_up(1);
  b.expect_up(0);
  expect_exchange(a, b, 1);
  dials.source = "[::1]";
  dials.security.peers = std::make_shared<AllowList>(lines);
  const Sites others(2);
  SiteEnd c(dials);
  await([&] { return c.traffic(0).reason.find("another kind") != std::string::npos; });
}

TEST_CASE("two keys of a name: a site changes its key without a gap, and the old one ends") {
  const Sites sites(2);
  const KeyPair next = make_key_pair();
  auto lines = sites.lines();
  const PublicKey former = lines[1].key;
  lines[1].key = next.public_key;
  lines[1].more_keys = {{former, 1000}};
  auto after = with_lines(sites, 1, lines);
  after.security.own = next;
  SiteEnd a(with_lines(sites, 0, lines));
  {
    SiteEnd b(sites.options(1));  // with the former key and the former list
    a.expect_up(1);
    b.expect_up(0);
    CHECK(a.traffic(1).key == former.text());
    expect_exchange(a, b, 1);
    b.peers->update_allow_list(lines);  // another key of its own in the list changes nothing
    b.expect_nothing();
    expect_exchange(a, b, 3);
  }
  a.expect_down(1, "left");
  SiteEnd b(after);
  a.expect_up(1);
  b.expect_up(0);
  CHECK(a.traffic(1).key == next.public_key.text());
  expect_exchange(a, b, 5);
  CHECK_FALSE(a.peers->drop_expired(999));
  CHECK(a.peers->drop_expired(1000));
  a.expect_nothing();  // the key that serves is another one
  expect_exchange(a, b, 7);
  Outsider late(fmt::format("tcp://{}", lines[0].address), keys_of(1));
  CHECK_FALSE(late.let_in());
}

TEST_CASE("two keys of a name: the channel ends with the key that it was opened with") {
  const Sites sites(2);
  auto lines = sites.lines();
  lines[1].key = make_key_pair().public_key;
  lines[1].more_keys = {{keys_of(1).public_key, 1000}};
  MetSites met(with_lines(sites, 0, lines), sites.options(1));
  met.b.send(0, message_of(1, 100));
  met.a.expect_message(1, message_of(1, 100));
  CHECK(met.a.peers->drop_expired(1000));
  met.a.expect_down(1, "does not trust it any more");
  met.a.expect_nothing();
  await([&] { return met.b.traffic(0).trouble == ChannelTrouble::not_admitted; });
}

TEST_CASE("authorised but malicious: what a peer may not say on this side's connection") {
  const Sites sites(2);
  const auto lines = lines_with_dialler(sites);
  // The site under test only dials; rank 0 is made by hand, with the key of the list.
  const auto dialler = [&] {
    auto options = with_lines(sites, 1, lines);
    options.offence_pause = 50ms;
    return options;
  };
  zmq::context_t context;
  const internal::Authenticator everybody(context, [](auto, auto) { return true; });
  const KeyPair keys = keys_of(0);
  internal::Listener listener(context, fmt::format("tcp://{}", lines[0].address), {1U << 20, 1000},
                              &keys);
  SiteEnd site(dialler());
  const auto heard = [&] {
    for (const auto deadline = generous();;) {
      REQUIRE_FALSE(deadline.expired());
      (void)listener.ended();
      if (auto incoming = listener.receive(); incoming && listener.alive(incoming->connection)) {
        return std::move(*incoming);
      }
      zmq::pollitem_t item = {listener.socket().handle(), 0, ZMQ_POLLIN, 0};
      zmq::poll(&item, 1, 100ms);
    }
  };
  const auto say = [&](const std::string& route, std::span<const std::byte> bytes) {
    REQUIRE(listener.send(route, zmq::message_t(bytes.data(), bytes.size())));
  };
  const auto greeted = [&] {
    for (;;) {
      auto incoming = heard();
      const auto message = parse(internal::view_of(incoming.body));
      REQUIRE(message.ok());
      if (const auto* greeting = std::get_if<Greeting>(&*message)) {
        return std::pair(incoming.route, greeting->session);
      }
    }
  };
  std::uint64_t offences = 0;
  const auto offends = [&](std::string_view what) {
    await([&] { return site.traffic(0).offences == offences + 1; });
    ++offences;
    CHECK_MESSAGE(site.traffic(0).reason.find(what) != std::string::npos, site.traffic(0).reason);
  };
  say(greeted().first, write(Accept{5}));
  offends("before it greeted");
  say(greeted().first, Bytes(3, std::byte{9}));
  offends("");
  const auto [twice, unused] = greeted();
  say(twice, write(Greeting{5}));
  say(twice, write(Greeting{6}));
  offends("it greeted twice");
  const auto [early, also_unused] = greeted();
  say(early, write(Greeting{5}));
  say(early, write(Receipt{0, 100}));
  offends("before both sides had accepted");
  // And one that keeps the rules is met.
  const auto [route, session] = greeted();
  say(route, write(Greeting{9}));
  say(route, write(Accept{session}));
  site.expect_up(0);
  say(route, write(Chunk{.number = 5, .piece = {.total = 1, .offset = 0, .bytes = Bytes(1)}}));
  site.expect_down(0, "it broke a rule");
}
#endif

}  // namespace sotto::test::channels_way_test
