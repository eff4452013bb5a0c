// The round in which a site begins, where it takes a neighbour's model over.
//
// Neighbours say which round it is. One of several that say so must not take a site to a round that
// no other has seen, and one alone not to the run's end: the median of what is said counts, the
// lower of two, and a single word up to believed_alone().
//
// A building block of Site, not for users. A plain value.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/ids.h>

namespace sotto::sites {

/// A round that one neighbour alone says is believed up to this one, where the run never ends.
inline constexpr Round kMostUnconfirmed = Round{1} << 32;

class Beginning {
 public:
  /// The beginning of a site in a run of `rounds` rounds; 0: it never ends.
  explicit Beginning(Round rounds) : rounds_(rounds) {}

  /// The model of this peer was taken over; it is of this round.
  void take_over(std::size_t giver, Round round);
  /// A state of this round was loaded, and need not be the last: the site's own word is one more.
  void disown(Round round) { own_ = round; }
  /// The list of peers changed: a peer at `place[k]` was at k, and one at kNobody has gone.
  void rearrange(std::span<const std::size_t> place);
  /// The site gives up what it was: nothing was taken over.
  void give_up();

  /// Whether the round of the model needs a second word.
  bool doubtful() const { return given_ > believed_alone(); }
  /// The peer that gave the model, until settle(), while it is in the list.
  std::optional<std::size_t> giver() const { return giver_; }
  /// The round in which the site begins, given the rounds that its other neighbours say; `name` is
  /// the giver's.
  Round settle(std::span<const Round> others, std::string_view name);

  /// SiteState::giver
  const std::string& began_by() const { return began_by_; }
  /// SiteState::round_said_by
  std::size_t said_by() const { return said_by_; }

 private:
  Round believed_alone() const { return rounds_ > 0 ? rounds_ / 2 : kMostUnconfirmed; }

  Round rounds_;
  Round given_ = 0;                   // the round of the model that was taken over
  Round own_ = 0;                     // round of the state that was disowned
  std::optional<std::size_t> giver_;  // the peer that gave the model
  std::string began_by_;
  std::size_t said_by_ = 0;
};

}  // namespace sotto::sites
