// How a site leaves for good: what it holds goes to one heir.
#include <algorithm>
#include <string>
#include <vector>

#include <sotto/sites/core/site.h>

namespace sotto::sites {
namespace {

/// Rounds in which nothing may have come.
constexpr Round kQuietRounds = 2;

}  // namespace

void Site::set_draining(const std::vector<DrainingPeer>& peers) {
  for (Neighbour& peer : peers_) {
    const auto found = std::ranges::find(peers, peer.entry.name, &DrainingPeer::name);
    peer.draining = found != peers.end();
    peer.leaves = peer.draining && found->leaves;
  }
}

bool Site::quiet() const {
  return std::ranges::all_of(peers_, [](const Neighbour& peer) {
    return !peer.heard() || (peer.in.pending().empty() && peer.silent_rounds >= kQuietRounds);
  });
}

bool Site::hand_over() {
  check(steps_ == 0 && phase_ != Phase::offered, "a site leaves between two rounds");
  if (phase_ == Phase::waiting || outdated_ || has_left()) {
    return false;
  }
  std::size_t heir = peers_.size();
  for (std::size_t k = 0; k < peers_.size(); ++k) {
    const Neighbour& peer = peers_[k];
    const bool able = peer.heard() && peer.told() && !peer.draining && !peer.observer &&
                      !barred(peer) && peer.out.items().size() < setup_.window;
    if (able && (heir == peers_.size() || peer.entry.name < peers_[heir].entry.name)) {
      heir = k;
    }
  }
  if (heir == peers_.size()) {
    return false;
  }
  const LastParcel last = mixing_->hand_over();
  if (last.payload == nullptr) {
    return false;
  }
  round_ = offered_ = round_ + 1;
  heir_ = peers_[heir].entry.name;
  bequest_ =
      peers_[heir].out.push({.round = offered_, .mass = last.mass, .payload = last.payload}, false);
  phase_ = Phase::waiting;
  send(heir, encode(Parcel{.incarnation = incarnation_,
                           .sequence = bequest_,
                           .round = offered_,
                           .payload = *last.payload}));
  return true;
}

bool Site::delivered() const {
  return lost_bequest_ == 0 && std::ranges::all_of(peers_, [this](const Neighbour& peer) {
           if (has_left() && peer.entry.name == heir_) {
             return bequest_held(peer) == 0;
           }
           return !peer.up() || peer.leaves || peer.out.items().empty();
         });
}

double Site::bequest_held(const Neighbour& heir) const {
  const bool waits = heir.out.receipts() < bequest_ && !heir.out.items().empty();
  return waits ? heir.out.items().back().mass : 0;
}

double Site::undelivered() const {
  const std::size_t heir = has_left() ? place_of(peers_, heir_) : peers_.size();
  return lost_bequest_ + (heir < peers_.size() ? bequest_held(peers_[heir]) : 0);
}

Status Site::take_back(const Payload& parcel) {
  if (Status status = mixing_->take_back(*parcel); !status) {
    return here(status);
  }
  heir_.clear();
  bequest_ = 0;
  phase_ = Phase::training;
  return {};
}

}  // namespace sotto::sites
