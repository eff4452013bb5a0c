// The roster of a node's process: speaks with those of others by datagrams, and keeps the node's
// list of peers at what the roster says.
//
// Thread safety: any thread may use it; a thread of its own does the work. Ownership: shares the
// list.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sotto/base/background_service.h>
#include <sotto/base/status.h>
#include <sotto/comm/sealed_datagrams.h>
#include <sotto/comm/trust/allow_list.h>
#include <sotto/sites/nodes/report/site_report.h>
#include <sotto/sites/nodes/roster_news.h>
#include <sotto/sites/nodes/roster_options.h>
#include <sotto/sites/nodes/roster_peers.h>
#include <sotto/sites/nodes/roster_search.h>
#include <sotto/sites/nodes/stores/seed_store.h>
#include <sotto/sites/roster/roster.h>

namespace sotto {

/// The node whose roster it is.
struct RosterNode {
  std::string name{};                  ///< its name
  std::string listen{};                ///< address for its datagrams; empty: by the seeds
  sites::Incarnation incarnation = 0;  ///< that of its process
  std::uint32_t life = 0;              ///< that of its process, larger than any before
  std::shared_ptr<AllowList> list{};   ///< its peers, kept at those nodes that `reach` says
  std::string settings{};              ///< what all nodes of the run have in common but MIN and MAX
  RosterReach reach = RosterReach::neighbours;  ///< the nodes that are its peers
};

class RunRoster {
 public:
  /// Binds, and begins to ask who is there. Throws Error for a name, an address or numbers that are
  /// refused.
  RunRoster(const RosterOptions& options, const RosterNode& node);
  /// Tells the others that this node is gone.
  ~RunRoster();
  RunRoster(const RunRoster&) = delete;
  RunRoster& operator=(const RunRoster&) = delete;

  /// The address for this node's channels, HOST:PORT in numbers: that of its datagrams.
  const std::string& address() const { return address_; }
  /// Fault::deadline once a store of seeds has not answered for its patience, since the start.
  /// Fault::unexpected, with the reason, once a run with other settings has answered a newcomer, or
  /// one that goes before has answered a node that still waits; or once the run has refused this
  /// node or another process has taken its place.
  Status standing() const;
  /// Waits until `least` are up, and a neighbour is in the list; a node that has seeds and finds
  /// nobody begins alone, if one is enough, after `alone_after`, since others may be looking for
  /// it: a seed that lost its state is not to begin a second run. Calls `meanwhile` now and then.
  /// Fault::stopped once *stop is true, and as standing(). Null: no stop is requested.
  Status await_nodes(const std::atomic<bool>* stop, std::chrono::milliseconds alone_after,
                     const std::function<void()>& meanwhile);
  /// Whether this node waits to take part for the first time: then it says what it waits for, also
  /// where MIN are up, and gives way to a greater run with other settings (standing()).
  void set_waiting(bool waits);
  /// The nodes that are there.
  SiteRosterReport report() const;
  /// What the roster knows, by name; this node among them once it has joined.
  sites::RosterView view() const;
  /// Whether this node is to begin the run where one node must: it has the address of the first
  /// seed, or there are no seeds. False, too, while the seed's name is looked up, and where nodes
  /// find each other by a store.
  bool has_first_seed();
  /// What this node and the store say to each other by which nodes find each other; null: they have
  /// seeds with addresses of their own.
  SeedStoreBoard* store() { return store_ ? &store_->board() : nullptr; }
  /// Datagrams that the run's key did not open, since the start.
  std::uint64_t refused() const;
  /// Peers that are to get no more parcels: they leave, or their edge has gone.
  std::vector<sites::DrainingPeer> draining() const;
  /// Other nodes that are up.
  std::size_t others_up() const;
  /// From now on this peer stays in the list, whether it answers the roster or not, until it says
  /// that it is gone.
  void keep(const std::string& peer);
  /// How long a node that leaves may take.
  std::chrono::milliseconds leave_patience() const { return options_.leave_patience; }
  /// What has happened since the last call.
  std::vector<SiteEvent> news();

  /// Puts the list in force once more, for those that have not seen it change.
  void list_again();
  /// Tells the others that this node is about to end.
  void leave();
  /// The run is over with this node, which the others are told as it goes.
  void note_end();

 private:
  using Clock = std::chrono::steady_clock;

  void work();
  bool may_begin(std::chrono::milliseconds alone_after) const;
  /// Puts the neighbours in force as the list of peers.
  void follow_view();
  /// Tells the roster which seeds are this node, by names that are known by now.
  void note_own_seeds();
  /// How far the search for others has come.
  RosterSearchState search_state();
  /// Whether this node looks for others.
  bool searches() const;
  /// Takes over what the store of seeds says by now.
  void follow_store();
  void send_released();
  sites::RosterTime now() const {
    return std::chrono::duration_cast<sites::RosterTime>(Clock::now() - began_);
  }

  const RosterOptions options_;
  const std::string name_;
  const std::shared_ptr<AllowList> list_;
  SealedDatagrams datagrams_;
  const std::string address_;
  const std::unique_ptr<SeedStore> store_;  ///< null: none
  /// Seeds that it said last; none: it has yet to answer.
  std::optional<std::vector<sites::RosterSeed>> from_store_{};
  const Clock::time_point began_ = Clock::now();
  sites::Roster roster_;
  sites::RosterView view_;
  Clock::time_point ticked_{};
  RosterPeers peers_;   ///< peers in the list
  bool waits_ = false;  ///< as set_waiting() said last
  RosterSearch search_;
  RosterNews news_;
  bool run_is_over_ = false;
  mutable BackgroundService service_;  ///< service that uses all members above
};

}  // namespace sotto
