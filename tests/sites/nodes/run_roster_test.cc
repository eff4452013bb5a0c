// Sites that find each other by a roster, as threads of this process: they start together, take one
// in late, go on when one leaves, and end with models that are alike.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/sites/nodes/run_roster.h>
#include <sotto/sites/process/site_optimizer.h>

#include "support/free_port.h"
#include "support/scratch.h"

namespace sotto::test::run_roster_test {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kDimension = 8;

struct Tally {
  std::mutex mutex;
  std::map<std::string, std::multiset<std::string>>
      kinds;  ///< kinds of events, by the node that tells them

  SiteListener of(const std::string& name) {
    return [this, name](const SiteEvent& event) {
      const std::lock_guard lock(mutex);
      kinds[name].insert(std::string(name_of(event.kind)));
    };
  }
  std::size_t count(const std::string& name, const std::string& kind) {
    const std::lock_guard lock(mutex);
    return kinds[name].count(kind);
  }
};

SiteOptions node_options(const std::string& name, const std::string& seed, const RunKey& key,
                         std::size_t least, std::size_t most) {
  SiteOptions options =
      options_by_roster({.least = least, .most = most, .seeds = {seed}, .key = key}, name);
  options.step_rule.learning_rate = 0.1;
  options.found_after = 10s;
  return options;
}

/// A node that pulls its model towards the number `target`, for so many rounds or until `stop`.
class Node {
 public:
  Node(SiteOptions options, float target, Round rounds, Tally& tally)
      : parameters_(kDimension), thread_([this, options, target, rounds, &tally]() mutable {
          options.rounds = rounds;
          options.stop = &stop_;
          const SiteListener listener = tally.of(options.name);
          SiteOptimizer site(options, "", parameters_, {}, listener);
          status_ = run(site, target);
          ended_ = true;
          tell();
        }) {}
  ~Node() {
    stop_ = true;
    thread_.join();
  }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  void stop() { stop_ = true; }
  Round round() const { return round_; }
  void await_round(Round round) const {
    await([&] { return round_ >= round; });
  }
  /// Until the model is within `distance` of `middle`.
  void await_model(float middle, float distance) const {
    await([&] { return std::abs(model_ - middle) < distance; });
  }
  void await_end() const {
    await([] { return false; });
  }
  const Status& status() const { return status_; }

 private:
  Status run(SiteOptimizer& site, float target) {
    Status status = site.connect();
    std::vector<float> gradient(kDimension);
    while (status.ok() && !site.over()) {
      for (std::size_t k = 0; k < kDimension; ++k) {
        gradient[k] = parameters_[k] - target;
      }
      status = site.step(gradient).status();
      model_ = parameters_[0];
      round_ = site.round();
      tell();
    }
    if (status.ok() || status.fault() == Fault::stopped) {
      status = stop_ ? site.leave() : site.finish();
    }
    return status;
  }
  void tell() {
    ++news_;
    news_.notify_all();
  }
  /// Until that is so, or the node has ended.
  template <typename Wanted>
  void await(const Wanted& wanted) const {
    for (auto seen = news_.load(); !ended_ && !wanted(); seen = news_) {
      news_.wait(seen);
    }
  }

  std::vector<float> parameters_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> ended_{false};
  std::atomic<Round> round_{0};
  std::atomic<float> model_{0};  ///< the first parameter after the latest round
  std::atomic<std::uint64_t> news_{0};
  Status status_;
  std::thread thread_;
};

}  // namespace

TEST_CASE("run by roster: nodes start together, take one in, and go on when one leaves") {
  const RunKey key(make_key_pair());
  const std::string seed = "127.0.0.1:" + std::to_string(test::free_port());
  Tally tally;
  Node a(node_options("a", seed, key, 3, 4), 1, 0, tally);
  Node b(node_options("b", seed, key, 3, 4), 2, 0, tally);
  Node c(node_options("c", seed, key, 3, 4), 3, 0, tally);
  a.await_round(50);
  b.await_round(1);  // nobody begins before three are there
  c.await_round(1);
  Node d(node_options("d", seed, key, 3, 4), 4, 0, tally);
  d.await_round(1);
  CHECK(d.round() >= 50);  // it goes on from the others' model and round
  c.stop();
  c.await_end();
  CHECK_MESSAGE(c.status().ok(), c.status().message());
  for (Node* node : {&a, &b, &d}) {
    node->await_round(node->round() + 500);  // rounds are each node's own
    // Now and then a node is alone for some rounds, and goes to where it would be by itself.
    node->await_model(2.5F, 1.4F);
  }
  for (Node* node : {&a, &b, &d}) {
    node->stop();
    node->await_end();
    CHECK_MESSAGE(node->status().ok(), node->status().message());
  }
  CHECK(tally.count("a", "node-came") >= 3);
  CHECK(tally.count("a", "node-left") >= 1);
  CHECK(tally.count("a", "nodes-enough") >= 1);
}

