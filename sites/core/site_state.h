// How a site (site.h) and its peers stand: what an operator sees, and what tests hold invariants
// of. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <sotto/base/ids.h>
#include <sotto/sites/core/message.h>

namespace sotto::sites {

/// Behaviour of a peer that no rule forbids but that its operator should be asked about.
enum class PeerHabit : std::uint8_t {
  none,
  takes,             ///< it has taken much more mass than it gave, and this site's is low
  mints,             ///< its parcels have had more mass for long than one may have
  far_ahead,         ///< it says that it has come to a round that it cannot have come to
  confirms_nothing,  ///< its window has been full for long: it gives no receipts
  sends_nothing,     ///< it may send, says that it does, and has not for long
};

/// The state of a peer, for an operator and for the invariants that tests check.
struct PeerState {
  std::string name;
  bool up = false;                       ///< connected, and both have said hello
  std::optional<RefusalReason> refused;  ///< we refused it, or it us; `trouble` has it in words
  std::string trouble;
  std::string settings;   ///< those of a peer that refuses ours, as it tells them
  bool heard = false;     ///< it is up, and sends parcels that this site takes in
  Round own_steps = 0;    ///< H_j, as it says of its rounds; 0: it has not yet
  bool hears_us = false;  ///< while it is up: it takes in what this site sends
  bool tells_us = false;  ///< … it sends to this site
  Incarnation incarnation = 0;
  std::uint32_t life = 0;
  Round round = 0;          ///< rounds in which it has offered, as heard of last
  Sequence sent = 0;        ///< parcels of our stream that were made
  Sequence receipts = 0;    ///< … and are durable there
  Sequence applied = 0;     ///< parcels of its stream that are in our state
  std::size_t pending = 0;  ///< arrived, not yet applied
  double given = 0;      ///< mass in all parcels made, of the stream between the two incarnations
  double taken = 0;      ///< mass in all its parcels that are in our state
  double under_way = 0;  ///< mass in parcels without a receipt
  std::uint64_t version = 0;   ///< gossip: of its public copy, as followed here; 0: not followed
  std::uint64_t offences = 0;  ///< messages that broke a rule
  bool observer = false;       ///< it only takes, and says so: no mass goes to it
  double moved = 0;            ///< how far it moved the model when a round was collected last
  std::uint64_t cut = 0;       ///< pulls of its parcels that were cut to the bound
  std::uint64_t spoiled = 0;   ///< times that the model had to be put back, with its parcels in it
  std::uint64_t blamed = 0;  ///< … and that they alone had moved the model far; and absurd pulls
  bool barred = false;       ///< until later what it sends counts as this site's own model
  PeerHabit habit = PeerHabit::none;
  bool waited_for = true;  ///< false: it was late again and again
  /// Secure sums: false: it sends parcels, and was again and again waited for with its answer.
  bool answers = true;
};

/// What became of a site's secure sums, in this process.
struct SumCounts {
  std::uint64_t made = 0;     ///< rounds whose mean was taken
  std::uint64_t lost = 0;     ///< … that had none: too few sites, or too few answers
  std::uint64_t unequal = 0;  ///< … of them those that did not add up: a site masks wrongly
  std::uint64_t lost_in_a_row = 0;
  std::size_t sites = 0;      ///< in the latest mean, this site included
  std::uint64_t clipped = 0;  ///< elements of the own model beyond the range
};

/// The state of a site, for an operator and for checks.
struct SiteState {
  Round round = 0;
  Incarnation incarnation = 0;
  std::uint32_t life = 0;
  bool has_model = false;
  Round own_steps = 1;      ///< H_i
  double mass = 0;          ///< ω; 0 before try_begin()
  double settled_mass = 0;  ///< ω as the last round ended, before parcels were made of it
  double minted = 0;        ///< by all incarnations that this state remembers
  double written_off = 0;   ///< mass given to incarnations of peers that are gone
  double raised = 0;        ///< mass that it made so that its own comes back to 1
  double lowered = 0;    ///< … that it took away likewise, or cut off parcels that had too much
  bool drained = false;  ///< ω has been near its floor for long
  double longest_step = 0;    ///< of the last rounds, by which pulls are bounded
  std::uint64_t version = 0;  ///< gossip: of the own public copy
  std::uint64_t resets = 0;
  /// The neighbour whose model was taken over when the site began; empty: none.
  std::string giver{};
  std::size_t round_said_by = 0;  ///< neighbours by whose word it began in that round
  SumCounts sums = {};            ///< secure_mean
};

/// A peer whose parcels were in the model when that had to be put back.
struct Suspect {
  std::size_t peer = 0;
  double moved = 0;     ///< how far they moved it
  bool blamed = false;  ///< it moved the model nine times as far as all who are not blamed together
  bool barred = false;  ///< it was blamed before: for a while its parcels count no more
};

}  // namespace sotto::sites
