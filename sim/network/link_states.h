// The links of a platform as they are at present: what they carry and how long they take, and which
// connections cross them. Links that are alike share what is said of them until one changes: of a
// million links there are few kinds.
//
// One thread at a time. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sotto/sim/network/platform.h>
#include <sotto/sim/time.h>

namespace sotto {

/// Stands in for unlimited bandwidth, in bytes/s, on links that are limited at other times.
inline constexpr double kFastest = 1e18;

/// One link at present, or several that are alike.
struct LinkState {
  double bytes_per_s = 0;
  SimTime latency = 0;
  SimTime jitter = 0;
  double loss = 0;
  double loss_burst = 0;
  double queue_bytes = kUnlimited;  ///< bytes that may wait for the link
  double offered = 0;               ///< bytes that the link could have carried until `since`
  SimTime since = 0;                ///< time of the last change
  bool unlimited = false;           ///< the bandwidth is unlimited and never changes

  friend bool operator==(const LinkState&, const LinkState&) = default;
};

class LinkStates {
 public:
  /// The links of `platform` as it declares them; the changes and traces that it has for some are
  /// expected. All that they carry is `bandwidth_factor` times what is declared.
  LinkStates(const Platform& platform, double bandwidth_factor);

  /// A link at present.
  const LinkState& operator[](LinkId link) const { return states_[kinds_[link]]; }

  /// Says that the link will change: it may come to be limited, and its users are noted.
  void expect_change(LinkId link);
  /// True once a change is expected.
  bool changes(LinkId link) const { return !places_.empty() && places_[link] != kNone; }
  /// A connection's way, there or back, crosses the link: noted where the link changes. Requires
  /// that the connections come one after another.
  void add_user(LinkId link, std::uint32_t connection);
  /// The connections that cross a link that changes; of others none.
  std::span<const std::uint32_t> users(LinkId link) const;
  /// Changes a link's bandwidth and latency, from `now` on.
  void change(const LinkChange& change);

  /// The sum of the links' latencies.
  SimTime latency_along(std::span<const LinkId> way) const;
  /// Bytes/s of the narrowest link; unlimited without one.
  double narrowest(std::span<const LinkId> way) const;
  /// The chance that a packet passes all links.
  double chance_of_passing(std::span<const LinkId> way) const;
  /// A link has a queue that can overflow.
  bool may_overflow(std::span<const LinkId> way) const;
  /// The link with the least for one of the flows that cross it, if all had the same of it; the
  /// first of several. The flow that asks is `counted` among them, or comes anew. Requires a way
  /// over a link.
  LinkId least_share(std::span<const LinkId> way, bool counted) const;
  /// No link is cut.
  bool open(std::span<const LinkId> way) const;

  /// Bytes that the link could have carried until `now`.
  double offered(LinkId link, SimTime now) const;
  /// Takes this many bytes/s more of the link, or fewer, for acknowledgements.
  void add_acknowledgements(LinkId link, double bytes_per_s);
  /// Bytes/s of the link that acknowledgements do not take.
  double left_for_messages(LinkId link) const;

  /// A flow along `way` has begun or ended: the packets of others wait for its packets.
  void count_flow(std::span<const LinkId> way, bool flows);
  /// How long a packet of `packet_bytes` bytes waits behind those of others, on links that others
  /// share. A link that takes turns serves k flows of a rate C / k packet by packet (deficit round
  /// robin), so that a packet which comes at any time finds half a packet of each other flow in
  /// front of it: (k − 1) / 2 × packet / C. Where the flow is narrowest that wait is its share of
  /// the fluid.
  SimTime queueing_delay(std::span<const LinkId> way, double packet_bytes) const;

  /// A packet of `bytes` bytes wants to wait for the link, behind `bytes` of another one that
  /// leaves. False: the link's queue has no room for it, and it does not wait.
  bool enter_queue(LinkId link, double bytes);
  /// Bytes that had entered it wait no more.
  void leave_queue(LinkId link, double bytes) { queued_[link] -= bytes; }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  /// The index of a state equal to `state`, if one of the last few is; else of a new one.
  std::uint32_t kind_of(const LinkState& state);
  /// The state of a link that other links do not share.
  LinkState& own(LinkId link);

  double bandwidth_factor_;
  std::vector<LinkState> states_;
  std::vector<std::uint32_t> kinds_;  ///< index in states_, by link
  /// Index in users_, by link; kNone: the link does not change. Empty: none does.
  std::vector<std::uint32_t> places_;
  std::vector<std::vector<std::uint32_t>> users_;
  /// Bytes/s that acknowledgements of flows the other way take, by link; empty: of none yet.
  std::vector<double> acknowledgements_;
  /// Flows that cross a link now, by link, counted where packets take turns; empty: none has yet.
  std::vector<std::uint32_t> flows_;
  /// Bytes that wait for a link, by link; empty: none has waited yet for a link with a queue that
  /// can overflow.
  std::vector<double> queued_;
};

}  // namespace sotto
