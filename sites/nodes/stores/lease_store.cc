#include <sotto/sites/nodes/stores/lease_store.h>

#include <string>
#include <utility>

#include <fmt/format.h>

#include <sotto/comm/trust/sealed_message.h>

namespace sotto {
namespace {

using sites::SeedLease;
using sites::SeedLeases;
using sites::SeedPlace;

std::string place_key(std::size_t place) { return fmt::format("nodes/seeds/{}", place); }

}  // namespace

LeaseStore::LeaseStore(StoredEntries& entries, const RunKey& key)
    : entries_(entries), key_(key.derived("sotto leases in a store")) {}

Result<std::vector<SeedPlace>> LeaseStore::places(Deadline deadline) {
  std::vector<SeedPlace> places(SeedLeases::kPlaces);
  for (std::size_t k = 0; k < places.size(); ++k) {
    const std::string key = place_key(k);
    const auto entry = entries_.read(key, key_, sites::kMostLeaseBytes, deadline);
    if (!entry) {
      return entry.status();
    }
    places[k].mark = entry->mark;
    if (entry->opened) {
      auto lease = sites::parse_lease(*entry->opened);
      if (lease) {
        places[k].lease = std::move(*lease);
      } else {
        entries_.refuse(key, entry->mark, lease.status().message());
      }
    }
  }
  return places;
}

Result<bool> LeaseStore::claim(std::size_t place, const SeedLease& lease, Deadline deadline) {
  const auto sealed = seal_message(encode(lease), key_);
  const auto there = entries_.store().claim(place_key(place), sealed,
                                            sites::kMostLeaseBytes + kSealBytes, deadline);
  if (!there && there.status().fault() == Fault::malformed) {
    return false;  // it is taken, and refused at the next look
  }
  return there ? Result<bool>(*there == sealed) : there.status();
}

Status LeaseStore::renew(std::size_t place, const SeedLease& lease, Deadline deadline) {
  return entries_.store().put(place_key(place), seal_message(encode(lease), key_), deadline);
}

Status LeaseStore::clear(std::size_t place, std::uint64_t mark, Deadline deadline) {
  const auto entry = entries_.read(place_key(place), key_, sites::kMostLeaseBytes, deadline);
  if (!entry) {
    return entry.status();
  }
  return entry->mark == mark ? entries_.store().drop(place_key(place), deadline) : Status();
}

Status LeaseStore::leave(std::size_t place, const SeedLease& lease, Deadline deadline) {
  const auto entry = entries_.read(place_key(place), key_, sites::kMostLeaseBytes, deadline);
  if (!entry) {
    return entry.status();
  }
  const auto there = entry->opened ? sites::parse_lease(*entry->opened)
                                   : Result<SeedLease>(Status(Fault::malformed, "no lease"));
  const bool own = there && there->incarnation == lease.incarnation && there->name == lease.name;
  return own ? entries_.store().drop(place_key(place), deadline) : Status();
}

}  // namespace sotto
