// Where the mass of all sites is, kept by an onlooker: what each site holds, made for others and
// took in from them. A site's accounts go with its state: they are written, restored and lost with
// it.
//
// For each site, at any time, ω + given up + Σ made − Σ applied = minted + returned: the local half
// of conservation. With each parcel applied once, what is neither held nor under way between
// present incarnations is lost, and that is zero unless a state was given up. In exact arithmetic;
// in doubles to a few ulp an event.
//
// Plain values. One thread at a time.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/sites/core/message.h>

namespace sotto {

/// A stream of parcels from one incarnation to another; each gets its own number.
using StreamId = std::uint64_t;

/// A parcel that was made, and may still arrive.
struct MadeParcel {
  sites::Incarnation from = 0;
  sites::Sequence sequence = 0;
  StreamId stream = 0;
  double mass = 0;
};

/// A site's accounts with one other site.
struct PeerAccount {
  // What it sends.
  StreamId stream = 0;
  sites::Incarnation to = 0;
  double made = 0;    ///< mass of parcels made in this stream
  double closed = 0;  ///< mass of parcels made in earlier streams
  std::deque<MadeParcel> recent;
  sites::Sequence written_off = 0;  ///< last parcel written off, as the site was off the list
  // What it hears.
  std::deque<sites::Incarnation> past;  ///< the other site's incarnations that were replaced
  StreamId heard = 0;
  double applied = 0;         ///< mass applied of this stream
  double applied_before = 0;  ///< mass applied of earlier streams
};

/// A site's account: what it holds, and what went each way.
struct MassAccount {
  sites::Incarnation incarnation = 0;
  double mass = 0;
  double minted = 0;
  double returned = 0;  ///< mass made, less what was taken away, to come back to 1
  double given_up = 0;
  std::vector<PeerAccount> peers;  ///< accounts by site

  /// Zero, up to rounding.
  double imbalance() const {
    double sum = mass + given_up - minted - returned;
    for (const PeerAccount& peer : peers) {
      sum += peer.made + peer.closed - peer.applied - peer.applied_before;
    }
    return sum;
  }

  /// All that ever went in or out. Sums so large are rounded, each time that something is added: a
  /// liar's parcels count with all the mass that they claim, and are cut to what they may have.
  double turnover() const {
    double sum = minted + std::abs(returned);
    for (const PeerAccount& peer : peers) {
      sum += peer.made + peer.closed + peer.applied + peer.applied_before;
    }
    return sum;
  }

  /// Ends the stream to a site; the next parcel begins another.
  void close_stream(std::size_t peer) {
    PeerAccount& account = peers[peer];
    account.closed += account.made;
    account.made = 0;
    account.stream = 0;
    account.to = 0;
  }

  /// The state is gone, and what it held with it.
  void give_up() {
    given_up += mass;
    mass = 0;
    incarnation = 0;
    for (std::size_t peer = 0; peer < peers.size(); ++peer) {
      close_stream(peer);
      peers[peer].past.clear();
    }
  }
};

/// Mass in parcels from one site to another that the other may still apply.
inline double under_way(const MassAccount& from, Rank from_site, const MassAccount& to,
                        Rank to_site) {
  const PeerAccount& out = from.peers[static_cast<std::size_t>(to_site)];
  const PeerAccount& in = to.peers[static_cast<std::size_t>(from_site)];
  if (out.stream == 0 || out.to != to.incarnation) {
    return 0;
  }
  return out.made - (in.heard == out.stream ? in.applied : 0);
}

/// What was minted or returned and is neither held nor under way.
inline double lost_mass(std::span<const MassAccount* const> accounts) {
  double lost = 0;
  for (std::size_t i = 0; i < accounts.size(); ++i) {
    lost += accounts[i]->minted + accounts[i]->returned - accounts[i]->mass;
    for (std::size_t j = 0; j < accounts.size(); ++j) {
      if (i != j) {
        lost -= under_way(*accounts[i], static_cast<Rank>(i), *accounts[j], static_cast<Rank>(j));
      }
    }
  }
  return lost;
}

}  // namespace sotto
