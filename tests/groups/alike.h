// One program in several drivers: equal bits, and the traffic that its volume foretells.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/xxh3.h>
#include <sotto/groups/program.h>

#include "runs.h"

namespace sotto::test {

/// A digest of all nodes' models.
inline std::uint64_t hash_of(const ProgramRun& run) {
  std::uint64_t hash = 0;
  for (const auto& model : run.models) {
    hash = xxh3(std::as_bytes(std::span(model)), hash);
  }
  return hash;
}

/// Traffic of all nodes in `rounds` rounds, as volume() says it.
inline LockstepDriver::Traffic foretold(const ProgramJob& job) {
  ProgramRunner runner(job);
  LockstepDriver::Traffic sent;
  LockstepDriver::Traffic received;
  for (Rank rank = 0; rank < job.nodes; ++rank) {
    const auto algorithm = runner.algorithm(rank);
    const ExchangeVolume volume = dynamic_cast<ProgramAlgorithm&>(*algorithm).volume();
    for (const auto& [peer, edge] : volume.sent) {
      sent[{rank, peer}] = {edge.frames * job.rounds, edge.bytes * job.rounds};
    }
    for (const auto& [peer, edge] : volume.received) {
      received[{peer, rank}] = {edge.frames * job.rounds, edge.bytes * job.rounds};
    }
  }
  REQUIRE(sent.size() == received.size());
  for (const auto& [edge, traffic] : sent) {
    CHECK(received[edge].frames == traffic.frames);
    CHECK(received[edge].bytes == traffic.bytes);
  }
  return sent;
}

inline void check_traffic(const LockstepDriver::Traffic& found,
                          const LockstepDriver::Traffic& due) {
  REQUIRE(found.size() == due.size());
  for (const auto& [edge, traffic] : due) {
    const Rank from = edge.first;
    const Rank to = edge.second;
    CAPTURE(from);
    CAPTURE(to);
    REQUIRE(found.contains(edge));
    CHECK(found.at(edge).frames == traffic.frames);
    CHECK(found.at(edge).bytes == traffic.bytes);
  }
}

/// One job in these drivers: the bits of all nodes' models, and traffic edge by edge.
inline void check_alike(const ProgramJob& job, const std::vector<std::string>& in,
                        const GradientFunction& input = {}) {
  const auto due = foretold(job);
  std::map<std::uint64_t, std::string> hashes;
  for (const std::string& driver : in) {
    CAPTURE(driver);
    const ProgramRun run = ProgramRunner(job, input).run(driver);
    for (const Status& status : run.statuses) {
      CAPTURE(status.message());
      REQUIRE(status.ok());
    }
    check_traffic(run.traffic, due);
    hashes[hash_of(run)] += driver + " ";
  }
  CHECK(hashes.size() == 1);
}

}  // namespace sotto::test
