#include <sotto/sites/nodes/report/peer_standing.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include <fmt/format.h>

#include <sotto/base/check.h>

namespace sotto {

using sites::PeerHabit;
using sites::PeerState;
using sites::RefusalReason;

namespace {

using Kind = SiteEvent::Kind;

/// A concern, its name, the event that tells of it, and the habit of a peer that it is about.
struct ConcernRow {
  PeerConcern concern = PeerConcern::none;
  std::string_view name;
  std::optional<Kind> event = {};
  PeerHabit habit = PeerHabit::none;
};

constexpr auto kConcerns = std::to_array<ConcernRow>({
    {PeerConcern::none, ""},
    {PeerConcern::unreachable, "unreachable"},
    {PeerConcern::awaited, "awaited"},
    {PeerConcern::unanswered, "unanswered"},
    {PeerConcern::lost, "lost"},
    {PeerConcern::left, "left"},
    {PeerConcern::closed, "closed"},
    {PeerConcern::other_settings, "other-settings"},
    {PeerConcern::old_state, "old-state"},
    {PeerConcern::newer_process, "newer-process"},
    {PeerConcern::broke_rule, "broke-rule"},
    {PeerConcern::not_admitted, "not-admitted"},
    {PeerConcern::other_key, "other-key"},
    {PeerConcern::one_sided, "one-sided"},
    {PeerConcern::observer, "observer"},
    {PeerConcern::late, "late", Kind::peer_late},
    {PeerConcern::barred, "barred", Kind::peer_barred},
    {PeerConcern::takes, "takes", Kind::peer_takes, PeerHabit::takes},
    {PeerConcern::gives, "gives", Kind::peer_gives, PeerHabit::gives},
    {PeerConcern::mints, "mints", Kind::peer_mints, PeerHabit::mints},
    {PeerConcern::confirms_nothing, "confirms-nothing", Kind::peer_confirms_nothing,
     PeerHabit::confirms_nothing},
    {PeerConcern::sends_nothing, "sends-nothing", Kind::peer_sends_nothing,
     PeerHabit::sends_nothing},
    {PeerConcern::far_ahead, "far-ahead", Kind::peer_far_ahead, PeerHabit::far_ahead},
    {PeerConcern::stays_far, "stays-far", Kind::peer_stays_far, PeerHabit::stays_far},
});

/// The first row with this value in a column.
template <typename Value>
const ConcernRow& row_of(Value value, Value ConcernRow::*column) {
  const auto* const found = std::ranges::find(kConcerns, value, column);
  check(found != kConcerns.end(), "every concern, and every habit, has a row");
  return *found;
}

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

/// The peer's habit, which no rule forbids, in words.
std::string text_of_habit(const PeerState& peer) {
  switch (peer.habit) {
    case PeerHabit::takes:
      return fmt::format(
          "it, or a site behind it, has taken a mass of {:.1f} more than it "
          "returned: it is served, and pulls this site's weight down",
          peer.drawn);
    case PeerHabit::gives:
      return fmt::format(
          "it, or a site behind it, has given a mass of {:.1f} more than it took: "
          "the more, the shorter are this site's steps",
          -peer.drawn);
    case PeerHabit::confirms_nothing:
      return fmt::format(
          "it has confirmed none of {} parcels for many rounds, and gets no more "
          "until it does",
          peer.sent - peer.receipts);
    case PeerHabit::sends_nothing:
      return "it may send, says that it does, and has not for many rounds";
    case PeerHabit::mints:
      return "its parcels have more mass than one may have: they count for nothing";
    case PeerHabit::far_ahead:
      return fmt::format("it says that it has come to round {}", peer.round);
    case PeerHabit::stays_far:
      return fmt::format(
          "its model stays farther away than a parcel may pull: {} pulls were cut "
          "in all",
          peer.cut);
    case PeerHabit::none:
      break;
  }
  return "";
}

/// How a peer stands that is up: what it does, and what one side's list allows and the other's does
/// not.
PeerStanding in_touch(const PeerState& peer, const sites::SitePeer& trust) {
  if (peer.barred) {
    return {PeerPhase::up, PeerConcern::barred,
            fmt::format("its parcels were absurd, or spoiled the model, {} times: for a while they "
                        "do not count",
                        peer.blamed)};
  }
  if (peer.habit != PeerHabit::none) {
    return {PeerPhase::up, row_of(peer.habit, &ConcernRow::habit).concern, text_of_habit(peer)};
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

std::string_view name_of(PeerConcern concern) { return row_of(concern, &ConcernRow::concern).name; }

std::optional<SiteEvent::Kind> event_of(PeerConcern concern) {
  return row_of(concern, &ConcernRow::concern).event;
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
