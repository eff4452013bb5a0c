#include <sotto/study/internal/run_history.h>

#include <algorithm>
#include <limits>
#include <utility>

#include <sotto/study/scenario/target.h>
#include <sotto/study/units.h>

namespace sotto::study {

RunHistory::RunHistory(const Scenario& scenario, const TrainPlan& plan, bool by_worst,
                       ModelOf model_of)
    : scenario_(scenario),
      plan_(plan),
      model_of_(std::move(model_of)),
      judge_(plan, by_worst),
      times_there_(scenario),
      sent_(static_cast<std::size_t>(scenario.nodes)),
      ended_at_(sent_.size(), kNever),
      gathered_as_is_(scenario.timing_only ? 0 : sent_.size()) {}

void RunHistory::count(const TraceEntry& entry) {
  if (entry.kind == TraceEntry::Kind::sent) {
    sent_[static_cast<std::size_t>(entry.node)] += static_cast<double>(entry.bytes);
  } else if (entry.kind == TraceEntry::Kind::ended) {
    ended_at_[static_cast<std::size_t>(entry.node)] = entry.time;
  }
}

bool RunHistory::due(Round done) const {
  const Round every = plan_.run.eval_every;
  return done == plan_.run.rounds || (every > 0 && done % every == 0);
}

void RunHistory::finished(Rank node, Round done) {
  if (!due(done)) {
    return;
  }
  Gathering& gathering = gatherings_[done];
  gathering.sent.resize(sent_.size(), -1);
  gathering.sent[static_cast<std::size_t>(node)] = sent_[static_cast<std::size_t>(node)];
  if (scenario_.timing_only) {
    return;
  }
  const auto index = static_cast<std::size_t>(node);
  judge_.count(index, model_of_(index), gathering.spread);
  if (judge_.judges_own(done)) {
    gathering.models.resize(sent_.size());
    gathered_as_is_[index] = done;
  }
}

void RunHistory::model_changes(Rank node) {
  const auto index = static_cast<std::size_t>(node);
  const auto gathering = gatherings_.find(std::exchange(gathered_as_is_[index], 0));
  if (gathering != gatherings_.end()) {
    const auto x = model_of_(index);
    gathering->second.models[index].assign(x.begin(), x.end());
  }
}

const HistoryPoint* RunHistory::finished_by_all(Round done, SimTime time) {
  const auto gathering = gatherings_.find(done);
  if (gathering == gatherings_.end()) {
    return nullptr;
  }
  points_.push_back(inspect(gathering->second, done, time));
  gatherings_.erase(gathering);
  return &points_.back();
}

HistoryPoint RunHistory::inspect(const Gathering& gathering, Round done, SimTime time) {
  HistoryPoint point;
  point.round = done;
  point.time_s = exact_seconds(time);
  std::vector<double> sent = sent_;
  for (std::size_t node = 0; node < sent.size(); ++node) {
    // A node that is not there has ended, and sends no more.
    sent[node] = gathering.sent[node] < 0 ? sent_[node] : gathering.sent[node];
    point.bytes_per_node += sent[node];
  }
  point.bytes_per_node /= scenario_.nodes;
  if (scenario_.costs) {
    bills_.push_back(bill_at(time, sent));
  }
  if (scenario_.timing_only) {
    point.loss = std::numeric_limits<double>::quiet_NaN();
  } else {
    std::vector<std::span<const float>> models(gathering.models.begin(), gathering.models.end());
    for (std::size_t node = 0; node < models.size(); ++node) {
      models[node] = gathered_as_is_[node] == done ? model_of_(node) : models[node];
    }
    judge_.judge(gathering.spread, models, point);
  }
  return point;
}

Bill RunHistory::bill_at(SimTime time, const std::vector<double>& sent) const {
  std::vector<double> seconds(sent.size());
  for (std::size_t node = 0; node < seconds.size(); ++node) {
    seconds[node] = to_seconds(times_there_.of(node, std::min(time, ended_at_[node])));
  }
  return bill_of(*scenario_.costs, sent, seconds);
}

void RunHistory::fill(SimulationResult& result, SimTime end) const {
  if (!points_.empty()) {
    result.final = {judge_.mean(), points_.back().consensus_distance, judge_.own()};
  }
  const auto there = crossing(scenario_.target, points_);
  if (there) {
    result.time_to_target_s = points_[there->point].time_s;
    result.bytes_to_target = points_[there->point].bytes_per_node;
  }
  if (scenario_.costs) {
    result.bill = bill_at(end, sent_);
    result.bills = bills_;
    if (there) {
      result.bill_to_target = bills_[there->point];
    }
  }
  result.missed = miss_text(scenario_.target, points_);
  result.history = points_;
}

}  // namespace sotto::study
