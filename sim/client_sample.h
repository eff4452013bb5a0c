// A federation of many clients of which each round takes a few: its nodes are places, and the
// client in each place is drawn anew every few rounds, without repetition, from all clients.
//
// One thread at a time. Owns copies of what it draws.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/sim/network/platform.h>

namespace sotto {

/// A client's pace.
struct Client {
  double gradient_s = 0;     ///< seconds that one gradient takes
  double bytes_per_s = 0.0;  ///< bandwidth of its connection, each way
};

/// How clients are sampled. Throws Error from the Simulator's constructor for fewer clients than
/// nodes, a negative or infinite time, a bandwidth that is not positive and finite, and a node
/// without a limited way out and in.
struct ClientSampling {
  std::shared_ptr<const std::vector<Client>> clients = {};  ///< null: nobody is sampled
  Round every = 1;         ///< rounds from one sample to the next, 1 or more
  double model_bytes = 0;  ///< bytes that each new client fetches before its first gradient
};

/// `places` of `clients`, each once, in the order of the places: draw number `draw` of a seed.
/// Requires places ≤ clients.
std::vector<std::uint32_t> draw_clients(std::uint64_t seed, std::uint32_t draw, std::size_t places,
                                        std::size_t clients);

/// The clients that stand in the places, draw by draw.
class ClientSample {
 public:
  /// Draws of a seed, each of `places` of `clients`; as draw_clients has them.
  ClientSample(std::uint64_t seed, std::size_t places, std::size_t clients)
      : seed_(seed), places_(places), clients_(clients) {}

  /// The client in a place. Draws may be asked for in any order; the last few are kept.
  std::uint32_t client(Rank place, std::uint32_t draw);

 private:
  std::uint64_t seed_;
  std::size_t places_;
  std::size_t clients_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> drawn_;
};

}  // namespace sotto
