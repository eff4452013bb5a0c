// The secure sum of a site's round: whether it was asked for, which peers answer in time, and
// whether enough peers are in the round for one.
//
// A building block of Site, not for users. A plain value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sotto/sites/core/neighbour.h>

namespace sotto::sites {

/// Whether a round can have a secure sum.
enum class SumHope : std::uint8_t {
  none,    ///< too many peers have gone on without this site
  few,     ///< peers that the sum needs have yet to come
  enough,  ///< enough parcels of the round are there
};

/// Whether `round` can have a sum, which needs parcels of `least` peers.
SumHope sum_hope(std::span<const Neighbour> peers, Round round, std::size_t least);

/// The count of rounds that are over once the sum of `round` has ended. Parcels of other rounds are
/// of no use to a sum: a site that is behind most others goes on in theirs. `least` is as in
/// sum_hope, `lost` the number of rounds in a row without a sum, `last` the number of all rounds;
/// 0: they have no end.
Round round_after(std::span<const Neighbour> peers, Round round, std::size_t least, Round lost,
                  Round last);

/// Notes an answer of this peer about the sum of `round`.
void note_answer(Neighbour& from, Round round);

class SumRound {
 public:
  /// Whether the sum was asked for, and has not ended.
  bool asked() const { return asked_; }
  /// Asks for the sum of a round. An answer that is not waited for always comes too late for a sum
  /// that needs it, so it counts as in time until here: a peer that was slow for a while is waited
  /// for again.
  void ask(std::span<Neighbour> peers);
  /// The peers among `owed`, those that still owe answers, that are waited for.
  static std::vector<std::size_t> awaited(std::span<const Neighbour> peers,
                                          std::vector<std::size_t> owed);
  /// Ends the sum: notes which peers have answered, and which of `owed` were waited for in vain.
  void end(std::span<Neighbour> peers, std::span<const std::size_t> owed);
  /// Forgets a sum that was asked for.
  void give_up() { asked_ = false; }

 private:
  bool asked_ = false;
};

}  // namespace sotto::sites
