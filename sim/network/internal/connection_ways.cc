#include "connection_ways.h"

#include <algorithm>
#include <cmath>

#include <sotto/base/philox.h>

namespace sotto {

ConnectionId ConnectionWays::add(const Platform& platform, Rank from, Rank to) {
  const auto id = static_cast<ConnectionId>(ways_.size());
  Way way = {.from = from, .to = to, .there = paths_.add(platform.route(from, to).links)};
  if (platform.connected(to, from)) {
    way.back = paths_.add(platform.route(to, from).links);
  }
  way.jittery = std::ranges::any_of(paths_.links(way.there),
                                    [this](LinkId link) { return links_[link].jitter > 0; });
  ways_.push_back(way);
  for (const auto& links : {there(id), back(id)}) {
    for (const LinkId link : links) {
      links_.add_user(link, id);
    }
  }
  update(id);
  return id;
}

SimTime ConnectionWays::latency_along(std::span<const LinkId> way) const {
  const SimTime latency = links_.latency_along(way);
  return latency_factor_ == 1
             ? latency
             : from_nanoseconds(std::round(latency_factor_ * static_cast<double>(latency)));
}

void ConnectionWays::update(ConnectionId id) { ways_[id].latency = latency_along(there(id)); }

SimTime ConnectionWays::round_trip(ConnectionId id) const {
  return plus(links_.latency_along(there(id)), links_.latency_along(back_or_there(id)));
}

SimTime ConnectionWays::draw_latency(ConnectionId id) {
  Way& way = ways_[id];
  if (!way.jittery || way.latency == kNever) {
    return way.latency;
  }
  RandomStream random({.seed = seed_,
                       .rank = way.from,
                       .round = ++way.drawn,
                       .purpose = Purpose::jitter,
                       .bucket = static_cast<std::uint32_t>(way.to)});
  double sum = 0;
  for (const LinkId link : there(id)) {
    sum += static_cast<double>(links_[link].jitter) * (2 * random.uniform() - 1);
  }
  return plus(way.latency, std::max(static_cast<SimTime>(std::llround(sum)), -way.latency));
}

}  // namespace sotto
