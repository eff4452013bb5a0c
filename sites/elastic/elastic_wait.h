// What keeps a node of an all-reduce whose nodes come and go from its next step, as data and in
// words.
//
// Pure functions; thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/sites/elastic/node_sight.h>
#include <sotto/sites/epochs/epoch_member.h>
#include <sotto/sites/nodes/stores/run_store.h>

namespace sotto {

/// What a node sees that may wait.
struct WaitSight {
  const sites::EpochMember* member = nullptr;  ///< the state machine; null: it has not begun
  NodeSight node{};                            ///< what it sees of the others
  std::uint64_t refused = 0;                   ///< datagrams that the run's key did not open
  std::optional<std::chrono::milliseconds> again_after{};  ///< ElasticOptions::begin_again_after
  std::string state{};                                     ///< ElasticOptions::state
  std::string address{};                                   ///< address of this node
  std::optional<StoredRuns> stored{};  ///< what the store of the seeds says; none: there is none
  /// Whether a node is in touch, which is not this one.
  std::function<bool(const sites::EpochNode&)> hears{};
};

struct ElasticWait {
  /// For what it waits.
  enum class Kind : std::uint8_t {
    none,       ///< for nothing: the caller computes
    nobody,     ///< no other node is heard
    key,        ///< … and datagrams came that the run's key does not open
    admission,  ///< it is not let into the run yet
    quorum,     ///< members are lost, and those that are heard may not go on without them
    nodes,      ///< there are fewer than MIN
    newcomer,   ///< the run waits until a newcomer has come near
    others,     ///< the others have yet to answer, or vote on those that are lost
  };
  Kind kind = Kind::none;
  std::vector<std::string> lost{};  ///< members that are not heard
  std::size_t members = 0;          ///< nodes of the epoch; before there is one, those that are up
  std::size_t least = 1;            ///< MIN
  sites::Epoch epoch = 0;           ///< the epoch; 0: before the first
  std::uint64_t refused = 0;        ///< key: datagrams that it did not open
  bool founded = false;  ///< this node has begun a run before, and looks for that one alone
  bool empty = false;    ///< no node that is heard is in the run, or in any
  std::string asking{};  ///< nobody, key: whom it asks, in words
  std::string store{};   ///< what the store of the seeds says of runs, in words; empty: none
  std::string again{};   ///< how a run begins anew that nobody is in, in words
  auto operator<=>(const ElasticWait&) const = default;
};

/// The name in reports: "quorum"; empty for none.
std::string_view name_of(ElasticWait::Kind kind);
/// All kinds but none.
std::span<const ElasticWait::Kind> elastic_wait_kinds();

/// What the node waits for.
ElasticWait wait_of(const WaitSight& sight);
/// What it is, and what to do.
std::string words_of(const ElasticWait& wait);

}  // namespace sotto
