// The clients whose pace the nodes of a simulation have, where clients are sampled
// (sim/client_sample.h): times of gradients, and bandwidths of the links in and out of nodes.
//
// One thread at a time. The network must outlive it.
#pragma once

#include <cstdint>
#include <vector>

#include <sotto/sim/client_sample.h>
#include <sotto/sim/network/network.h>

namespace sotto {

class SampledClients {
 public:
  /// Throws Error as ClientSampling says. To be made before the network's first connection.
  SampledClients(const ClientSampling& sampling, std::size_t nodes, std::uint64_t seed,
                 const Platform& platform, Network& network);

  /// How long the node's gradient of a round takes. In the first round of a new client that
  /// includes the time to fetch the model, and the node's links take the client's bandwidth.
  SimTime gradient_time(Rank node, Round round);

 private:
  /// The links of a node.
  struct Ways {
    LinkId out = 0;
    LinkId in = 0;
  };

  ClientSampling sampling_;
  Network& network_;
  ClientSample sample_;
  std::vector<Ways> ways_;  ///< by rank
};

}  // namespace sotto
