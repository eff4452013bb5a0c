// Which runs nodes have begun that find each other by a store, so that of those that would begin
// one at once one does (docs/epochs.md, "Seeds from a store").
//
//   nodes/runs/N     who began the run of this number, from 1: whoever claims the key first
//   nodes/runs/N/end how that run ended, where somebody saw it; an end that others saw later has a
//                    key of its own, nodes/runs/N/end/K, K from 1: none is overwritten, as two
//                    nodes may end at once
//
// A refused run is one that was begun by nobody knows whom.
//
// Runs are found one after the other. Where some of them are lost, as by a server that makes room,
// those that are in the latest run put them back, and others look a few numbers further.
//
// Thread safety: one thread at a time. Every call waits for a server until its deadline, at most;
// for one of files as long as the system does. Ownership: the entries must outlive it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/comm/trust/run_key.h>
#include <sotto/sites/nodes/run_end.h>
#include <sotto/sites/nodes/stores/stored_entries.h>

namespace sotto {

using StoredRunId = std::array<std::uint64_t, 2>;  ///< a run's history

/// A run that was begun.
struct StoredRun {
  std::uint64_t number = 0;  ///< 1 for the first of the store
  StoredRunId id{};          ///< its history; zeros: not known, as its entry is refused
  std::string name{};        ///< node that began it; empty: not known
  std::string address{};     ///< address of that node
  Round step = 0;            ///< step of the model that it was begun from
  auto operator<=>(const StoredRun&) const = default;
};

/// What a store has said of the runs that were begun by it.
struct StoredRuns {
  bool known = false;                 ///< the store has answered
  std::optional<StoredRun> latest{};  ///< the last one; none: there was none
  std::optional<RunEnd> end{};        ///< how that one ended; none: nobody has said so
};

inline constexpr std::size_t kMostStoredRunBytes = 512;  ///< longest entry of a run
inline constexpr std::uint64_t kMostStoredRuns = 1000;   ///< runs that one store has

/// The run as bytes: a version u8, number u64, id 2 × u64, step u64, and name and address, each a
/// length u32 and bytes.
std::vector<std::byte> encode(const StoredRun& run);
/// Fault::malformed for anything that breaks the grammar.
Result<StoredRun> parse_stored_run(std::span<const std::byte> bytes);

class RunStore {
 public:
  /// Runs are sealed under a key that follows from the run's.
  RunStore(StoredEntries& entries, const RunKey& key);

  /// The run that was begun last; none: there was none. `own` is the run in which this node is;
  /// none: in none. A store that has lost that one, as a server may that was started again, or one
  /// before it, gets it back.
  Result<std::optional<StoredRun>> latest(Deadline deadline,
                                          const std::optional<StoredRunId>& own = {});
  /// Whether latest() has given the store back a run since the last call: it may have lost leases,
  /// too.
  bool take_restored() { return std::exchange(restored_, false); }
  /// Begins a run of this number, unless one was begun; the one that was, or of number 0 where
  /// there may be no further one.
  Result<StoredRun> claim(const StoredRun& run, Deadline deadline);
  /// How this run ended; none: nobody has said so.
  Result<std::optional<RunEnd>> end_of(const StoredRun& run, Deadline deadline);
  /// Says how the run with this id ended, unless a later end is known.
  Status note_end(const StoredRunId& id, const RunEnd& end, Deadline deadline);

 private:
  /// The run of a number; none: there is none.
  Result<std::optional<StoredRun>> run_at(std::uint64_t number, Deadline deadline);
  /// Looks for some of the runs before the latest one, or where that is `lost` for all, as all may
  /// be, and puts back those that are.
  Status keep(bool lost, Deadline deadline);
  /// Puts the run of a number back, if it is lost.
  Status restore(std::uint64_t number, Deadline deadline);
  /// What one of the keys for a run's end has.
  struct EndEntry {
    bool there = false;             ///< it has a value
    std::optional<RunEnd> known{};  ///< none: that is refused
  };
  /// Says how a run ended, unless a later end is known.
  Status add_end(const StoredRun& run, const RunEnd& end, Deadline deadline);
  Result<EndEntry> end_at(const StoredRun& run, std::size_t place, Deadline deadline);

  StoredEntries& entries_;
  const PrivateKey key_;
  std::optional<StoredRun> latest_{};         ///< as far as it was read
  std::map<std::uint64_t, StoredRun> known_;  ///< runs that were read, by number
  bool walked_ = false;                       ///< all numbers were looked at once
  std::uint64_t kept_ = 0;                    ///< number that keep() looked for last
  bool restored_ = false;                     ///< a run was put back
};

}  // namespace sotto
