// What a node's operator is told of the others, as events: who came, left, is lost or has another's
// name, whether enough are up, and which runs with other settings are there. What was told is not
// told again before it has changed.
//
// A pure state machine: no clock, no socket. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sotto/sites/nodes/report/site_event.h>
#include <sotto/sites/roster/roster.h>

namespace sotto {

/// How a node of the roster stands.
enum class NodeState : std::uint8_t {
  up,        ///< it answers
  unheard,   ///< others list it, and it has not answered this node
  lost,      ///< it does not answer any more
  conflict,  ///< two processes have its name
  leaving,   ///< it is about to leave
  gone,      ///< it has left
};
/// The name in reports: "up".
std::string_view name_of(NodeState state);
/// How the member stands.
NodeState state_of(const sites::RosterMember& member);
/// What this node's settings and those of another run differ in.
std::string words_of(const sites::OtherRun& other);

class RosterNews {
 public:
  /// Events that wait for take(); further ones are dropped.
  static constexpr std::size_t kMost = 1024;

  /// The news of the node `self`, in a run of `least` nodes or more.
  RosterNews(std::string self, std::size_t least) : self_(std::move(self)), least_(least) {}

  /// Takes down events that others made.
  void add(std::vector<SiteEvent> events);
  /// Takes down what this view has of news.
  void follow(const sites::RosterView& view);
  /// All events since the last call.
  std::vector<SiteEvent> take() { return std::exchange(events_, {}); }

 private:
  /// A node, as it was told of.
  struct Seen {
    sites::Incarnation incarnation = 0;
    NodeState state = NodeState::up;
  };

  /// The other nodes that have been heard, by name.
  std::map<std::string, Seen> seen_in(const sites::RosterView& view) const;
  void note_changes(const sites::RosterView& view);
  void note_count(const sites::RosterView& view);
  void note_other(const sites::RosterView& view);
  /// Says which leases lead to another run.
  void note_strangers(const sites::RosterView& view);
  void tell(SiteEvent::Level level, SiteEvent::Kind kind, std::string text, std::string peer = {});

  const std::string self_;
  const std::size_t least_;  ///< MIN
  std::map<std::string, Seen> seen_;
  bool few_ = true;                         ///< fewer than MIN are up
  std::optional<sites::OtherRun> other_;    ///< other run that was told of
  std::vector<sites::OtherRun> strangers_;  ///< other runs at leases, likewise
  std::vector<SiteEvent> events_;
};

}  // namespace sotto
