#include <sotto/topology/pairings.h>

#include <algorithm>
#include <tuple>

#include <sotto/base/philox.h>

namespace sotto {
namespace {

constexpr std::uint32_t kPairingBucket = 1U << 23U;  // random graphs draw from the low ones

bool leads_to(std::span<const Edge> edges, Rank peer) {
  const auto at = std::lower_bound(edges.begin(), edges.end(), peer,
                                   [](const Edge& edge, Rank rank) { return edge.peer < rank; });
  return at != edges.end() && at->peer == peer;
}

}  // namespace

Pairings::Pairings(const Topology& topology, Rank node, std::uint64_t seed)
    : topology_(topology), node_(node), seed_(seed) {
  std::size_t most = 0;
  for (Round round = 0; round < topology_.period(); ++round) {
    most = std::max(most, topology_.in_edges(node_, round).size());
  }
  list_.reserve(most + 1);
}

Pairing Pairings::draw(Rank initiator, Round round) const {
  const auto in = topology_.in_edges(initiator, round);
  const auto out = topology_.out_edges(initiator, round);
  const auto mutual = [out](const Edge& edge) { return leads_to(out, edge.peer); };
  RandomStream stream({.seed = seed_,
                       .rank = initiator,
                       .round = round,
                       .purpose = Purpose::topology,
                       .bucket = kPairingBucket});
  Pairing pairing{.place = stream.next_u64(), .initiator = initiator, .partner = initiator};
  const auto count = static_cast<std::uint64_t>(std::count_if(in.begin(), in.end(), mutual));
  if (count == 0) {
    return pairing;
  }
  auto before = stream.below(count);
  for (const Edge& edge : in) {
    if (mutual(edge) && before-- == 0) {
      pairing.partner = edge.peer;
      break;
    }
  }
  return pairing;
}

std::span<const Pairing> Pairings::of(Round round) {
  list_.clear();
  if (const Pairing own = draw(node_, round); own.partner != node_) {
    list_.push_back(own);
  }
  for (const Edge& edge : topology_.in_edges(node_, round)) {
    Pairing theirs = draw(edge.peer, round);
    if (theirs.partner == node_) {
      theirs.partner = edge.peer;
      list_.push_back(theirs);
    }
  }
  std::sort(list_.begin(), list_.end(), [](const Pairing& a, const Pairing& b) {
    return std::tie(a.place, a.initiator) < std::tie(b.place, b.initiator);
  });
  return list_;
}

}  // namespace sotto
