// What is behind an ElasticOptimizer: one node of an all-reduce whose nodes come and go, over real
// channels. elastic_optimizer.cc has its steps and waits, and elastic_optimizer_beginning.cc how it
// comes into a run, begins one, and gives one up. Not for users.
//
// Thread safety: as ElasticOptimizer.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/parameter_layout.h>
#include <sotto/base/status.h>
#include <sotto/comm/channels.h>
#include <sotto/comm/trust/allow_list.h>
#include <sotto/sites/elastic/elastic_beginning.h>
#include <sotto/sites/elastic/elastic_links.h>
#include <sotto/sites/elastic/elastic_optimizer.h>
#include <sotto/sites/elastic/elastic_options.h>
#include <sotto/sites/elastic/elastic_reporter.h>
#include <sotto/sites/elastic/founding_votes.h>
#include <sotto/sites/elastic/node_sight.h>
#include <sotto/sites/epochs/epoch_local_steps.h>
#include <sotto/sites/epochs/epoch_member.h>
#include <sotto/sites/process/by_roster/run_roster.h>
#include <sotto/sites/process/called_node.h>
#include <sotto/sites/process/site_of_options.h>

#include "kept_model.h"
#include "owed_step.h"
#include "run_claim.h"
#include "run_standing.h"

namespace sotto {

class ElasticOptimizer::Run {
 public:
  /// As ElasticOptimizer's.
  Run(const ElasticOptions& options, std::span<float> parameters, const ParameterLayout& layout,
      SiteListener listener);
  /// Leaves at once.
  ~Run() {
    const auto lock = node_.pause();
    close();
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
  ElasticNodeParts parts() const {
    return {.member = member_ ? &*member_ : nullptr,
            .channels = channels_.get(),
            .roster = roster_.get(),
            .links = links_ ? &*links_ : nullptr,
            .incarnation = incarnation_,
            .sight = sight()};
  }

  /// What this node sees of the others by now.
  NodeSight sight() const;

  Status open();
  bool takes_part() const { return member_ && member_->wants_gradient(); }
  Status take_part();
  /// take_part(), which notes whether it has moved the parameters from under a gradient.
  Status take_part_with_gradient();
  /// The gradient of the caller misses the run's model: it is left out.
  ElasticStep leave_out();
  /// Whether this node has the votes of a run that it began before, and has not given up.
  bool has_votes() const {
    return !votes_.found().empty() && standing_.votes_count() && !by_store(options_.roster);
  }
  /// Whether no node that is heard is in this node's run, or in any if it is in none.
  bool run_is_empty() const;
  BeginningSight beginning_sight() const;
  /// Joins a run, begins one, or gives one up, where it is time.
  Status follow_beginning();
  /// Begins a run, where nodes find each other by a store once that lets this one.
  Status found_run();
  /// This node is in no run any more, and keeps model and steps.
  void give_up_run();
  /// `founded`: the run that it founds; none: it joins. Zeros: its history is drawn.
  void make_member(const std::optional<sites::History>& founded);
  /// Steps of the model from which this node could begin a run.
  Round model_steps() const {
    return member_ ? member_->applied() : kept_.next() ? kept_.next()->step : Round{0};
  }
  /// Whether the parameters stay as they are.
  void keep_parameters(bool kept);
  /// Waits until `done` holds, as long as the caller wants to.
  Status await(const std::function<bool()>& done);
  Status pump(Clock::duration longest);
  Status pump_once(Clock::duration longest);
  void follow_roster();
  /// Where this node's run has to end for another one: begins anew as a newcomer, if no step was
  /// made that would be lost, and else is the fault.
  Status keep_or_yield();
  /// Fault::ended once the run is over for a node that is not in it.
  Status run_goes_on() const;
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
  /// Leaves the channels and the roster. Requires that the own thread is kept out.
  void close();

  const ElasticOptions options_;
  const std::span<float> parameters_;
  const ParameterLayout layout_;
  const SiteListener listener_;
  const std::string settings_;
  const sites::Incarnation incarnation_ = draw_incarnation();
  const FoundingVotes votes_;
  const std::shared_ptr<AllowList> list_;
  const Clock::time_point began_ = Clock::now();
  ElasticReporter reporter_;
  std::optional<sites::EpochLocalSteps> local_;  ///< none: each gradient is one of the run's
  KeptModel kept_;
  ElasticBeginning beginning_;
  RunClaim claim_;
  RunStanding standing_;

  std::unique_ptr<RunRoster> roster_;
  std::unique_ptr<Channels> channels_;
  std::optional<ElasticLinks> links_;
  std::optional<sites::EpochMember> member_;
  sites::EpochTime search_began_{};  ///< when the roster was opened
  /// What the roster showed last; sight() has it with the rest.
  NodeSight sight_{.least = options_.roster.least};
  Clock::time_point asked_{};   ///< when
  Clock::time_point looked_{};  ///< at the run, whether it is to be given up
  Clock::time_point pumped_{};  ///< when messages were taken in last

  bool caller_away_ = false;  ///< the parameters stay as they are
  std::atomic<bool> cancelled_{false};
  OwedStep owed_;
  Round round_ = 0;
  mutable CalledNode node_;  ///< last: it uses all members above
};

}  // namespace sotto
