// How a peer stands, in words of fixed sets that operators and their alarms go by: a state, and why
// it is so.
//
// Pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include <sotto/comm/channels.h>
#include <sotto/sites/core/site.h>

namespace sotto {

struct PeerStanding {
  /// up: in touch; meeting: connected, its hello is due; refused: one refuses the other; down.
  std::string_view state = "down";
  /// For refused: other-settings, old-state, newer-process, broke-rule, not-admitted, other-key. Of
  /// down: unreachable, unanswered, lost, left, closed. Of up: one-sided, observer, late, and
  /// what should be asked about: barred, takes, mints, confirms-nothing, sends-nothing,
  /// far-ahead. Else empty.
  std::string_view reason{};
  std::string text{};  ///< the same for people
};

/// `open`: the site has a channel to it. `difference`: the first setting that differs, if its
/// settings are other ones.
PeerStanding standing_of(const sites::PeerState& peer, const sites::SitePeer& trust, bool open,
                         const ChannelTraffic& channel, const std::string& difference);

}  // namespace sotto
