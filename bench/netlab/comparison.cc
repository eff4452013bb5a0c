#include "comparison.h"

#include <array>
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "emulated_run.h"
#include "predicted_run.h"

namespace sotto::netlab {
namespace {

using EdgeBytes = std::map<std::pair<Host, Host>, std::uint64_t>;

EdgeBytes bytes_by_edge(const study::SimulationResult& result) {
  EdgeBytes bytes;
  for (const EdgeReport& edge : result.edges) {
    bytes[{edge.from, edge.to}] = edge.bytes;
  }
  return bytes;
}

EdgeBytes bytes_by_edge(const Json& result) {
  EdgeBytes bytes;
  for (const Json& edge : result.at("bytes_per_edge")) {
    bytes[{edge.at("from"), edge.at("to")}] = edge.at("bytes");
  }
  return bytes;
}

std::vector<NodeFault> faults_of(const study::SimulationResult& predicted) {
  std::vector<NodeFault> faults;
  for (const study::SimulatedFault& fault : predicted.faults) {
    faults.push_back({.node = fault.node, .at_s = fault.virtual_s, .what = fault.fault});
  }
  return faults;
}

std::set<Host> nodes_of(const std::vector<NodeFault>& faults) {
  std::set<Host> nodes;
  for (const NodeFault& fault : faults) {
    nodes.insert(fault.node);
  }
  return nodes;
}

Json faults_json(const std::vector<NodeFault>& faults) {
  Json all = Json::array();
  for (const NodeFault& fault : faults) {
    all.push_back({{"node", fault.node}, {"at_s", fault.at_s}, {"fault", fault.what}});
  }
  return all;
}

double patience(double predicted_s) { return 60 + 5 * predicted_s; }

std::string first_wrong(const std::vector<LinkCheck>& links) {
  for (const LinkCheck& link : links) {
    if (!link.good()) {
      return fmt::format("the link from node {} to node {} is not what it should be: {}", link.from,
                         link.to, link.wrong);
    }
  }
  return {};
}

/// Looks again where a link is not what it should be: something else may have had the processor.
std::vector<LinkCheck> look_at_links(const Lab& lab, const study::Scenario& scenario,
                                     const Edges& edges, const Laboratory& laboratory) {
  constexpr int kLooks = 10;
  constexpr std::chrono::seconds kMeanwhile{1};
  std::vector<LinkCheck> links = check_links(lab, scenario, edges);
  for (int look = 1; look < kLooks && !first_wrong(links).empty() && !*laboratory.stop; ++look) {
    std::this_thread::sleep_for(kMeanwhile);
    links = check_links(lab, scenario, edges);
  }
  return links;
}

void say(const Laboratory& laboratory, const std::string& what) {
  if (laboratory.say) {
    laboratory.say(what);
  }
}

}  // namespace

bool Comparison::same_nodes_failed() const {
  return nodes_of(predicted_faults) == nodes_of(measured_faults);
}

bool Comparison::as_predicted() const {
  return ok() && same_nodes_failed() &&
         (!predicted_faults.empty() || (bytes_equal && parameters_equal));
}

Comparison compare(const study::Scenario& scenario, const std::string& words,
                   const std::string& transport, const Laboratory& laboratory) {
  Comparison found = {.scenario = scenario.title,
                      .words = words,
                      .transport = transport,
                      .nodes = scenario.nodes,
                      .links = {},
                      .predicted_faults = {},
                      .measured_faults = {},
                      .failure = {}};
  const auto simulated = predicted_run(scenario, words);
  if (!simulated.ok()) {
    found.failure = simulated.status().message();
    return found;
  }
  const study::SimulationResult& predicted = *simulated;
  found.rounds = predicted.rounds;
  found.predicted_s = predicted.virtual_s;
  found.predicted_faults = faults_of(predicted);
  Edges edges;
  for (const auto& [edge, bytes] : bytes_by_edge(predicted)) {
    edges.push_back(edge);
    found.frame_bytes += static_cast<double>(bytes);
  }
  say(laboratory, fmt::format("{} over {}: predicted to take {:.1f} s; measuring the links", words,
                              transport, found.predicted_s));
  const auto lab = make_lab(scenario);
  found.links = look_at_links(*lab, scenario, edges, laboratory);
  found.failure = first_wrong(found.links);
  if (!found.ok()) {
    return found;
  }
  say(laboratory, fmt::format("{} over {}: running", words, transport));
  const std::uint64_t before = lab->carried();
  const auto measured = run_program(*lab, scenario,
                                    {.program = laboratory.program,
                                     .words = words,
                                     .transport = transport,
                                     .patience_s = patience(found.predicted_s)},
                                    *laboratory.stop);
  found.dropped = lab->dropped();
  found.wire_bytes = static_cast<double>(lab->carried() - before);
  if (!measured.ok()) {
    found.failure = measured.status().message();
    return found;
  }
  found.measured_s = measured->seconds;
  found.measured_faults = measured->faults;
  if (!measured->result.is_null()) {
    found.dimension = measured->result.at("dimension");
    found.bytes_equal = bytes_by_edge(predicted) == bytes_by_edge(measured->result);
    found.parameters_equal =
        measured->result.at("parameters_sha256") == Json(predicted.parameters_sha256);
  }
  return found;
}

Json comparison_json(const Comparison& c) {
  Json links = Json::array();
  for (const LinkCheck& link : c.links) {
    links.push_back({{"from", link.from},
                     {"to", link.to},
                     {"round_trip_s", link.round_trip_s},
                     {"expected_round_trip_s", link.expected_round_trip_s},
                     {"bytes_per_s", link.bytes_per_s},
                     {"expected_bytes_per_s", link.expected_bytes_per_s},
                     {"wrong", link.wrong}});
  }
  return {{"scenario", c.scenario},
          {"run", c.words},
          {"transport", c.transport},
          {"nodes", c.nodes},
          {"rounds", c.rounds},
          {"predicted_s", c.predicted_s},
          {"measured_s", c.ok() ? Json(c.measured_s) : Json()},
          {"error", c.ok() ? Json(c.error()) : Json()},
          {"predicted_faults", faults_json(c.predicted_faults)},
          {"measured_faults", faults_json(c.measured_faults)},
          {"bytes_equal", c.bytes_equal},
          {"parameters_equal", c.parameters_equal},
          {"frame_bytes", c.frame_bytes},
          {"wire_bytes", c.wire_bytes},
          {"dropped_packets", c.dropped},
          {"links", links},
          {"failure", c.failure}};
}

std::vector<std::string> comparison_titles() {
  return {"run", "transport", "rounds", "predicted", "measured", "error", "bytes", "models"};
}

std::vector<std::string> comparison_row(const Comparison& c) {
  if (!c.ok()) {
    return {c.words,   c.transport, "–", fmt::format("{:.3f} s", c.predicted_s),
            c.failure, "–",         "–", "–"};
  }
  const bool early = !c.predicted_faults.empty() || !c.measured_faults.empty();
  const auto equal = [&](bool same) { return early ? "–" : same ? "equal" : "differ"; };
  return {c.words,
          c.transport,
          fmt::to_string(c.rounds),
          fmt::format("{:.3f} s", c.predicted_s),
          fmt::format("{:.3f} s", c.measured_s),
          fmt::format("{:+.1f} %", 100 * c.error()),
          equal(c.bytes_equal),
          equal(c.parameters_equal)};
}

std::vector<std::string> fault_lines(const Comparison& c) {
  std::map<Host, std::array<const NodeFault*, 2>> by_node;
  for (const NodeFault& fault : c.predicted_faults) {
    by_node[fault.node][0] = &fault;
  }
  for (const NodeFault& fault : c.measured_faults) {
    by_node[fault.node][1] = &fault;
  }
  const auto text = [](const NodeFault* fault) {
    return fault == nullptr ? std::string("it finishes")
                            : fmt::format("{:.3f} s, {}", fault->at_s, fault->what);
  };
  std::vector<std::string> lines;
  for (const auto& [node, faults] : by_node) {
    lines.push_back(fmt::format("{} over {}, node {}:\n  predicted: {}\n  measured:  {}", c.words,
                                c.transport, node, text(faults[0]), text(faults[1])));
  }
  return lines;
}

}  // namespace sotto::netlab
