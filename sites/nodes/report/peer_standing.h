// How a peer stands, in words of fixed sets that operators and their alarms go by: a phase, and
// the concern that goes with it.
//
// Pure functions; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <sotto/comm/channels.h>
#include <sotto/sites/core/site_setup.h>
#include <sotto/sites/core/site_state.h>
#include <sotto/sites/nodes/report/site_event.h>

namespace sotto {

/// How far the site and a peer have come with each other.
enum class PeerPhase {
  down,     ///< no channel is open
  meeting,  ///< a channel is open, and the peer's hello is due
  refused,  ///< one refuses the other
  up,       ///< in touch
};

/// Why a peer is down or refused, or what should be asked about one that is up.
enum class PeerConcern {
  none,
  unreachable,       ///< down: its address does not answer
  awaited,           ///< down: it is the one that connects
  unanswered,        ///< down: it is connected to and does not prove its key
  lost,              ///< down: its connection broke
  left,              ///< down: it ended in good order
  closed,            ///< down: this site ended the channel
  other_settings,    ///< refused: a setting that sites share differs
  old_state,         ///< refused: its state is older than what it had confirmed
  newer_process,     ///< refused: another process with its key began later
  broke_rule,        ///< refused: it broke a rule of the protocol
  not_admitted,      ///< refused: it does not let this site's key in
  other_key,         ///< refused: it proved another key than its line has
  one_sided,         ///< up: its list allows less than this site's list
  observer,          ///< up: it takes what comes and sends nothing
  late,              ///< up: rounds, or sums, do not wait for it
  barred,            ///< up: what it sends does not count for a while
  takes,             ///< up: it takes mass and does not return it
  gives,             ///< up: it gives much more mass than it takes
  mints,             ///< up: its parcels have more mass than they may have
  confirms_nothing,  ///< up: it confirms no parcels
  sends_nothing,     ///< up: it may send, and does not
  far_ahead,         ///< up: it claims a round that no other has come near
  stays_far,         ///< up: its model has long been farther away than a parcel may pull
};

struct PeerStanding {
  PeerPhase phase = PeerPhase::down;
  PeerConcern concern = PeerConcern::none;
  std::string text{};  ///< phase and concern for people; may be empty
};

/// As status, metrics and log write it: "down", "meeting", "refused", "up".
std::string_view name_of(PeerPhase phase);

/// As status and metrics write it: "confirms-nothing"; empty for PeerConcern::none.
std::string_view name_of(PeerConcern concern);

/// The event that tells of a concern about a peer that is up; none: no event does.
std::optional<SiteEvent::Kind> event_of(PeerConcern concern);

/// `open`: the site has a channel to it. `difference`: the first setting that differs, if its
/// settings are other ones.
PeerStanding standing_of(const sites::PeerState& peer, const sites::SitePeer& trust, bool open,
                         const ChannelTraffic& channel, const std::string& difference);

}  // namespace sotto
