// A newcomer on its way into a run: it says to all that it is there, fetches a copy of the state,
// and replays the means since, which it asks of one donor in order.
//
// Pure; one thread at a time. Memory: that of StateFetch.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/sites/epochs/epoch_message.h>
#include <sotto/sites/epochs/epoch_node.h>
#include <sotto/sites/epochs/epoch_post.h>
#include <sotto/sites/epochs/epoch_setup.h>
#include <sotto/sites/epochs/progress_wait.h>
#include <sotto/sites/epochs/state_fetch.h>

namespace sotto::sites {

/// Model and step rule after a step.
struct FetchedState {
  Round step = 0;                  ///< steps that it has had
  std::vector<std::byte> bytes{};  ///< as EpochModel::snapshot makes it
};

class EpochJoiner {
 public:
  static constexpr EpochTime kDonorSilent{10'000};  ///< after which a donor is forgotten

  /// Both must outlive it.
  EpochJoiner(const EpochSetup& setup, EpochPost& post);

  /// A member answers how far the run is; false, and it is no donor, where it makes steps with
  /// other settings.
  bool hear(const EpochNode& from, const DonorMessage& donor, EpochTime now);
  /// Why the run does not let this node in: more of its members than are donors say for a while
  /// that they make steps with other settings; ok: it may.
  Status refusal(EpochTime now);
  /// Members that are heard and have this node's settings.
  std::size_t donors() const { return fetch_.donors().size(); }
  /// Means are asked of another donor, if there is one.
  void avoid(const EpochNode& donor) {
    forget_requests();
    avoided_ = donor;
  }
  /// Whether a member of a run has answered.
  bool hears_donors() const { return !fetch_.donors().empty(); }
  /// Whether this one has.
  bool hears(const EpochNode& donor) const { return fetch_.donors().contains(donor); }
  /// Whether the state is there, so that means are replayed.
  bool replays() const { return fetch_.done(); }

  /// Takes in a piece; hands out the state once it is whole.
  std::optional<FetchedState> take(const EpochNode& from, const PieceMessage& piece, EpochTime now);
  /// Says that this node is there, which has applied `step` steps. While its parameters are `free`
  /// it looks for donors of what it lacks.
  void seek(Round step, bool free, EpochTime now);
  /// Asks for what it lacks: pieces of the state, or else means of the steps after `step`.
  void ask(Round step, EpochTime now);
  /// Called once in a while, with the steps that this node has replayed and the number of `parts`
  /// that it has of the next mean: where nothing has come for longer than it may take, all means
  /// are asked for again, of another donor if there is one.
  void look_for_progress(Round step, std::size_t parts, EpochTime now);
  /// These were put out as unequal: they are no donors, and what they gave of the state is dropped,
  /// with all else of it.
  void distrust(const std::vector<EpochNode>& unequal);
  /// Begins anew, with another state.
  void restart() {
    fetch_.restart();
    others_.clear();
    forget_requests();
  }

 private:
  /// The donor of the means after `step`; none: there is none.
  std::optional<EpochNode> choose_for_means(Round step) const;
  void ask_for_means(Round step, EpochTime now);
  bool serves(const EpochNode& node, const StateFetch::Donor& donor, Round step) const;
  void forget_requests();

  const EpochSetup& setup_;
  EpochPost& post_;
  StateFetch fetch_;
  StepSettings said_;                         ///< the own settings, as members were told last
  std::map<EpochNode, StepSettings> others_;  ///< of members that have other ones
  EpochTime others_since_{0};                 ///< when the first of them was heard
  Round asked_to_ = 0;                        ///< the last step whose mean was asked for
  std::optional<EpochNode> asked_from_;  ///< whom: means are taken in order, as a channel has them
  std::optional<EpochNode> avoided_;     ///< it sent nothing for too long
  std::set<EpochNode> unequal_;          ///< the latest of those that were put out so
  ProgressWait wait_;                    ///< for means
};

}  // namespace sotto::sites
