#include <sotto/sites/roster/seed_leases.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include <sotto/base/bytes.h>
#include <sotto/base/check.h>
#include <sotto/base/text.h>
#include <sotto/sites/roster/roster_book.h>

namespace sotto::sites {
namespace {

constexpr std::uint8_t kLeaseVersion = 1;

/// Whether it may be HOST:PORT in numbers: no name is looked up for what a store says.
bool in_numbers(std::string_view address) {
  constexpr std::string_view kOfNumbers = "0123456789abcdefABCDEF.:[]";
  return address.find(':') != std::string_view::npos &&
         address.find_first_not_of(kOfNumbers) == std::string_view::npos;
}

}  // namespace

std::vector<std::byte> encode(const SeedLease& lease) {
  ByteBuffer out;
  out.write(kLeaseVersion);
  out.write(lease.incarnation);
  out.write(lease.count);
  out.write_string(lease.name);
  out.write_string(lease.address);
  return std::move(out).take();
}

Result<SeedLease> parse_lease(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  const auto version = in.read<std::uint8_t>();
  SeedLease lease{.incarnation = in.read<Incarnation>()};
  lease.count = in.read<std::uint64_t>();
  lease.name = in.read_string(kMostRosterName);
  lease.address = in.read_string(kMostRosterAddress);
  if (!in.finished() || version != kLeaseVersion) {
    return Status(Fault::malformed, "it has not the form of a lease");
  }
  if (lease.incarnation == 0 || lease.name.empty() || one_line(lease.name) != lease.name ||
      !in_numbers(lease.address)) {
    return Status(Fault::malformed, "it is a lease that cannot be");
  }
  return lease;
}

SeedLeases::SeedLeases(SeedLease own, RosterTime length) : self_(std::move(own)), length_(length) {}

void SeedLeases::saw(std::span<const SeedPlace> places, RosterTime now) {
  check(places.size() == kPlaces, "a look is at all places");
  if (watched_) {
    watched_for_ += std::clamp(now - looked_, RosterTime(0), length_ / kLooksInLength);
  }
  looked_ = now;
  own_.reset();
  for (std::size_t k = 0; k < kPlaces; ++k) {
    Place& place = places_.at(k);
    const SeedPlace before = std::exchange(place.seen, places[k]);
    const auto& lease = place.seen.lease;
    const bool changed = before.mark != place.seen.mark;
    const bool same_node = before.lease && lease && before.lease->name == lease->name &&
                           before.lease->incarnation == lease->incarnation;
    place.renewals = !same_node ? 0 : place.renewals + (watched_ && changed ? 1 : 0);
    if (!watched_ || changed) {
      place.since = watched_for_;
    }
    if (!own_ && lease && lease->incarnation == self_.incarnation && lease->name == self_.name) {
      own_ = k;
      place.since = watched_for_;
    }
  }
  watched_ = true;
}

std::vector<std::size_t> SeedLeases::old() const {
  std::vector<std::size_t> found;
  for (std::size_t k = 0; k < kPlaces; ++k) {
    if (k != own_ && is_old(places_.at(k))) {
      found.push_back(k);
    }
  }
  return found;
}

std::optional<std::size_t> SeedLeases::free_place() const {
  if (own_) {
    return std::nullopt;
  }
  // Nodes that start together are not to claim one place.
  const std::size_t first = key_of(self_.name, self_.incarnation) % kPlaces;
  for (std::size_t k = 0; k < kPlaces; ++k) {
    const std::size_t place = (first + k) % kPlaces;
    if (places_.at(place).seen.mark == 0) {
      return place;
    }
  }
  return std::nullopt;
}

void SeedLeases::written(std::size_t place, RosterTime now) {
  own_ = place;
  written_ = now;
  places_.at(place) = {.seen = {.mark = kUnknown, .lease = self_}, .since = watched_for_};
}

SeedLease SeedLeases::next() {
  ++self_.count;
  return self_;
}

std::vector<RosterSeed> SeedLeases::seeds() const {
  std::vector<RosterSeed> found;
  for (const Place& place : places_) {
    const auto& lease = place.seen.lease;
    if (lease && lease->incarnation != self_.incarnation && lease->address != self_.address &&
        !is_old(place)) {
      const auto known = std::ranges::find(found, lease->address, &RosterSeed::address);
      if (known == found.end()) {
        found.push_back({.address = lease->address, .renewals = place.renewals});
      } else {
        known->renewals = std::max(known->renewals, place.renewals);
      }
    }
  }
  return found;
}

}  // namespace sotto::sites
