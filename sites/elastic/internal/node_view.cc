#include "node_view.h"

namespace sotto {

bool NodeView::is_due(Time now) {
  if (asked_ && now - *asked_ < kAskEvery) {
    return false;
  }
  asked_ = now;
  return true;
}

void NodeView::take(const sites::RosterView& view, bool first_seed) {
  latest_ = {.up = view.up,
             .least = options_.roster.least,
             .joined = view.standing == sites::RosterStanding::up,
             .first_seed = first_seed,
             .others_ended = view.over,
             .asked = view.asked};
}

RosterSight NodeView::sight(Time now) const {
  RosterSight sight = latest_;
  sight.alone = sight.up == 1 &&
                (options_.roster.seeds.empty() || now >= search_began_ + options_.found_after);
  return sight;
}

}  // namespace sotto
