// An observer that remembers what it was told, for tests.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include <sotto/trainers/observer.h>
#include <sotto/trainers/result.h>

namespace sotto::test {

class Watcher final : public Observer {
 public:
  bool phases = false;
  bool health = false;

  std::string warned;
  std::vector<RunStart> starts;
  std::vector<RunEvaluation> evaluations;
  std::vector<PhaseSpan> spans;
  std::vector<Rank> nodes_ended;
  Round rounds = 0;
  std::function<void(Round)> after_round;
  std::function<void()> on_begin;
  std::vector<Status> ends;

  bool wants_phases() const override { return phases; }
  bool wants_health() const override { return health; }
  void began(const RunStart& start) override {
    if (on_begin) {
      on_begin();
    }
    starts.push_back(start);
  }
  void round_done(Round done) override {
    rounds = done;
    if (after_round) {
      after_round(done);
    }
  }
  void evaluated(const RunEvaluation& evaluation) override { evaluations.push_back(evaluation); }
  void warning(const std::string& text) override { warned = text; }
  void phase(const PhaseSpan& span) override {
    const std::lock_guard lock(mutex_);
    spans.push_back(span);
  }
  void node_ended(Rank node) override {
    const std::lock_guard lock(mutex_);
    nodes_ended.push_back(node);
  }
  void ended(const Status& status) override { ends.push_back(status); }

 private:
  std::mutex mutex_;
};

}  // namespace sotto::test
