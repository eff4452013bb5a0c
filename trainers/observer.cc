#include <sotto/trainers/observer.h>

#include <algorithm>

namespace sotto {

std::string_view run_phase_name(RunPhase phase) {
  switch (phase) {
    case RunPhase::round:
      return "round";
    case RunPhase::gradient:
      return "gradient";
    case RunPhase::encode:
      return "encode";
    case RunPhase::decode:
      return "decode";
    case RunPhase::wait:
      return "wait";
    case RunPhase::wire:
      return "wire";
    case RunPhase::evaluation:
      return "evaluation";
    case RunPhase::checkpoint:
      return "checkpoint";
  }
  return "";
}

void Observers::add(Observer* observer) {
  if (observer == nullptr) {
    return;
  }
  all_.push_back(observer);
  if (observer->wants_phases()) {
    of_phases_.push_back(observer);
  }
}

bool Observers::wants_phases() const { return !of_phases_.empty(); }

bool Observers::wants_health() const {
  return std::any_of(all_.begin(), all_.end(),
                     [](const Observer* observer) { return observer->wants_health(); });
}

void Observers::began(const RunStart& start) {
  for (Observer* observer : all_) {
    observer->began(start);
  }
}

void Observers::round_done(Round done) {
  for (Observer* observer : all_) {
    observer->round_done(done);
  }
}

void Observers::evaluation_began(Round done) {
  for (Observer* observer : all_) {
    observer->evaluation_began(done);
  }
}

void Observers::evaluated(const RunEvaluation& evaluation) {
  for (Observer* observer : all_) {
    observer->evaluated(evaluation);
  }
}

void Observers::warning(const std::string& text) {
  for (Observer* observer : all_) {
    observer->warning(text);
  }
}

void Observers::phase(const PhaseSpan& span) {
  for (Observer* observer : of_phases_) {
    observer->phase(span);
  }
}

void Observers::node_ended(Rank node) {
  for (Observer* observer : all_) {
    observer->node_ended(node);
  }
}

void Observers::ended(const Status& status) {
  for (Observer* observer : all_) {
    observer->ended(status);
  }
}

}  // namespace sotto
