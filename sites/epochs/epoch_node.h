// Names of what nodes of a run with one model agree on: nodes, ballots, and what ends an epoch.
// Plain values (docs/epochs.md).
#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/name_length.h>
#include <sotto/sites/core/message.h>

namespace sotto::sites {

/// The time of a node, from any beginning that its owner chooses.
using EpochTime = std::chrono::milliseconds;
/// Number of an epoch; 0 is the founding, whose voters are the founders.
using Epoch = std::uint64_t;
/// A digest, XXH3-128: finds damage and difference, not forgery.
using EpochDigest = std::array<std::uint64_t, 2>;
/// The run that a founding began: 128 bits drawn by its proposer; zeros: none yet.
using History = std::array<std::uint64_t, 2>;

inline constexpr std::size_t kMostEpochMembers = 64;           ///< members of an epoch, at most
inline constexpr std::size_t kMostEpochName = kMostNameBytes;  ///< bytes of a node's name

/// A stay of a process in a run. Whoever was put out, and whoever starts again without its votes,
/// is another node: votes of one node never contradict each other.
struct EpochNode {
  std::string name{};           ///< 1 … kMostEpochName bytes, unique in the run
  Incarnation incarnation = 0;  ///< drawn by the process; 0: a founder, which remembers its votes
  std::uint32_t stay = 0;       ///< grows whenever the process begins anew as a newcomer
  auto operator<=>(const EpochNode&) const = default;
};

/// Number of a proposal; a proposer never uses one twice.
struct Ballot {
  std::uint64_t number = 0;  ///< from 1; 0: none
  EpochNode by{};            ///< the proposer
  auto operator<=>(const Ballot&) const = default;
};

/// What a node says of its model.
struct ModelClaim {
  Round step = 0;        ///< steps that the model has had
  EpochDigest digest{};  ///< of its parameters then
  auto operator<=>(const ModelClaim&) const = default;
};

/// What decides how a step is made, beyond what all nodes have agreed on when they met.
struct StepSettings {
  double learning_rate = 0;   ///< of the step rule
  Round of = 0;               ///< a step's number, from 0
  std::uint64_t further = 0;  ///< EpochSetup::step_settings of that step
  bool operator==(const StepSettings&) const = default;
};

/// What ends an epoch, and begins the next one.
struct EpochValue {
  /// Members of the next epoch, eldest first; none: all have left, and the run is over.
  std::vector<EpochNode> members{};
  Round base = 0;                      ///< steps that all of them have applied or hold
  std::optional<EpochDigest> carry{};  ///< step base + 1 is this mean and no other; none: it is new
  History history{};                   ///< the run; drawn at its founding
  /// Members that are put out, as their models or means are not those of most.
  std::vector<EpochNode> unequal{};
  auto operator<=>(const EpochValue&) const = default;
};

/// What a voter has accepted.
struct AcceptedValue {
  Ballot ballot{};     ///< the proposal's number
  EpochValue value{};  ///< what it proposes
  auto operator<=>(const AcceptedValue&) const = default;
};

/// What a voter says when it promises to take part in no older proposal.
struct EpochPromise {
  EpochNode by{};                     ///< the voter's stay, also where founders vote by name
  Round step = 0;                     ///< steps that it has applied
  std::optional<EpochDigest> mean{};  ///< digest of the mean of step + 1, where it is complete
  bool leaving = false;               ///< it wants to leave
  /// Places of members, as bits, that have told this voter another digest than more than half.
  std::uint64_t unequal = 0;
  std::optional<AcceptedValue> accepted{};  ///< the value of the highest ballot that it accepted
  auto operator<=>(const EpochPromise&) const = default;
};

}  // namespace sotto::sites
