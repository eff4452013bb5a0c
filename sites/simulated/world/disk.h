// The disk that a simulated site writes its state to: plain state of the simulation. One thread at
// a time. A disk may outlive many processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/sites/core/site.h>
#include <sotto/sites/faults/mass_accounts.h>

namespace sotto::sites {

/// A state as it was written, and what an onlooker knows of it.
struct Commit {
  std::uint32_t life = 0;
  std::vector<std::byte> bytes;
  MassAccount account;
  SiteState state;
  std::vector<PeerState> peers;
  std::vector<Rank> listed;  ///< the peers' sites, by place
};

/// What is left of a site when its process dies.
struct Disk {
  static constexpr std::size_t kKept = 8;

  std::uint32_t life = 0;      ///< life of the last process that began, written at once
  std::deque<Commit> commits;  ///< oldest first; those before the last may be restored
  bool damaged = false;        ///< whether the last one does not match its checksum
  MassAccount bare;            ///< account of a site without state

  const MassAccount& account() const { return commits.empty() ? bare : commits.back().account; }
};

}  // namespace sotto::sites
