// ElasticLinks over channels in memory, with drawn delays, losses and deaths, in virtual time.
#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/philox.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/step_rule.h>
#include <sotto/sites/elastic/elastic_links.h>

#include "support/seed.h"

namespace sotto::test::elastic_links_test {

using namespace sotto::sites;

namespace {

/// The channels of one node: what others have sent is there once its time has come.
class MemoryChannels final : public Channels {
 public:
  struct Arrival {
    EpochTime at{};
    ChannelEvent event;
  };

  std::string address() const override { return ""; }
  Status send(Rank peer, std::span<const std::byte> message) override {
    if (!open.contains(peer)) {
      return {Fault::peer_lost, "down"};
    }
    sent.emplace_back(peer, std::vector(message.begin(), message.end()));
    return {};
  }
  Result<ChannelEvent> poll(Deadline /*deadline*/) override {
    sent_by_poll = sent_by_poll.value_or(sent.size());
    if (arrivals.empty() || arrivals.front().at > now) {
      return Status(Fault::deadline, "nothing");
    }
    ChannelEvent event = std::move(arrivals.front().event);
    arrivals.pop_front();
    return event;
  }
  void close(Rank peer, std::chrono::milliseconds /*pause*/) override { closed.push_back(peer); }
  std::vector<ChannelTraffic> traffic() const override { return {}; }
  RefusedKeys refused_keys() const override { return {}; }
  Strangers strangers() const override { return {}; }

  /// Puts an event behind all that came before it, or later.
  void add(EpochTime at, ChannelEvent event) {
    at = arrivals.empty() ? at : std::max(at, arrivals.back().at);
    arrivals.push_back({at, std::move(event)});
  }

  EpochTime now{0};
  std::set<Rank> open;
  std::vector<std::pair<Rank, std::vector<std::byte>>> sent;
  std::optional<std::size_t> sent_by_poll;  ///< messages that were sent before the first poll
  std::vector<Rank> closed;
  std::deque<Arrival> arrivals;
};

/// How fast the nodes of a world are, and their channels.
struct Pace {
  std::size_t newcomers = 0;  ///< the last so many nodes are no founders
  EpochTime gradient{40};     ///< time of a gradient
  std::uint64_t delay = 30;   ///< messages take less than so many milliseconds
  EpochTime far{0};           ///< to and from newcomers they take so much longer
  bool apart = false;         ///< each node founds a run of its own
};

/// A few nodes, each with links, in virtual time.
class World {
 public:
  struct Node {
    std::string name;
    std::vector<float> x{1, 2, 3};
    MemoryChannels channels;
    std::optional<EpochMember> member;
    std::optional<ElasticLinks> links;
    std::vector<SiteEvent> events;
    std::optional<EpochTime> wanted;  ///< since when it computes
    std::size_t kept = 0;             ///< writes of a founder's votes
    bool alive = true;
  };

