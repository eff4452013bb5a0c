// What is behind a SiteOptimizer: one site over real channels, and its folder. Not for users.
//
// Thread safety: as SiteOptimizer.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>

#include <sotto/base/ids.h>
#include <sotto/base/parameter_layout.h>
#include <sotto/base/status.h>
#include <sotto/sites/core/conduct/patience.h>
#include <sotto/sites/nodes/called_node.h>
#include <sotto/sites/nodes/state/site_folder.h>
#include <sotto/sites/process/report/site_reporter.h>
#include <sotto/sites/process/site_connections.h>
#include <sotto/sites/process/site_guard.h>
#include <sotto/sites/process/site_optimizer.h>
#include <sotto/sites/process/site_options.h>
#include <sotto/sites/process/site_pace.h>
#include <sotto/sites/process/site_parts.h>
#include <sotto/sites/process/state/site_state_writer.h>

namespace sotto {

class SiteOptimizer::Run {
 public:
  /// As SiteOptimizer's.
  Run(const SiteOptions& options, std::unique_ptr<SiteFolder> folder, std::span<float> parameters,
      const ParameterLayout& layout, SiteListener listener);

  // What SiteOptimizer does.
  Status connect();
  Result<SiteStep> step(std::span<const float> gradient, double loss);
  Result<SiteStep> relay();
  void evaluated(const Evaluation& quality);
  Status finish();
  Status leave();

  bool trains() const { return !parts_.options.only_takes && !parts_.gradients.spent(); }
  bool over() const { return node_.over(round()); }
  Round round() const { return parts_.site.round(); }
  Round next_step() const { return round() * parts_.options.communication_interval + steps_; }
  SiteReport report() const { return reporter_.report(); }
  SiteResult result() const;

 private:
  using Clock = std::chrono::steady_clock;
  using Visit = CalledNode::Visit;

  /// Looks after the peers while a write is awaited; a fault comes again.
  void serve_meanwhile();
  /// Looks after the peers while the caller is away.
  Status serve();
  void report_failure();
  void tell_failure(const Status& fault) const;
  Status begin();
  /// What comes before the site has a model: its state, the other nodes, the channels.
  Status open();
  Status load();
  Status join();
  Result<SiteStep> take(std::span<const float> gradient, std::optional<double> loss);
  Result<SiteStep> exchange();
  Status run_round();
  /// Gives what the site holds to another, as it leaves.
  Status hand_over();
  Status wait_for_peers(sites::Patience& patience);
  /// A step failed like this: dropped if parcels were the reason, and the model is put back.
  Result<SiteStep> put_back(const Status& status);

  /// What is left to be done when no round is under way.
  Status end();
  Status pump(Clock::duration longest);
  SitePhase busy_phase() const { return trains() ? SitePhase::training : SitePhase::relaying; }
  bool rounds_are_over() const { return node_.rounds_are_over(round()); }

  SiteParts parts_;
  const SiteTeller teller_;
  SiteGuard guard_;
  sites::Patience patience_;
  sites::Patience answers_;  ///< to what a secure sum needs
  SiteConnections connections_;
  SiteReporter reporter_;

  bool begun_ = false;     ///< there is a model to train
  bool leaving_ = false;   ///< the site ends before the others
  bool disowned_ = false;  ///< what was loaded is not what others know last, and it begins anew
  Round steps_ = 0;        ///< in this round
  Clock::time_point round_began_ = Clock::now();
  SitePace pace_;
  SiteStateWriter writer_;
  mutable CalledNode node_;  ///< last: it uses all members above
};

}  // namespace sotto
