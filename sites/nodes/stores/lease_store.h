// The leases that nodes keep in a store in place of seeds with fixed addresses, by which they find
// each other (sites/roster/seed_leases.h; docs/epochs.md, "Seeds from a store").
//
//   nodes/seeds/N    a lease, N from 0
//
// A refused lease is nobody's.
//
// Thread safety: one thread at a time. Every call waits for a server until its deadline, at most;
// for one of files as long as the system does. Ownership: the entries must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/comm/trust/run_key.h>
#include <sotto/sites/nodes/stores/stored_entries.h>
#include <sotto/sites/roster/seed_leases.h>

namespace sotto {

class LeaseStore {
 public:
  /// Leases are sealed under a key that follows from the run's.
  LeaseStore(StoredEntries& entries, const RunKey& key);

  /// All places of leases. A fault: the store does not answer.
  Result<std::vector<sites::SeedPlace>> places(Deadline deadline);
  /// Puts a lease into a place that is empty; false: another one was first.
  Result<bool> claim(std::size_t place, const sites::SeedLease& lease, Deadline deadline);
  /// Puts a lease into this node's place.
  Status renew(std::size_t place, const sites::SeedLease& lease, Deadline deadline);
  /// Empties a place, where its value has still this mark.
  Status clear(std::size_t place, std::uint64_t mark, Deadline deadline);
  /// Empties this node's place, where its lease is.
  Status leave(std::size_t place, const sites::SeedLease& lease, Deadline deadline);

 private:
  StoredEntries& entries_;
  const PrivateKey key_;
};

}  // namespace sotto
