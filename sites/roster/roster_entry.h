// One line of a roster: what a node of a run says of itself. Plain values.
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <sotto/base/name_length.h>
#include <sotto/sites/core/message.h>

namespace sotto::sites {

/// The time of a roster, from any beginning that its owner chooses.
using RosterTime = std::chrono::milliseconds;

inline constexpr std::size_t kMostReplaced = 8;  ///< incarnations that an entry names
inline constexpr std::size_t kMostRosterName = kMostNameBytes;  ///< bytes of a node's name
inline constexpr std::size_t kMostRosterAddress = 80;           ///< bytes of a node's address

/// How far a node's stay in the run has come, as it says itself.
enum class NodePhase : std::uint8_t {
  up = 1,       ///< it takes part
  leaving = 2,  ///< it takes no new neighbour, and is about to end
  gone = 3,     ///< it has ended in good order
  ended = 4,    ///< … and the run with it: it was the last, or all have left together
};

/// Whether a node in this phase has ended.
inline bool is_gone(NodePhase phase) {
  return phase == NodePhase::gone || phase == NodePhase::ended;
}

/// What a node says of itself. Only its own process writes it.
struct RosterEntry {
  std::string name{};                   ///< 1 … kMostRosterName bytes, unique in the run
  Incarnation incarnation = 0;          ///< drawn by the process when it begins; never 0
  std::uint32_t life = 0;               ///< starts of its process, or the second of the last one
  std::uint32_t version = 0;            ///< grows with each change within a life
  NodePhase phase = NodePhase::up;      ///< the node's stay in the run
  std::string address{};                ///< "HOST:PORT" where it is reached
  std::vector<Incarnation> replaces{};  ///< incarnations of the same name, at most kMostReplaced
  auto operator<=>(const RosterEntry&) const = default;
};

/// Whether one process wrote both.
inline bool is_same_process(const RosterEntry& a, const RosterEntry& b) {
  return a.name == b.name && a.incarnation == b.incarnation;
}

/// A seed that a store has named.
struct RosterSeed {
  std::string address{};       ///< "HOST:PORT" to ask
  std::uint64_t renewals = 0;  ///< times that its lease was seen to be renewed
  auto operator<=>(const RosterSeed&) const = default;
};

}  // namespace sotto::sites
