#include <sotto/study/simulation/model_judge.h>

#include <algorithm>
#include <cmath>

#include <sotto/kernels/norm.h>
#include <sotto/study/quality.h>
#include <sotto/trainers/placed_model.h>

namespace sotto::study {
namespace {

constexpr std::size_t kNodesJudged = 16;  ///< of which each is evaluated

}  // namespace

ModelJudge::ModelJudge(const TrainPlan& plan, bool by_worst)
    : plan_(plan), by_worst_(by_worst), task_(plan.tasks->make(0)) {}

bool ModelJudge::lies(std::size_t node) const {
  return std::ranges::binary_search(plan_.run.optimizer.test.byzantine, static_cast<Rank>(node));
}

void ModelJudge::count(std::size_t node, std::span<const float> model, ModelSpread& spread) const {
  const OptimizerOptions& optimizer = plan_.run.optimizer;
  const std::vector<double>& weights = plan_.run.weights;
  if (!lies(node)) {
    spread.add(model, weights.empty() ? weight_of_model(optimizer)
                                      : weight_of_model(optimizer, weights[node]));
  }
}

bool ModelJudge::judges_own(Round done) const {
  return by_worst_ || done == plan_.run.rounds || plan_.run.optimizer.placed;
}

void ModelJudge::judge(const ModelSpread& spread, std::span<const std::span<const float>> models,
                       HistoryPoint& point) {
  if (!plan_.run.optimizer.placed) {
    judge_whole(spread, models, point);
    return;
  }
  std::vector<std::vector<float>> brought;
  brought.reserve(models.size());
  for (const auto& model : models) {
    brought.emplace_back(model.begin(), model.end());
  }
  bring_together(*plan_.run.optimizer.placed, brought);
  ModelSpread of_whole;
  for (std::size_t node = 0; node < brought.size(); ++node) {
    if (!brought[node].empty()) {
      count(node, brought[node], of_whole);
    }
  }
  judge_whole(of_whole, std::vector<std::span<const float>>(brought.begin(), brought.end()), point);
}

void ModelJudge::judge_whole(const ModelSpread& spread,
                             std::span<const std::span<const float>> models, HistoryPoint& point) {
  const std::vector<float> mean = spread.mean();
  const auto present = of_honest(models);
  if (present.empty()) {
    point.consensus_distance = spread.squared_distance(mean);
  }
  for (const auto& model : present) {  // to the bit what nodes of a real run find
    point.consensus_distance += squared_distance(model, mean) / static_cast<double>(present.size());
  }
  mean_ = task_->evaluate(mean);
  set_quality(point, mean_);
  if (!by_worst_ && point.round != plan_.run.rounds) {
    return;
  }
  const Own found = judge_own(present);
  if (by_worst_) {
    point.loss = found.worst_loss;
    (quality_at(mean_).share ? point.accuracy : point.r2) = found.worst_quality;
    point.rmse = std::numeric_limits<double>::quiet_NaN();  // of which node?
  }
  if (point.round == plan_.run.rounds && std::isfinite(found.mean_quality)) {
    own_ = {found.worst_quality, found.mean_quality, found.nodes};
  }
}

std::vector<std::span<const float>> ModelJudge::of_honest(
    std::span<const std::span<const float>> models) const {
  std::vector<std::span<const float>> present;
  for (std::size_t node = 0; node < models.size(); ++node) {
    if (!models[node].empty() && !lies(node)) {
      present.emplace_back(models[node]);
    }
  }
  return present;
}

ModelJudge::Own ModelJudge::judge_own(std::span<const std::span<const float>> present) {
  Own found;
  found.nodes = std::min(present.size(), kNodesJudged);
  for (std::size_t i = 0; i < found.nodes; ++i) {
    const Evaluation one = task_->evaluate(present[i * present.size() / found.nodes]);
    // What is no number is the worst of all, and stays.
    found.worst_loss = one.loss <= found.worst_loss ? found.worst_loss : one.loss;
    const double quality = quality_of(one);
    found.worst_quality = quality >= found.worst_quality ? found.worst_quality : quality;
    found.mean_quality += quality / static_cast<double>(found.nodes);
  }
  return found;
}

}  // namespace sotto::study
