// A scenario: nodes, links, what happens to them, a task, and the runs to compare on them.
//
// The format is TOML; docs/scenario_file.md has it whole, examples/scenarios has examples. Plain
// values.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/sim/network/platform.h>
#include <sotto/sim/simulator_options.h>
#include <sotto/study/scenario/costs.h>
#include <sotto/study/scenario/target.h>
#include <sotto/study/train/run_spec.h>
#include <sotto/study/train/train_options.h>

namespace sotto::study {

/// The links from each of `from` to each of `to`. A link with a trace has bandwidth and latency of
/// its own besides: the narrower bandwidth counts at each moment, and latencies add up.
struct LinksBetween {
  std::vector<Rank> from;
  std::vector<Rank> to;
  LinkSpec link;
};

/// A node's own connection, which all its peers share.
struct HostSpec {
  double up_bytes_per_s = kUnlimited;
  double down_bytes_per_s = kUnlimited;
  /// The bandwidth over time, in place of the figure above, which is then no limit.
  std::shared_ptr<const TracedLink> up_trace = {};
  std::shared_ptr<const TracedLink> down_trace = {};
  double up_queue_bytes = kUnlimited;    ///< as LinkSpec::queue_bytes has it
  double down_queue_bytes = kUnlimited;  ///< the same of the way in
};

/// One channel that nodes share, and that carries one way at a time, as the air of a wireless LAN:
/// all that comes from one of them and all that goes to one of them crosses it, and what goes from
/// one to another twice, in and out of the access point.
struct SharedMedium {
  std::vector<Rank> nodes;
  double bytes_per_s = kUnlimited;
};

/// One direction of a link that all messages from any of `from` to any of `to` share: a site's way
/// out, an ocean's cable. What a pair of nodes crosses is every trunk between them, and its own
/// link.
struct Trunk {
  std::string name;        ///< the trunk's name, which both of its directions have
  std::vector<Rank> from;  ///< ascending
  std::vector<Rank> to;    ///< ascending, without any node of `from`
  LinkSpec link;
};

/// From `at` to `until` no bytes pass between the parts. Nodes that are in none of them go on
/// reaching all.
struct NetworkPartition {
  SimTime at = 0;
  SimTime until = kNever;
  std::vector<std::vector<Rank>> parts;
};

/// From `at` on the links from each of `from` to each of `to` have another bandwidth, latency, or
/// both; what is not given stays.
struct LinksChange {
  SimTime at = 0;
  std::vector<Rank> from;
  std::vector<Rank> to;
  std::optional<double> bytes_per_s;
  std::optional<SimTime> latency;
};

/// From `at` on the trunks of this name have another bandwidth, latency, or both.
struct TrunkChange {
  SimTime at = 0;
  std::string name;
  std::optional<double> bytes_per_s;
  std::optional<SimTime> latency;
};

/// Which nodes lie in all runs, and how (optim/robust/attack.h).
struct Attackers {
  std::vector<Rank> nodes;  ///< ascending
  std::string kind;         ///< specification of the attack, "alie:1.5"
};

/// "nodes 4-5 lie (sign-flip)"
std::string attack_text(const Attackers& attackers);

struct SweepPoint;

struct Scenario {
  std::string title;
  int nodes = 0;
  /// Times of each node's gradients, encoding and decoding, by rank.
  std::vector<NodeSpec> node_specs;
  double memory_bytes = kUnlimited;   ///< memory of each node, for strategies
  std::vector<HostSpec> hosts;        ///< each node's own connection, by rank
  std::vector<SharedMedium> media;    ///< shared channels; a node is in one at most
  std::vector<Trunk> trunks;          ///< trunks, in the order in which messages cross them
  LinkSpec link;                      ///< the link between two nodes that `between` does not name
  std::vector<LinksBetween> between;  ///< links between some nodes; later ones win
  NetworkModel network;               ///< effects of the protocol on bandwidths and latencies
  TransportModel transport;
  /// Presence of each node, by rank; empty: always there.
  std::vector<NodeAvailability> availability;
  /// Clients drawn for each exchange; each run fills in its `every` and `model_bytes`.
  ClientSampling sampling;
  std::vector<NodeEvent> events;
  std::vector<NetworkPartition> partitions;
  /// Changes of links; where several come at one time, the last wins.
  std::vector<LinksChange> changes;
  std::vector<TrunkChange> trunk_changes;
  std::optional<Costs> costs;
  std::optional<Attackers> attack;  ///< nodes that lie; `task` has them too

  /// No gradients are taken: this shows how long runs take, not whether they converge.
  bool timing_only = false;
  TrainOptions task;                      ///< the settings of `sotto train` that hold for all runs
  std::vector<RunSetting> task_settings;  ///< the settings that the file gives for all runs
  /// Place where [task] sets "lr": "FILE:LINE: task.lr".
  std::map<std::string, std::string> task_places;
  std::vector<RunSpec> runs;
  std::vector<std::string> run_places;  ///< place of each run, "FILE:LINE: run"
  Target target;
  /// The scenarios that its runs are played on in its place, where it is swept.
  std::vector<std::shared_ptr<const SweepPoint>> sweep;

  /// Whether any link, trunk or connection has a trace.
  bool has_traces() const;
  /// Whether any of them has a queue that can overflow.
  bool has_queues() const;

  /// The link of its own from one node to another.
  LinkSpec link_between(Rank from, Rank to) const;
  /// The link that a lone message finds from one node to another: link_between and all trunks
  /// between them.
  LinkSpec way_between(Rank from, Rank to) const;
  /// The network between these nodes, with a link for each pair that talks: (from, to).
  Platform platform(const std::vector<std::pair<Rank, Rank>>& pairs) const;
};

/// The scenario of one point of a sweep: that of the file with these values.
struct SweepPoint {
  /// Values by key, "network.link.bandwidth".
  std::vector<std::pair<std::string, std::string>> values;
  std::string name;                          ///< name of the point, "bandwidth=10 Mbit/s"
  std::shared_ptr<const Scenario> scenario;  ///< the scenario with these values, without a sweep
};

/// Throws Error for a target that the task cannot reach: an accuracy of a regression, or R² of
/// anything else.
void check_target(const Scenario& scenario, bool regression);

/// The scenario with each trace's mean in place of the trace: what predictions are made for.
Scenario without_traces(const Scenario& scenario);

/// Reads a scenario's file; `seed` is used in place of its own. Throws Error that names the line
/// and the key of a fault.
Scenario read_scenario(const std::string& path, std::optional<std::uint64_t> seed = {});
/// Reads a scenario out of a text, which messages call `place`, as read_scenario does a file.
Scenario parse_scenario(const std::string& place, const std::string& text,
                        std::optional<std::uint64_t> seed = {});

}  // namespace sotto::study
