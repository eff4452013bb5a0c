// The nodes that take part in a run whose nodes come and go, as one of them sees it: a pure state
// machine, with no socket and no clock (docs/sites.md, "Runs whose nodes come and go").
//
// What its driver does: receive() what comes, tick() every tenth of a second or so, and then send
// what released() hands out, as datagrams. view() says who is there and which edges both ends keep.
//
// A node suspects another by what it hears itself: one that does not answer for
// RosterContacts::kSuspectAfter. What a node wishes is believed of its answers to probes of one's
// own alone, which each name a number that was drawn for them, and marks name the answer that they
// follow: datagrams that were recorded and are sent again change nothing, and get one short answer
// at most. A suspicion is nobody else's business and in no entry. Entries travel by comparing
// digests with those that are probed. Seeds, and those that are suspected, are probed for ever,
// which heals a partition.
//
// Joining: a newcomer asks the seeds without an entry of its own, reads the roster, and takes part
// once its book equals that of one who answered; if nobody answers for RosterJoining::kAloneAfter,
// it is alone. If its name is there, it probes the one that has it, and replaces it only where
// nobody answers.
//
// Nodes of one run have the same settings. What others say is not believed; a newcomer whose seed
// answers that it has other settings ends. Of a seed that a store has named the node may be gone,
// and its address another run's: such a seed is not asked any more, unless its lease is renewed
// RosterSeeds::kRenewalsSeen times after that answer, which shows that a node of this store is
// there.
//
// Thread safety: one thread at a time. Owns all it holds. Memory is bounded by `most` +
// kMostBesides entries, and RosterBook::kMostForgotten that it remembers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/sites/roster/roster_book.h>
#include <sotto/sites/roster/roster_comparisons.h>
#include <sotto/sites/roster/roster_contacts.h>
#include <sotto/sites/roster/roster_entry.h>
#include <sotto/sites/roster/roster_graph.h>
#include <sotto/sites/roster/roster_joining.h>
#include <sotto/sites/roster/roster_message.h>
#include <sotto/sites/roster/roster_seeds.h>

