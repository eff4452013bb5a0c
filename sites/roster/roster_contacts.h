// The other nodes of a run, as one node knows them by what it hears itself: when each is probed,
// whether it answers, and which edges the two wish and keep.
//
// An answer names the number of the probe that it is to, and, in that, the flags that have arrived.
//
// A building block of Roster, not for users. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <sotto/sites/roster/roster_book.h>
#include <sotto/sites/roster/roster_entry.h>
#include <sotto/sites/roster/roster_message.h>

namespace sotto::sites {

/// What a node knows of another by what it hears itself.
struct RosterContact {
  std::string name{};                    ///< as its entry says
  Incarnation incarnation = 0;           ///< as its entry says
  std::string address{};                 ///< as its entry says
  NodePhase phase = NodePhase::up;       ///< as its entry says
  std::optional<RosterTime> asked{};     ///< the first probe without an answer
  RosterTime next{0};                    ///< time of the next probe
  RosterTime pause{0};                   ///< time between probes while it is suspected
  std::uint64_t nonce = 0;               ///< number of the probes since `asked`, if it is asked
  bool answered = false;                 ///< the node has answered a probe
  bool suspected = false;                ///< it has been silent for long since
  RosterTime since{0};                   ///< time when it was suspected, or said that it was gone
  bool wishes = false;                   ///< whether it wishes an edge with this node
  bool takes = false;                    ///< whether it keeps one, if this node does
  bool wished = false;                   ///< whether this node wishes one
  bool mine = false;                     ///< whether this node keeps one, if the other does
  std::uint8_t telling = 0;              ///< flags of the last probe
  bool doubted = false;                  ///< while it is asked, its own probe has said other flags
  std::optional<RosterTime> compared{};  ///< time when marks were sent last

  /// Whether it has not ended, as far as is known, and is not suspected.
  bool alive() const { return !is_gone(phase) && !suspected; }
  /// What a probe of its own claims is not believed, as it may be an old one, sent once more: where
  /// it differs from what is known, the node is asked.
  void note_claim(const RosterProbe& probe, RosterTime now);
};

/// What edges are chosen by.
struct EdgeTerms {
  const std::string& name;  ///< this node's
  std::size_t degree = 0;   ///< neighbours, on average
  bool wishes = false;      ///< this node is up, and wishes edges
  bool stays = false;       ///< this node leaves, and keeps the edges that it has
};

class RosterContacts {
 public:
  /// Silence after a probe that makes a node suspected.
  static constexpr RosterTime kSuspectAfter{6'000};
  /// Longest time between two probes of a silent node.
  static constexpr RosterTime kLongestBackOff{30'000};

  /// Draws the number of a probe.
  using Draw = std::function<std::uint64_t()>;

  /// Contacts for entries that are new, and none for those that the book has no more, nor for
  /// `self`, this node.
  void follow(const RosterBook& book, const RosterEntry& self, RosterTime now);
  /// The contact of an entry; null: there is none.
  RosterContact* find(const RosterEntry& entry);
  /// The contact of an entry; null: there is none.
  const RosterContact* find(const RosterEntry& entry) const;
  /// All contacts by key_of.
  const std::map<std::uint64_t, RosterContact>& all() const { return contacts_; }
  /// The addresses of those that are there.
  std::set<std::string> reached() const;
  /// Contacts that are gone or suspected, for longest first.
  std::vector<const RosterContact*> away() const;

  /// All are probed by now.
  void ask_all(RosterTime now);
  /// Suspects those that are silent. The contacts to which a probe is to go now, with their nonces.
  std::vector<const RosterContact*> due(RosterTime now, const Draw& draw);
  /// Whether the answer is to a probe of a contact, which is noted.
  bool note_answer(const RosterProbe& answer, RosterTime now, const Draw& draw);

  /// Notes what a contact says of an edge with this node. Whether it says something else than
  /// before.
  bool note_wishes(RosterContact& contact, const RosterProbe& answer);
  /// Chooses the edges anew, if something has changed that they hang on.
  void choose_edges(const EdgeTerms& terms);
  /// Gives all edges up. The contacts that are to be told, by a probe each.
  std::vector<const RosterContact*> part(RosterTime now, const Draw& draw);

 private:
  /// Contacts that edges may be made with, by name.
  std::map<std::string, RosterContact*> candidates(const std::string& self);
  /// Until the next probe of a contact that answers.
  RosterTime period_of(const RosterContact& contact, const Draw& draw) const;

  std::map<std::uint64_t, RosterContact> contacts_;  ///< other nodes by key_of
  bool edges_due_ = true;
  std::optional<std::uint64_t> followed_;  ///< revision of the book; none: it was not seen yet
};

}  // namespace sotto::sites
