// Two processes with one key, and keys that are let in nowhere: what befalls channels, and what an
// operator learns of it.
#ifdef SOTTO_HAVE_ZMQ
#include <functional>
#include <optional>
#include <thread>

#include <doctest/doctest.h>

#include "outsider.h"
#include "raw_site.h"
#include "sites.h"

namespace sotto::test::channels_rival_test {

using namespace sotto::internal::channel_wire;
using namespace std::chrono_literals;

namespace {

void await(const std::function<bool()>& condition) {
  for (const auto deadline = generous(); !condition();) {
    REQUIRE_FALSE(deadline.expired());
    std::this_thread::sleep_for(5ms);
  }
}

void expect_exchange(SiteEnd& a, SiteEnd& b, std::uint64_t name) {
  a.send(1, message_of(name, 5000));
  b.expect_message(0, message_of(name, 5000));
  b.send(0, message_of(name + 1, 5000));
  a.expect_message(1, message_of(name + 1, 5000));
}

/// Rank 1 once more, at another address, as with a copied key.
ChannelOptions copy_of_1(const Sites& sites) {
  auto options = sites.options(1);
  options.bind = fmt::format("127.0.0.1:{}", free_port());
  options.timeout = 500ms;
  return options;
}

}  // namespace

TEST_CASE("a copied key takes no channel from the process that has it, and both sides are told") {
  const Sites sites(2);
  MetSites met(sites.options(0), sites.options(1));
  std::optional<SiteEnd> copy(copy_of_1(sites));
  await([&] { return met.a.traffic(1).contested; });
  expect_exchange(met.a, met.b, 1);
  await([&] { return copy->traffic(0).trouble == ChannelTrouble::unanswered; });
  CHECK_FALSE(copy->traffic(0).up);
  CHECK(met.a.traffic(1).ups == 1);
  CHECK(met.b.traffic(0).ups == 1);
  copy.reset();
  await([&] { return !met.a.traffic(1).contested; });
  expect_exchange(met.a, met.b, 3);
}

TEST_CASE("who greets while the channel is up waits until the process behind it has gone") {
  const Sites sites(2);
  SiteEnd a(sites.options(0));
  std::optional<SiteEnd> b(sites.options(1));
  a.expect_up(1);
  b->expect_up(0);
  // The next process greets before anybody knows that the one before ends.
  Outsider next(fmt::format("tcp://{}", sites.lines()[0].address), keys_of(1));
  next.send(write(Greeting{7}));
  CHECK(next.let_in());
  expect_exchange(a, *b, 1);
  b.reset();
  a.expect_down(1, "it left");
  b.emplace(sites.options(1));
  a.expect_up(1);
  b->expect_up(0);
  expect_exchange(a, *b, 3);
  CHECK(a.traffic(1).offences == 0);
}

TEST_CASE("a list with another address for a peer leads its channel there") {
  const Sites sites(3);
  MetSites met(sites.options(0), sites.options(1));
  auto moved = sites.options(1);
  moved.bind = sites.lines()[2].address;
  SiteEnd elsewhere(moved);
  await([&] { return met.a.traffic(1).contested; });
  auto lines = sites.lines();
  lines[1].address = sites.lines()[2].address;
  lines.pop_back();
  met.a.peers->update_allow_list(lines);
  met.a.expect_down(1, "another address");
  met.a.wait_up(1);
  elsewhere.wait_up(0);
  elsewhere.send(0, message_of(1, 100));
  met.a.expect_message(1, message_of(1, 100));
}

TEST_CASE("unknown key, revoked key: the site can tell which was refused, and from where") {
  const Sites sites(2);
  SiteEnd a(sites.options(0));
  CHECK(a.channels().refused_keys().times == 0);  // the test of the door is not counted
  const auto endpoint = fmt::format("tcp://{}", sites.lines()[0].address);
  const KeyPair unknown = make_key_pair();
  Outsider stranger(endpoint, unknown);
  CHECK_FALSE(stranger.let_in());
  auto refused = a.channels().refused_keys();
  REQUIRE(refused.latest.size() == 1);
  CHECK(refused.latest[0].key == unknown.public_key.text());
  CHECK(refused.latest[0].address == "127.0.0.1");
  CHECK(refused.times == refused.latest[0].times);
  a.peers->update_allow_list({sites.lines()[0]});
  SiteEnd b(sites.options(1));
  await([&] { return b.traffic(0).trouble == ChannelTrouble::not_admitted; });
  // Keys of before a list are forgotten once it is in force, and this one's is refused again.
  await([&] {
    refused = a.channels().refused_keys();
    return !refused.latest.empty() && refused.latest.back().key == keys_of(1).public_key.text();
  });
  // The latest of many keys are kept, and all are counted.
  for (int i = 0; i < 40; ++i) {
    Outsider another(endpoint, make_key_pair());
    CHECK_FALSE(another.let_in());
  }
  refused = a.channels().refused_keys();
  CHECK(refused.latest.size() <= 16);
  CHECK(refused.times >= 42);
}

TEST_CASE("who has another key than the list says is told apart from who is not there") {
  const Sites sites(3);
  auto options = sites.options(0);
  auto lines = sites.lines();
  lines[1].address = sites.lines()[2].address;  // rank 2 answers there
  lines.pop_back();
  options.security.peers->update_allow_list(lines);
  SiteEnd a(options);
  await([&] { return a.traffic(1).trouble == ChannelTrouble::unreachable; });
  const SiteEnd other(sites.options(2));
  await([&] { return a.traffic(1).trouble == ChannelTrouble::other_key; });
}
#endif

}  // namespace sotto::test::channels_rival_test
