#include "internal/roster_sight.h"

namespace sotto {

RosterSight look_at(RunRoster& roster, const std::string& name) {
  const sites::RosterView view = roster.view();
  RosterSight sight{.up = view.up,
                    .joined = view.standing == sites::RosterStanding::up,
                    .first_seed = roster.has_first_seed(),
                    .others_ended = view.over,
                    .asked_seeds = view.asked};
  sight.nodes.reserve(view.members.size());
  for (const sites::RosterMember& member : view.members) {
    const sites::RosterEntry& entry = member.entry;
    if (entry.name != name && !is_gone(entry.phase) && !member.conflict) {
      sight.nodes.push_back({entry.name, entry.incarnation, member.suspected});
    }
  }
  return sight;
}

}  // namespace sotto
