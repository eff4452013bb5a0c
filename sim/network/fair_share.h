// Max–min fair sharing of links among the flows that cross them (Bertsekas and Gallager, Data
// Networks, §6.5.2), kept up to date as flows start and stop.
//
// Flow f with weight w_f has the rate x_f = w_f × level_f and takes usage × x_f of each link that
// it crosses. Rates are max–min fair if and only if each flow has a bottleneck: its own bound, or a
// link that is full and on which no level is higher than its own. That certificate is local, and so
// is the repair: after a change only the flows on the links that changed are shared anew, the
// others held fast; those with a certificate that breaks by it join, until all hold. Flows that
// share nothing cost O(links that they cross).
//
// Certificates hold to 1e-9 for weights that span 1e12. One thread at a time. Owns everything;
// deterministic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <sotto/sim/network/lean_vector.h>
#include <sotto/sim/network/platform.h>

namespace sotto {

/// A flow's number, from 0.
using FlowId = std::uint32_t;

/// A link that a flow crosses, and how much of it one byte/s of the flow takes.
struct Crossing {
  LinkId link = 0;
  double usage = 1;
};

class FairShare {
 public:
  /// Links by their capacities in bytes/s; link k is the k-th.
  explicit FairShare(std::span<const double> capacities);

  /// Makes room for so many more flows, each of which crosses `crossings` links.
  void reserve(std::size_t flows, std::size_t crossings);
  /// Declares a flow that is not running; each link at most once. `weight` > 0; `bound` ≥ 0 bytes/s
  /// is the most that it takes. A flow without a bound crosses at least one limited link.
  FlowId add_flow(std::span<const Crossing> crossings, double weight = 1,
                  double bound = kUnlimited);
  /// Changes a flow's weight and bound, from the next settle on.
  void set_share(FlowId flow, double weight, double bound);

  // Changes below hold from the next settle on.
  /// The flow wants to send. Requires !running(flow).
  void start(FlowId flow);
  /// The flow has nothing more to send. Requires running(flow).
  void stop(FlowId flow);
  /// Changes what a link carries.
  void set_capacity(LinkId link, double bytes_per_s);

  /// Something changed since the last settle.
  bool dirty() const { return !dirty_links_.empty() || !started_.empty(); }
  /// Shares anew. Returns the flows with new rates, those that started among them; valid until the
  /// next call.
  std::span<const FlowId> settle();

  /// Whether the flow is started.
  bool running(FlowId flow) const { return flows_[flow].running; }
  /// Bytes/s as of the last settle; 0 when not running.
  double rate(FlowId flow) const { return flows_[flow].rate; }
  /// The link that limits a running flow, as of the last settle; empty: its own bound does.
  std::optional<LinkId> bottleneck(FlowId flow) const {
    const Flow& found = flows_[flow];
    return found.running && found.bottleneck != kOwnBound ? std::optional(found.bottleneck)
                                                          : std::nullopt;
  }
  /// Bytes/s that a link can carry.
  double capacity(LinkId link) const { return links_[link].capacity; }
  /// Bytes/s that flow over a link now.
  double load(LinkId link) const;
  /// How far the rates are from max–min fair and from feasible, relative: the largest breach of any
  /// flow's certificate or of any link's capacity. For tests.
  double unfairness() const;

 private:
  struct Flow {
    std::uint32_t begin = 0;  ///< index of its first crossing
    std::uint16_t count = 0;
    bool running = false;
    bool fixed = false;  ///< the level in this filling is known
    double weight = 1;
    double bound = kUnlimited;
    double rate = 0;
    double level = 0;
    LinkId bottleneck = 0;   ///< the limiting link; kOwnBound: none
    std::uint32_t mark = 0;  ///< equals mark_ while the flow is in the region
  };
  /// A crossing, and where it stands in its link's list of running flows.
  struct Place {
    LinkId link = 0;
    FlowId flow = 0;
    double usage = 1;
    std::uint32_t at = 0;
  };
  struct Link {
    double capacity = 0;
    LeanVector<std::uint32_t> running;  ///< indices in places_ of its running flows
    std::uint32_t mark = 0;             ///< equals mark_ while the link is touched
    std::uint32_t slot = 0;             ///< index in touched_ and filling_ while it is touched
    bool dirty = false;
  };
  /// A touched link while the region is filled.
  struct Filling {
    double free = 0;        ///< capacity left for the region's flows that are not fixed yet
    double demand = 0;      ///< Σ usage × weight of the region's flows that are not fixed yet
    double exact_free = 0;  ///< `free` and `demand`, as last summed, not reduced
    double exact_demand = 0;
    std::uint32_t open = 0;  ///< number of the region's flows that are not fixed yet
  };
  /// Level, and the link, or number of links + flow.
  using Candidate = std::pair<double, std::uint32_t>;
  static constexpr LinkId kOwnBound = ~LinkId{0};

  std::span<Place> crossings(FlowId flow) {
    return {places_.data() + flows_[flow].begin, flows_[flow].count};
  }
  std::span<const Place> crossings(FlowId flow) const {
    return {places_.data() + flows_[flow].begin, flows_[flow].count};
  }
  /// The flows on the link are shared anew at the next settle.
  void mark_dirty(LinkId link);
  bool settle_alone(FlowId flow);
  /// Takes a flow into the region, and its links into those that are touched.
  void join(FlowId flow);
  /// Progressive filling of the region, all other rates held.
  void fill();
  Filling& filling(LinkId link) { return filling_[links_[link].slot]; }
  /// Sums what the link has free, and the demand of the region's flows that are not fixed yet.
  void sum(LinkId id);
  void fix(FlowId flow, double level, LinkId bottleneck);
  void push(double level, std::uint32_t id);
  /// Adds the flows with broken certificates to the region; false when there are none.
  bool grow();
  void grow_at(LinkId link);
  /// The region becomes all that is connected with it.
  void close();
  /// Gives back the memory of a repair of very many flows: such a one is rare.
  void trim();

  std::vector<Flow> flows_;
  std::vector<Place> places_;
  std::vector<Link> links_;
  std::vector<LinkId> dirty_links_;
  std::vector<FlowId> started_;  ///< flows that started, or changed without a link that tells
  std::vector<FlowId> changed_;
  // The repair under way.
  std::uint32_t mark_ = 0;
  std::vector<FlowId> region_;
  std::vector<double> rates_before_;  ///< rates before the repair, in the order of region_
  std::vector<LinkId> touched_;
  std::vector<Filling> filling_;  ///< by touched link
  std::vector<Candidate> heap_;
};

}  // namespace sotto
