#include <sotto/sites/core/conduct/conduct.h>

#include <algorithm>
#include <functional>
#include <utility>

#include <sotto/sites/core/beginning.h>

namespace sotto::sites {
namespace {

/// Blames the fewest peers of which each moved the model nine times as far as all that come after
/// it together, nine tenths of what is left; where there are no others, one alone. `suspects`
/// begins with the farthest, and `step` is the longest step of the site. What goes wrong may be the
/// site's own learning rate, and a liar that moves the model by next to nothing must not make
/// others look far: a peer is blamed only if its parcels moved the model farther than steps do, and
/// one alone only if the first step after them went wrong, `at_once`.
void blame(std::span<Suspect> suspects, double step, bool at_once) {
  constexpr double kTimesTheRest = 9;
  // An honest neighbour begins beside this site and steps as it does.
  constexpr double kStepsAway = 4;
  double others = 0;
  for (const Suspect& suspect : suspects) {
    others += suspect.moved;
  }
  for (std::size_t k = 0; k < suspects.size(); ++k) {
    others = k + 1 == suspects.size() ? 0 : others - suspects[k].moved;
    if (suspects[k].moved >= kTimesTheRest * others && (others > 0 || k == 0)) {
      const bool far = suspects[k].moved > kStepsAway * step;
      if (far && (others > 0 || at_once)) {
        for (Suspect& suspect : suspects.first(k + 1)) {
          suspect.blamed = true;
        }
      }
      return;
    }
  }
}

/// The neighbours that were waited for in a round, and came too late.
struct LateOnes {
  bool any = false;
  bool given_up = false;            ///< one of them has used up its own account
  Neighbour* most_often = nullptr;  ///< the one of them that was late most often

  void add(Neighbour& peer) {
    any = true;
    given_up = given_up || !peer.punctuality.waited_for();
    if (most_often == nullptr ||
        peer.punctuality.late_rounds() > most_often->punctuality.late_rounds()) {
      most_often = &peer;
    }
  }
};

}  // namespace

void Conduct::begin_intake(Neighbours& peers, const Pace& pace, const IntakeRound& round) {
  LateOnes late;
  for (Neighbour& peer : peers) {
    peer.influence = {};
    peer.part = 0;
    if (peer.heard() && !peer.channel.joining) {
      const bool awaited = peer.punctuality.waited_for();
      const bool in_time = !pace.outstanding(peer);
      peer.punctuality.note(in_time, round.time);
      if (awaited && !in_time) {
        late.add(peer);
      }
      peer.lead.note(pace.behind(peer), peer.punctuality.waited_for());
    }
    peer.habits.note_arrivals({.any = !peer.in.pending().empty(),
                               .heard = peer.heard(),
                               .joining = peer.channel.joining,
                               .may_send = round.all_send,
                               .newcomer_part = round.newcomer_part});
  }
  account_.note(late.any, round.time);
  if (late.given_up) {
    account_ = {};  // what that one has used up is settled
  } else if (account_.overdrawn()) {
    account_ = {};
    late.most_often->punctuality.give_up();
  }
}

void Conduct::end_intake(Neighbours& peers, std::span<const MixedPeer> mixed,
                         const RoundEnd& round) {
  for (const MixedPeer& one : mixed) {
    peers[one.peer].influence.add(one.influence);
  }
  influenced_ = false;
  for (Neighbour& peer : peers) {
    influenced_ = influenced_ || peer.influence.moved > 0;
    peer.cut += peer.influence.cut;
    if (peer.influence.absurd) {
      peer.take_blame(round.offered);
    }
    if (peer.influence.distance && !peer.ignored(round.offered)) {
      peer.habits.note_pull(*peer.influence.distance, peer.influence.cut > 0);
    }
  }
  note_mass(round);
  note_habits(peers, round);
}

void Conduct::note_mass(const RoundEnd& round) {
  constexpr double kHigh = 2;
  low_rounds_ = round.mass && *round.mass <= 2 * round.least_mass ? low_rounds_ + 1 : 0;
  high_rounds_ = round.mass && *round.mass >= kHigh ? high_rounds_ + 1 : 0;
}

void Conduct::note_habits(Neighbours& peers, const RoundEnd& round) const {
  // Between honest sites, too, more mass goes one way than the other, by a few shares of 1 / (1 +
  // k). A peer that took eight shares more than it gave, while this site is at its floor, is named
  // if it gives less than an honest site that is drained itself; and one that gave eight of its own
  // shares more than it took, and eight of this site's of half its mass, while that is high: what
  // comes back to 1 leaves this site richer than its neighbours, which then give it more.
  constexpr double kShares = 8;
  const double much = kShares / static_cast<double>(std::max<std::size_t>(peers.tells(), 1));
  // By this site's own list: what a peer says of itself must not excuse another one.
  const bool has_other_income = std::ranges::any_of(
      peers, [](const Neighbour& peer) { return peer.entry.hears && !peer.entry.tells; });
  for (Neighbour& peer : peers) {
    peer.note_intake(peers.size());
    // One that may not send here gives nothing by right, and what it took may come back by others.
    const bool owes = peer.entry.hears && peer.channel.tells_us ? peer.habits.gives_too_little()
                                                                : !has_other_income;
    const double drawn = peer.habits.drawn();
    // Along an edge that this site's list uses one way more goes that way, whoever is honest. What
    // the peer's list says is the peer's word.
    const bool both_ways = peer.entry.tells && peer.heard();
    const double its_shares = kShares * round.share / (1 + peer.degree(peers.size()));
    peer.habits.set({.takes = drained() && drawn > much && !peer.observer && owes,
                     .gives = both_ways && high_rounds_ >= kLongWhile && -drawn > its_shares &&
                              -drawn > much * round.mass.value_or(0) / 2,
                     .far_ahead = peer.known.round > round.offered + kMostUnconfirmed});
  }
}

void Conduct::took_over(Neighbour& giver, double moved) {
  giver.influence.moved = moved;
  influenced_ = moved > 0;
}

std::vector<Suspect> Conduct::influences(const Neighbours& peers) {
  std::vector<Suspect> found;
  for (std::size_t k = 0; k < peers.size(); ++k) {
    if (peers[k].influence.moved > 0) {
      found.push_back({.peer = k, .moved = peers[k].influence.moved});
    }
  }
  std::ranges::stable_sort(found, std::greater(), &Suspect::moved);
  return found;
}

std::vector<Suspect> Conduct::put_back(Neighbours& peers, Round round, double longest_step,
                                       bool at_once) {
  std::vector<Suspect> suspects = influences(peers);
  blame(suspects, longest_step, at_once);
  for (Suspect& suspect : suspects) {
    Neighbour& peer = peers[suspect.peer];
    peer.influence = {};
    ++peer.spoiled;
    if (suspect.blamed) {
      peer.take_blame(round);
      suspect.barred = peer.barred(round);
    }
  }
  influenced_ = false;
  return suspects;
}

}  // namespace sotto::sites
