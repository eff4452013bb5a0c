#include <sotto/sites/nodes/roster_news.h>

#include <algorithm>

#include <fmt/format.h>

namespace sotto {

using sites::NodePhase;
using sites::OtherRun;
using sites::RosterMember;
using sites::RosterStanding;
using sites::RosterView;
using Level = SiteEvent::Level;
using Kind = SiteEvent::Kind;

std::string_view name_of(NodeState state) {
  switch (state) {
    case NodeState::up:
      return "up";
    case NodeState::unheard:
      return "unheard";
    case NodeState::lost:
      return "lost";
    case NodeState::conflict:
      return "conflict";
    case NodeState::leaving:
      return "leaving";
    case NodeState::gone:
      return "gone";
  }
  return "gone";
}

NodeState state_of(const RosterMember& member) {
  switch (member.entry.phase) {
    case NodePhase::gone:
    case NodePhase::ended:
      return NodeState::gone;
    case NodePhase::leaving:
      return member.suspected ? NodeState::lost : NodeState::leaving;
    case NodePhase::up:
      return member.suspected  ? NodeState::lost
             : member.conflict ? NodeState::conflict
             : member.heard    ? NodeState::up
                               : NodeState::unheard;
  }
  return NodeState::gone;
}

std::string words_of(const OtherRun& other) {
  const std::string& line = other.line;
  const std::size_t at = std::min(line.find('='), line.size());
  return fmt::format("the run at {} has other settings: {}", other.address,
                     line.empty() ? "compare the command lines of its nodes with this one's"
                                  : fmt::format("{} is {} here", line.substr(0, at),
                                                line.substr(std::min(at + 1, line.size()))));
}

void RosterNews::add(std::vector<SiteEvent> events) {
  for (SiteEvent& event : events) {
    if (events_.size() < kMost) {
      events_.push_back(std::move(event));
    }
  }
}

void RosterNews::tell(Level level, Kind kind, std::string text, std::string peer) {
  add({{.level = level, .kind = kind, .text = std::move(text), .peer = std::move(peer)}});
}

void RosterNews::follow(const RosterView& view) {
  note_changes(view);
  note_count(view);
  note_other(view);
  note_strangers(view);
}

std::map<std::string, RosterNews::Seen> RosterNews::seen_in(const RosterView& view) const {
  std::map<std::string, Seen> seen;
  for (const RosterMember& member : view.members) {
    if (!member.heard && !member.conflict) {
      continue;  // others list it, and it may have died before this process began
    }
    const std::string& name = member.entry.name;
    const Seen now{.incarnation = member.entry.incarnation, .state = state_of(member)};
    const auto known = seen.find(name);
    if (name != self_ &&
        (known == seen.end() || now.state == NodeState::up || now.state == NodeState::conflict)) {
      seen[name] = now;
    }
  }
  return seen;
}

void RosterNews::note_changes(const RosterView& view) {
  std::map<std::string, Seen> seen = seen_in(view);
  for (const auto& [name, now] : seen) {
    const auto before = seen_.find(name);
    const bool fresh = before == seen_.end() || before->second.incarnation != now.incarnation;
    if (!fresh && before->second.state == now.state) {
      continue;
    }
    if (now.state == NodeState::up) {
      tell(Level::info, Kind::node_came, fresh ? "takes part" : "answers again", name);
    } else if (now.state == NodeState::lost) {
      tell(Level::warning, Kind::node_lost, "does not answer any more", name);
    } else if (now.state == NodeState::conflict) {
      tell(Level::warning, Kind::node_conflict,
           "two processes have this name: nobody exchanges with it until one has ended", name);
    } else if (!fresh) {
      tell(Level::info, Kind::node_left,
           now.state == NodeState::leaving ? "is about to leave" : "has left", name);
    }
  }
  seen_ = std::move(seen);
}

void RosterNews::note_count(const RosterView& view) {
  const bool few = view.up < least_;
  if (view.standing == RosterStanding::up && few != std::exchange(few_, few)) {
    tell(few ? Level::warning : Level::info, few ? Kind::nodes_few : Kind::nodes_enough,
         fmt::format("{} up, as seen here, and at least {} are to be", view.up, least_));
  }
}

void RosterNews::note_other(const RosterView& view) {
  if (view.other && view.standing != RosterStanding::other && other_ != view.other) {
    other_ = view.other;
    tell(Level::warning, Kind::other_settings, words_of(*other_));
  }
}

void RosterNews::note_strangers(const RosterView& view) {
  for (const OtherRun& one : view.strangers) {
    if (std::ranges::find(strangers_, one.address, &OtherRun::address) == strangers_.end()) {
      tell(Level::warning, Kind::other_settings,
           fmt::format(
               "{}; a lease in the store names that address, and its node may be gone: it is "
               "not asked any more unless the lease is renewed",
               words_of(one)));
    }
  }
  strangers_ = view.strangers;
}

}  // namespace sotto
