// What is behind an ElasticOptimizer: one node of an all-reduce whose nodes come and go, over real
// channels. How it comes into a run, begins one, and gives one up is RunEntry's. Not for users.
//
// Thread safety: as ElasticOptimizer.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/parameter_layout.h>
#include <sotto/base/status.h>
#include <sotto/sites/elastic/elastic_connections.h>
#include <sotto/sites/elastic/elastic_optimizer.h>
#include <sotto/sites/elastic/elastic_options.h>
#include <sotto/sites/elastic/elastic_reporter.h>
#include <sotto/sites/elastic/founding_votes.h>
#include <sotto/sites/elastic/node_sight.h>
#include <sotto/sites/epochs/epoch_local_steps.h>
#include <sotto/sites/epochs/epoch_member.h>
#include <sotto/sites/nodes/called_node.h>

#include "node_view.h"
#include "owed_step.h"
#include "run_entry.h"

namespace sotto {

class ElasticOptimizer::Run {
 public:
  /// As ElasticOptimizer's.
  Run(const ElasticOptions& options, std::span<float> parameters, const ParameterLayout& layout,
      SiteListener listener);
  /// Leaves at once.
  ~Run() {
    const auto lock = node_.pause();
    connections_.close();
  }

  // What ElasticOptimizer does.
  Status connect();
  Result<ElasticStep> step(std::span<const float> gradient, double loss);
  bool takes_parts() const { return !local_; }
  Status gradient_part(std::size_t first, std::span<const float> part);
  Result<ElasticStep> step_by_parts(double loss);
  Result<ElasticStep> wait();
  void cancel() { cancelled_ = true; }
  void evaluated(const Evaluation& quality);
  Status finish();

  bool over() const { return node_.over(round_); }
  Round round() const { return round_; }
  Round next_step() const {
    return local_ ? round_ * local_->interval() + local_->taken() : round_;
  }
  SiteReport report() const { return reporter_.report(); }
  SiteResult result() const;

 private:
  using Clock = std::chrono::steady_clock;
  using Visit = CalledNode::Visit;

  sites::EpochTime now() const {
    return std::chrono::duration_cast<sites::EpochTime>(Clock::now() - began_);
  }
  /// What this node sees of the others by now.
  NodeSight sight() const;

  Status open();
  sites::EpochMember* member() { return entry_.member(); }
  bool takes_part() const {
    return entry_.member() != nullptr && entry_.member()->wants_gradient();
  }
  Status take_part();
  /// take_part(), which notes whether it has moved the parameters from under a gradient.
  Status take_part_with_gradient();
  /// The gradient of the caller misses the run's model: it is left out.
  ElasticStep leave_out();
  /// Waits until `done` holds, as long as the caller wants to.
  Status await(const std::function<bool()>& done);
  Status pump(Clock::duration longest);
  Status pump_once(Clock::duration longest);
  void follow_roster();
  Result<ElasticStep> outcome();
  /// Gives the run a gradient, or what local steps have come to, and waits for its step.
  Result<ElasticStep> offer(std::span<const float> gradient, double loss);
  /// Waits for the step of a gradient, if the member has taken it.
  Result<ElasticStep> offered(const Status& taken, double loss);
  /// A fault of the member: the gradient's alone, or else this node's.
  Status refusal(const Status& status);
  Result<ElasticStep> local_step(std::span<const float> gradient, double loss);
  /// Says what is lost where this node goes before the others have let it go.
  void tell_what_is_lost() const;
  /// Where the run is over with this node, those that come too late are told.
  Status note_end();
  /// Looks after the others while the caller is away.
  Status serve();
  void report_failure();

  const ElasticOptions options_;
  const std::span<float> parameters_;
  const ParameterLayout layout_;
  const SiteListener listener_;
  const std::string settings_;
  const FoundingVotes votes_;
  const Clock::time_point began_ = Clock::now();
  ElasticConnections connections_;
  NodeView view_;
  ElasticReporter reporter_;
  std::optional<sites::EpochLocalSteps> local_;  ///< none: each gradient is one of the run's
  OwedStep owed_;
  RunEntry entry_;

  Clock::time_point pumped_{};  ///< when messages were taken in last

  std::atomic<bool> cancelled_{false};
  Round round_ = 0;
  mutable CalledNode node_;  ///< last: it uses all members above
};

}  // namespace sotto
