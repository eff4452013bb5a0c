#include <sotto/sites/core/bequest.h>

#include <algorithm>
#include <tuple>

namespace sotto::sites {

std::optional<std::size_t> choose_heir(std::span<const Neighbour> peers, Round round,
                                       std::size_t window) {
  std::optional<std::size_t> heir;
  for (std::size_t k = 0; k < peers.size(); ++k) {
    const Neighbour& peer = peers[k];
    const bool able = peer.heard() && peer.told() && !peer.draining && !peer.observer &&
                      !peer.barred(round) && peer.out.items().size() < window;
    if (able && (!heir || std::tie(peer.gifts, peer.entry.name) <
                              std::tie(peers[*heir].gifts, peers[*heir].entry.name))) {
      heir = k;
    }
  }
  return heir;
}

void Bequest::give(const std::string& heir, Sequence parcel) {
  heir_ = heir;
  parcel_ = parcel;
}

void Bequest::take_back() {
  heir_.clear();
  parcel_ = 0;
}

const OutStream::Item* Bequest::held_by(const Neighbour& peer) const {
  const bool holds = given() && peer.entry.name == heir_ && peer.out.receipts() < parcel_ &&
                     !peer.out.items().empty();
  return holds ? &peer.out.items().back() : nullptr;
}

void Bequest::retire(const Neighbour& gone) {
  if (const OutStream::Item* gift = held_by(gone); gift != nullptr) {
    lost_ += gift->mass;
  }
}

double Bequest::undelivered(std::span<const Neighbour> peers) const {
  double mass = lost_;
  for (const Neighbour& peer : peers) {
    if (const OutStream::Item* gift = held_by(peer); gift != nullptr) {
      mass += gift->mass;
    }
  }
  return mass;
}

bool Bequest::delivered(std::span<const Neighbour> peers) const {
  return lost_ == 0 && std::ranges::all_of(peers, [this](const Neighbour& peer) {
           if (given() && peer.entry.name == heir_) {
             return held_by(peer) == nullptr;
           }
           return !peer.up() || peer.leaves || peer.out.items().empty();
         });
}

}  // namespace sotto::sites
