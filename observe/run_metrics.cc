#include <sotto/observe/run_metrics.h>

#include <utility>

#include <fmt/format.h>

#include <sotto/observe/figures.h>
#include <sotto/observe/metrics_text.h>

namespace sotto {
namespace {

const char* type_of(const FigureInfo& info) { return info.counter() ? "counter" : "gauge"; }

void add_nodes(const RunEvaluation& last, MetricsText& metrics) {
  for (const NodeFigure& figure : node_figures()) {
    metrics.begin(figure.info.name, type_of(figure.info), figure.info.help);
    for (const NodeStanding& node : last.nodes) {
      metrics.sample(figure.value(node), metric_label("node", fmt::to_string(node.node)));
    }
  }
}

void add_links(const RunEvaluation& last, MetricsText& metrics) {
  for (const LinkFigure& figure : link_figures()) {
    metrics.begin(figure.info.name, type_of(figure.info), figure.info.help);
    for (const NodeStanding& node : last.nodes) {
      for (const LinkTraffic& link : node.traffic) {
        metrics.sample(figure.value(link),
                       fmt::format("{},{}", metric_label("from", fmt::to_string(link.from)),
                                   metric_label("to", fmt::to_string(link.to))));
      }
    }
  }
}

}  // namespace

std::string run_metrics_text(const RunStart& start, Round done,
                             const std::optional<RunEvaluation>& last) {
  MetricsText metrics("sotto_train_");
  metrics.begin("info", "gauge", "1; the version of the program");
  metrics.sample(1, metric_label("version", SOTTO_VERSION));
  metrics.one("nodes", "gauge", "Nodes that train", start.nodes);
  metrics.one("parameters", "gauge", "Parameters of the model",
              static_cast<double>(start.dimension));
  if (start.rounds > 0) {
    metrics.one("rounds", "gauge", "Rounds after which the run ends",
                static_cast<double>(start.rounds));
  }
  metrics.one("round", "gauge", "Rounds that are over", static_cast<double>(done));
  if (!last) {
    return std::move(metrics).take();
  }
  metrics.one("evaluated_round", "gauge", "Rounds that were over at the last evaluation",
              static_cast<double>(last->point.round));
  for (const RunFigure& figure : run_figures()) {
    metrics.one(figure.info.name, type_of(figure.info), figure.info.help, figure.value(*last));
  }
  add_nodes(*last, metrics);
  add_links(*last, metrics);
  return std::move(metrics).take();
}

void RunMetrics::began(const RunStart& start) {
  monitor_.reset();  // of a run before this one
  {
    const std::lock_guard lock(mutex_);
    done_ = start.done;
    start_ = start;
    last_.reset();
  }
  monitor_.emplace(address_, std::vector<MonitorPage>{{"/metrics", kMetricsType, [this] {
                                                         const std::lock_guard lock(mutex_);
                                                         return run_metrics_text(start_, done_,
                                                                                 last_);
                                                       }}});
}

void RunMetrics::evaluated(const RunEvaluation& evaluation) {
  const std::lock_guard lock(mutex_);
  const auto before = std::exchange(last_, evaluation);
  if (!before || !evaluation.report) {
    return;
  }
  // A mere report leaves these gauges as they are.
  last_->point.loss = before->point.loss;
  last_->point.accuracy = before->point.accuracy;
  last_->point.r2 = before->point.r2;
  last_->point.rmse = before->point.rmse;
  last_->point.consensus_distance = before->point.consensus_distance;
}

}  // namespace sotto
