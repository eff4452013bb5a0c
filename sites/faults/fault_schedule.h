// When the faults of a plan are injected and when they are over, for simulated and for real sites.
//
// FaultSchedule decides which fault is due, draws nothing and knows no clock. A FaultTarget does to
// its sites what the schedule asks for, and calls FaultSchedule::end when a fault's time has
// passed. One thread. The target outlives the schedule.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/sim/network/platform.h>
#include <sotto/sim/time.h>
#include <sotto/sites/faults/fault_plan.h>

namespace sotto {

/// The sites into which a FaultSchedule injects faults: their processes, links and lists of peers.
class FaultTarget {
 public:
  virtual ~FaultTarget() = default;

  /// The number of the process that runs the site; none where none does.
  virtual std::optional<std::uint64_t> process_of(Rank site) const = 0;
  /// Kills the site's process, and treats its state as the fault's kind says (kill, restore, lose,
  /// corrupt). False: there is nothing to be done it to.
  virtual bool kill(const PlannedFault& fault, Rank site) = 0;
  /// Stops the site's process; for `replace` begins another one. False: it cannot be stopped now.
  virtual bool stop(const PlannedFault& fault, Rank site) = 0;
  /// Resumes a process that `stop` has stopped, wherever it now is.
  virtual void resume(Rank site, std::uint64_t process) = 0;
  /// Lets the site's process end in good order. False: it cannot be told to now.
  virtual bool leave(Rank site) = 0;
  /// Sets the site's wall clock to another time. False: sites have no clocks of their own.
  virtual bool set_clock(Rank site) = 0;
  /// Begins the process of a site that has none.
  virtual void begin_process(Rank site) = 0;
  /// Begins a process again at a site that lost its own, as soon as it has none.
  virtual void bring_back(Rank site) = 0;

  /// Breaks a connection once `bytes` more have gone. False: there is none.
  virtual bool reset(Rank site, Rank peer, std::uint64_t bytes) = 0;
  /// Lets nothing through in one direction. Calls add up.
  virtual void block(Rank from, Rank to) = 0;
  /// Takes back one call of `block`.
  virtual void unblock(Rank from, Rank to) = 0;
  /// Gives a link another bandwidth and latency; none: those of the plan.
  virtual void set_link(Rank from, Rank to, const std::optional<LinkSpec>& link) = 0;

  /// The peers on a site's list.
  virtual const std::vector<Rank>& listed(Rank site) const = 0;
  /// The fewest peers with which a site begins.
  virtual std::size_t least_listed() const { return 0; }
  /// Gives a site another list of peers.
  virtual void relist(Rank site, std::vector<Rank> listed) = 0;

  /// Notes that a fault has had its effect on a site; `peers` are the other ends.
  virtual void on_injected(const PlannedFault& fault, Rank site,
                           const std::vector<Rank>& peers) = 0;
  /// Notes that the time of a fault has passed, before its effect on the site is undone.
  virtual void on_over(const PlannedFault& fault, Rank site) = 0;
  /// Grants a site the time to recover, from now on.
  virtual void disturb(Rank site) = 0;
  /// Calls FaultSchedule::end with `number` once `lasting` has passed.
  virtual void end_after(SimTime lasting, std::size_t number) = 0;
};

/// The faults of a plan, and how far they are.
class FaultSchedule {
 public:
  /// Draws the plan's random faults by `seed`.
  FaultSchedule(const FaultPlan& plan, std::uint64_t seed, FaultTarget& target);

  /// All faults, planned and drawn, by time.
  std::span<const PlannedFault> faults() const { return faults_; }
  /// Effects by kind, in the order of fault_kinds(); a partition counts once for all its sites.
  const std::array<std::uint64_t, kFaultKindCount>& injected() const { return injected_; }
  /// When the last fault is over that is over at all.
  SimTime last_end() const;
  /// Whether a fault `join` begins the site, which is not there before.
  bool joins_later(Rank site) const;

  /// The time of a fault has come: injects it at once, or when its sites are at its round and
  /// moment.
  void begin(std::size_t fault);
  /// Injects the first fault that waits for this site to be at `moment`, in `round` or later.
  /// False: none does.
  bool inject_due(Rank site, Round round, FaultMoment moment);
  /// Ends what FaultTarget::end_after was given this number for.
  void end(std::size_t number);

 private:
  /// A fault that had its effect on a site, and ends.
  struct Active {
    std::size_t fault = 0;
    Rank site = 0;
    std::optional<std::uint64_t> process;
    std::vector<Rank> peers;
  };

  void inject(std::size_t fault, Rank site);
  bool take_effect(const PlannedFault& fault, Active& active);
  bool forget_peers(Active& active);
  void list_again(const Active& active);
  void disturb(FaultKind kind, const Active& active);
  /// The other ends of a site's links that the fault concerns.
  std::vector<Rank> peers_of(const PlannedFault& fault, Rank site) const;

  std::vector<PlannedFault> faults_;
  FaultTarget& target_;
  std::vector<std::vector<std::size_t>> waiting_;  ///< faults for a round or a moment, by site
  std::vector<Active> active_;
  std::array<std::uint64_t, kFaultKindCount> injected_ = {};
};

}  // namespace sotto
