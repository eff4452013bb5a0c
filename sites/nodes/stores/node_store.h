// What a node keeps in a store: its lease, and which runs were begun. Not for users.
//
// Thread safety: one thread at a time.
#pragma once

#include <memory>
#include <utility>

#include <sotto/comm/shared_store.h>
#include <sotto/comm/trust/run_key.h>
#include <sotto/sites/nodes/stores/lease_store.h>
#include <sotto/sites/nodes/stores/run_store.h>
#include <sotto/sites/nodes/stores/stored_entries.h>

namespace sotto {

struct NodeStore {
  /// Seals what it writes with the run's key.
  NodeStore(std::shared_ptr<SharedStore> store, const RunKey& key)
      : entries(std::move(store)), leases(entries, key), runs(entries, key) {}
  NodeStore(const NodeStore&) = delete;
  NodeStore& operator=(const NodeStore&) = delete;

  StoredEntries entries;
  LeaseStore leases;
  RunStore runs;
};

}  // namespace sotto
