#include <sotto/sites/core/sums/sum_round.h>

#include <algorithm>
#include <functional>

namespace sotto::sites {

SumHope sum_hope(std::span<const Neighbour> peers, Round round, std::size_t least) {
  std::size_t come = 0;
  std::size_t may_come = 0;
  for (const Neighbour& peer : peers) {
    const bool has_come = std::ranges::any_of(
        peer.in.pending(), [&](const InStream::Item& parcel) { return parcel.round == round; });
    come += peer.heard() && has_come ? 1U : 0U;
    may_come += peer.heard() && (has_come || peer.known.round <= round) ? 1U : 0U;
  }
  return may_come < least ? SumHope::none : come < least ? SumHope::few : SumHope::enough;
}

Round round_after(std::span<const Neighbour> peers, Round round, std::size_t least, Round lost,
                  Round last) {
  std::vector<Round> said;
  for (const Neighbour& peer : peers) {
    if (peer.heard() && peer.known.round > 0) {
      said.push_back(peer.known.round);
    }
  }
  // At least one of this many sites is honest, so an honest one has reached the round.
  if (said.size() < least) {
    return round;
  }
  std::ranges::sort(said, std::greater());
  const Round usual = std::min(said[least - 1], kMostCount / 2);  // others come after it
  // In step, too, others may be in the next round already; not for long without a sum. Those that
  // have enough parcels without this site's will have gone on by its next offer, others wait there.
  const Round ahead = lost > 1 ? 0 : 1;
  const auto there = static_cast<std::size_t>(
      std::ranges::count_if(said, [&](Round other) { return other >= usual; }));
  if (usual > round + ahead && (last == 0 || usual < last)) {
    return there > least ? usual : usual - 1;
  }
  return round;
}

void SumRound::ask(std::span<Neighbour> peers) {
  for (Neighbour& peer : peers) {
    if (peer.channel.questioned != 0 && peer.heard() && !peer.answering.waited_for()) {
      peer.answering.note(peer.channel.answered);
    }
    peer.channel.questioned = 0;
    peer.channel.answered = false;
  }
  asked_ = true;
}

void note_answer(Neighbour& from, Round round) {
  from.channel.answered = from.channel.answered || round == from.channel.questioned;
}

std::vector<std::size_t> SumRound::awaited(std::span<const Neighbour> peers,
                                           std::vector<std::size_t> owed) {
  std::erase_if(
      owed, [&](std::size_t k) { return !peers[k].heard() || !peers[k].answering.waited_for(); });
  return owed;
}

void SumRound::end(std::span<Neighbour> peers, std::span<const std::size_t> owed) {
  for (std::size_t k = 0; k < peers.size(); ++k) {
    Neighbour& peer = peers[k];
    if (peer.channel.questioned == 0 || !peer.heard() || !peer.answering.waited_for()) {
      continue;
    }
    const bool in_vain = std::ranges::find(owed, k) != owed.end();
    // The sum may have been made before it was its turn.
    if (in_vain || peer.channel.answered) {
      peer.answering.note(!in_vain);
    }
  }
  asked_ = false;
}

}  // namespace sotto::sites
