// How a site leaves for good: what it holds goes to one heir.
#include <algorithm>
#include <optional>
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
    return !peer.heard() ||
           (peer.in.pending().empty() && peer.habits.silent_rounds() >= kQuietRounds);
  });
}

bool Site::hand_over() {
  check(steps_ == 0 && phase_ != Phase::offered, "a site leaves between two rounds");
  if (mixing_.mass == nullptr || phase_ == Phase::waiting || outdated_ || has_left()) {
    return false;
  }
  const std::optional<std::size_t> heir = choose_heir(peers_, round_, setup_.window);
  if (!heir) {
    return false;
  }
  const LastParcel last = mixing_.mass->hand_over();
  round_ = offered_ = round_ + 1;
  const Sequence number = peers_[*heir].out.push(
      {.round = offered_, .mass = last.mass, .payload = last.payload}, false);
  bequest_.give(peers_[*heir].entry.name, number);
  phase_ = Phase::waiting;
  outbox_.send(*heir, encode(Parcel{.incarnation = incarnation_,
                                    .sequence = number,
                                    .round = offered_,
                                    .payload = *last.payload}));
  return true;
}

Status Site::take_back(const Payload& parcel) {
  if (Status status = mixing_.mass->take_back(*parcel); !status.ok()) {
    return here(status);
  }
  bequest_.take_back();
  phase_ = Phase::training;
  return {};
}

}  // namespace sotto::sites
