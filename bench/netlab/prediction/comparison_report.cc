#include "comparison_report.h"

#include <array>
#include <map>

#include <fmt/format.h>

namespace sotto::netlab {
namespace {

Json faults_json(const std::vector<NodeFault>& faults) {
  Json all = Json::array();
  for (const NodeFault& fault : faults) {
    all.push_back({{"node", fault.node}, {"at_s", fault.at_s}, {"fault", fault.what}});
  }
  return all;
}

}  // namespace

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