TEST_CASE(
    "run by roster: nodes that know a folder alone find each other and one that comes later") {
  const RunKey key(make_key_pair());
  const test::Scratch folder;
  const std::string store = "file:" + folder.path().string();
  Tally tally;
  const auto options = [&](const std::string& name) {
    SiteOptions one = node_options(name, store, key, 2, 4);
    one.listen = "127.0.0.1:0";
    return one;
  };
  Node a(options("a"), 1, 0, tally);
  Node b(options("b"), 2, 0, tally);
  a.await_round(20);
  b.await_round(20);
  a.stop();
  a.await_end();
  CHECK_MESSAGE(a.status().ok(), a.status().message());
  Node c(options("c"), 3, 0, tally);
  c.await_round(1);
  CHECK(c.round() >= 20);
  for (Node* node : {&b, &c}) {
    node->stop();
    node->await_end();
    CHECK_MESSAGE(node->status().ok(), node->status().message());
  }
  CHECK(tally.count("a", "store-silent") == 0);
}

TEST_CASE("run by roster: the only seed begins anew, and waits for those that go on") {
  const RunKey key(make_key_pair());
  const std::string seed = "127.0.0.1:" + std::to_string(test::free_port());
  Tally tally;
  SiteOptions founder = node_options("a", seed, key, 1, 2);
  founder.found_after = 0s;
  std::optional<Node> a(std::in_place, founder, 1.0F, Round{0}, tally);
  a->await_round(3);
  Node b(node_options("b", seed, key, 1, 2), 2, 0, tally);
  b.await_round(100);
  a->stop();
  a->await_end();
  CHECK_MESSAGE(a->status().ok(), a->status().message());
  a.reset();
  const Round then = b.round();
  CHECK(then >= 50);
  Node again(node_options("a", seed, key, 1, 2), 1, 0, tally);
  again.await_round(1);
  CHECK(again.round() >= then);
}

TEST_CASE("run by roster: a lone seed by its host's name knows that it is itself") {
  const std::string seed = "localhost:" + std::to_string(test::free_port());
  const auto list = std::make_shared<AllowList>(std::vector<TrustedPeer>());
  RunRoster a({.least = 1, .most = 2, .seeds = {seed}},
              {.name = "a", .incarnation = 1, .life = 1, .list = list});
  const Deadline late = Deadline::after(20s);
  while (!a.view().asked.empty() && !late.expired()) {
    std::this_thread::yield();
  }
  CHECK(a.view().asked.empty());
  CHECK(a.has_first_seed());
  CHECK(a.await_nodes(nullptr, 0s, [] {}).ok());
}

TEST_CASE("run by roster: who waits alone, and hears of a greater run with other settings, ends") {
  const RunKey key(make_key_pair());
  SealedDatagrams other({.listen = "127.0.0.1:0"}, key.derived("sotto datagrams"));
  const std::string own = "127.0.0.1:" + std::to_string(test::free_port());
  const auto list = std::make_shared<AllowList>(std::vector<TrustedPeer>());
  RunRoster a({.least = 2, .most = 2, .seeds = {own, other.address()}, .key = key},
              {.name = "a",
               .listen = own,
               .incarnation = 1,
               .life = 1,
               .list = list,
               .settings = "first=a\n"});
  a.set_waiting(true);
  const Deadline late = Deadline::after(60s);
  while (a.view().standing != sites::RosterStanding::up && !late.expired()) {
    std::this_thread::yield();  // until it takes itself for the first
  }
  std::uint16_t up = 0;
  for (; a.standing().ok() && !late.expired(); ++up) {
    const auto probe = other.receive(late);
    REQUIRE(probe.has_value());
    const auto parsed = sites::parse_roster(probe->message);
    REQUIRE(parsed.ok());
    const auto nonce = std::get<sites::RosterProbe>(*parsed).nonce;
    other.send(own, encode(sites::RosterOther{.run = 1, .nonce = nonce, .up = up, .settings = {}}));
  }
  CHECK(up >= 3);  // one node that began later is no reason to go
  CHECK(a.standing().message().find("the run at " + other.address()) != std::string::npos);
  a.set_waiting(false);
  CHECK(a.standing().ok());  // one that takes part in its own run stays
}

