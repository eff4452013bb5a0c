#include <sotto/sites/process/peer_standing.h>

#include <fmt/format.h>

namespace sotto {

using sites::PeerHabit;
using sites::PeerState;
using sites::RefusalReason;

namespace {

std::string_view word_of(RefusalReason reason) {
  switch (reason) {
    case RefusalReason::other_settings:
      return "other-settings";
    case RefusalReason::stale:
      return "old-state";
    case RefusalReason::already_running:
      return "newer-process";
    case RefusalReason::broke_rule:
      return "broke-rule";
  }
  return "";
}

PeerStanding standing_of(const ChannelTraffic& channel) {
  const auto with = [&](std::string_view state, std::string_view reason) {
    return PeerStanding{state, reason, channel.reason};
  };
  switch (channel.trouble) {
    case ChannelTrouble::none:
      return {};
    case ChannelTrouble::lost:
      return with("down", "lost");
    case ChannelTrouble::left:
      return with("down", "left");
    case ChannelTrouble::closed:
    case ChannelTrouble::revoked:
      return with("down", "closed");
    case ChannelTrouble::unreachable:
      return with("down", "unreachable");
    case ChannelTrouble::awaited:
      return with("down", "awaited");
    case ChannelTrouble::unanswered:
      return with("down", "unanswered");
    case ChannelTrouble::offence:
      return with("refused", "broke-rule");
    case ChannelTrouble::not_admitted:
      return with("refused", "not-admitted");
    case ChannelTrouble::other_key:
      return with("refused", "other-key");
  }
  return {};
}

/// What it does that no rule forbids.
PeerStanding habit_of(const PeerState& peer) {
  const auto with = [](std::string_view reason, std::string text) {
    return PeerStanding{"up", reason, std::move(text)};
  };
  if (peer.barred) {
    return with("barred", fmt::format("its parcels were absurd, or spoiled the model, {} "
                                      "times: for a while they do not count",
                                      peer.blamed));
  }
  switch (peer.habit) {
    case PeerHabit::takes:
      return with(
          "takes",
          fmt::format("it has taken a mass of {:.1f} and returned {:.1f}: it is served, and "
                      "pulls this site's weight down",
                      peer.given, peer.taken));
    case PeerHabit::confirms_nothing:
      return with(
          "confirms-nothing",
          fmt::format("it has confirmed none of {} parcels for many rounds, and gets no more "
                      "until it does",
                      peer.sent - peer.receipts));
    case PeerHabit::sends_nothing:
      return with("sends-nothing", "it may send, says that it does, and has not for many rounds");
    case PeerHabit::mints:
      return with("mints",
                  "its parcels have had more mass for many rounds than one may have: what is too "
                  "much is cut off");
    case PeerHabit::far_ahead:
      return with("far-ahead", fmt::format("it says that it has come to round {}", peer.round));
    case PeerHabit::none:
      break;
  }
  return {.state = "up"};
}

/// What one side's list allows and the other's does not.
PeerStanding in_touch(const PeerState& peer, const sites::SitePeer& trust) {
  if (PeerStanding habit = habit_of(peer); !habit.reason.empty()) {
    return habit;
  }
  if (peer.observer) {
    return {.state = "up", .reason = "observer"};
  }
  const bool silent = trust.hears && !peer.tells_us;
  const bool closed = trust.tells && !peer.hears_us;
  if (!silent && !closed) {
    if (!peer.waited_for) {
      return {"up", "late", "it was late again and again: rounds do not wait for it"};
    }
    return peer.answers ? PeerStanding{.state = "up"}
                        : PeerStanding{"up", "late",
                                       "it sends parcels, and its answers about sums did not come "
                                       "in time again and again: sums do not wait for them"};
  }
  return {.state = "up",
          .reason = "one-sided",
          .text = fmt::format("its list has {}{}{} for this site", silent ? "send_to = no" : "",
                              silent && closed ? " and " : "", closed ? "may_send = no" : "")};
}

}  // namespace

PeerStanding standing_of(const PeerState& peer, const sites::SitePeer& trust, bool open,
                         const ChannelTraffic& channel, const std::string& difference) {
  if (peer.up) {
    return in_touch(peer, trust);
  }
  // What was said over a channel holds until the next one does not open.
  if (peer.refused && (open || channel.trouble == ChannelTrouble::closed)) {
    return {"refused", word_of(*peer.refused),
            difference.empty() ? peer.trouble : fmt::format("other settings: {}", difference)};
  }
  return open ? PeerStanding{"meeting", "", peer.trouble} : standing_of(channel);
}

}  // namespace sotto
