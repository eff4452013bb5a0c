// Whether a node that asks who is there may take part, and what other processes of its name mean
// for one that does.
//
// A building block of Roster, not for users, which does what is decided here. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <sotto/sites/roster/roster_book.h>
#include <sotto/sites/roster/roster_contacts.h>
#include <sotto/sites/roster/roster_entry.h>

namespace sotto::sites {

/// What becomes of a node that asks who is there.
struct JoinVerdict {
  /// The outcome of a look at those that answered.
  enum class Kind : std::uint8_t {
    waits,      ///< it does not know enough yet
    joins,      ///< it takes part, in place of those that are `replaced`
    full,       ///< it is refused: as many are there as may be
    duplicate,  ///< it is refused: another process of its name is there
  };
  Kind kind = Kind::waits;
  std::vector<Incarnation> replaced{};  ///< processes of its name that are no more
};

class RosterJoining {
 public:
  /// Time in which a node that is up answers a newcomer's first probes. Those that do not are dead,
  /// as far as MAX is concerned: others may not have forgotten them yet.
  static constexpr RosterTime kAnswersWithin{2'000};
  /// Time for which seeds are asked in vain before a node takes itself for the first.
  static constexpr RosterTime kAloneAfter{3'000};

  /// `awaits_seeds`: the node joins when it knows its seeds.
  RosterJoining(bool awaits_seeds, RosterTime now) : awaits_seeds_(awaits_seeds), began_(now) {}

  /// The node knows its seeds: the first ones are asked from now on.
  void note_seeds(RosterTime now);
  /// A node that takes part has answered; `equal`: its book is this node's.
  void note_answer(bool equal);

  /// Whether the node of this name may take part, where at most `most` may be up.
  JoinVerdict judge(const std::string& name, std::size_t most, const RosterBook& book,
                    const RosterContacts& contacts, RosterTime now) const;

 private:
  bool awaits_seeds_ = false;
  RosterTime began_;
  bool heard_ = false;  ///< somebody has answered
  bool equal_ = false;  ///< … and its book was this one's
};

/// What other processes of a node's name mean for it.
struct NamesakeVerdict {
  /// The outcome for this node.
  enum class Kind : std::uint8_t {
    nothing,    ///< there is none, or the node is to go on as it is
    outlived,   ///< some are no more, which its entry is to say
    yields,     ///< the node is the younger one, and ends
    displaced,  ///< another has taken the node's place
  };
  Kind kind = Kind::nothing;
  std::vector<Incarnation>
      replaces{};  ///< what its entry is to name; where it goes on as it is, nothing
};

/// What the entries of the name of `self`, a node that takes part, mean for it.
NamesakeVerdict judge_namesakes(const RosterEntry& self, const RosterBook& book,
                                const RosterContacts& contacts);

}  // namespace sotto::sites
