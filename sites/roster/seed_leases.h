// Leases by which the nodes of a run find each other in a store: each says where a node can be
// asked, and changes whenever that renews it. A pure state machine: no store, no clock
// (docs/epochs.md, "Seeds from a store").
//
// The store has kPlaces places for them. A node takes a free one, if there is one, as few addresses
// are enough for a newcomer. Clocks of machines are not compared: a lease is old for a node that
// has watched it for kLength without a change. Only looks that follow one another count as
// watching: while the node was suspended, or a call of the store took its time, nobody may have
// been able to renew anything. Nobody is put out of a run for an old lease: it is only not asked
// any more, and its place is free.
//
// What its driver does: looks at all places now and then, tells saw() or missed(), and then does
// what old(), free_place() and renewal_due() say.
//
// Thread safety: one thread at a time. Owns all it holds, which is bounded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/sites/roster/roster_entry.h>

namespace sotto::sites {

/// Where a node of the run can be asked.
struct SeedLease {
  std::string name{};           ///< 1 … kMostRosterName bytes
  Incarnation incarnation = 0;  ///< of its process; never 0
  std::string address{};        ///< "HOST:PORT" where it is reached, in numbers
  std::uint64_t count = 0;      ///< grows with each renewal
  auto operator<=>(const SeedLease&) const = default;
};

inline constexpr std::size_t kMostLeaseBytes = 256;  ///< longest lease

/// The lease as bytes: a version u8, incarnation u64, count u64, and name and address, each a
/// length u32 and bytes.
std::vector<std::byte> encode(const SeedLease& lease);
/// Fault::malformed for anything that breaks the grammar, and for an address that is not in
/// numbers.
Result<SeedLease> parse_lease(std::span<const std::byte> bytes);

/// What a place in the store has.
struct SeedPlace {
  std::uint64_t mark = 0;            ///< digest of its value; 0: it has none
  std::optional<SeedLease> lease{};  ///< none though it has a value: that is no lease of this run
};

class SeedLeases {
 public:
  static constexpr std::size_t kPlaces = 32;  ///< leases that a store holds at once
  /// Time without a change after which a lease is old.
  static constexpr RosterTime kLength{30'000};
  /// Looks in which a lease grows old, at least: the time between two of them counts as this part
  /// of the length at most.
  static constexpr int kLooksInLength = 6;

  /// The leases as the node of this lease sees them; `length` is kLength but in tests.
  explicit SeedLeases(SeedLease own, RosterTime length = kLength);

  /// A look at all places has shown this. Requires kPlaces of them.
  void saw(std::span<const SeedPlace> places, RosterTime now);
  /// The store did not answer: as it answered nobody else either, all leases are as new as when it
  /// answers again.
  void missed() { watched_ = false; }

  /// Places whose value is old, and is to be removed unless it has changed.
  std::vector<std::size_t> old() const;
  /// The place's value was removed.
  void removed(std::size_t place) { places_.at(place) = {}; }
  /// The place that this node is to claim; none: it has one, or all are taken.
  std::optional<std::size_t> free_place() const;
  /// Another node has claimed that place.
  void taken(std::size_t place) {
    places_.at(place) = {.seen = {.mark = kUnknown}, .since = watched_for_};
  }
  /// This node's lease is in that place since now.
  void written(std::size_t place, RosterTime now);
  /// This node's lease is in no place any more.
  void left() { places_.at(*std::exchange(own_, std::nullopt)) = {}; }
  /// The place of this node's lease; none: it has none.
  std::optional<std::size_t> own_place() const { return own_; }
  /// Whether it is time to renew this node's lease.
  bool renewal_due(RosterTime now) const { return own_ && now - written_ >= length_ / 3; }
  /// This node's lease as it is to be written next.
  SeedLease next();

  /// The seeds at other nodes that may be asked: each address once, and none that is old.
  std::vector<RosterSeed> seeds() const;

 private:
  static constexpr std::uint64_t kUnknown = 1;  ///< mark of a value that was not read

  struct Place {
    SeedPlace seen{};
    RosterTime since{0};         ///< since when it has been like this, as watched_for_ says
    std::uint64_t renewals = 0;  ///< times that its lease was seen to be renewed
  };
  bool is_old(const Place& place) const {
    return place.seen.mark != 0 && watched_for_ - place.since >= length_;
  }

  SeedLease self_;
  RosterTime length_;
  std::array<Place, kPlaces> places_{};
  bool watched_ = false;       ///< the latest look was answered
  RosterTime looked_{0};       ///< when that was
  RosterTime watched_for_{0};  ///< time in which looks followed one another
  std::optional<std::size_t> own_{};
  RosterTime written_{0};  ///< when this node's lease was written last
};

}  // namespace sotto::sites
