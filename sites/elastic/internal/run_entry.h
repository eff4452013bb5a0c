// How a node comes into a run whose nodes come and go, begins one from its model, and gives one up:
// the run that it is in, and what it has of others that it was in. Not for users.
//
// Thread safety: one thread at a time. Ownership: what Parts refer to is the caller's and must
// outlive the object.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <span>

#include <sotto/base/ids.h>
#include <sotto/base/parameter_layout.h>
#include <sotto/base/status.h>
#include <sotto/sites/elastic/elastic_beginning.h>
#include <sotto/sites/elastic/elastic_connections.h>
#include <sotto/sites/elastic/elastic_options.h>
#include <sotto/sites/elastic/elastic_reporter.h>
#include <sotto/sites/elastic/founding_votes.h>
#include <sotto/sites/elastic/node_sight.h>
#include <sotto/sites/epochs/epoch_local_steps.h>
#include <sotto/sites/epochs/epoch_member.h>

#include "kept_model.h"
#include "owed_step.h"
#include "run_claim.h"
#include "run_standing.h"

namespace sotto {

class RunEntry {
 public:
  /// What a node has that comes into a run.
  struct Parts {
    const ElasticOptions& options;
    std::span<float> parameters{};
    const ParameterLayout& layout;
    const FoundingVotes& votes;                 ///< in the node's folder
    sites::EpochLocalSteps* local = nullptr;    ///< null: each gradient is one of the run's
    OwedStep& owed;                             ///< the caller's gradient, which a run may lose
    ElasticConnections& connections;            ///< to the others
    ElasticReporter& reporter;                  ///< tells of runs that are begun and given up
    std::function<sites::EpochTime()> clock{};  ///< the member's time
  };

  /// Reads the model in the folder. Throws Error for options that a member refuses, and where the
  /// model is not one of these options.
  explicit RunEntry(Parts parts);

  /// The member of the run that this node is in; null: it is in none.
  sites::EpochMember* member() { return member_ ? &*member_ : nullptr; }
  const sites::EpochMember* member() const { return member_ ? &*member_ : nullptr; }

  /// Whether the parameters stay as they are.
  void keep_parameters(bool kept);

  /// Whether this node has the votes of a run that it began before, and has not given up.
  bool founded() const;
  /// Whether no node that is heard is in this node's run, or in any if it is in none.
  bool is_empty() const;

  // These require open connections.

  /// Joins a run, begins one, or gives one up, where it is time.
  Status follow(const NodeSight& sight);
  /// Fault::ended once the run is over for a node that is not in it.
  Status goes_on(const RosterSight& sight) const;
  /// Where this node's run has to end for another one: begins anew as a newcomer, if no step was
  /// made that would be lost, and else is the fault. Requires a member.
  Status keep_or_yield();

  /// Looks whether this node is a member, and drops votes of another run than its own.
  void note_membership();
  /// Whether it has been a member.
  bool took_part() const { return standing_.took_part(); }
  /// The node was told to finish: it stays in its run until that lets it go.
  void leave() { standing_.leave(); }
  /// The run has ended so; those that come too late are told.
  Status note_end(const RunEnd& end) const;

  /// Tells of the model that was in the folder.
  void tell() const { kept_.tell(); }
  /// Writes the model to the folder, where it is time, or with `now` as it is.
  void write(bool now) { kept_.write(member(), now); }
  /// Goes on with a write beside the training. Requires a member.
  void go_on_writing() { kept_.go_on(*member()); }

 private:
  using Clock = std::chrono::steady_clock;

  /// `founded`: the run that it founds; none: it joins. Zeros: its history is drawn.
  void make_member(const std::optional<sites::History>& founded);
  /// Reads the model in the folder, if there is one, which the member is to take.
  void read_kept();
  BeginningSight beginning_sight(const NodeSight& sight) const;
  /// Begins a run, where nodes find each other by a store once that lets this one.
  Status found();
  /// This node is in no run any more, and keeps model and steps.
  void give_up();
  /// Steps of the model from which this node could begin a run; 0 where it is not sound.
  Round model_steps() const;
  bool rounds_are_over(Round steps) const {
    return parts_.options.rounds > 0 && steps >= parts_.options.rounds;
  }

  const Parts parts_;
  KeptModel kept_;
  ElasticBeginning beginning_;
  RunClaim claim_;
  RunStanding standing_;
  std::optional<sites::EpochMember> member_;
  Clock::time_point looked_{};    ///< at the run, whether it is to be given up
  bool parameters_kept_ = false;  ///< they are the caller's
  /// The parameters are those with which a run put this node out, which it then gave up: they are
  /// none to begin a run with.
  bool unsound_ = false;
};

}  // namespace sotto
