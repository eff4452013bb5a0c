// How a site (site.h) and its peers stand: what an operator sees, and what tests hold invariants
// of. Plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <sotto/base/ids.h>
#include <sotto/sites/core/message.h>

namespace sotto::sites {

/// Behaviour of a peer that no rule forbids but that its operator should be asked about.
enum class PeerHabit : std::uint8_t {
  none,
  takes,             ///< the peer has taken much more mass than it gave, and this site's is low
  gives,             ///< the peer has given much more mass than it took, and this site's is high
  mints,             ///< the peer's parcels have long had more mass than a parcel may have
  far_ahead,         ///< it says that it has come to a round that it cannot have come to
  stays_far,         ///< its model has long been farther away than a parcel may pull
  confirms_nothing,  ///< the peer's window has long been full: it gives no receipts
  sends_nothing,     ///< it may send, says that it does, and has long sent nothing
};

/// As status and metrics write it: "confirms-nothing"; empty for PeerHabit::none.
constexpr std::string_view name_of(PeerHabit habit) {
  constexpr std::array<std::string_view, 8> kNames = {
      "", "takes", "gives", "mints", "far-ahead", "stays-far", "confirms-nothing", "sends-nothing"};
  return kNames.at(static_cast<std::size_t>(habit));
}

/// The state of a peer, for an operator and for the invariants that tests check.
struct PeerState {
  std::string name;
  bool up = false;  ///< connected, and both have said hello
  /// Either site refused the other; `trouble` says it in words.
  std::optional<RefusalReason> refused;
  std::string trouble;
  std::string settings;   ///< settings of a peer that refuses ours, as it reports them
  bool heard = false;     ///< the peer is up, and sends parcels that this site takes in
  Round own_steps = 0;    ///< H_j as the peer reports it; 0: not yet
  bool hears_us = false;  ///< the peer takes in what this site sends; false while it is not up
  bool tells_us = false;  ///< the peer sends to this site; false while it is not up
  Incarnation incarnation = 0;
  std::uint32_t life = 0;
  Round round = 0;          ///< rounds that the peer has offered, as last heard
  Sequence sent = 0;        ///< parcels of our stream, made so far
  Sequence receipts = 0;    ///< parcels of our stream that are durable at the peer
  Sequence applied = 0;     ///< parcels of its stream that are in our state
  std::size_t pending = 0;  ///< parcels that arrived and are not yet applied
  /// Mass in all parcels made for the peer, in the stream between the two incarnations.
  double given = 0;
  double taken = 0;      ///< mass in all its parcels that are in our state
  double under_way = 0;  ///< mass in parcels without a receipt
  double drawn = 0;  ///< mass lately given to the peer less mass that it gave, over all meetings
  /// Gossip: version of its public copy as followed here; 0: not followed.
  std::uint64_t version = 0;
  std::uint64_t offences = 0;  ///< messages that broke a rule
  std::uint64_t models = 0;    ///< models that it was sent, to begin from
  bool observer = false;       ///< it only takes, and says so: no mass goes to it
  double moved = 0;            ///< distance by which it moved the model in the last collect
  std::uint64_t cut = 0;       ///< pulls of its parcels that were cut to the bound
  std::uint64_t spoiled = 0;   ///< times that the model had to be put back, with its parcels in it
  /// Times that it was blamed for spoiling the model, or for an absurd pull.
  std::uint64_t blamed = 0;
  bool barred = false;  ///< the peer's parcels count as this site's own model for now
  PeerHabit habit = PeerHabit::none;
  bool joining = false;    ///< it was sent this site's model, and may still be about to begin
  bool waited_for = true;  ///< false: it was late repeatedly, and rounds no longer wait for it
  /// Secure sums: false: it sends parcels, and was again and again waited for with its answer.
  bool answers = true;
};

/// The outcomes of a site's secure sums, in this process.
struct SumCounts {
  std::uint64_t made = 0;  ///< rounds with a mean
  std::uint64_t lost = 0;  ///< rounds without a mean: too few sites, too few answers, or unequal
  /// Rounds without a mean as masks did not add up: a site masks wrongly.
  std::uint64_t unequal = 0;
  std::uint64_t lost_in_a_row = 0;
  std::size_t sites = 0;      ///< sites in the latest mean, this site included
  std::uint64_t clipped = 0;  ///< elements of the own model cut to the range, in all rounds
};

/// The state of a site, for an operator and for checks.
struct SiteState {
  Round round = 0;
  Incarnation incarnation = 0;
  std::uint32_t life = 0;
  bool has_model = false;
  Round own_steps = 1;      ///< H_i, the steps of this site's rounds
  double mass = 0;          ///< ω; 0 before try_begin()
  double settled_mass = 0;  ///< ω as the last round ended, before parcels were made of it
  double minted = 0;  ///< mass that all incarnations began with, as far as this state remembers
  double written_off = 0;     ///< mass given to incarnations of peers that are gone
  double undelivered = 0;     ///< mass that was handed over, while the heir has not confirmed it
  double raised = 0;          ///< mass that the site made so that its own comes back to 1
  double lowered = 0;         ///< mass that it took away likewise, or cut off parcels with too much
  bool drained = false;       ///< ω has long been near its floor
  double longest_step = 0;    ///< longest step of the last rounds, which bounds pulls
  std::uint64_t version = 0;  ///< gossip: version of the site's own public copy
  std::uint64_t resets = 0;
  /// The neighbour whose model was taken over when the site began; empty: none.
  std::string giver{};
  /// Number of neighbours that said which round it is when the site began.
  std::size_t round_said_by = 0;
  SumCounts sums = {};  ///< outcomes of the secure sums
};

/// A peer with parcels in the model when that had to be put back.
struct Suspect {
  std::size_t peer = 0;
  double moved = 0;  ///< distance by which its parcels moved the model
  /// It moved the model nine times as far as all peers together that are not blamed.
  bool blamed = false;
  bool barred = false;  ///< it was blamed before: for a while its parcels do not count
};

}  // namespace sotto::sites
