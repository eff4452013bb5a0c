// A scenario's events of nodes and links, in the order of time. Pure functions; thread-safe.
#pragma once

#include <string>
#include <vector>

#include <sotto/study/scenario/scenario.h>

namespace sotto::study {

/// Something that a scenario does at one time.
struct ScenarioMark {
  SimTime at = 0;
  SimTime until = 0;  ///< end of a partition, kNever: it does not heal; otherwise as `at`
  std::string kind;   ///< crash, vanish, leave, suspend, resume, join, partition or change
  std::string text;   ///< description, "crash of 3", "partition 0-3 | 4-7"
};

/// Whether `back`, of links or their changes, leads from the ends of `there` to its beginnings.
bool opposite(const auto& there, const auto& back) {
  return there.from == back.to && there.to == back.from;
}

/// {0, 1, 2, 5} → "0-2, 5"; cut off after a few ranges.
std::string ranks_text(std::vector<Rank> ranks);

/// "crash", "vanish", "leave", "suspend" or "resume"
const char* kind_name(NodeEvent::Kind kind);

/// Sorted by time; nodes to which the same happens at the same time share a mark.
std::vector<ScenarioMark> marks_of(const Scenario& scenario);

}  // namespace sotto::study
