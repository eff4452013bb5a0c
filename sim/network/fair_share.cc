#include <sotto/sim/network/fair_share.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include <sotto/base/check.h>

namespace sotto {
namespace {

/// Levels and loads that differ by less, relatively, count as equal.
constexpr double kTolerance = 1e-10;
/// A rate that changes by less, relatively, is not reported as changed, and a level that a link
/// could raise by less is not raised.
constexpr double kNegligible = 1e-13;
/// A value that subtraction has made smaller than this fraction is summed anew: it has lost 3
/// digits.
constexpr double kCancelled = 1e-3;
/// A region that had to grow so often becomes the whole connected component.
constexpr int kGrowths = 8;
/// Memory for this many elements stays with the lists of a repair.
constexpr std::size_t kMostKept = std::size_t{1} << 16U;

/// Drops the elements, and the memory of very many.
template <typename T>
void empty(std::vector<T>& list) {
  if (list.capacity() > kMostKept) {
    std::vector<T>().swap(list);
  } else {
    list.clear();
  }
}

}  // namespace

FairShare::FairShare(std::span<const double> capacities) : links_(capacities.size()) {
  for (std::size_t i = 0; i < capacities.size(); ++i) {
    links_[i].capacity = capacities[i];
  }
}

void FairShare::reserve(std::size_t flows, std::size_t crossings) {
  flows_.reserve(flows_.size() + flows);
  places_.reserve(places_.size() + flows * crossings);
}

FlowId FairShare::add_flow(std::span<const Crossing> crossings, double weight, double bound) {
  const auto id = static_cast<FlowId>(flows_.size());
  check(crossings.size() <= std::numeric_limits<std::uint16_t>::max(),
        "a flow crosses 65,535 links at most");
  flows_.push_back({.begin = static_cast<std::uint32_t>(places_.size()),
                    .count = static_cast<std::uint16_t>(crossings.size())});
  for (const Crossing& crossing : crossings) {
    places_.push_back({.link = crossing.link, .flow = id, .usage = crossing.usage});
  }
  set_share(id, weight, bound);
  return id;
}

void FairShare::set_share(FlowId id, double weight, double bound) {
  check(weight > 0 && bound >= 0, "a flow has a positive weight and no negative bound");
  Flow& flow = flows_[id];
  flow.weight = weight;
  flow.bound = bound;
  flow.level = flow.rate / weight;
  if (!flow.running) {
    return;
  }
  for (const Place& place : crossings(id)) {
    mark_dirty(place.link);
  }
  if (flow.count == 0) {
    started_.push_back(id);  // no link would bring it up
  }
}

void FairShare::start(FlowId id) {
  Flow& flow = flows_[id];
  check(!flow.running, "a flow starts once");
  flow.running = true;
  flow.rate = flow.level = 0;
  for (std::uint32_t i = flow.begin; i < flow.begin + flow.count; ++i) {
    auto& running = links_[places_[i].link].running;
    places_[i].at = static_cast<std::uint32_t>(running.size());
    running.push_back(i);
  }
  started_.push_back(id);
}

void FairShare::stop(FlowId id) {
  Flow& flow = flows_[id];
  check(flow.running, "only a running flow stops");
  flow.running = false;
  flow.rate = flow.level = 0;
  for (const Place& place : crossings(id)) {
    auto& running = links_[place.link].running;
    running[place.at] = running.back();
    places_[running[place.at]].at = place.at;
    running.pop_back();
    if (!running.empty()) {
      mark_dirty(place.link);
    }
  }
}

void FairShare::set_capacity(LinkId link, double bytes_per_s) {
  links_[link].capacity = bytes_per_s;
  if (!links_[link].running.empty()) {
    mark_dirty(link);
  }
}

void FairShare::mark_dirty(LinkId id) {
  if (!links_[id].dirty) {
    links_[id].dirty = true;
    dirty_links_.push_back(id);
  }
}

std::span<const FlowId> FairShare::settle() {
  empty(changed_);
  for (const FlowId flow : started_) {
    if (flows_[flow].running && !settle_alone(flow)) {
      for (const Place& place : crossings(flow)) {
        mark_dirty(place.link);
      }
    }
  }
  empty(started_);
  if (dirty_links_.empty()) {
    return changed_;
  }
  ++mark_;
  for (const LinkId id : dirty_links_) {
    links_[id].dirty = false;
    for (const std::uint32_t place : links_[id].running) {
      join(places_[place].flow);
    }
  }
  empty(dirty_links_);
  fill();
  for (int growths = 1; grow(); ++growths) {
    if (growths == kGrowths) {
      close();
    }
    fill();
  }
  for (std::size_t i = 0; i < region_.size(); ++i) {
    const Flow& flow = flows_[region_[i]];
    if (std::abs(flow.rate - rates_before_[i]) > kNegligible * rates_before_[i]) {
      changed_.push_back(region_[i]);
    }
  }
  trim();
  return changed_;
}

void FairShare::trim() {
  empty(region_);
  empty(rates_before_);
  empty(touched_);
  if (filling_.size() > kMostKept) {
    empty(filling_);
  }
  empty(heap_);
}

bool FairShare::settle_alone(FlowId id) {
  Flow& flow = flows_[id];
  double rate = flow.bound;
  LinkId bottleneck = kOwnBound;
  for (const Place& place : crossings(id)) {
    const Link& link = links_[place.link];
    if (link.running.size() > 1) {
      return false;
    }
    if (link.capacity < rate * place.usage) {
      rate = link.capacity / place.usage;
      bottleneck = place.link;
    }
  }
  check(rate < kUnlimited, "a flow is limited by a link or by its own bound");
  flow.rate = rate;
  flow.level = rate / flow.weight;
  flow.bottleneck = bottleneck;
  changed_.push_back(id);
  return true;
}

void FairShare::join(FlowId id) {
  Flow& flow = flows_[id];
  if (flow.mark == mark_) {
    return;
  }
  flow.mark = mark_;
  region_.push_back(id);
  rates_before_.push_back(flow.rate);
  for (const Place& place : crossings(id)) {
    Link& link = links_[place.link];
    if (link.mark != mark_) {
      link.mark = mark_;
      link.slot = static_cast<std::uint32_t>(touched_.size());
      touched_.push_back(place.link);
    }
  }
}

void FairShare::sum(LinkId id) {
  const Link& link = links_[id];
  Filling& now = filling(id);
  now.free = link.capacity;
  now.demand = 0;
  now.open = 0;
  for (const std::uint32_t at : link.running) {
    const Place& place = places_[at];
    const Flow& flow = flows_[place.flow];
    if (flow.mark == mark_ && !flow.fixed) {
      now.demand += place.usage * flow.weight;
      ++now.open;
    } else {
      now.free -= place.usage * flow.rate;
    }
  }
  now.exact_free = now.free = std::max(now.free, 0.0);
  now.exact_demand = now.demand;
}

void FairShare::fill() {
  heap_.clear();
  if (filling_.size() < touched_.size()) {
    filling_.resize(touched_.size());
  }
  for (const FlowId id : region_) {
    flows_[id].fixed = false;
  }
  for (const LinkId id : touched_) {
    sum(id);
    heap_.emplace_back(filling(id).free / filling(id).demand, id);
  }
  for (const FlowId id : region_) {
    const Flow& flow = flows_[id];
    if (flow.bound < kUnlimited) {
      heap_.emplace_back(flow.bound / flow.weight, static_cast<std::uint32_t>(links_.size()) + id);
    }
  }
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
  while (!heap_.empty()) {
    const auto [level, id] = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
    if (id >= links_.size()) {
      const auto flow = static_cast<FlowId>(id - links_.size());
      if (!flows_[flow].fixed) {
        fix(flow, level, kOwnBound);
      }
      continue;
    }
    const Filling& now = filling(id);
    if (now.open == 0) {
      continue;
    }
    if (now.demand < kCancelled * now.exact_demand || now.free < kCancelled * now.exact_free) {
      sum(id);
    }
    // As flows are fixed elsewhere, what a link can give the others rises.
    const double current = std::max(now.free, 0.0) / now.demand;
    if (current > level * (1 + kNegligible)) {
      push(current, id);
      continue;
    }
    for (const std::uint32_t at : links_[id].running) {
      const FlowId flow = places_[at].flow;
      if (flows_[flow].mark == mark_ && !flows_[flow].fixed) {
        fix(flow, level, id);
      }
    }
  }
}

void FairShare::fix(FlowId id, double level, LinkId bottleneck) {
  Flow& flow = flows_[id];
  flow.fixed = true;
  flow.level = level;
  flow.rate = level * flow.weight;
  flow.bottleneck = bottleneck;
  for (const Place& place : crossings(id)) {
    Filling& now = filling(place.link);
    now.free -= place.usage * flow.rate;
    now.demand -= place.usage * flow.weight;
    --now.open;
  }
}

void FairShare::push(double level, std::uint32_t id) {
  heap_.emplace_back(level, id);
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

bool FairShare::grow() {
  const std::size_t before = region_.size();
  // Links that join on the way hold no flow of the region that was shared anew.
  const std::size_t links = touched_.size();
  for (std::size_t i = 0; i < links; ++i) {
    grow_at(touched_[i]);
  }
  return region_.size() > before;
}

void FairShare::grow_at(LinkId id) {
  const Link& link = links_[id];
  double highest = 0;
  double bottlenecked = kUnlimited;  // the lowest level of a region's flow that this link limits
  for (const std::uint32_t at : link.running) {
    const Flow& flow = flows_[places_[at].flow];
    highest = std::max(highest, flow.level);
    if (flow.mark == mark_ && flow.fixed && flow.bottleneck == id) {
      bottlenecked = std::min(bottlenecked, flow.level);
    }
  }
  const bool full = load(id) >= link.capacity * (1 - kTolerance);
  for (const std::uint32_t at : link.running) {
    const FlowId other = places_[at].flow;
    const Flow& flow = flows_[other];
    const bool broken =
        flow.bottleneck == id && !(full && flow.level >= highest * (1 - kTolerance));
    if (broken || flow.level * (1 - kTolerance) > bottlenecked) {
      join(other);
    }
  }
}

void FairShare::close() {
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    for (const std::uint32_t place : links_[touched_[i]].running) {
      join(places_[place].flow);
    }
  }
}

double FairShare::load(LinkId id) const {
  double load = 0;
  for (const std::uint32_t place : links_[id].running) {
    load += places_[place].usage * flows_[places_[place].flow].rate;
  }
  return load;
}

double FairShare::unfairness() const {
  double worst = 0;
  std::vector<double> highest(links_.size(), 0);
  std::vector<double> loads(links_.size(), 0);
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const auto id = static_cast<LinkId>(i);
    loads[i] = load(id);
    if (loads[i] > links_[i].capacity) {
      worst = std::max(worst, (loads[i] - links_[i].capacity) / std::max(links_[i].capacity, 1.0));
    }
    for (const std::uint32_t place : links_[i].running) {
      const Flow& flow = flows_[places_[place].flow];
      highest[i] = std::max(highest[i], flow.rate / flow.weight);
    }
  }
  for (std::size_t f = 0; f < flows_.size(); ++f) {
    const Flow& flow = flows_[f];
    if (!flow.running) {
      continue;
    }
    // The breach of a flow is that of the best of its bottlenecks.
    double breach =
        flow.bound < kUnlimited ? (flow.bound - flow.rate) / std::max(flow.bound, 1.0) : kUnlimited;
    for (const Place& place : crossings(static_cast<FlowId>(f))) {
      const double capacity = std::max(links_[place.link].capacity, 1e-300);
      const double spare = (links_[place.link].capacity - loads[place.link]) / capacity;
      const double level = flow.rate / flow.weight;
      const double envy = highest[place.link] > 0 ? 1 - level / highest[place.link] : 0;
      breach = std::min(breach, std::max(spare, envy));
    }
    worst = std::max(worst, breach);
  }
  return worst;
}

}  // namespace sotto
