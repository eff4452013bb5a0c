// Leases by which nodes find each other in a store: when one is old by what a node has watched, and
// that nodes which come, go and are killed share few places.
#include <sotto/sites/roster/seed_leases.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/philox.h>

#include "support/seed.h"

namespace sotto::test::seed_leases_test {
using sites::RosterTime;
using sites::SeedLease;
using sites::SeedLeases;
using sites::SeedPlace;

namespace {

using Places = std::vector<SeedPlace>;

SeedLease lease_of(const std::string& name, std::uint64_t incarnation) {
  return {.name = name,
          .incarnation = incarnation,
          .address = "10.0.0." + std::to_string(incarnation) + ":9000"};
}

SeedPlace place_of(const SeedLease& lease, std::uint64_t mark) {
  return {.mark = mark, .lease = lease};
}

std::vector<std::string> addresses_of(const SeedLeases& leases) {
  std::vector<std::string> addresses;
  for (const sites::RosterSeed& seed : leases.seeds()) {
    addresses.push_back(seed.address);
  }
  return addresses;
}

/// Looks at the places again and again for a span, as often as a node does.
void watch(SeedLeases& leases, const Places& places, RosterTime& now, RosterTime span) {
  for (const RosterTime end = now + span; now < end;) {
    now = std::min(now + RosterTime(1'000), end);
    leases.saw(places, now);
  }
}

/// A store in virtual time, and nodes that look at it at times of their own.
class LeaseWorld {
 public:
  explicit LeaseWorld(std::uint64_t seed) : draw_({.seed = seed, .purpose = Purpose::faults}) {}

  void start() {
    const std::uint64_t id = ++ids_;
    nodes_.emplace(
        id, Node{.leases = std::make_unique<SeedLeases>(lease_of("n" + std::to_string(id), id)),
                 .next = now_ + draw_.below(2'000),
                 .offset = draw_.below(1'000'000'000)});
  }
  /// A process is killed: its lease stays.
  void kill() { nodes_.erase(std::next(nodes_.begin(), any())); }
  /// A process leaves: its lease is taken out.
  void leave() {
    const auto node = std::next(nodes_.begin(), any());
    for (SeedPlace& place : places_) {
      if (place.lease && place.lease->incarnation == node->first) {
        place = {};
      }
    }
    nodes_.erase(node);
  }
  void set_gone(bool gone) { gone_ = gone; }
  std::size_t count() const { return nodes_.size(); }
  RandomStream& draw() { return draw_; }
  Places& places() { return places_; }

  void run_for(std::uint64_t span) {
    for (const std::uint64_t end = now_ + span; now_ < end; now_ += 100) {
      for (auto& [id, node] : nodes_) {
        if (node.next <= now_) {
          look(node);
          node.next = now_ + 1'000 + draw_.below(5'000);
        }
      }
    }
  }
  /// Whether each node may ask one that lives, and none that does not.
  bool all_find_others() const {
    return std::ranges::all_of(nodes_, [this](const auto& item) {
      const auto addresses = addresses_of(*item.second.leases);
      return (!addresses.empty() || nodes_.size() == 1) &&
             std::ranges::all_of(addresses, [this](const std::string& address) {
               return std::ranges::any_of(nodes_, [&](const auto& other) {
                 return lease_of("", other.first).address == address;
               });
             });
    });
  }

 private:
  struct Node {
    std::unique_ptr<SeedLeases> leases;
    std::uint64_t next = 0;
    std::uint64_t offset = 0;  ///< of its clock
  };

  std::ptrdiff_t any() { return static_cast<std::ptrdiff_t>(draw_.below(nodes_.size())); }
  RosterTime time_of(const Node& node) const {
    return RosterTime(static_cast<RosterTime::rep>(now_ + node.offset));
  }
  void look(Node& node) {
    const RosterTime now = time_of(node);
    SeedLeases& leases = *node.leases;
    if (gone_) {
      leases.missed();
      return;
    }
    leases.saw(places_, now);
    for (const std::size_t place : leases.old()) {
      places_[place] = {};
      leases.removed(place);
    }
    if (const auto place = leases.free_place()) {
      if (places_[*place].mark == 0) {
        places_[*place] = place_of(leases.next(), ++marks_);
        leases.written(*place, now);
      } else {
        leases.taken(*place);
      }
    }
    if (leases.renewal_due(now)) {
      places_[*leases.own_place()] = place_of(leases.next(), ++marks_);
      leases.written(*leases.own_place(), now);
    }
  }

  RandomStream draw_;
  Places places_ = Places(SeedLeases::kPlaces);
  std::map<std::uint64_t, Node> nodes_;
  std::uint64_t now_ = 0;
  std::uint64_t ids_ = 0;
  std::uint64_t marks_ = 10;
  bool gone_ = false;
};

}  // namespace

TEST_CASE("seed leases: bytes come back as they were and others are refused") {
  const SeedLease lease{
      .name = "a b", .incarnation = 7, .address = "[2001:db8::1]:9000", .count = 3};
  const std::vector<std::byte> bytes = encode(lease);
  CHECK(bytes.size() <= sites::kMostLeaseBytes);
  CHECK(sites::parse_lease(bytes).value() == lease);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CHECK_FALSE(sites::parse_lease(std::span(bytes).first(size)).ok());
  }
  std::vector<std::byte> longer = bytes;
  longer.push_back(std::byte{0});
  CHECK_FALSE(sites::parse_lease(longer).ok());
  const auto refused = [&](auto change) {
    SeedLease changed = lease;
    change(changed);
    return !sites::parse_lease(encode(changed)).ok();
  };
  CHECK(refused([](SeedLease& one) { one.incarnation = 0; }));
  CHECK(refused([](SeedLease& one) { one.name.clear(); }));
  CHECK(refused([](SeedLease& one) { one.name = "a\nb"; }));
  CHECK(refused([](SeedLease& one) { one.name = std::string(sites::kMostRosterName + 1, 'a'); }));
  CHECK(refused([](SeedLease& one) { one.address = "10.0.0.1"; }));
  // A name would be asked of a name server, by all nodes.
  CHECK(refused([](SeedLease& one) { one.address = "host.example:9000"; }));
  std::string address(sites::kMostRosterAddress - 2, '1');
  address += ":1";
  const std::string longest(sites::kMostRosterName, 'a');
  const SeedLease largest{.name = longest, .incarnation = 1, .address = address};
  CHECK(sites::parse_lease(encode(largest)).value() == largest);
  address += "1";
  CHECK(refused([&](SeedLease& one) { one.address = address; }));
  CHECK(encode(largest).size() <= sites::kMostLeaseBytes);
}

TEST_CASE("seed leases: one is old once it was watched for its length without a change") {
  SeedLeases leases(lease_of("a", 1));
  Places places(SeedLeases::kPlaces);
  places[3] = place_of(lease_of("b", 2), 5);
  places[9] = {.mark = 6, .lease = std::nullopt};  // it was refused, and holds a place
  const RosterTime length = SeedLeases::kLength;
  RosterTime now{123'456};
  leases.saw(places, now);
  // A newcomer cannot tell whether it is old, and asks.
  CHECK(leases.seeds() ==
        std::vector<sites::RosterSeed>{{.address = "10.0.0.2:9000", .renewals = 0}});
  CHECK(leases.old().empty());
  watch(leases, places, now, length - RosterTime(2));
  places[3].mark = 7;  // it was renewed
  watch(leases, places, now, RosterTime(1));
  CHECK(leases.old().empty());
  watch(leases, places, now, RosterTime(1));
  CHECK(leases.old() == std::vector<std::size_t>{9});
  CHECK(leases.seeds() ==
        std::vector<sites::RosterSeed>{{.address = "10.0.0.2:9000", .renewals = 1}});
  watch(leases, places, now, length);
  CHECK(leases.old() == std::vector<std::size_t>{3, 9});
  CHECK(leases.seeds().empty());
  leases.removed(3);
  CHECK(leases.old() == std::vector<std::size_t>{9});
}

TEST_CASE("seed leases: nothing grows old in a look that takes its time without a fault") {
  // The process was suspended, or a call of the store hung: nobody is known not to have renewed.
  SeedLeases leases(lease_of("a", 1));
  Places places(SeedLeases::kPlaces);
  places[3] = place_of(lease_of("b", 2), 5);
  RosterTime now{0};
  leases.saw(places, now);
  watch(leases, places, now, SeedLeases::kLength / 2);
  now += 100 * SeedLeases::kLength;
  leases.saw(places, now);
  CHECK(leases.old().empty());
  CHECK(leases.seeds().size() == 1);
  places[3].mark = 6;
  watch(leases, places, now, RosterTime(1'000));
  // A clock that goes back, as none should, makes nothing older or newer.
  leases.saw(places, now - RosterTime(500));
  watch(leases, places, now, SeedLeases::kLength - RosterTime(2'000));
  CHECK(leases.old().empty());
  watch(leases, places, now, RosterTime(2'000));
  CHECK(leases.old() == std::vector<std::size_t>{3});
}

TEST_CASE(
    "seed leases: a renewal counts where it was watched, and for the node that has the lease") {
  SeedLeases leases(lease_of("a", 1));
  Places places(SeedLeases::kPlaces);
  RosterTime now{0};
  const auto renewals = [&] {
    watch(leases, places, now, RosterTime(1'000));
    return leases.seeds().at(0).renewals;
  };
  places[3] = place_of(lease_of("b", 2), 5);
  CHECK(renewals() == 0);
  CHECK(renewals() == 0);
  places[3].mark = 6;
  CHECK(renewals() == 1);
  leases.missed();
  places[3].mark = 7;  // it may be from long ago
  CHECK(renewals() == 1);
  places[3].mark = 8;
  CHECK(renewals() == 2);
  places[4] = place_of({.name = "c", .incarnation = 3, .address = "10.0.0.2:9000"}, 9);
  CHECK(renewals() == 2);  // another lease of one address
  places[3] = place_of(lease_of("b", 2), 10);
  places[3].lease->incarnation = 4;  // another process
  CHECK(renewals() == 0);
}

TEST_CASE("seed leases: nothing grows old while the store does not answer") {
  SeedLeases leases(lease_of("a", 1));
  Places places(SeedLeases::kPlaces);
  places[3] = place_of(lease_of("b", 2), 5);
  leases.saw(places, RosterTime(0));
  leases.missed();
  RosterTime now = 10 * SeedLeases::kLength;
  leases.saw(places, now);  // nobody could renew anything meanwhile
  CHECK(leases.old().empty());
  CHECK(leases.seeds().size() == 1);
  watch(leases, places, now, SeedLeases::kLength);
  CHECK(leases.old().size() == 1);
}

TEST_CASE("seed leases: a node has one place and renews it and takes another if it is lost") {
  SeedLeases leases(lease_of("a", 1));
  Places places(SeedLeases::kPlaces);
  leases.saw(places, RosterTime(0));
  const std::size_t first = leases.free_place().value();
  leases.taken(first);
  const std::size_t second = leases.free_place().value();
  CHECK(second != first);
  const SeedLease written = leases.next();
  leases.written(second, RosterTime(0));
  CHECK_FALSE(leases.free_place());
  CHECK_FALSE(leases.renewal_due(SeedLeases::kLength / 3 - RosterTime(1)));
  CHECK(leases.renewal_due(SeedLeases::kLength / 3));
  CHECK(leases.next().count == written.count + 1);
  places[first] = place_of(lease_of("b", 2), 5);
  places[second] = place_of(written, 6);
  leases.saw(places, RosterTime(1));
  CHECK(leases.own_place() == second);
  places[second] = place_of(lease_of("c", 3), 7);
  leases.saw(places, RosterTime(2));
  CHECK_FALSE(leases.own_place());
  CHECK(leases.free_place().has_value());
  // Where all places are taken a node has none, and asks those that are there, but not itself.
  for (std::size_t k = 0; k < places.size(); ++k) {
    places[k] = place_of(lease_of("n", 10 + k % 5), 100 + k);
  }
  places[4].lease->address = lease_of("a", 1).address;
  leases.saw(places, RosterTime(3));
  CHECK_FALSE(leases.free_place());
  CHECK(leases.seeds().size() == 5);
}

TEST_CASE("seed leases: nodes that come and go find each other also beside a store that is gone") {
  const std::uint64_t seed = drawn_seed();
  for (std::uint64_t k = 0; k < 30; ++k) {
    CAPTURE(seed + k);
    LeaseWorld world(seed + k);
    const std::size_t most = k % 2 == 0 ? 8 : 3 * SeedLeases::kPlaces;
    for (int event = 0; event < 120; ++event) {
      const std::size_t count = world.count();
      switch (world.draw().below(6)) {
        case 0:
        case 1:
          if (count < most) {
            world.start();
          }
          break;
        case 2:
          if (count > 1) {
            world.kill();
          }
          break;
        case 3:
          if (count > 1) {
            world.leave();
          }
          break;
        case 4:
          world.places()[world.draw().below(SeedLeases::kPlaces)] = {.mark =
                                                                         2};  // what is no lease
          break;
        default:
          world.set_gone(world.draw().below(2) == 0);
      }
      world.run_for(world.draw().below(40'000));
    }
    world.set_gone(false);
    if (world.count() == 0) {
      world.start();
    }
    // Old leases are seen as such, and a place that gets free is taken, within two lengths.
    world.run_for(3 * 30'000);
    CHECK(world.all_find_others());
  }
}

}  // namespace sotto::test::seed_leases_test
