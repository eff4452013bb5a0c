// What one node of an all-reduce whose nodes come and go is told to do. Plain values; pure
// functions.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <sotto/base/ids.h>
#include <sotto/base/parameter_layout.h>
#include <sotto/optim/step_rule.h>
#include <sotto/sites/nodes/report/site_report.h>
#include <sotto/sites/nodes/roster_options.h>
#include <sotto/trainers/observer.h>
#include <sotto/trainers/settings/agreed_settings.h>

namespace sotto {

struct ElasticOptions {
  std::string name{};    ///< this node's name, unlike any other's; 1 … 100 printable bytes
  std::string listen{};  ///< HOST:PORT; empty: as DatagramPlace says
  /// The nodes find each other by these. The node that has the address of the first seed begins the
  /// run, where none of those that it sees is in one, or by a store that node which asks it first;
  /// with fewer than `least` members no step begins.
  RosterOptions roster{};

  // What is computed; the same at every node.
  /// `none` for the mean of `allreduce`, else one that compresses it, as in `qmean`.
  std::string compressor = "none";
  /// From a mean gradient to the step; with local steps from this node's gradient to its own.
  StepRuleOptions step_rule{};
  /// Makes the steps in place of step_rule; `further` says what nodes must agree on of it. It is
  /// called whenever the node begins anew, on the caller's thread or the node's own, and each rule
  /// begins without a memory. With local steps it is called once.
  StepRuleFactory own_step_rule{};
  /// A number for the settings with which own_step_rule makes the run's step of this number, from
  /// 0, e.g. a digest of its rates; where nodes differ in it nobody applies the step, and those go
  /// on that are more than half (docs/epochs.md, "Nodes that differ"). It depends on the number
  /// alone: a newcomer makes steps that the others have made. With local steps it is of the first
  /// of each H. None: the settings are the same in all steps.
  std::function<std::uint64_t(Round)> own_step_settings{};
  /// H: each node makes so many steps of its own for one of the run (DiLoCo). It takes part in that
  /// with its movement, and keeps the memory of its own rule to itself.
  Round communication_interval = 1;
  /// From the mean movement to the run's step; none: sgd with rate 1, the mean of all models, where
  /// communication_interval is above 1, and else there are no local steps.
  std::optional<StepRuleOptions> outer_step_rule{};
  /// What else nodes must share, by name: settings of a program's own.
  AgreedSettings further{};
  std::uint64_t seed = 0;  ///< of rounding
  /// How long the owner of a chunk waits for the slowest gradient, once more than half have come;
  /// none: for ever. What comes later is left out (ElasticStep::left_out).
  std::optional<std::chrono::milliseconds> grace{};

  /// Once a node has seen for so long that `least` nodes are up and none is in a run that makes
  /// steps, a new run is begun from the newest model among them; none: never (docs/epochs.md).
  std::optional<std::chrono::milliseconds> begin_again_after{};

  // This node's own.
  Round rounds = 0;  ///< after so many steps of the run this node ends; 0: it goes on
  std::chrono::milliseconds timeout{10'000};  ///< of silence, after which a peer is down
  /// How long a node that is to begin the run alone waits for others, which may be in one.
  std::chrono::milliseconds found_after{30'000};
  /// How long step() and connect() wait at most; none: for ever, as where no quorum is there.
  std::optional<std::chrono::milliseconds> wait_limit{};
  /// Folder in which the node keeps the run's model, and the one that begins the run its votes, so
  /// that it never begins a second one; made if it is absent, and held by one process. Empty: none
  /// (docs/epochs.md).
  std::string state{};
  /// Steps of the run from one write of the model to `state` to the next; 0: it is not written.
  /// None: as many as have 100 gradients of a node, so that copying the model, which a step waits
  /// for, is a small part of the time, and 100 gradients are computed again at most.
  std::optional<Round> save_every{};
  /// Once true, every wait ends; a signal handler may set it. Null: nobody does.
  const std::atomic<bool>* stop = nullptr;
  /// Once true, the node goes at once where it would still wait for others as it leaves, and tells
  /// what is lost by that; the handler of a second signal may set it. Null: nobody does.
  const std::atomic<bool>* haste = nullptr;
  /// Where its reports go, for others to read meanwhile; null: nowhere else.
  SiteBoard* board = nullptr;
  /// Receives evaluations, with this node as the only one; null: no observer.
  Observer* observer = nullptr;
};

/// Whether nodes make steps of their own between those of the run.
inline bool has_local_steps(const ElasticOptions& options) {
  return options.communication_interval > 1 || options.outer_step_rule.has_value();
}

/// The rule of the run's steps, from the mean of what nodes give.
StepRuleOptions run_step_rule(const ElasticOptions& options);

/// Steps of the run from one write of its model to the next; 0: it is not written.
Round save_every_of(const ElasticOptions& options);

/// What nodes must share, in words. `layout` is the model's.
AgreedSettings agreed_settings(const ElasticOptions& options, const ParameterLayout& layout);

}  // namespace sotto