  World(std::uint64_t seed, std::size_t count) : World(seed, count, Pace()) {}
  World(std::uint64_t seed, std::size_t count, const Pace& pace)
      : draw_({.seed = seed, .purpose = Purpose::faults}), pace_(pace) {
    std::vector<TrustedPeer> lines;
    std::vector<std::string> founders;
    for (std::size_t k = 0; k < count; ++k) {
      founders.push_back(std::string(1, static_cast<char>('a' + k)));
      lines.push_back({.rank = static_cast<Rank>(k),
                       .name = founders.back(),
                       .key = make_key_pair().public_key});
    }
    std::vector<std::string> names = founders;
    founders.resize(count - pace.newcomers);
    list_ = std::make_unique<AllowList>(lines);
    for (std::size_t k = 0; k < count; ++k) {
      nodes_.push_back(std::make_unique<Node>());
      Node& node = *nodes_.back();
      node.name = names[k];
      node.member.emplace(EpochSetup{.name = node.name,
                                     .incarnation = k + 1,
                                     .founders = pace.apart ? std::vector{node.name} : founders,
                                     .parameters = node.x,
                                     .layout = {},
                                     .step_rule = make_step_rule({}),
                                     .compressor = make_compressor("none"),
                                     .grace = {}},
                          now_);
      node.links.emplace(ElasticLinks::Parts{
          .name = node.name,
          .incarnation = k + 1,
          .channels = node.channels,
          .list = *list_,
          .connect_within = EpochTime(2'000),
          .clock = [this] { return now_; },
          .keep =
              [&node](std::span<const std::byte> /*votes*/) {
                ++node.kept;
                return Status();
              },
          .listener = [&node](const SiteEvent& event) { node.events.push_back(event); }});
    }
    for (std::size_t k = 0; k < count; ++k) {
      for (std::size_t j = 0; j < k; ++j) {
        connect(j, k);
      }
    }
  }

  Node& operator[](std::size_t k) { return *nodes_[k]; }
  RandomStream& draw() { return draw_; }
  std::size_t size() const { return nodes_.size(); }
  EpochTime now() const { return now_; }

  void connect(std::size_t one, std::size_t other) {
    for (const auto& [at, peer] : {std::pair(one, other), std::pair(other, one)}) {
      nodes_[at]->channels.open.insert(static_cast<Rank>(peer));
      nodes_[at]->channels.add(now_,
                               {.kind = ChannelEvent::Kind::up, .peer = static_cast<Rank>(peer)});
    }
  }
  /// Ends a channel; what is under way is lost.
  void cut(std::size_t one, std::size_t other) {
    for (const auto& [at, peer] : {std::pair(one, other), std::pair(other, one)}) {
      MemoryChannels& channels = nodes_[at]->channels;
      const auto rank = static_cast<Rank>(peer);
      if (channels.open.erase(rank) == 0) {
        continue;
      }
      std::erase_if(channels.arrivals, [&](const auto& arrival) {
        return arrival.event.peer == rank && arrival.event.kind == ChannelEvent::Kind::message;
      });
      channels.add(now_, {.kind = ChannelEvent::Kind::down, .peer = rank, .reason = "cut"});
    }
  }
  void kill(std::size_t victim) {
    for (std::size_t k = 0; k < size(); ++k) {
      if (k != victim) {
        cut(victim, k);
      }
    }
    nodes_[victim]->alive = false;
  }
  /// Five milliseconds of all that live.
  void advance() {
    now_ += EpochTime(5);
    for (std::size_t k = 0; k < size(); ++k) {
      Node& node = *nodes_[k];
      node.channels.now = now_;
      if (!node.alive) {
        continue;
      }
      std::vector<KnownNode> known;
      for (std::size_t j = 0; j < size(); ++j) {
        if (j != k) {
          known.push_back({nodes_[j]->name, j + 1, false});
        }
      }
      node.links->set_nodes(known);
      REQUIRE(node.links->pump(Deadline::after({}), &*node.member).ok());
      node.wanted =
          node.member->wants_gradient() ? std::optional(node.wanted.value_or(now_)) : std::nullopt;
      if (node.wanted && now_ - *node.wanted >= pace_.gradient) {
        node.wanted.reset();
        const std::vector<float> gradient(node.x.size(), 0.01F * static_cast<float>(k + 1));
        REQUIRE(node.member->offer(gradient, now_).ok());
      }
      for (auto& [peer, message] : std::exchange(node.channels.sent, {})) {
        auto delay = EpochTime(static_cast<std::int64_t>(draw_.below(pace_.delay)));
        const std::size_t last = std::max(k, static_cast<std::size_t>(peer));
        delay += last + pace_.newcomers >= size() ? pace_.far : EpochTime(0);
        nodes_[static_cast<std::size_t>(peer)]->channels.add(now_ + delay,
                                                             {.kind = ChannelEvent::Kind::message,
                                                              .peer = static_cast<Rank>(k),
                                                              .message = std::move(message)});
      }
    }
  }
  /// Whether all that live are members of one epoch without the dead, and have come so far.
  bool all_at(Round step) const {
    const auto living = static_cast<std::size_t>(
        std::ranges::count_if(nodes_, [](const auto& node) { return node->alive; }));
    return std::ranges::all_of(nodes_, [&](const auto& node) {
      return !node->alive ||
             (node->member->step() >= step && node->member->members().size() == living);
    });
  }
  Round furthest() const {
    Round step = 0;
    for (const auto& node : nodes_) {
      step = std::max(step, node->alive ? node->member->step() : Round{0});
    }
    return step;
  }

 private:
  RandomStream draw_;
  const Pace pace_;
  EpochTime now_{0};
  std::unique_ptr<AllowList> list_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

/// Moves on until all that live are at this step; false: not within a minute of virtual time.
bool reach(World& world, Round step) {
  for (int k = 0; k < 12'000 && !world.all_at(step); ++k) {
    world.advance();
  }
  return world.all_at(step);
}

/// One mean a step at all that live.
void check_equal(World& world) {
  std::map<Round, EpochDigest> digests;
  for (std::size_t k = 0; k < world.size(); ++k) {
    if (world[k].alive) {
      const EpochMember& member = *world[k].member;
      const auto [known, first] = digests.try_emplace(member.step(), *member.latest());
      CHECK(known->second == *member.latest());
    }
  }
}

bool told(const World::Node& node, SiteEvent::Kind kind) {
  return std::ranges::any_of(node.events, [&](const auto& event) { return event.kind == kind; });
}

}  // namespace

TEST_CASE("elastic nodes: a death is noticed as its channel closes, and the others go on at once") {
  World world(1, 4);
  REQUIRE(reach(world, 5));
  CHECK(world[0].kept > 0);
  world.kill(0);  // the eldest
  const EpochTime since = world.now();
  const Round step = world.furthest();
  REQUIRE(reach(world, step + 1));
  CHECK(world.now() - since < EpochTime(500));  // of virtual time
  CHECK(told(world[1], SiteEvent::Kind::peer_down));
  check_equal(world);
}

TEST_CASE("elastic nodes: what an offer makes a node say goes out before it waits for the others") {
  World world(3, 2);
  while (!world.all_at(3) || !world[0].member->wants_gradient()) {
    world.advance();
  }
  World::Node& node = world[0];
  const std::vector<float> gradient(node.x.size(), 0.01F);
  REQUIRE(node.member->offer(gradient, world.now()).ok());
  node.channels.sent.clear();
  node.channels.sent_by_poll.reset();
  REQUIRE(node.links->pump(Deadline::after({}), &*node.member).ok());
  CHECK(node.channels.sent_by_poll.value() > 0);
}

TEST_CASE("elastic nodes: whatever is cut and killed, those that live go on with one model") {
  const std::uint64_t seed = test::drawn_seed();
  CAPTURE(seed);
  for (std::uint64_t play = 0; play < 20; ++play) {
    CAPTURE(play);
    World world(seed + play, 3 + play % 4);
    REQUIRE(reach(world, 3));
    const std::size_t victim = world.draw().below(world.size());
    for (int fault = 0; fault < 6; ++fault) {
      const std::size_t one = world.draw().below(world.size());
      const std::size_t other = (one + 1 + world.draw().below(world.size() - 1)) % world.size();
      world.cut(one, other);
      for (std::uint64_t k = world.draw().below(60); k > 0; --k) {
        world.advance();
      }
      world.connect(one, other);
      for (std::uint64_t k = world.draw().below(200); k > 0; --k) {
        world.advance();
      }
    }
    REQUIRE(reach(world, world.furthest()));  // all are members again
    world.kill(victim);
    REQUIRE(reach(world, world.furthest() + 3));
    check_equal(world);
  }
}

TEST_CASE("elastic nodes: a newcomer far away takes part in a run that is fast") {
  World world(4, 4, {.newcomers = 1, .gradient = EpochTime(0), .delay = 1, .far = EpochTime(200)});
  const EpochMember& newcomer = *world[3].member;
  Round behind = 0;
  while (world.now() < EpochTime(60'000) && newcomer.standing() != EpochStanding::member) {
    world.advance();
    const bool replays = newcomer.step() > 0 && !world[0].member->frozen();
    behind = std::max(behind, replays ? world[0].member->step() - newcomer.step() : Round{0});
  }
  CHECK(behind > EpochDonor::kNear);
  REQUIRE(newcomer.standing() == EpochStanding::member);
  REQUIRE(reach(world, world.furthest() + 3));
  check_equal(world);
}

TEST_CASE("elastic nodes: of two runs that meet the one with fewer steps ends, and never both") {
  const std::uint64_t seed = test::drawn_seed();
  for (std::uint64_t k = 0; k < 10; ++k) {
    CAPTURE(seed + k);
    World world(seed + k, 2, {.delay = 20, .apart = true});
    world.cut(0, 1);
    const bool later = k % 2 == 0;
    world[1].alive = !later;
    for (int moves = 0; moves < 200; ++moves) {
      world.advance();
    }
    world[1].alive = true;
    world.connect(0, 1);
    const auto outrun = [&](std::size_t node) {
      return world[node].links->outrun_by(*world[node].member).has_value();
    };
    for (int moves = 0; moves < 60'000 && !outrun(0) && !outrun(1); ++moves) {
      world.advance();
    }
    CHECK(outrun(0) + outrun(1) == 1);
    CHECK((!later || outrun(1)));
    CHECK(
        (told(world[0], SiteEvent::Kind::other_run) || told(world[1], SiteEvent::Kind::other_run)));
  }
}

TEST_CASE("elastic nodes: a peer that breaks the grammar, or says no hello, is hung up on") {
  World world(2, 2);
  world[0].channels.add(
      world.now(), {.kind = ChannelEvent::Kind::message, .peer = 1, .message = {std::byte{99}}});
  world.advance();
  CHECK(world[0].channels.closed == std::vector<Rank>{1});  // before its hello
  CHECK(told(world[0], SiteEvent::Kind::peer_offence));
  for (int k = 0; k < 20; ++k) {
    world.advance();
  }
  for (const std::vector<std::byte>& message :
       {std::vector{std::byte{99}}, std::vector{std::byte{kElasticHelloKind}},
        encode(ElasticHello{.incarnation = 77})}) {
    world[0].channels.closed.clear();
    world[0].channels.add(world.now(),
                          {.kind = ChannelEvent::Kind::message, .peer = 1, .message = message});
    for (int k = 0; k < 20; ++k) {
      world.advance();
    }
    CHECK(world[0].channels.closed == std::vector<Rank>{1});
  }
}

TEST_CASE("elastic nodes: hellos are read back, and nothing else is taken for one") {
  const ElasticHello hello{.incarnation = 5, .history = {7, 9}, .steps = 11};
  const std::vector<std::byte> bytes = encode(hello);
  CHECK(parse_hello(bytes) == hello);
  CHECK(is_hello(bytes));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CHECK_FALSE(parse_hello(std::span(bytes).first(size)).has_value());
  }
  std::vector<std::byte> longer = bytes;
  longer.push_back({});
  CHECK_FALSE(parse_hello(longer).has_value());
  CHECK_FALSE(parse_hello(encode(ElasticHello{.incarnation = 0})).has_value());
  // A node whose messages of epochs have version 2 or 3 says 3 in its hello: it does not greet.
  std::vector<std::byte> older = bytes;
  older[1] = std::byte{3};
  CHECK_FALSE(parse_hello(older).has_value());
  static_assert(kElasticHelloProtocol > sites::kEpochProtocol && kElasticHelloProtocol > 3);
}

TEST_CASE("elastic nodes: of a roster the others are known that are there and have one process") {
  const auto entry = [](std::string name, sites::NodePhase phase) {
    sites::RosterEntry made;
    made.name = std::move(name);
    made.incarnation = 4;
    made.phase = phase;
    return made;
  };
  sites::RosterView view;
  view.members = {{.entry = entry("self", sites::NodePhase::up)},
                  {.entry = entry("a", sites::NodePhase::up)},
                  {.entry = entry("b", sites::NodePhase::leaving), .suspected = true},
                  {.entry = entry("c", sites::NodePhase::gone)},
                  {.entry = entry("d", sites::NodePhase::ended)},
                  {.entry = entry("e", sites::NodePhase::up), .conflict = true}};
  CHECK(known_nodes(view, "self") == std::vector<KnownNode>{{"a", 4, false}, {"b", 4, true}});
}

}  // namespace sotto::test::elastic_links_test
