// What the fluid of Network owes to packets.
#include <algorithm>

#include <sotto/sim/network/network.h>

namespace sotto {

void Network::count_flow(const Connection& connection, bool flows) {
  if (model_.packet_bytes == 0) {
    return;
  }
  for (const LinkId link : connection.links) {
    links_[link].flows += flows ? 1U : ~0U;
  }
}

// A link that takes turns serves k flows of a rate C / k packet by packet (deficit round robin), so
// that a packet which comes at any time finds half a packet of each other flow in front of it:
// (k − 1) / 2 × packet / C. Where the flow is narrowest that wait is its share of the fluid.
SimTime Network::turns_of(const Connection& connection) const {
  double all = 0;
  double longest = 0;
  for (const LinkId id : connection.links) {
    const LinkState& link = links_[id];
    if (link.flows > 1 && link.bytes_per_s > 0) {
      const double wait = (link.flows - 1) * model_.packet_bytes / (2 * link.bytes_per_s);
      all += wait;
      longest = std::max(longest, wait);
    }
  }
  return from_seconds(all - longest);
}

}  // namespace sotto
