// What keeps a node of a run by roster from finding the others, as events that are told now and
// then: that nobody is heard, seeds that do not answer, names that nobody knows, datagrams that the
// run's key does not open. A pure value: no clock, no socket.
//
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sotto/sites/nodes/report/site_report.h>
#include <sotto/sites/roster/roster_entry.h>

namespace sotto {

/// How far the search for other nodes has come.
struct RosterSearchState {
  bool few = false;                  ///< fewer than MIN are up, or this node does not take part yet
  bool alone = false;                ///< no other node is heard
  std::string address{};             ///< address of this node
  std::vector<std::string> asked{};  ///< seeds that it asks: those that are not itself
  std::vector<std::string> silent{};   ///< seeds that have not answered for long
  std::vector<std::string> unknown{};  ///< seeds in `silent` whose names are not known here
  std::uint64_t refused = 0;           ///< datagrams that did not open, since the start
  bool by_store = false;               ///< nodes find each other by a store
};

/// Whom a node asks that hears nobody, and what to look at. `by_store`: nodes find each other by a
/// store.
std::string words_of_asking(const std::string& address, const std::vector<std::string>& asked,
                            bool by_store);

class RosterSearch {
 public:
  /// The time between two reports while nodes are missing, …
  static constexpr sites::RosterTime kWhileFew{10'000};
  /// … and while enough are up: what strangers send is to fill no log.
  static constexpr sites::RosterTime kWhileEnough{300'000};

  /// The events that are to be told by now: where nodes have been missing for kWhileFew
  /// `seeds-silent`, or `nobody-heard` where no seed is silent and no other node is heard either;
  /// and `datagrams-refused` where more have come than were told of.
  std::vector<SiteEvent> due(sites::RosterTime now, const RosterSearchState& state);

 private:
  sites::RosterTime told_{0};       ///< time when due() told something last
  bool few_ = true;                 ///< `few` of the last state
  sites::RosterTime few_since_{0};  ///< time when it became so
  std::uint64_t refused_ = 0;       ///< datagrams that were told of
};

}  // namespace sotto
