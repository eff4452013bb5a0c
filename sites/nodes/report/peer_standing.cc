#include <sotto/sites/nodes/report/peer_standing.h>

#include <array>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

namespace sotto {

using sites::PeerHabit;
using sites::PeerState;
using sites::RefusalReason;

namespace {

PeerConcern concern_of(RefusalReason reason) {
  switch (reason) {
    case RefusalReason::other_settings:
      return PeerConcern::other_settings;
    case RefusalReason::stale:
      return PeerConcern::old_state;
    case RefusalReason::already_running:
      return PeerConcern::newer_process;
    case RefusalReason::broke_rule:
      return PeerConcern::broke_rule;
  }
  return PeerConcern::none;
}

PeerStanding standing_of(const ChannelTraffic& channel) {
  const auto down = [&](PeerConcern concern) {
    return PeerStanding{PeerPhase::down, concern, channel.reason};
  };
  const auto refused = [&](PeerConcern concern) {
    return PeerStanding{PeerPhase::refused, concern, channel.reason};
  };
  switch (channel.trouble) {
    case ChannelTrouble::none:
      return {};
    case ChannelTrouble::lost:
      return down(PeerConcern::lost);
    case ChannelTrouble::left:
      return down(PeerConcern::left);
    case ChannelTrouble::closed:
    case ChannelTrouble::revoked:
      return down(PeerConcern::closed);
    case ChannelTrouble::unreachable:
      return down(PeerConcern::unreachable);
    case ChannelTrouble::awaited:
      return down(PeerConcern::awaited);
    case ChannelTrouble::unanswered:
      return down(PeerConcern::unanswered);
    case ChannelTrouble::offence:
      return refused(PeerConcern::broke_rule);
    case ChannelTrouble::not_admitted:
      return refused(PeerConcern::not_admitted);
    case ChannelTrouble::other_key:
      return refused(PeerConcern::other_key);
  }
  return {};
}

/// What it does that no rule forbids.
PeerStanding habit_of(const PeerState& peer) {
  const auto with = [](PeerConcern concern, std::string text) {
    return PeerStanding{PeerPhase::up, concern, std::move(text)};
  };
  if (peer.barred) {
    return with(PeerConcern::barred,
                fmt::format("its parcels were absurd, or spoiled the model, {} "
                            "times: for a while they do not count",
                            peer.blamed));
  }
  switch (peer.habit) {
    case PeerHabit::takes:
      return with(
          PeerConcern::takes,
          fmt::format("it, or a site behind it, has taken a mass of {:.1f} more than it returned: "
                      "it is served, and pulls this site's weight down",
                      peer.drawn));
    case PeerHabit::gives:
      return with(PeerConcern::gives, fmt::format("it, or a site behind it, has given a mass of "
                                                  "{:.1f} more than it took: the more, the "
                                                  "shorter are this site's steps",
                                                  -peer.drawn));
    case PeerHabit::confirms_nothing:
      return with(
          PeerConcern::confirms_nothing,
          fmt::format("it has confirmed none of {} parcels for many rounds, and gets no more "
                      "until it does",
                      peer.sent - peer.receipts));
    case PeerHabit::sends_nothing:
      return with(PeerConcern::sends_nothing,
                  "it may send, says that it does, and has not for many rounds");
    case PeerHabit::mints:
      return with(PeerConcern::mints,
                  "its parcels have more mass than one may have: they count for nothing");
    case PeerHabit::far_ahead:
      return with(PeerConcern::far_ahead,
                  fmt::format("it says that it has come to round {}", peer.round));
    case PeerHabit::stays_far:
      return with(
          PeerConcern::stays_far,
          fmt::format("its model stays farther away than a parcel may pull: {} pulls were cut "
                      "in all",
                      peer.cut));
    case PeerHabit::none:
      break;
  }
  return {.phase = PeerPhase::up};
}

/// What one side's list allows and the other's does not.
PeerStanding in_touch(const PeerState& peer, const sites::SitePeer& trust) {
  if (PeerStanding habit = habit_of(peer); habit.concern != PeerConcern::none) {
    return habit;
  }
  if (peer.observer) {
    return {.phase = PeerPhase::up, .concern = PeerConcern::observer};
  }
  const bool silent = trust.hears && !peer.tells_us;
  const bool closed = trust.tells && !peer.hears_us;
  if (!silent && !closed) {
    if (!peer.waited_for) {
      return {PeerPhase::up, PeerConcern::late,
              "it was late again and again: rounds do not wait for it"};
    }
    return peer.answers ? PeerStanding{.phase = PeerPhase::up}
                        : PeerStanding{PeerPhase::up, PeerConcern::late,
                                       "it sends parcels, and its answers about sums did not come "
                                       "in time again and again: sums do not wait for them"};
  }
  return {.phase = PeerPhase::up,
          .concern = PeerConcern::one_sided,
          .text = fmt::format("its list has {}{}{} for this site", silent ? "send_to = no" : "",
                              silent && closed ? " and " : "", closed ? "may_send = no" : "")};
}

}  // namespace

std::string_view name_of(PeerPhase phase) {
  constexpr std::array kNames = {"down", "meeting", "refused", "up"};
  return kNames.at(static_cast<std::size_t>(phase));
}

std::string_view name_of(PeerConcern concern) {
  constexpr auto kNames = std::to_array<std::string_view>({
      "",
      "unreachable",
      "awaited",
      "unanswered",
      "lost",
      "left",
      "closed",
      "other-settings",
      "old-state",
      "newer-process",
      "broke-rule",
      "not-admitted",
      "other-key",
      "one-sided",
      "observer",
      "late",
      "barred",
      "takes",
      "gives",
      "mints",
      "confirms-nothing",
      "sends-nothing",
      "far-ahead",
      "stays-far",
  });
  return kNames.at(static_cast<std::size_t>(concern));
}

PeerStanding standing_of(const PeerState& peer, const sites::SitePeer& trust, bool open,
                         const ChannelTraffic& channel, const std::string& difference) {
  if (peer.up) {
    return in_touch(peer, trust);
  }
  // What was said over a channel holds until the next one does not open.
  if (peer.refused && (open || channel.trouble == ChannelTrouble::closed)) {
    return {PeerPhase::refused, concern_of(*peer.refused),
            difference.empty() ? peer.trouble : fmt::format("other settings: {}", difference)};
  }
  return open ? PeerStanding{PeerPhase::meeting, PeerConcern::none, peer.trouble}
              : standing_of(channel);
}

}  // namespace sotto
