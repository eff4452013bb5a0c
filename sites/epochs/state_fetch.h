// What a newcomer has so far of a copy of model and step rule at a named step, of which StateCopy
// (sites/epochs/state_copy.h) is what a donor holds. All members have the same bits after as many
// steps, so that pieces of one step may come from any of them; pieces of different steps are never
// joined.
//
// A piece is asked of one donor at a time. Another one is asked only where that donor is gone, or
// has sent nothing for a time that follows how long pieces take; and as many pieces are under way
// as come within about a second, so that a slow link holds few.
//
// Pure; one thread at a time. Memory: one copy.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/shared_bytes.h>
#include <sotto/sites/epochs/epoch_message.h>
#include <sotto/sites/epochs/epoch_node.h>
#include <sotto/sites/epochs/progress_wait.h>

namespace sotto::sites {

/// What a newcomer has of a copy, and what it knows of donors.
class StateFetch {
 public:
  static constexpr std::size_t kFirstWindow = 2;  ///< pieces under way at first
  static constexpr std::size_t kMostWindow = 64;  ///< pieces under way at most
  static constexpr EpochTime kQuick{1'000};       ///< a piece within it: more may be under way
  static constexpr EpochTime kSlow{2'000};        ///< a piece after it: fewer

  /// What a donor has said of itself, and how it serves.
  struct Donor {
    Round step = 0;               ///< steps that it has applied
    Round oldest = 0;             ///< the first step whose mean it keeps
    EpochTime heard{-1'000};      ///< when it was heard last
    std::optional<Round> copy{};  ///< the step of the copy that it offers
    EpochTime gave{-1'000};       ///< when it gave a new piece last
    bool holds = false;           ///< it is known to hold the wanted copy, and to answer
    bool differs = false;         ///< it cuts the wanted copy in another way, or has other bits
  };
  /// A piece that is to be asked of a donor.
  struct Request {
    EpochNode donor{};
    std::uint32_t index = 0;
    auto operator<=>(const Request&) const = default;
  };

  /// A state has at most so many bytes, and begins with `digested_bytes` of parameters, of which
  /// the root is the digest.
  StateFetch(std::size_t most_bytes, std::size_t digested_bytes)
      : most_bytes_(most_bytes), digested_bytes_(digested_bytes) {}

  /// Begins anew, with another step; donors stay known.
  void restart() {
    wanted_.reset();
    givers_.clear();
    forget_pieces();
    done_ = false;
  }
  /// A donor has answered.
  void hear(const EpochNode& node, const DonorMessage& message, EpochTime now);
  /// Forgets donors of which `gone(donor, when it was heard)` holds, and what is asked of them.
  template <typename Gone>
  void forget(const Gone& gone) {
    std::erase_if(donors_, [&](const auto& item) {
      const bool goes = gone(item.first, item.second.heard);
      if (goes) {
        drop_requests([&](const EpochNode& donor, EpochTime) { return donor == item.first; });
      }
      return goes;
    });
  }
  /// Donors by their names.
  const std::map<EpochNode, Donor>& donors() const { return donors_; }
  /// The step whose copy is wanted.
  const std::optional<Round>& wanted() const { return wanted_; }
  /// When that step was chosen.
  EpochTime begun() const { return begun_; }
  /// Chooses a step: that of the newest copy which is offered; else by how far the donors have come
  /// since it was called last, or another one where no piece came for `patience`, or for as long as
  /// one may take from a donor that offers the copy.
  void choose(EpochTime now, EpochTime patience);
  /// Takes in a piece; says whether the copy is whole now.
  bool take(const EpochNode& from, const PieceMessage& piece, EpochTime now);
  /// Pieces to ask for now, and of whom; piece 0 alone where nothing is known. They are under way
  /// from now on. Where no donor is known to hold the copy, none is asked for a while: those that
  /// make it say so.
  std::vector<Request> ask(EpochTime now);
  /// Whether a piece is under way from this donor.
  bool awaits(const EpochNode& donor) const {
    return std::ranges::any_of(under_way_,
                               [&](const auto& item) { return item.second.donor == donor; });
  }
  /// Hands out the whole copy; none where its digest, that of the parameters, is another one, and
  /// all begins anew: with the pieces of one donor alone, until a copy is right. One whose copy was
  /// wrong is asked again only where no other donor is known. What the rule remembers has no
  /// digest.
  std::optional<std::vector<std::byte>> finish();
  /// Donors that have given pieces of the copy.
  const std::set<EpochNode>& givers() const { return givers_; }
  /// Whether the copy was handed out.
  bool done() const { return done_; }

 private:
  struct UnderWay {
    EpochNode donor{};
    EpochTime asked{0};
    EpochTime first{0};  ///< when it was asked for first, of whomever
  };
  void want(Round step, EpochTime now);
  void forget_pieces() {
    count_ = 0;
    asked_ = 0;
    bytes_ = 0;
    pieces_.clear();
    under_way_.clear();
    asked_nodes_.clear();
    again_.clear();
  }
  /// Whether this donor is to be asked at all: its copies were right, or no other donor is known.
  bool is_asked(const EpochNode& donor) const;
  /// Whether a piece of this donor may be joined with those that are there.
  bool joins(const EpochNode& donor) const {
    return !alone_ || givers_.empty() || givers_.contains(donor);
  }
  /// Pieces whose `(donor, when it was asked)` is lost are to be asked for again.
  template <typename Lost>
  void drop_requests(const Lost& lost) {
    std::erase_if(under_way_, [&](const auto& item) {
      const bool drops = lost(item.second.donor, item.second.asked);
      if (drops) {
        again_.emplace(item.first, item.second.first);
      }
      return drops;
    });
  }
  /// For how long a donor may send nothing.
  EpochTime silence() const { return ProgressWait::after(took_); }
  void drop_late(EpochTime now);
  /// Learns from the time that a piece took.
  void note_time(const EpochNode& from, std::uint32_t index, EpochTime now);
  /// The donor that is asked next; none: there is none.
  std::optional<EpochNode> next_donor(bool any_holds);

  std::size_t most_bytes_;
  std::size_t digested_bytes_;
  std::size_t bytes_ = 0;  ///< of the pieces
  std::map<EpochNode, Donor> donors_;
  std::optional<Round> seen_;  ///< the donors' latest step when a step was to be chosen last
  std::optional<Round> wanted_;
  EpochTime begun_{0};   ///< when it was chosen
  EpochTime chosen_{0};  ///< when it was chosen, or a new piece of it came last
  bool ahead_ = false;   ///< the step chosen last was one that no donor was to have reached
  EpochDigest root_{};
  std::uint32_t count_ = 0;  ///< pieces of the copy; 0: unknown
  std::uint32_t asked_ = 0;  ///< pieces below it were asked for, or are there
  std::map<std::uint32_t, std::vector<std::byte>> pieces_;
  std::set<EpochNode> givers_;
  std::map<std::uint32_t, UnderWay> under_way_;
  std::set<EpochNode> asked_nodes_;  ///< of which a piece of the wanted copy was asked
  /// Pieces below asked_ that are to be asked for again, and when they were asked for first.
  std::map<std::uint32_t, EpochTime> again_;
  std::size_t window_ = kFirstWindow;  ///< pieces that may be under way
  std::size_t turn_ = 0;               ///< of donors that have as few under way
  EpochTime took_{0};                  ///< the time that the last piece took
  bool done_ = false;
  bool alone_ = false;           ///< a copy of several donors was wrong: of one at a time
  std::set<EpochNode> wrong_{};  ///< donors whose copies were wrong
};

}  // namespace sotto::sites