TEST_CASE("run by roster: a full run, a name that is there, and another key are refused") {
  const RunKey key(make_key_pair());
  const std::string seed = "127.0.0.1:" + std::to_string(test::free_port());
  Tally tally;
  Node a(node_options("a", seed, key, 1, 2), 1, 0, tally);
  a.await_round(3);
  Node twin(node_options("a", seed, key, 1, 2), 1, 0, tally);
  twin.await_end();
  CHECK(twin.status().fault() == Fault::unexpected);
  CHECK(twin.status().message().find("another process named a") != std::string::npos);
  Node b(node_options("b", seed, key, 1, 2), 1, 0, tally);
  b.await_round(3);
  Node third(node_options("third", seed, key, 1, 2), 1, 0, tally);
  third.await_end();
  CHECK(third.status().message().find("2 nodes") != std::string::npos);
  SiteOptions other = node_options("other", seed, key, 1, 2);
  other.step_rule.learning_rate = 0.2;
  Node fourth(other, 1, 0, tally);
  fourth.await_end();
  CHECK_MESSAGE(fourth.status().message().find("lr is 0.2 here") != std::string::npos,
                fourth.status().message());
  // A stranger finds nobody, and waits for the two that it wants.
  Node stranger(node_options("s", seed, RunKey(make_key_pair()), 2, 2), 1, 0, tally);
  const Round before = a.round();
  a.await_round(before + 50);
  CHECK(stranger.round() == 0);
  for (Node* node : {&a, &b, &stranger}) {
    node->stop();
  }
  a.await_end();
  CHECK(a.status().ok());
  CHECK(b.status().ok());
}

TEST_CASE("run by roster: who finds nobody to take what it holds waits, and says so") {
  const RunKey key(make_key_pair());
  const std::string seed = "127.0.0.1:" + std::to_string(test::free_port());
  Tally tally;
  SiteOptions options = node_options("a", seed, key, 2, 2);
  options.found_after = 0s;
  options.init = "zero";
  std::atomic<bool> stop{true};
  std::atomic<bool> haste{false};
  options.stop = &stop;
  options.haste = &haste;
  SUBCASE("until its patience is over") { options.roster->leave_patience = 300ms; }
  SUBCASE("or until it is hurried") {
    options.roster->leave_patience = 30min;
    haste = true;
  }
  std::vector<float> parameters(kDimension);
  SiteOptimizer site(options, "", parameters, {}, tally.of("a"));
  CHECK(site.connect().fault() == Fault::stopped);
  stop = false;
  // One that is in the roster and takes no connections; the first is found by it after its stop.
  const auto settings =
      settings_text(shared_settings(options, complete_layout({}, parameters.size())));
  const RunRoster other(*options.roster,
                        {.name = "b",
                         .incarnation = 7,
                         .life = 1,
                         .list = std::make_shared<AllowList>(std::vector<TrustedPeer>()),
                         .settings = settings});
  const Status connected = site.connect();
  REQUIRE_MESSAGE(connected.ok(), connected.message());
  const std::vector<float> gradient(kDimension, 1);
  CHECK(site.step(gradient).ok());
  stop = haste.load();
  const Status left = site.leave();
  CHECK_MESSAGE(left.ok(), left.message());
  CHECK(tally.count("a", "undelivered") == 1);
}

