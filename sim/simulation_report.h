// What a simulation came to: the nodes' lives in numbers, and what edges and links carried.
//
// Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/optim/algorithm.h>
#include <sotto/sim/network/platform.h>
#include <sotto/sim/time.h>

namespace sotto {

/// A node's life in numbers: its time from start to end falls into compute, codec, wire and idle.
struct NodeReport {
  Status status;  ///< reason why it ended early, if it did
  Round rounds = 0;
  SimTime start = 0;
  SimTime end = 0;
  SimTime compute = 0;
  SimTime codec = 0;
  SimTime wire = 0;  ///< waiting while bytes from it or for it were under way
  SimTime idle = 0;  ///< waiting for others, or suspended
  AlgorithmCounters counters;
};

/// Frames that left one node for another, whether they arrived or not, headers included.
struct EdgeReport {
  Rank from = 0;
  Rank to = 0;
  std::uint64_t frames = 0;
  std::uint64_t bytes = 0;
};

/// The traffic of a link.
struct LinkReport {
  LinkId link = 0;
  double bytes = 0;        ///< bytes of delivered messages
  double utilisation = 0;  ///< share of what it could have carried until the end, changes included
};

struct SimulationReport {
  SimTime end = 0;             ///< time when the last node ended
  std::uint64_t messages = 0;  ///< messages delivered
  std::uint64_t events = 0;
  std::string trace_sha256;
  std::vector<NodeReport> nodes;
  std::vector<EdgeReport> edges;  ///< sorted by (from, to)
  std::vector<LinkReport> links;
  /// Largest lead, in rounds, of a sender over the receiver of its frame.
  Round largest_lead = 0;
};

}  // namespace sotto