namespace sotto::sites {

/// What a roster is made of.
struct RosterSetup {
  std::string name{};                  ///< this node's name, unique in the run
  Incarnation incarnation = 0;         ///< drawn for this process, not 0
  std::uint32_t life = 1;              ///< grows with each start of the process
  std::string address{};               ///< address at which others reach this node
  std::vector<std::string> seeds{};    ///< addresses that are probed for ever, but the own one
  bool awaits_seeds = false;           ///< set_seeds() says the first ones, and it joins then
  std::size_t least = 1;               ///< MIN: while fewer are up, seeds are probed more often
  std::size_t most = 64;               ///< MAX: a newcomer is refused where so many are up
  std::size_t degree = kRosterDegree;  ///< neighbours, on average
  /// What all nodes of the run must agree on, lines of "name=value" in one order, at most
  /// kMostSettings.
  std::string settings{};
};

/// A datagram that is to go out.
struct RosterDatagram {
  std::string to{};                  ///< address of the receiver
  std::vector<std::byte> message{};  ///< bytes to send, kMostRosterBytes at most
};

/// How this node stands in the run.
enum class RosterStanding : std::uint8_t {
  joining,    ///< it asks who is there
  up,         ///< it takes part
  other,      ///< it is refused: the run at a seed has other settings
  full,       ///< it is refused: `most` are there
  duplicate,  ///< it is refused: another process of its name is there, or has taken its place
  leaving,    ///< it takes no new edge
  gone,       ///< it has left
};

/// A node of the roster, as this one sees it.
struct RosterMember {
  RosterEntry entry{};     ///< entry that the node made itself
  bool heard = false;      ///< whether it is this node, or has answered it
  bool suspected = false;  ///< whether it does not answer this node
  bool conflict = false;   ///< whether two processes have its name
  bool neighbour = false;  ///< whether both ends keep an edge
};

/// The nodes that are there.
struct RosterView {
  RosterStanding standing = RosterStanding::joining;  ///< standing of this node
  std::vector<RosterMember> members{};  ///< nodes by name; this one among them, once it has joined
  std::size_t up = 0;  ///< nodes that are up, have answered and still do, this one among them
  std::optional<OtherRun> other{};    ///< the latest run with other settings that answered
  std::vector<OtherRun> strangers{};  ///< other runs at seeds that are not asked for that reason
  std::vector<std::string> asked{};   ///< seeds that are not this node, as far as it knows
  std::vector<std::string> silent{};  ///< seeds that have not answered for long (RosterSeeds)
  bool over = false;  ///< a node that had answered this one has ended, and the run with it
};

class Roster {
 public:
  /// Time from suspicion, or from a goodbye, until a node is forgotten.
  static constexpr RosterTime kForgetAfter{600'000};
  static constexpr std::size_t kMostBesides = 1024;  ///< entries beside those of MAX nodes

  /// Throws Error for a name or address that is empty or too long, and numbers out of range.
  Roster(RosterSetup setup, RosterTime now);

  /// A datagram of `from`. Fault::malformed for one that breaks the grammar; it changes nothing.
  Status receive(const std::string& from, std::span<const std::byte> message, RosterTime now);
  /// What is due by now.
  void tick(RosterTime now);
  /// What is to be sent, in any order.
  std::vector<RosterDatagram> released();

  /// From now on these are the seeds, as a store names them. Of those that stay is known what was
  /// known.
  void set_seeds(const std::vector<RosterSeed>& named, RosterTime now);
  /// The seed at this address is this node itself, by another name of its own.
  void note_own_seed(const std::string& address, RosterTime now);
  /// From now on this node takes no new edge, and others wish none with it; edges that there are
  /// stay.
  void leave(RosterTime now);
  /// This node ends: says so to all that answer, and whether the run is over with it.
  void depart(RosterTime now, bool run_is_over = false);

  /// How this node stands.
  RosterStanding standing() const { return standing_; }
  /// The nodes that are there by now.
  RosterView view() const;
  /// All entries.
  const RosterBook& book() const { return book_; }
  /// This node's own entry.
  const RosterEntry& self() const { return self_; }

 private:
  void take(const std::string& from, const RosterProbe& probe, RosterTime now);
  void take(const std::string& from, const RosterMarks& marks, RosterTime now);
  void take(const RosterEntries& message, RosterTime now);
  void take(const std::string& from, const RosterOther& other);
  /// Says to a probe of another run that this one has other settings.
  void say_other(const std::string& from, const RosterMessage& message);

  /// Takes in an entry if there is room; what became of it.
  RosterBook::Outcome learn(const RosterEntry& entry, bool by_itself, RosterTime now);
  /// Whether the answer is to a probe of this node's, which is noted.
  bool note_answer(const RosterProbe& answer, RosterTime now);
  /// Sends the marks of the range `wanted` of a comparison that is open.
  void send_marks(const std::string& to, const RosterMarks& wanted);

  void try_join(RosterTime now);
  void become_up(RosterTime now);
  /// A node that asks, and has nobody to ask, is the first.
  void look_for_anybody(RosterTime now);
  /// What other processes of this node's name mean for it.
  void look_at_namesakes(RosterTime now);
  void choose_edges();
  /// Sends the contacts a probe each, with the nonces that they have.
  void send_probes(const std::vector<const RosterContact*>& due);
  void probe_seeds(RosterTime now);
  /// Drops the entries of nodes that were gone or silent for long, or longest where there are too
  /// many.
  void forget_old(std::size_t most, RosterTime now);
  void change_self(NodePhase phase);
  /// Tells all that answer that this node is gone.
  void end_as(RosterStanding standing, NodePhase phase, RosterTime now);
  void send(const std::string& to, std::vector<std::byte> message);
  /// The flags and the entry of a probe to a contact, or to nobody that is known.
  RosterProbe probe_to(const RosterContact* contact) const;
  /// Processes that are there, by the name of their node.
  using Processes = std::map<std::string_view, int>;
  /// Whether a process is there, as far as this node knows.
  bool is_there(const RosterEntry& entry) const;
  /// Whether it has answered this node, or is it.
  bool is_heard(const RosterEntry& entry) const;
  Processes processes_there() const;
  /// Nodes that are up.
  std::size_t count_up(const Processes& processes) const;
  bool has_joined() const { return self_.version > 0; }
  bool is_self(const RosterEntry& entry) const { return is_same_process(entry, self_); }
  std::uint64_t draw() { return key_of(self_.name, self_.incarnation + ++drawn_); }

  RosterSetup setup_;
  RosterBook book_;
  RosterEntry self_;  ///< this node's entry; version 0 before it has joined
  RosterStanding standing_ = RosterStanding::joining;
  RosterContacts contacts_;
  RosterSeeds seeds_;
  RosterJoining joining_;
  std::vector<std::string> settings_;  ///< line by line
  std::uint64_t run_ = 0;              ///< digest of all settings; 0: there are none
  std::optional<OtherRun> other_;
  RosterComparisons comparisons_;
  std::vector<RosterDatagram> outbox_;
  std::uint64_t drawn_ = 0;
};

}  // namespace sotto::sites
