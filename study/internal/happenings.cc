#include <sotto/study/internal/happenings.h>

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <sotto/sim/availability.h>
#include <sotto/study/scenario/scenario_marks.h>
#include <sotto/study/units.h>

namespace sotto::study {
namespace {

/// Adds the nodes of the side that has fewer.
void add_fewer(const std::vector<Rank>& from, const std::vector<Rank>& to,
               std::vector<Rank>& nodes) {
  const auto& fewer = from.size() < to.size() ? from : to;
  nodes.insert(nodes.end(), fewer.begin(), fewer.end());
}

}  // namespace

SimTime joining_time(const Scenario& scenario, std::size_t node) {
  const SimTime there =
      scenario.availability.empty() ? 0 : first_presence(scenario.availability[node]);
  return std::max(scenario.node_specs[node].start, there);
}

Happenings happenings_of(const Scenario& scenario) {
  Happenings found;
  for (const ScenarioMark& mark : marks_of(scenario)) {
    found.moments.push_back(
        {mark.at, fmt::format("{}: {}", duration_text(to_seconds(mark.at)), mark.text)});
  }
  for (const NodeEvent& event : scenario.events) {
    found.nodes.push_back(event.node);
  }
  for (std::size_t node = 0; node < scenario.node_specs.size(); ++node) {
    if (joining_time(scenario, node) > 0) {
      found.nodes.push_back(static_cast<Rank>(node));
    }
  }
  for (const LinksChange& change : scenario.changes) {
    add_fewer(change.from, change.to, found.nodes);
  }
  for (const TrunkChange& change : scenario.trunk_changes) {
    const auto trunk = std::ranges::find(scenario.trunks, change.name, &Trunk::name);
    add_fewer(trunk->from, trunk->to, found.nodes);
  }
  return found;
}

}  // namespace sotto::study