TEST_CASE("run by roster: the number of a peer that has left is nobody else's soon") {
  const RunKey key(make_key_pair());
  const std::string seed = "127.0.0.1:" + std::to_string(test::free_port());
  const RosterOptions options{.least = 2, .most = 4, .seeds = {seed}, .key = key};
  const auto list = std::make_shared<AllowList>(std::vector<TrustedPeer>());
  const auto other = std::make_shared<AllowList>(std::vector<TrustedPeer>());
  const RunRoster a(options, {.name = "a", .incarnation = 1, .life = 1, .list = list});
  const auto rank_of = [&](const std::string& name) {
    const Deadline late = Deadline::after(20s);
    while (!late.expired()) {
      for (const TrustedPeer& peer : list->peers()) {
        if (peer.name == name) {
          return peer.rank;
        }
      }
      std::this_thread::yield();
    }
    return Rank{0};
  };
  std::set<Rank> ranks;
  for (const std::string name : {"b", "c", "d"}) {
    const RunRoster node(options, {.name = name, .incarnation = 7, .life = 1, .list = other});
    ranks.insert(rank_of(name));
  }
  CHECK_FALSE(ranks.contains(0));
  CHECK(ranks.size() == 3);
}

TEST_CASE("run by roster: a node that ends says so more than once, as a datagram may be lost") {
  const RunKey key(make_key_pair());
  SealedDatagrams datagrams({.listen = "127.0.0.1:0"}, key.derived("sotto datagrams"));
  const RosterOptions options{
      .least = 1, .most = 2, .seeds = {datagrams.address()}, .key = key, .insecure = false};
  const auto list = std::make_shared<AllowList>(std::vector<TrustedPeer>());
  std::optional<RunRoster> leaver(
      std::in_place, options, RosterNode{.name = "b", .incarnation = 7, .life = 1, .list = list});
  sites::Roster roster({.name = "a",
                        .incarnation = 1,
                        .address = datagrams.address(),
                        .most = 2,
                        .settings = "nodes=1:2\n"},
                       sites::RosterTime(0));
  const auto began = Deadline::Clock::now();
  const auto has_answered = [&] { return roster.view().up == 2; };
  const Deadline late = Deadline::after(20s);
  while (!has_answered() && !late.expired()) {
    const auto now = std::chrono::duration_cast<sites::RosterTime>(Deadline::Clock::now() - began);
    if (const auto received = datagrams.receive(Deadline::after(20ms))) {
      CHECK(roster.receive(received->from, received->message, now).ok());
    }
    roster.tick(now);
    for (const sites::RosterDatagram& released : roster.released()) {
      datagrams.send(released.to, released.message);
    }
  }
  REQUIRE(has_answered());
  while (leaver->others_up() == 0 && !late.expired()) {
    std::this_thread::yield();
  }
  leaver.reset();
  std::map<std::vector<std::byte>, int> copies;
  for (auto received = datagrams.receive(Deadline::after(20ms)); received;
       received = datagrams.receive(Deadline::after(20ms))) {
    ++copies[received->message];
  }
  CHECK(std::ranges::any_of(copies, [](const auto& one) { return one.second == 3; }));
}

TEST_CASE("run by roster: state folders and privacy are refused") {
  const SiteOptions options = node_options("a", "127.0.0.1:9", RunKey::open(), 1, 2);
  std::vector<float> parameters(kDimension);
  const test::Scratch folder;
  const std::string state = (folder.path() / "state").string();
  CHECK_THROWS_WITH_AS(SiteOptimizer(options, state, parameters, {}, {}),
                       doctest::Contains("a newcomer"), Error);
  SiteOptions noisy = options;
  noisy.privacy.emplace();
  CHECK_THROWS_AS(SiteOptimizer(noisy, state, parameters, {}, {}), Error);
}

TEST_CASE("run by roster: without a secret key a node stays on this host, unless told otherwise") {
  auto list = std::make_shared<AllowList>(std::vector<TrustedPeer>());
  const auto open = [&](RosterOptions options, const std::string& name) {
    RunRoster roster(options, {.name = name, .incarnation = 1, .life = 1, .list = list});
    return roster.address();
  };
  CHECK(open({}, "a").starts_with("127.0.0.1:"));
  CHECK_THROWS_AS(open({.least = 3, .most = 2}, "a"), Error);
  CHECK_THROWS_AS(open({}, ""), Error);
  CHECK_THROWS_AS(open({.seeds = {"no address"}}, "a"), Error);
}

}  // namespace sotto::test::run_roster_test
