// A copy of model and step rule at a named step: StateCopy is what a donor holds of it, StateFetch
// what a newcomer has of it so far. All members have the same bits after as many steps, so that
// pieces of one step may come from any of them; pieces of different steps are never joined.
//
// Pure; one thread at a time. Memory: one copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/shared_bytes.h>
#include <sotto/sites/epochs/epoch_message.h>
#include <sotto/sites/epochs/epoch_node.h>

namespace sotto::sites {

/// A copy of the state that a donor holds for newcomers.
class StateCopy {
 public:
  static constexpr EpochTime kHeld{60'000};  ///< since it was asked for last
  static constexpr EpochTime kBusy{5'000};   ///< for which it is not replaced by another
  /// For which others are to fetch it, too, since it was made. They replay what has come since.
  static constexpr EpochTime kOffered{10'000};

  /// The step of the copy; none: there is no copy.
  std::optional<Round> step() const { return step_; }
  /// Takes over a copy.
  void take(Round step, std::vector<std::byte> bytes, std::size_t piece_bytes, EpochTime now);
  /// Piece `index` of the copy of that step, which is held on; none: there is no such piece.
  std::optional<PieceMessage> piece(const FetchMessage& fetch, EpochTime now);
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
  std::optional<Round> step_;
  SharedBytes bytes_;
  EpochDigest root_{};
  std::size_t piece_bytes_ = 1;
  EpochTime made_{0};
  EpochTime asked_{0};
};

/// What a newcomer has of a copy, and what it knows of donors.
class StateFetch {
 public:
  /// What a donor has said of itself.
  struct Donor {
    Round step = 0;               ///< steps that it has applied
    Round oldest = 0;             ///< the first step whose mean it keeps
    EpochTime heard{-1'000};      ///< when it was heard last
    std::optional<Round> copy{};  ///< the step of the copy that it offers
  };

  /// A state has at most so many bytes.
  explicit StateFetch(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  /// Begins anew, with another step; donors stay known.
  void restart() {
    wanted_.reset();
    forget_pieces();
    done_ = false;
  }
  /// A donor has answered.
  void hear(const EpochNode& donor, const DonorMessage& message, EpochTime now) {
    donors_[donor] = {message.step, message.oldest, now, message.copy};
  }
  /// Forgets donors of which `gone(donor, when it was heard)` holds.
  template <typename Gone>
  void forget(const Gone& gone) {
    std::erase_if(donors_, [&](const auto& item) { return gone(item.first, item.second.heard); });
  }
  /// Donors by their names.
  const std::map<EpochNode, Donor>& donors() const { return donors_; }
  /// The step whose copy is wanted.
  const std::optional<Round>& wanted() const { return wanted_; }
  /// Chooses a step: that of the newest copy which is offered; else by how far the donors have come
  /// since it was called last, or another one where no piece came for `patience`.
  void choose(EpochTime now, EpochTime patience);
  /// Takes in a piece; says whether the copy is whole now.
  bool take(const PieceMessage& piece, EpochTime now);
  /// Pieces to ask for now, so that at most `most` are under way; piece 0 where nothing is known.
  std::vector<std::uint32_t> ask(std::size_t most);
  /// What is under way may be lost: it is asked for again.
  void ask_again() { asked_ = 0; }
  /// Hands out the whole copy; none where its digest is another one, and all begins anew.
  std::optional<std::vector<std::byte>> finish();
  /// Whether the copy was handed out.
  bool done() const { return done_; }

 private:
  void want(Round step, EpochTime now);
  void forget_pieces() {
    count_ = 0;
    asked_ = 0;
    bytes_ = 0;
    pieces_.clear();
  }
  std::size_t most_bytes_;
  std::size_t bytes_ = 0;  ///< of the pieces
  std::map<EpochNode, Donor> donors_;
  std::optional<Round> seen_;  ///< the donors' latest step when a step was to be chosen last
  std::optional<Round> wanted_;
  EpochTime chosen_{0};
  bool ahead_ = false;  ///< the step chosen last was one that no donor was to have reached
  EpochDigest root_{};
  std::uint32_t count_ = 0;  ///< pieces of the copy; 0: unknown
  std::uint32_t asked_ = 0;  ///< pieces below it were asked for
  std::map<std::uint32_t, std::vector<std::byte>> pieces_;
  bool done_ = false;
};

}  // namespace sotto::sites
