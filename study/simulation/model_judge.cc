#include <sotto/study/simulation/model_judge.h>

#include <algorithm>
#include <cmath>

#include <sotto/study/quality.h>
#include <sotto/trainers/model_sum.h>
#include <sotto/trainers/placed_model.h>

namespace sotto::study {
namespace {

constexpr std::size_t kNodesJudged = 16;  ///< of which each is evaluated

}  // namespace

ModelJudge::ModelJudge(const TrainPlan& plan, bool by_worst)
    : plan_(plan), by_worst_(by_worst), task_(plan.tasks->make(0)) {}

void ModelJudge::judge(std::span<const std::span<const float>> models, HistoryPoint& point) {
  const auto& placed = plan_.run.optimizer.placed;
  if (!placed) {
    judge_whole(models, point);
    return;
  }
  std::vector<std::vector<float>> whole;
  for (const auto& model : models) {
    whole.emplace_back(model.begin(), model.end());
  }
  bring_together(*placed, whole);
  judge_whole(std::vector<std::span<const float>>(whole.begin(), whole.end()), point);
}

void ModelJudge::judge_whole(std::span<const std::span<const float>> models, HistoryPoint& point) {
  ModelSum sum;
  std::vector<std::span<const float>> present;
  const OptimizerOptions& optimizer = plan_.run.optimizer;
  const std::vector<double>& weights = plan_.run.weights;
  for (std::size_t node = 0; node < models.size(); ++node) {
    const bool lies = std::ranges::binary_search(optimizer.test.byzantine, static_cast<Rank>(node));
    if (!models[node].empty() && !lies) {
      present.emplace_back(models[node]);
      sum.add(models[node], weights.empty() ? weight_of_model(optimizer)
                                            : weight_of_model(optimizer, weights[node]));
    }
  }
  const std::vector<float> mean = sum.mean();
  for (const auto& model : present) {
    point.consensus_distance += squared_distance(model, mean) / static_cast<double>(present.size());
  }
  mean_ = task_->evaluate(mean);
  set_quality(point, mean_);
  const bool last = point.round == plan_.run.rounds;
  if (!last && !by_worst_) {
    return;
  }
  const Own found = judge_own(present);
  if (by_worst_) {
    point.loss = found.worst_loss;
    (quality_at(mean_).share ? point.accuracy : point.r2) = found.worst_quality;
    point.rmse = std::numeric_limits<double>::quiet_NaN();  // of which node?
  }
  if (last && std::isfinite(found.mean_quality)) {
    own_ = {found.worst_quality, found.mean_quality, found.nodes};
  }
}

ModelJudge::Own ModelJudge::judge_own(const std::vector<std::span<const float>>& models) {
  Own found;
  found.nodes = std::min(models.size(), kNodesJudged);
  for (std::size_t i = 0; i < found.nodes; ++i) {
    const Evaluation one = task_->evaluate(models[i * models.size() / found.nodes]);
    // What is no number is the worst of all, and stays.
    found.worst_loss = one.loss <= found.worst_loss ? found.worst_loss : one.loss;
    const double quality = quality_of(one);
    found.worst_quality = quality >= found.worst_quality ? found.worst_quality : quality;
    found.mean_quality += quality / static_cast<double>(found.nodes);
  }
  return found;
}

}  // namespace sotto::study
