// Which packets of a connection's way are lost: each with the same chance, apart from the others or
// in bursts.
//
// One thread at a time. A plain value.
#pragma once

#include <vector>

#include <sotto/base/philox.h>

namespace sotto {

/// What one link loses.
struct LinkLoss {
  double share = 0;  ///< of the packets, in 0 … 1 without 1
  /// Mean number of packets lost in a row; 0: packets are lost apart from each other, which makes
  /// it 1 / (1 − share). Otherwise it is that at least: less would need losses that avoid each
  /// other.
  double burst = 0;
};

/// The losses of a way over several links: on each a chain of two states (Gilbert 1960), in one of
/// which all packets are lost, and in the other none.
class PacketLosses {
 public:
  /// Links in the order in which packets cross them. Requires shares and bursts as LinkLoss has
  /// them.
  PacketLosses(const std::vector<LinkLoss>& links, const RandomKey& key);

  /// Whether the next packet is lost.
  bool lose();

 private:
  struct Chain {
    double begins = 0;  ///< chance that a packet is lost behind one that is not
    double ends = 0;    ///< chance that a packet passes behind a lost one
    bool lost = false;
  };

  std::vector<Chain> chains_;
  RandomStream random_;
};

}  // namespace sotto
