// One decision of an epoch's members: a single-decree Paxos, in which each is voter and may be
// proposer (Lamport, "Paxos made simple", 2001). No coordinator; two quorums share a voter, so that
// at most one value is ever decided, whoever proposes and whatever is lost.
//
// Pure: hands out what to say, and is told what was said. One thread at a time.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/status.h>
#include <sotto/sites/epochs/epoch_node.h>
#include <sotto/sites/epochs/epoch_rules.h>

namespace sotto::sites {

class EpochVote {
 public:
  /// A vote in which nobody has said anything.
  EpochVote() = default;

  /// Whether this voter has promised anything: then it is frozen.
  bool promised() const { return promised_.number > 0; }
  /// The ballot that this voter has promised, or one of number 0.
  const Ballot& promise() const { return promised_; }
  /// The value that this voter has accepted last.
  const std::optional<AcceptedValue>& accepted() const { return accepted_; }

  /// A proposer asks for a promise: whether this voter gives it, now or before.
  bool prepare(const Ballot& ballot);
  /// A proposer asks to accept its value: whether this voter does.
  bool accept(const Ballot& ballot, const EpochValue& value);

  /// Begins a proposal of this node's, above all ballots that it has heard of; its number.
  const Ballot& propose(const EpochNode& self);
  /// The own proposal; none: there is none.
  const std::optional<Ballot>& proposal() const { return proposal_; }
  /// The value of the own proposal, once it is chosen.
  const std::optional<EpochValue>& chosen() const { return chosen_; }
  /// A voter has promised the own proposal.
  void add(const EpochNode& voter, const EpochPromise& promise) { promises_[voter] = promise; }
  /// Promises for the own proposal, by voter.
  const std::map<EpochNode, EpochPromise>& promises() const { return promises_; }
  /// From now on the own proposal has this value. Requires that it has none.
  void choose(const EpochValue& value);
  /// A voter has accepted the own proposal.
  void add_accepted(const EpochNode& voter) { accepting_.insert(voter); }
  /// Voters that have accepted the own proposal.
  const std::set<EpochNode>& accepting() const { return accepting_; }
  /// Another voter has promised this ballot: the next own one is to be above it.
  void outvoted(const Ballot& ballot);

  /// What a founder must remember beyond its process: its promise and what it accepted.
  void save(ByteBuffer& out) const;
  /// Takes back what save wrote; Fault::malformed where it breaks the grammar.
  Status load(ByteReader& in);

 private:
  Ballot promised_;
  std::optional<AcceptedValue> accepted_;
  std::uint64_t highest_ = 0;  ///< number of the highest ballot that was heard of
  std::optional<Ballot> proposal_;
  std::map<EpochNode, EpochPromise> promises_;
  std::optional<EpochValue> chosen_;
  std::set<EpochNode> accepting_;
};

}  // namespace sotto::sites
