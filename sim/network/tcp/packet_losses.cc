#include <sotto/sim/network/tcp/packet_losses.h>

namespace sotto {

PacketLosses::PacketLosses(const std::vector<LinkLoss>& links, const RandomKey& key)
    : random_(key) {
  for (const LinkLoss& link : links) {
    if (link.share > 0) {
      const double ends = link.burst > 0 ? 1 / link.burst : 1 - link.share;
      // The first packet finds the chain as any other does.
      chains_.push_back({.begins = ends * link.share / (1 - link.share),
                         .ends = ends,
                         .lost = random_.uniform() < link.share});
    }
  }
}

bool PacketLosses::lose() {
  for (Chain& chain : chains_) {
    const double chance = chain.lost ? 1 - chain.ends : chain.begins;
    chain.lost = random_.uniform() < chance;
    if (chain.lost) {
      return true;  // it never reaches the links behind
    }
  }
  return false;
}

}  // namespace sotto
