// How a site takes part in a run whose nodes come and go. Plain values; a pure
// function.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <sotto/comm/trust/run_key.h>

namespace sotto {

/// With these, nodes find each other by a roster (sites/roster/roster.h) in place of a list of
/// peers.
struct RosterOptions {
  std::size_t least = 1;  ///< MIN: training begins when so many are up; fewer later are warned of
  std::size_t most = 64;  ///< MAX: a newcomer is refused where so many are up
  /// HOST:PORT of nodes that newcomers ask, this one's own may be among them; or the URL of a store
  /// by which nodes find each other (docs/epochs.md), `file:DIR`, `redis://HOST:PORT/PREFIX` or
  /// `torch://HOST:PORT/PREFIX`, and nothing else; none: this node begins the run.
  std::vector<std::string> seeds{};
  /// How long the first answer of such a store is awaited.
  std::chrono::milliseconds store_patience{30'000};
  /// Which all nodes of the run have; without a secret one, nodes are on this host.
  RunKey key = RunKey::open();
  /// Let a run without a secret key reach beyond this host.
  bool insecure = false;
  /// How long a node that leaves waits at most for what it has sent to arrive.
  std::chrono::milliseconds leave_patience{5'000};
};

/// Whether the nodes find each other by a store.
bool by_store(const RosterOptions& options);

}  // namespace sotto
