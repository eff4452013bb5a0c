#include "comparison.h"

#include <chrono>
#include <map>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "bench/netlab/network/scenario_network.h"
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
std::vector<LinkCheck> look_at_links(const EmulatedNetwork& network,
                                     const study::Scenario& scenario, const Edges& edges,
                                     const RealProgram& program) {
  constexpr int kLooks = 10;
  constexpr std::chrono::seconds kMeanwhile{1};
  std::vector<LinkCheck> links = check_links(network, scenario, edges);
  for (int look = 1; look < kLooks && !first_wrong(links).empty() && !*program.stop; ++look) {
    std::this_thread::sleep_for(kMeanwhile);
    links = check_links(network, scenario, edges);
  }
  return links;
}

void say(const RealProgram& program, const std::string& what) {
  if (program.say) {
    program.say(what);
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
                   const std::string& transport, const RealProgram& program) {
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
  say(program, fmt::format("{} over {}: predicted to take {:.1f} s; measuring the links", words,
                           transport, found.predicted_s));
  const auto network = make_network(scenario);
  found.links = look_at_links(*network, scenario, edges, program);
  found.failure = first_wrong(found.links);
  if (!found.ok()) {
    return found;
  }
  say(program, fmt::format("{} over {}: running", words, transport));
  const std::uint64_t before = network->carried();
  const auto measured = run_program(*network, scenario,
                                    {.program = program.path,
                                     .words = words,
                                     .transport = transport,
                                     .patience_s = patience(found.predicted_s)},
                                    *program.stop);
  found.dropped = network->dropped();
  found.wire_bytes = static_cast<double>(network->carried() - before);
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

}  // namespace sotto::netlab
