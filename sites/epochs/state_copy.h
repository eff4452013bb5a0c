// Copies of model and step rule at a named step: StateCopy is what a donor holds for newcomers,
// WholeCopy is for a file. Both are made of the live state in pieces: those that newcomers ask for,
// a slice at each tick, and what is missing right before the state changes. Nothing is copied
// twice, nor when the copy begins.
//
// Pure; one thread at a time. Memory: one copy of the state, piece by piece as it is made, until
// nobody has asked for kHeld; pieces that are being sent may live on a little longer. What a step
// copies in its own way is the state's bytes less those of the slices since the last step: kSlice
// at each tick.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include <sotto/base/byte_pool.h>
#include <sotto/base/ids.h>
#include <sotto/base/shared_bytes.h>
#include <sotto/sites/epochs/epoch_message.h>
#include <sotto/sites/epochs/epoch_node.h>

namespace sotto::sites {

/// A state of which a copy is to be made.
struct LiveState {
  Round step = 0;         ///< steps that it has had
  std::size_t bytes = 0;  ///< of all of it
  EpochDigest root{};     ///< digest of the parameters in it
  /// Appends `count` bytes from `first` on to `part`; called until the state changes, at most.
  std::function<void(std::size_t first, std::size_t count, std::vector<std::byte>& part)> part{};
};

class StateCopy {
 public:
  static constexpr EpochTime kHeld{60'000};  ///< since it was asked for last
  static constexpr EpochTime kBusy{5'000};   ///< for which it is not replaced by another
  /// For which others are to fetch it, too, since it was begun. They replay what has come since.
  static constexpr EpochTime kOffered{10'000};
  /// Bytes that copy_slice() copies at most, but one piece at least: about half a millisecond.
  static constexpr std::size_t kSlice = std::size_t{2} << 20;

  /// The step of the copy; none: there is no copy.
  std::optional<Round> step() const { return step_; }
  /// Begins a copy, in place of the one before. Copies nothing.
  void begin(LiveState state, std::size_t piece_bytes, EpochTime now);
  /// Piece `index` of the copy of that step, which is held on; none: there is no such piece.
  std::optional<PieceMessage> piece(const FetchMessage& fetch, EpochTime now);
  /// Whether pieces are still missing.
  bool copies() const { return live_.part != nullptr; }
  /// Copies a slice of what is missing.
  void copy_slice() { copy(kSlice); }
  /// Copies all that is missing: from now on the state may change.
  void finish() { copy(std::numeric_limits<std::size_t>::max()); }
  /// Bytes that were copied since the copy began.
  std::size_t copied() const { return copied_; }
  /// Bytes of the state.
  std::size_t bytes() const { return live_.bytes; }

  /// A newcomer fetches the copy of this step: it is held on, if it is this one. Pieces of it may
  /// come from other donors for long.
  void hold(Round step, EpochTime now) {
    if (step_ == step) {
      asked_ = now;
    }
  }
  /// Whether somebody fetches the copy, so that it is not to be replaced.
  bool busy(EpochTime now) const { return step_ && now - asked_ < kBusy; }
  /// The copy's step, while newcomers that have nothing yet are to fetch it: a donor makes no other
  /// while it is busy, so that those who wanted other steps would wait for each other.
  std::optional<Round> offered(EpochTime now) const {
    return step_ && now - made_ < kOffered ? step_ : std::nullopt;
  }
  /// Drops a copy that nobody has asked for.
  void expire(EpochTime now);
  /// Drops the copy.
  void drop();

 private:
  /// Copies missing pieces of about `most` bytes.
  void copy(std::size_t most);
  void copy_piece(std::size_t index);

  std::optional<Round> step_;
  LiveState live_;  ///< without `part`: all pieces are there
  std::vector<std::optional<SharedBytes>> pieces_;
  std::size_t next_ = 0;  ///< pieces below it are there
  std::size_t copied_ = 0;
  std::size_t piece_bytes_ = 1;
  EpochTime made_{0};
  EpochTime asked_{0};
  BytePool pool_;
};

/// A copy of the state in one piece, for a file, made likewise: in slices, each byte once. One
/// thread at a time. Memory: one copy of the state.
class WholeCopy {
 public:
  /// A state that was copied.
  struct Copied {
    Round step = 0;                  ///< steps that it has had
    std::vector<std::byte> bytes{};  ///< all of it
  };

  /// Begins a copy in the memory of `room`, in place of the one before. Copies nothing.
  void begin(LiveState state, std::vector<std::byte> room);
  /// Whether bytes are still missing.
  bool copies() const { return live_.part != nullptr; }
  /// Copies a slice of what is missing, StateCopy::kSlice bytes at most.
  void copy_slice() { copy(StateCopy::kSlice); }
  /// Copies all that is missing: from now on the state may change.
  void finish() { copy(live_.bytes); }
  /// Hands out the copy once it is whole; none: it is not, or there is none.
  std::optional<Copied> take();
  /// Drops the copy, whole or not.
  void drop();
  /// Whether a copy is under way, or waits to be taken.
  bool holds() const { return begun_; }
  /// Bytes that were copied.
  std::size_t copied() const { return bytes_.size(); }

 private:
  void copy(std::size_t most);

  LiveState live_;  ///< without `part`: all is there
  std::vector<std::byte> bytes_;
  bool begun_ = false;
};

}  // namespace sotto::sites
