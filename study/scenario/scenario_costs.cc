// What nodes cost: [costs].
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/study/scenario/internal/costs.h>

namespace sotto::study {
namespace {

std::optional<double> read_cost(TomlReader& in, const char* key) {
  const auto cost = in.number(key);
  if (cost && !(*cost >= 0 && std::isfinite(*cost))) {
    in.refuse(key, "it is 0 or more");
  }
  return cost;
}

/// The figures that a table has; those that it has not stay.
bool read_node_costs(TomlReader& in, NodeCosts& costs) {
  bool any = false;
  for (const auto& [key, cost] :
       {std::pair("per-GB", &costs.per_gb), std::pair("per-node-hour", &costs.per_hour),
        std::pair("watts", &costs.watts), std::pair("kWh-per-GB", &costs.kwh_per_gb)}) {
    const auto found = read_cost(in, key);
    any = any || found.has_value();
    *cost = found.value_or(*cost);
  }
  return any;
}

constexpr const char* kFigures = "per-GB, per-node-hour, watts or kWh-per-GB";

}  // namespace

void read_costs(TomlReader& file, Scenario& scenario, const Names& names) {
  auto in = file.table("costs");
  if (!in) {
    return;
  }
  Costs& costs = scenario.costs.emplace();
  costs.currency = in->text("currency").value_or("");
  costs.per_kwh = read_cost(*in, "per-kWh").value_or(0);
  NodeCosts all;
  bool any = read_node_costs(*in, all);
  costs.nodes.assign(static_cast<std::size_t>(scenario.nodes), all);
  SaidOfNodes said;
  for (TomlReader& some : in->tables("nodes")) {
    const auto ranks = read_ranks(some, "nodes", names);
    said.note(ranks, some.place("nodes"), "has two costs");
    NodeCosts theirs = all;
    if (!read_node_costs(some, theirs)) {
      some.require("per-GB", fmt::format("what these nodes cost: {}", kFigures));
    }
    any = true;
    for (const Rank rank : ranks) {
      costs.nodes[static_cast<std::size_t>(rank)] = theirs;
    }
    some.finish();
  }
  if (!any) {
    in->require("per-node-hour", fmt::format("what nodes cost: {}", kFigures));
  }
  in->finish();
}

}  // namespace sotto::study
