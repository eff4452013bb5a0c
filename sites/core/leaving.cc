#include <sotto/sites/core/leaving.h>

#include <sotto/sites/core/message.h>

namespace sotto::sites {

std::optional<std::size_t> Leaving::hand_over() {
  const bool moves_mass = self_.setup.exchange == MixingKind::push_sum;
  if (!moves_mass || self_.phase == RoundPhase::waiting || self_.outdated || bequest_.given()) {
    return std::nullopt;
  }
  const std::optional<std::size_t> heir = choose_heir(peers_, self_.round, self_.setup.window);
  if (!heir) {
    return std::nullopt;
  }
  const LastParcel last = mixing_.hand_over();
  self_.round = self_.offered = self_.round + 1;
  const Sequence number = peers_[*heir].out.push(
      {.round = self_.offered, .mass = last.mass, .payload = last.payload}, false);
  bequest_.give(peers_[*heir].entry.name, number);
  self_.phase = RoundPhase::waiting;
  return heir;
}

Status Leaving::begins_anew(Neighbour& peer) {
  const OutStream::Item* gift = bequest_.held_by(peer);
  if (gift == nullptr) {
    return {};
  }
  if (Status status = mixing_.take_back(*gift->payload); !status.ok()) {
    return self_.here(status);
  }
  self_.written_off -= gift->mass;  // it is in what is written off as the peer is met
  bequest_.take_back();
  ++peer.gifts;
  self_.phase = RoundPhase::training;
  return {};
}

}  // namespace sotto::sites
