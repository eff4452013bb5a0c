// What a node of an all-reduce whose nodes come and go is made of (docs/epochs.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/parameter_layout.h>
#include <sotto/compress/compressor.h>
#include <sotto/optim/step_rule.h>
#include <sotto/sites/epochs/epoch_node.h>
#include <sotto/sites/epochs/epoch_rules.h>

namespace sotto::sites {

inline constexpr EpochTime kEpochAgain{500};  ///< until something is said again

/// What a member is made of.
struct EpochSetup {
  std::string name{};           ///< this node's name, unique in the run
  Incarnation incarnation = 0;  ///< drawn for this process, not 0
  std::uint32_t stay = 0;       ///< above those of this process's members before it
  /// Names of the nodes that found a run by more than half of them, in one order on all; empty, or
  /// without this node: it only joins.
  std::vector<std::string> founders{};
  /// The run that founders decide on, the same at all of them; zeros: it is drawn.
  History history{};
  std::size_t least = 1;                  ///< MIN: with fewer members no step begins
  std::size_t most = kMostEpochMembers;   ///< MAX: members of an epoch
  std::span<float> parameters{};          ///< x, which must outlive the member and stay in place
  ParameterLayout layout{};               ///< tensors of x; empty: one
  std::unique_ptr<StepRule> step_rule{};  ///< from a mean gradient to the step
  /// Whether the rule's save() writes spans of its memory as they are, so that a part of what it
  /// writes costs no more than that part; else a copy of the state is made at once.
  bool rule_saves_in_parts = true;
  double learning_rate = 0.1;  ///< of the step rule; part of each mean's digest
  /// A number for the settings with which the rule makes the step of this number, from 0, where
  /// they are no function of what all nodes have agreed on; it is part of that mean's digest. None:
  /// there are no such settings.
  std::function<std::uint64_t(Round)> step_settings{};
  /// C; `none`: `allreduce`, and else `qmean`, which compensates its errors.
  std::unique_ptr<Compressor> compressor{};
  std::uint64_t seed = 1;  ///< the run's, for rounding
  /// How long the owner of a chunk waits for the slowest, once more than half have come; none: for
  /// ever.
  std::optional<EpochTime> grace{};
  EpochTime delta{1'000};  ///< Δ: in which an answer is expected
  /// A piece of a copy of the state: short, so that one comes soon over a slow link, too.
  std::size_t piece_bytes = std::size_t{256} << 10;
  std::size_t join_memory = std::size_t{1} << 30;  ///< means kept for newcomers, in bytes
  EpochRules rules{};                              ///< all hold, but in tests
};

/// With what this node makes the step of this number, from 0.
StepSettings step_settings_of(const EpochSetup& setup, Round step);

/// Hands the setup back; throws Error for names and numbers out of range.
EpochSetup approved(EpochSetup setup);

}  // namespace sotto::sites
