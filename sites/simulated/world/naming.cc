#include "naming.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include <sotto/sites/faults/lie_signs.h>

namespace sotto::sites {
namespace {

/// Whether the site says this of the peer to its operator.
bool says(const PeerState& peer, std::string_view word) {
  return word == name_of(peer.habit) || (word == "refused" && peer.refused) ||
         (word == "barred" && (peer.barred || peer.blamed > 0 || peer.cut > 0)) ||
         (word == "spoils" && peer.spoiled > 0) || (word == "offence" && peer.offences > 0) ||
         (word == "late" && (!peer.waited_for || !peer.answers));
}

bool tells_of(const PlannedLie& lie, const PeerState& peer) {
  return std::ranges::any_of(lie_signs(), [&](const LieSign& sign) {
    return sign.lie == lie.kind && says(peer, sign.word);
  });
}

/// What is said of a peer that no honest one does; empty: nothing. An honest site may be late.
std::string accusation(const PeerState& peer) {
  if (peer.barred || peer.blamed > 0) {
    return fmt::format("blamed {} times", peer.blamed);
  }
  return peer.habit == PeerHabit::none ? std::string()
                                       : fmt::format("habit {}", static_cast<int>(peer.habit));
}

}  // namespace

void Naming::look(SimTime now, const Process& process) {
  if (plan_.lie_of(process.site) != nullptr || process.fenced) {
    return;
  }
  for (std::size_t k = 0; k < process.listed.size(); ++k) {
    const Rank peer = process.listed[k];
    const PeerState& state = process.seen.peers[k];
    if (const PlannedLie* lie = plan_.lie_of(peer)) {
      if (state.name == process.seen.state.giver) {
        misled_.insert(process.site);
      }
      NamedLie& one = named_[{process.site, peer}];
      one.by = process.site;
      one.liar = peer;
      one.hears = one.hears || state.tells_us;
      one.tells = one.tells || state.hears_us;
      one.named = one.named || tells_of(*lie, state);
    } else if (std::string words = accusation(state); !words.empty()) {
      accused_.try_emplace(
          {process.site, peer},
          Accusation{.habit = state.habit,
                     .words = fmt::format("site {} says of site {}, which is honest, at {:.3f} s: "
                                          "{}",
                                          process.site, peer, to_seconds(now), words)});
    }
  }
}

void Naming::report(SimulatedSitesReport& report) const {
  for (const auto& [pair, one] : named_) {
    report.named.push_back(one);
  }
  for (const auto& [pair, accusation] : accused_) {
    report.accusations.push_back(accusation);
    report.accusations.back().misled = misled_.contains(pair.second);
  }
}

}  // namespace sotto::sites
