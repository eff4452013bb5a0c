// What the parts of a scenario's reader share. Throws Error naming line and key of what is wrong.
// One thread at a time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sotto/study/scenario/scenario.h>
#include <sotto/study/toml/reader.h>

namespace sotto::study {

/// How a scenario calls its nodes.
struct Names {
  int nodes = 0;
  std::map<std::string, std::vector<Rank>> groups = {};

  /// "0-3, europe": ascending, each once.
  std::vector<Rank> ranks(const std::string& text) const;
};

/// Which nodes some list speaks of, and where: what it says of a node a second time contradicts
/// what it said first, and is refused with both places.
class SaidOfNodes {
 public:
  /// Throws Error where one of the ranks was noted already; `twice` says what it then has or does.
  void note(const std::vector<Rank>& ranks, const std::string& place, std::string_view twice);

 private:
  std::map<Rank, std::string> places_;
};

/// The nodes that a key names, which has to be there.
std::vector<Rank> read_ranks(TomlReader& in, std::string_view key, const Names& names);
/// `from` and `to` of links.
std::pair<std::vector<Rank>, std::vector<Rank>> read_ends(TomlReader& in, const Names& names);
/// What lies between some nodes, which says nothing of their own connections.
LinkSpec read_link_between(TomlReader& in, std::string_view key);

/// A trace as a scenario names it, for one link or several.
struct WrittenTrace {
  std::shared_ptr<const LinkTrace> trace;
  SimTime start = 0;
  SimTime stagger = 0;  ///< each further link's run begins so much later in the trace

  /// The trace of the link that is number `place` of those.
  std::shared_ptr<const TracedLink> of(std::size_t place = 0) const;
};
/// The trace that a key names: a file, or a table with `file`, `repeat`, `bin`, `start` and
/// `stagger`; none where there is no such key.
std::optional<WrittenTrace> read_trace(TomlReader& in, std::string_view key);

/// [nodes] capacity, availability, hours and clock (docs/traces.md), of a scenario that knows how
/// many nodes there are and what their gradients take.
void read_clients(TomlReader& nodes, Scenario& scenario, const Names& names, std::uint64_t seed);

/// What an event's `link` changes; what is not given stays.
struct LinkChangeFigures {
  std::optional<double> bytes_per_s;
  std::optional<SimTime> latency;
};
/// Throws Error where nothing changes, or what an event cannot change.
LinkChangeFigures read_changed_figures(TomlReader& event);

/// [[network.trunk]]: links that groups of nodes share.
void read_trunks(TomlReader& network, Scenario& scenario, const Names& names);
/// What an event's `trunk` and `link` change. `places` are where the trunks' changes stand.
void read_trunk_change(TomlReader& event, SimTime at, Scenario& scenario,
                       std::vector<std::string>& places);

/// The scenarios of `sweep`, which `read` makes of the file with other values; empty: it has none.
/// `parse` gives the file's tables once more.
std::vector<std::shared_ptr<const SweepPoint>> read_sweep(
    const toml::table& file, const std::string& path, const std::function<toml::table()>& parse,
    const std::function<Scenario(const toml::table& changed)>& read);

/// [costs] of a file of which [nodes] is read.
void read_costs(TomlReader& file, Scenario& scenario, const Names& names);

/// Whether [task] may set it: a setting of `sotto train`, as "weight-decay", that a scenario does
/// not say otherwise.
bool stands_in_task(std::string_view name);
/// [task]: settings of `sotto train` that hold for all runs.
void read_task(const toml::table& file, const std::string& path, Scenario& scenario);

/// [attack] of a file of which [nodes] and [task] are read.
void read_attack(TomlReader& file, Scenario& scenario, const Names& names);
/// Refuses lies, of [attack] and others, where there are none to tell. The last to read.
void check_attack(const TomlReader& file, const Scenario& scenario);

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
