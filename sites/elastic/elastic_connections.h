// What joins a node of an all-reduce whose nodes come and go with the others: the roster, the
// channels, and the links that carry messages over them. Before these are open, and once they are
// closed, nobody is heard.
//
// Thread safety: one thread at a time. Ownership: options and votes are the caller's and must
// outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <sotto/base/status.h>
#include <sotto/comm/channels.h>
#include <sotto/comm/trust/allow_list.h>
#include <sotto/sites/elastic/elastic_links.h>
#include <sotto/sites/elastic/elastic_options.h>
#include <sotto/sites/elastic/founding_votes.h>
#include <sotto/sites/epochs/epoch_node.h>
#include <sotto/sites/nodes/incarnation.h>
#include <sotto/sites/nodes/run_roster.h>

namespace sotto {

class ElasticConnections {
 public:
  /// Connects nothing yet. `settings` are those that nodes share, in words; the model has
  /// `dimension` parameters; `clock` is the member's time; `listener` hears of channels.
  ElasticConnections(const ElasticOptions& options, std::string settings, std::size_t dimension,
                     const FoundingVotes& votes, std::function<sites::EpochTime()> clock,
                     SiteListener listener);

  /// Opens the roster and the channels. Faults as make_channels(), errors as RunRoster.
  Status open();
  /// Leaves the others, and tells the roster that this node is gone.
  void close();
  /// Whether they are open.
  bool is_open() const { return links_.has_value(); }

  // These require is_open().

  RunRoster& roster() { return *roster_; }
  ElasticLinks& links() { return *links_; }
  const ElasticLinks& links() const { return *links_; }

  // What there is by now.

  /// This process.
  sites::Incarnation incarnation() const { return incarnation_; }
  /// The store by which nodes find each other; null: there is none, or nothing is open.
  SeedStoreBoard* store() const { return is_open() ? roster_->store() : nullptr; }
  /// The address at which others reach this node; empty: nothing is open.
  std::string address() const { return is_open() ? channels_->address() : ""; }
  /// Datagrams that the run's key did not open.
  std::uint64_t refused() const { return is_open() ? roster_->refused() : 0; }
  /// Bytes of messages sent to all others.
  std::uint64_t bytes_sent() const;
  /// The nodes that are there; none: nothing is open.
  std::optional<SiteRosterReport> nodes() const;
  /// Whether the channel to this node is open, and it has said hello.
  bool hears(const sites::EpochNode& node) const { return is_open() && links_->is_greeted(node); }

 private:
  const ElasticOptions& options_;
  const std::string settings_;
  const std::size_t dimension_;
  const FoundingVotes& votes_;
  const std::function<sites::EpochTime()> clock_;
  const SiteListener listener_;
  const sites::Incarnation incarnation_ = draw_incarnation();
  const std::shared_ptr<AllowList> list_;
  std::unique_ptr<RunRoster> roster_;
  std::unique_ptr<Channels> channels_;
  std::optional<ElasticLinks> links_;
};

}  // namespace sotto
