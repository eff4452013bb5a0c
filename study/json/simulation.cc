#include <sotto/study/json/simulation.h>

#include <sotto/study/json/figures.h>
#include <sotto/study/json/run_config.h>
#include <sotto/study/quality.h>
#include <sotto/study/units.h>

namespace sotto::study {
namespace {

Json final_json(const std::optional<FinalModels>& models) {
  if (!models) {
    return nullptr;
  }
  Json json = {{"loss", models->mean.loss}, {"consensus_distance", models->consensus_distance}};
  add_quality(models->mean, json);
  if (const auto& own = models->own) {
    const Quality& quality = quality_at(models->mean);
    json[quality.worst] = own->worst;
    json[quality.mean] = own->mean;
    json["nodes_evaluated"] = own->nodes;
  }
  return json;
}

/// Null where nothing has a cost.
Json bill_json(const std::optional<Bill>& bill) {
  return bill ? Json{{"money", bill->money}, {"kwh", bill->kwh}} : Json();
}

Json history_json(const std::vector<HistoryPoint>& history, const std::vector<Bill>& bills) {
  Json points = Json::array();
  for (const HistoryPoint& point : history) {
    points.push_back({{"round", point.round},
                      {"virtual_s", point.time_s},
                      {"loss", point.loss},
                      {"consensus_distance", point.consensus_distance},
                      {"bytes_per_node", point.bytes_per_node}});
    add_quality(point, points.back());
    if (!bills.empty()) {
      points.back().update(bill_json(bills[points.size() - 1]));
    }
  }
  return points;
}

Json links_json(const std::vector<LinkUse>& links) {
  Json shown = Json::array();
  for (const LinkUse& link : links) {
    shown.push_back(
        {{"name", link.name}, {"bytes", link.bytes}, {"utilisation", link.utilisation}});
  }
  return shown;
}

Json edges_json(const std::vector<EdgeReport>& edges) {
  Json all = Json::array();
  for (const EdgeReport& edge : edges) {
    all.push_back(
        {{"from", edge.from}, {"to", edge.to}, {"bytes", edge.bytes}, {"frames", edge.frames}});
  }
  return all;
}

Json faults_json(const std::vector<SimulatedFault>& faults) {
  Json all = Json::array();
  for (const SimulatedFault& fault : faults) {
    all.push_back({{"node", fault.node}, {"virtual_s", fault.virtual_s}, {"fault", fault.fault}});
  }
  return all;
}

}  // namespace

Json marks_json(const std::vector<ScenarioMark>& marks) {
  Json all = Json::array();
  for (const ScenarioMark& mark : marks) {
    Json& one = all.emplace_back(Json{{"at_s", exact_seconds(mark.at)}, {"kind", mark.kind}});
    if (mark.kind == "partition") {
      one["until_s"] = mark.until == kNever ? Json() : Json(exact_seconds(mark.until));
    }
    one["text"] = mark.text;
  }
  return all;
}

Json swept_json(const SimulationResult& result) {
  Json values;
  for (const auto& [key, value] : result.swept) {
    values[key] = value;
  }
  return values;
}

Json simulation_json(const SimulationResult& result, bool edges) {
  const OptimizerOptions& used = result.settings->run.optimizer;
  const PhaseShares& shares = result.shares;
  return {{"algorithm", algorithm_info(used.algorithm).name},
          {"compressor", used.compressor},
          {"topology", used.topology},
          {"nodes", result.nodes},
          {"sweep", swept_json(result)},
          {"rounds", result.rounds},
          {"virtual_s", result.virtual_s},
          {"time_to_target_s", or_null(result.time_to_target_s)},
          {"bytes_to_target", or_null(result.bytes_to_target)},
          {"bytes_sent_per_node", result.bytes_sent},
          {"bytes_within_groups_per_node", or_null(result.bytes_within_groups_per_node())},
          {"bill", bill_json(result.bill)},
          {"bill_to_target", bill_json(result.bill_to_target)},
          {"missed", result.missed},
          {"events", marks_json(result.seen)},
          {"events_after_the_end", marks_json(result.unseen)},
          {"final", final_json(result.final)},
          {"history_of", result.by_worst ? "worst node" : "averaged model"},
          {"history", history_json(result.history, result.bills)},
          {"fractions",
           {{"compute", shares.compute},
            {"codec", shares.codec},
            {"wire", shares.wire},
            {"idle", shares.idle}}},
          {"staleness",
           {{"mean", or_null(result.staleness.mean)},
            {"most", or_null(result.staleness.most)},
            {"largest_lead", result.staleness.largest_lead}}},
          {"links", links_json(result.links)},
          {"bytes_per_edge", edges ? edges_json(result.edges) : Json()},
          {"interrupted", result.interrupted},
          {"faults", faults_json(result.faults)},
          {"congestion", result.congestion.empty() ? Json() : Json(result.congestion)},
          {"warnings", result.warnings},
          {"messages", result.messages},
          {"trace_sha256", result.trace_sha256},
          {"parameters_sha256", result.parameters_sha256},
          {"config", train_config_json(*result.settings)}};
}

}  // namespace sotto::study
