#include <sotto/trainers/json/catalog_items.h>

#include <iterator>
#include <limits>

#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/comm/transport.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/registry.h>
#include <sotto/optim/robust/aggregation.h>
#include <sotto/topology/registry.h>
#include <sotto/trainers/tasks/model.h>
#include <sotto/trainers/tasks/task_registry.h>

namespace sotto {
namespace {

Json hyperparameter_items(const AlgorithmInfo& info) {
  Json items = Json::array();
  for (const Hyperparameter& one : info.hyperparameters) {
    items.push_back({{"key", one.key},
                     {"symbol", one.symbol},
                     {"help", one.help},
                     {"default", one.derive != nullptr  ? Json("auto")
                                 : one.fallback.empty() ? Json()
                                                        : Json(one.fallback)},
                     {"setting", one.setting.empty() ? Json() : Json(one.setting)}});
  }
  return items;
}

Json algorithm_items() {
  Json items = Json::array();
  for (const AlgorithmInfo& info : algorithms()) {
    items.push_back(
        {{"name", info.name},
         {"synopsis", synopsis(info)},
         {"title", info.title},
         {"paper", info.paper},
         {"rule", info.rule},
         {"summary", info.summary},
         {"contract", contract_kind_name(info.contract)},
         {"graph", graph_need_name(info.graph)},
         {"time_varying", info.takes_changing_graphs()},
         {"hands_replicas_over", info.graph_change == GraphChange::with_handover},
         {"overlaps", info.hides_behind == HidesBehind::next_gradient},
         {"delayed_gradient", info.takes_delayed_gradients()},
         {"fragments", info.takes_fragments()},
         {"outer_after_mixing", info.takes_outer_after_mixing()},
         {"hyperparameters", hyperparameter_items(info)},
         {"step_rule", info.step_rules.only},
         {"compressor_family", info.compressors.family},
         {"most_nodes", info.most_nodes == std::numeric_limits<int>::max() ? Json(nullptr)
                                                                           : Json(info.most_nodes)},
         {"bytes_per_round", info.bytes},
         {"memory_per_parameter", state_formula(info)},
         {"default_compressor", info.default_compressor},
         {"wire_id", info.wire_id}});
  }
  return items;
}

Json rule_items() {
  Json items = Json::array();
  for (const AggregationInfo& info : aggregations()) {
    items.push_back({{"name", info.name}, {"synopsis", info.synopsis}, {"summary", info.summary}});
  }
  return items;
}

Json compressor_items() {
  Json items = Json::array();
  for (const CompressorInfo& info : compressors()) {
    items.push_back({{"name", info.name},
                     {"synopsis", info.synopsis},
                     {"summary", info.summary},
                     {"contract", info.contract},
                     {"example", info.example},
                     {"wire_id", info.wire_id}});
    if (info.coded_wire_id != 0) {
      items.back()["coded_wire_id"] = info.coded_wire_id;
    }
  }
  return items;
}

Json topology_items() {
  Json items = Json::array();
  for (const TopologyInfo& info : topologies()) {
    items.push_back({{"name", info.name},
                     {"synopsis", info.synopsis},
                     {"summary", info.summary},
                     {"nodes", info.nodes},
                     {"example", info.example},
                     {"directed", info.directed},
                     {"time_varying", info.time_varying}});
  }
  return items;
}

Json transport_items() {
  Json items = Json::array();
  for (const TransportInfo& info : transports()) {
    items.push_back({{"name", info.name},
                     {"summary", info.summary},
                     {"available", info.available},
                     {"processes", info.processes},
                     {"encrypts", info.encrypts},
                     {"streams", info.streams}});
  }
  return items;
}

Json task_items() {
  Json items = Json::array();
  for (const TaskInfo& info : tasks()) {
    items.push_back({{"name", info.name},
                     {"synopsis", info.synopsis},
                     {"summary", info.summary},
                     {"default_model", info.default_model}});
  }
  return items;
}

Json model_items() {
  Json items = Json::array();
  for (const ModelInfo& info : models()) {
    items.push_back({{"name", info.name},
                     {"synopsis", info.synopsis},
                     {"summary", info.summary},
                     {"example", info.example}});
  }
  return items;
}

struct Kind {
  std::string_view name;
  Json (*items)();
};

constexpr Kind kKinds[] = {{"algorithms", algorithm_items},
                           {"rules", rule_items},
                           {"compressors", compressor_items},
                           {"topologies", topology_items},
                           {"transports", transport_items},
                           {"tasks", task_items},
                           {"models", model_items}};

}  // namespace

std::vector<std::string_view> catalog_names() {
  std::vector<std::string_view> names;
  names.reserve(std::size(kKinds));
  for (const Kind& entry : kKinds) {
    names.push_back(entry.name);
  }
  return names;
}

Json catalog_items(std::string_view kind) {
  for (const Kind& entry : kKinds) {
    if (entry.name == kind) {
      return entry.items();
    }
  }
  refuse_unknown("kind", excerpt(kind), names_of(kKinds));
}

}  // namespace sotto
