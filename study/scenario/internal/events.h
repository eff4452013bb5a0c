// Reads what happens to nodes and links. Throws Error naming line and key of what is wrong. One
// thread at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/sim/time.h>
#include <sotto/study/scenario/internal/names.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/toml/reader.h>

namespace sotto::study {

/// What an event's `link` changes; what is not given stays.
struct LinkChangeFigures {
  std::optional<double> bytes_per_s;
  std::optional<SimTime> latency;
};
/// Throws Error where nothing changes, or what an event cannot change.
LinkChangeFigures read_changed_figures(TomlReader& event);

/// Where each of a scenario's events stands.
using EventPlaces = std::vector<std::string>;

/// Something happens to nodes: crash, vanish, leave, suspend, resume or join.
void happen_to(const std::vector<Rank>& ranks, SimTime at, std::string_view what,
               const std::string& place, Scenario& scenario, EventPlaces& places);
/// What the file that `churn` names says, a line for each: TIME,WHAT,NODES.
void read_churn(TomlReader& file, Scenario& scenario, const Names& names, EventPlaces& places);

/// [[events]] and churn of a file of which [nodes] and [network] are read.
void read_events(TomlReader& file, Scenario& scenario, const Names& names);

}  // namespace sotto::study
