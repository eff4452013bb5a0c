#include <sotto/study/internal/times_there.h>

#include <algorithm>

#include <sotto/sim/availability.h>
#include <sotto/study/internal/happenings.h>

namespace sotto::study {

TimesThere::TimesThere(const Scenario& scenario) : scenario_(scenario) {
  std::vector<NodeEvent> events = scenario.events;
  std::ranges::stable_sort(events, {}, &NodeEvent::at);
  for (const NodeEvent& event : events) {
    if (event.kind == NodeEvent::Kind::suspend) {
      suspended_[event.node].emplace_back(event.at, kNever);
    } else if (event.kind == NodeEvent::Kind::resume) {
      suspended_[event.node].back().second = event.at;
    }
  }
}

SimTime TimesThere::there(std::size_t node, SimTime from, SimTime until) const {
  if (from >= until) {
    return 0;
  }
  return scenario_.availability.empty() ? until - from
                                        : time_there(scenario_.availability[node], from, until);
}

SimTime TimesThere::of(std::size_t node, SimTime until) const {
  const SimTime joins = joining_time(scenario_, node);
  SimTime time = there(node, joins, until);
  if (const auto found = suspended_.find(static_cast<Rank>(node)); found != suspended_.end()) {
    for (const auto& [from, resumed] : found->second) {
      time -= there(node, std::max(from, joins), std::min(resumed, until));
    }
  }
  return time;
}

}  // namespace sotto::study
