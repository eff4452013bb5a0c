// The platform of a simulation: hosts, directed links, and the route from each host to each other.
//
// Units: bytes/s, nanoseconds, fractions. A platform says what is there at time 0 and how it
// changes; it holds no state of a run, so that one platform serves many. Mistakes throw Error when
// they are made.
//
// Thread safety: const use from any thread. Ownership: plain values.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/sim/network/link_trace.h>
#include <sotto/sim/time.h>

namespace sotto {

/// A link's number in its platform, from 0.
using LinkId = std::uint32_t;

/// No limit of a bandwidth.
inline constexpr double kUnlimited = std::numeric_limits<double>::infinity();

/// No link is slower to cross: 11.6 days, so that the latencies of thousands may be added.
inline constexpr SimTime kMostLatency = 1'000'000'000'000'000;

/// A shorter queue than of one packet lets nothing pass.
inline constexpr double kLeastQueueBytes = 1500;

/// One direction of a cable, or a host's way in or out. All messages that cross it share its
/// bandwidth.
struct LinkSpec {
  std::string name = {};            ///< name in reports
  double bytes_per_s = kUnlimited;  ///< 0: nothing passes
  SimTime latency = 0;
  /// The latency of each message is drawn uniformly from latency ± jitter, as netem does.
  SimTime jitter = 0;
  /// Packets lost, in 0 … 1. Without effect where the round trip takes no time, unless there is
  /// slow start.
  double loss = 0;
  /// Mean number of packets lost in a row (packet_losses.h); 0: each is lost apart from the others.
  double loss_burst = 0;
  /// Bytes of packets that may wait for the link, a packet of 1,500 at least: what finds no room is
  /// lost. Without effect unless there is slow start.
  double queue_bytes = kUnlimited;
  /// Bandwidth and latency over time, in place of those above; null: these hold.
  std::shared_ptr<const TracedLink> trace = {};
};

/// A link's bandwidth and latency from `at` on.
struct LinkChange {
  SimTime at = 0;
  LinkId link = 0;
  double bytes_per_s = 0;
  SimTime latency = 0;
};

/// The links that a message from one host to another crosses.
struct Route {
  std::vector<LinkId> links;
};

class Platform {
 public:
  /// `hosts` hosts without links, numbered as ranks. Until default_route or a route is set, no host
  /// reaches another.
  explicit Platform(int hosts);

  /// Adds a link and returns its number, from 0. Throws Error for a specification out of range.
  LinkId add_link(LinkSpec spec);
  /// Sets the link that all messages from `host` cross, in front of the route. Returns its number.
  LinkId set_egress(Rank host, LinkSpec spec);
  /// Sets the link that all messages to `host` cross, behind the route. Returns its number.
  LinkId set_ingress(Rank host, LinkSpec spec);
  /// Sets the links that messages from `from` to `to` cross between the egress of one and the
  /// ingress of the other. A link may stand in routes of both directions: it is then half duplex.
  void set_route(Rank from, Rank to, std::span<const LinkId> links);
  /// Does as the other set_route, with links that are listed in place.
  void set_route(Rank from, Rank to, std::initializer_list<LinkId> links) {
    set_route(from, to, std::span(links.begin(), links.size()));
  }
  /// Sets the route of all pairs that have none of their own: empty for a perfect switch, the
  /// links of a backbone for a shared one.
  void set_default_route(std::vector<LinkId> links);

  /// Changes may be added in any order; of two at one time the later added holds. A link with a
  /// trace takes none.
  void add_change(const LinkChange& change);
  /// Nothing passes `links` from `from` until `until` (a partition that heals); kNever: for good.
  /// What the links were given before, they have again afterwards. None of them has a trace.
  void cut(std::span<const LinkId> links, SimTime from, SimTime until);

  int hosts() const { return hosts_; }
  std::span<const LinkSpec> links() const { return links_; }
  /// Changes sorted by time; those of one time by link, and then in the order in which they hold.
  std::vector<LinkChange> changes() const;
  /// The link that messages of a host go out by, where it has one of its own.
  std::optional<LinkId> egress(Rank host) const { return own(egress_, host); }
  /// The link that messages to a host come in by, where it has one of its own.
  std::optional<LinkId> ingress(Rank host) const { return own(ingress_, host); }
  /// Whether a message from one to the other has a way.
  bool connected(Rank from, Rank to) const;
  /// Egress, route and ingress, without links that are unlimited in bandwidth and add neither
  /// latency, jitter nor loss. Throws Error when there is no way.
  Route route(Rank from, Rank to) const;

 private:
  struct Destination {
    Rank host = 0;
    std::uint32_t begin = 0;  ///< index of the route's first link in route_links_
    std::uint32_t count = 0;
  };
  static constexpr LinkId kNone = ~LinkId{0};

  static std::optional<LinkId> own(const std::vector<LinkId>& links, Rank host) {
    const LinkId link = links[static_cast<std::size_t>(host)];
    return link == kNone ? std::nullopt : std::optional(link);
  }
  static bool before(const Destination& destination, Rank host);
  void require_host(Rank host) const;
  void require_links(std::span<const LinkId> links) const;
  void require_untraced(std::span<const LinkId> links) const;
  const Destination* find(Rank from, Rank to) const;

  int hosts_ = 0;
  std::shared_ptr<const LinkTrace> valid_trace_;  ///< the last one: next links often share it
  std::vector<LinkSpec> links_;
  std::vector<LinkId> egress_;
  std::vector<LinkId> ingress_;
  std::vector<std::vector<Destination>> routes_;  ///< destinations by sender, sorted by host
  std::vector<LinkId> route_links_;
  bool has_default_ = false;
  std::vector<LinkId> default_;
  /// Changes by link, sorted by time; those of one time in the order in which they hold.
  std::map<LinkId, std::vector<LinkChange>> changes_;
};

/// `hosts` hosts at a switch, each with this bandwidth out and in, and `latency` from host to host.
Platform make_star(int hosts, double bytes_per_s, SimTime latency);

}  // namespace sotto
