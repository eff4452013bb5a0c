// The optimizer of a site: keeps a program's flat parameters in touch with those of sites that it
// trusts, each with data, a loop and a process of its own.
//
//   sotto::SiteOptimizer site(options, "state", parameters, layout);
//   site.connect();
//   while (!site.over()) {  compute loss and gradient at `parameters`;  site.step(gradient, loss);
//   } site.finish();
//
// Nothing ends because a peer ends: a peer that is away is not waited for, one that comes back goes
// on where it was, and what a peer does wrong costs that peer. Whatever ends this process, its
// folder holds a state from which it goes on: nothing leaves that is not in it (docs/sites.md), but
// where SiteOptions::save_every or the lack of a folder gives that up.
//
// The parameters change in connect(), step() and relay() alone. Between these calls a thread of the
// optimizer's own serves the peers, so that a long gradient does not look like silence; what comes
// meanwhile is kept until the round's exchange.
//
// Thread safety: one thread at a time; report() and the board may be used by others meanwhile. The
// listener is called by the caller's thread and by the optimizer's own, one at a time; it must not
// call the optimizer back, but for report(). What it throws ends the site.
// Ownership: the parameters are the caller's, must outlive the optimizer and stay where they are.
// Memory: a copy of the parameters, what the step rule, the outer one and the exchange keep, with a
// folder a copy of the state, and of each peer that is sent to at most `window` parcels.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>

#include <sotto/base/ids.h>
#include <sotto/base/parameter_layout.h>
#include <sotto/base/status.h>
#include <sotto/sites/nodes/report/site_report.h>
#include <sotto/sites/nodes/report/site_result.h>
#include <sotto/sites/nodes/state/site_folder.h>
#include <sotto/sites/process/site_options.h>
#include <sotto/trainers/tasks/task.h>

namespace sotto {

/// What a step has come to.
struct SiteStep {
  Round round = 0;         ///< the site's round now, which schedules follow
  bool exchanged = false;  ///< whether the step ended a round: parcels are in the parameters
  /// The gradient does not count, as it was taken at a model that is gone: the parameters are a
  /// neighbour's, or again those of before a peer's parcels spoilt them. The next one is to be
  /// computed at the parameters as they are now.
  bool dropped = false;
};

class SiteOptimizer {
 public:
  /// Holds the folder `state`, which is made if it is absent, and reads the privacy that is spent.
  /// An empty `state` keeps nothing: each round is quicker by a write to the disk, and a process
  /// that dies comes back as a new site, which takes over a neighbour's model; what it had not yet
  /// told, and with push-sum its mass, is lost. With privacy a folder is needed.
  /// `parameters` are the initial model, equal at all sites; `layout` names its tensors, and empty
  /// is one tensor of all. Connects to nobody yet. Throws Error for an option that is refused, and
  /// where another process holds the folder.
  SiteOptimizer(const SiteOptions& options, const std::string& state, std::span<float> parameters,
                const ParameterLayout& layout = {}, SiteListener listener = {});
  /// Takes a folder that is held already; null: it keeps no state.
  SiteOptimizer(const SiteOptions& options, std::unique_ptr<SiteFolder> folder,
                std::span<float> parameters, const ParameterLayout& layout = {},
                SiteListener listener = {});
  /// Leaves at once. What step() has returned from is in the folder's state but for the local steps
  /// of a round that is not over; finish() saves these too.
  ~SiteOptimizer();
  SiteOptimizer(const SiteOptimizer&) = delete;
  SiteOptimizer& operator=(const SiteOptimizer&) = delete;

  // A fault is of this site alone, never of a peer: its state could not be read or written, its
  // address is taken, or a newer process of it runs. Later calls return the fault again.

  /// Reads the state, opens the channels, and begins: at the folder's state, at a neighbour's
  /// model, or at the initial one, which the parameters then are. Waits for peers for
  /// options.found_after at most, and for a neighbour that has promised its model longer. The first
  /// step does it when the caller did not. Throws Error for a state that was kept under other
  /// settings.
  Status connect();
  /// A local step by the gradient at parameters(), of as many elements; every
  /// communication_interval-th one makes the state durable and exchanges with the peers, and waits
  /// for those that are behind for as long as options.patience at most. `loss` at the same
  /// parameters, if it is given, tells the operator of a peer whose parcels made it jump. A
  /// gradient that is not finite gives Fault::non_finite and changes nothing, unless parcels of
  /// peers were the reason: then it is dropped, and they are (SiteStep::dropped). Fault::budget:
  /// the privacy budget is spent; relay() goes on. Fault::stopped: options.stop ended it before the
  /// site had a model.
  Result<SiteStep> step(std::span<const float> gradient,
                        double loss = std::numeric_limits<double>::quiet_NaN());
  /// A round without a step: takes in what comes, and passes it on. For an observer, and for a site
  /// whose privacy budget is spent.
  Result<SiteStep> relay();
  /// Notes how good the model is, as parameters() has it: for the report, the observer and the log.
  /// Writes the model to options.export_file, if it names one.
  void evaluated(const Evaluation& quality);
  /// Ends a round that is under way, saves the state, and the model where options want it, and
  /// leaves the peers. No step may follow: Error is thrown. A site that has not begun saves
  /// nothing. In a run by roster the others are told that it has gone; it does not wait until what
  /// it sent has arrived.
  Status finish();
  /// finish() for a node that ends before its run. In a run by roster the others are told first, so
  /// that nobody makes it a new neighbour; what it holds goes to one of them; and it waits until
  /// what it sent has arrived, for RosterOptions::leave_patience at most. options.haste ends that
  /// wait, and so does options.stop if it was not set before.
  Status leave();

  /// Whether the site can take a step: it is no observer and has privacy left.
  bool trains() const;
  /// Whether its rounds are over, or it is to stop (SiteOptions::rounds, SiteOptions::stop).
  bool over() const;
  /// Rounds that are done, by this site's count: about those of its neighbours.
  Round round() const;
  /// The number of the next local step: rounds × communication_interval and the steps of this one.
  /// It goes on after a restart, so that batches may be chosen by it.
  Round next_step() const;

  /// How the site and its peers stand. Any thread may ask.
  SiteReport report() const;
  /// What this process has come to so far, or in all.
  SiteResult result() const;

 private:
  class Run;
  std::unique_ptr<Run> run_;
};

}  // namespace sotto
