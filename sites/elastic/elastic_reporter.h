// What a node of an all-reduce whose nodes come and go tells of itself: events as its standing
// changes, reports, and evaluations.
//
// Thread safety: one thread at a time, but for report(), which any may ask. Ownership: options and
// connections are the caller's and must outlive it.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/sites/elastic/elastic_connections.h>
#include <sotto/sites/elastic/elastic_options.h>
#include <sotto/sites/elastic/elastic_wait.h>
#include <sotto/sites/elastic/elastic_wait_watch.h>
#include <sotto/sites/elastic/node_sight.h>
#include <sotto/sites/epochs/epoch_member.h>
#include <sotto/sites/nodes/report/site_history.h>
#include <sotto/sites/nodes/report/site_report.h>
#include <sotto/trainers/tasks/task.h>

namespace sotto {

class ElasticReporter {
 public:
  /// `settings` are those that nodes share, in words; `dimension` is the model's.
  ElasticReporter(const ElasticOptions& options, std::string settings, std::size_t dimension,
                  const ElasticConnections& connections, SiteListener listener);

  // A member is null where the node is in no run, nor on its way into one.

  /// Tells an event, with the run's step.
  void tell(SiteEvent::Level level, SiteEvent::Kind kind, std::string text) const;
  /// Tells what has changed since the last call, and makes a report if the last was long ago.
  void follow(const sites::EpochMember* member, const NodeSight& sight);
  /// Gradients that the member has seen left out, to be told at a bounded rate.
  void note(const sites::LeftOut& left_out);
  /// Tells of members that were put out as their models or means were not those of most.
  void note(const sites::PutOutUnequal& unequal);
  /// The node is in no run any more: it was not put out of the one before.
  void forget_run() {
    was_member_ = false;
    epoch_ = 0;
  }
  /// What the node is at.
  void enter(SitePhase phase) { phase_ = phase; }
  /// A step has come to this: the loss of its batch, or NaN, and whether the gradient counts.
  void step_done(double loss, bool left_out);
  /// Notes how good the model is after `step` steps of the run, once.
  void evaluated(const sites::EpochMember* member, Round step, const Evaluation& quality);
  /// What keeps the node from its next step, as it is now.
  ElasticWait wait_now(const sites::EpochMember* member, const NodeSight& sight) const;
  /// Makes a report now.
  void refresh(const sites::EpochMember* member);
  /// The newest report. Any thread may ask.
  SiteReport report() const { return board_.get(); }
  /// The evaluations of this process.
  const SiteHistory& history() const { return history_; }
  /// When this process began.
  std::chrono::steady_clock::time_point began() const { return began_; }

 private:
  using Clock = std::chrono::steady_clock;

  /// Whether the epoch, or whether this node is a member, has changed.
  bool tell_of_epoch(const sites::EpochMember& member);
  void tell_of_step(const sites::EpochMember& member);
  void tell_of_wait(const sites::EpochMember* member, const NodeSight& sight);
  void tell_of_left_out();
  SiteReport present(const sites::EpochMember* member) const;

  const ElasticOptions& options_;
  const std::string settings_;
  const std::size_t dimension_;
  const ElasticConnections& connections_;
  const SiteListener listener_;
  const Clock::time_point began_ = Clock::now();
  const double started_at_;
  SitePhase phase_ = SitePhase::starting;
  Round step_ = 0;
  double loss_;
  std::uint64_t left_out_ = 0;
  std::uint64_t put_out_ = 0;
  std::set<std::string> unequal_;  ///< names of nodes that were put out as such
  sites::Epoch epoch_ = 0;         ///< that was told of
  bool was_member_ = false;        ///< as was told last
  Clock::time_point told_{};       ///< when a step was told of last
  Clock::time_point reported_{};
  ElasticWait wait_;  ///< as it was looked at last
  ElasticWaitWatch watch_;
  sites::LeftOut untold_;  ///< gradients that are to be told of
  Clock::time_point left_out_told_{};
  Clock::time_point looked_{};
  SiteHistory history_;
  SiteBoard board_;
};

}  // namespace sotto
