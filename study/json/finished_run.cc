#include <sotto/study/json/finished_run.h>

#include <utility>

#include <sotto/study/json/figures.h>
#include <sotto/study/json/simulation.h>

namespace sotto::study {
namespace {

/// The figures of a model's evaluation.
HistoryPoint figures_in(const Json& json) {
  const auto value = [&](const char* field) { return number_or_nan(json.value(field, Json())); };
  HistoryPoint point;
  point.loss = value("loss");
  point.accuracy = value("accuracy");
  point.r2 = value("r2");
  point.rmse = value("rmse");
  point.consensus_distance = value("consensus_distance");
  return point;
}

HistoryPoint point_in(const Json& json) {
  HistoryPoint point = figures_in(json);
  point.round = json.at("round").get<Round>();
  point.time_s = json.at("time_s").get<double>();
  point.bytes_per_node = json.at("bytes_per_node").get<double>();
  return point;
}

/// A run with what is said of it beside its figures.
FinishedRun described(Json json) {
  const Json& config = json.at("config");
  FinishedRun run{.task = config.at("task").get<std::string>(),
                  .model = config.at("model").get<std::string>(),
                  .transport = config.value("transport", ""),
                  .nodes = config.at("nodes").get<int>()};
  run.json = std::move(json);
  return run;
}

}  // namespace

FinishedRun trained_run(Json result) {
  FinishedRun run = described(std::move(result));
  for (const Json& point : run.json.at("history")) {
    run.history.push_back(point_in(point));
  }
  run.final = figures_in(run.json.at("final"));
  const Json& sent = run.json.at("bytes_sent_per_node");
  for (const Json& bytes : sent) {
    run.bytes_per_node += bytes.get<double>();
  }
  run.bytes_per_node /= sent.empty() ? 1 : static_cast<double>(sent.size());
  run.seconds = run.json.at("time").at("wall_s").get<double>();
  return run;
}

FinishedRun finished_run(const SimulationResult& result, bool edges) {
  FinishedRun run = described(simulation_json(result, edges));
  run.history_of = result.by_worst ? "worst node" : run.history_of;
  run.history = result.history;
  if (result.final) {
    HistoryPoint& last = run.final.emplace();
    set_quality(last, result.final->mean);
    last.consensus_distance = result.final->consensus_distance;
  }
  run.bytes_per_node = result.bytes_per_node();
  run.seconds = result.virtual_s;
  run.time_to_target_s = result.time_to_target_s;
  run.bytes_to_target = result.bytes_to_target;
  run.bill = result.bill;
  run.bills = result.bills;
  return run;
}

}  // namespace sotto::study
