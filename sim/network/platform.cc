#include <sotto/sim/network/platform.h>

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto {
namespace {

void require_bandwidth(std::string_view name, double bytes_per_s) {
  if (!(bytes_per_s >= 0)) {
    refuse(fmt::format("bandwidth of link {}", name), fmt::format("{} bytes/s", bytes_per_s),
           "it must be 0 or more");
  }
}

void require_spec(const LinkSpec& spec) {
  require_bandwidth(spec.name, spec.bytes_per_s);
  if (spec.latency < 0 || spec.latency > kMostLatency) {
    refuse(fmt::format("latency of link {}", spec.name), fmt::format("{} ns", spec.latency),
           "it must be 0 or more, and no more than 11 days");
  }
  if (spec.jitter < 0 || spec.jitter > spec.latency) {
    refuse(fmt::format("jitter of link {}", spec.name), fmt::format("{} ns", spec.jitter),
           "it must lie between 0 and the latency");
  }
  if (!(spec.loss >= 0 && spec.loss < 1)) {
    refuse(fmt::format("loss of link {}", spec.name), fmt::format("{}", spec.loss),
           "it must lie in 0 … 1, without 1");
  }
  if (spec.loss_burst != 0 && !(spec.loss_burst * (1 - spec.loss) >= 1 - 1e-9)) {
    refuse(fmt::format("lost packets in a row on link {}", spec.name),
           fmt::format("{}", spec.loss_burst),
           fmt::format("packets that are lost apart from each other make it {:.4g}; it must not be "
                       "less",
                       1 / (1 - spec.loss)));
  }
  if (!(spec.queue_bytes >= kLeastQueueBytes)) {
    refuse(fmt::format("queue of link {}", spec.name), fmt::format("{} bytes", spec.queue_bytes),
           "it must have room for a packet of 1,500 bytes");
  }
}

bool is_earlier(const LinkChange& a, const LinkChange& b) { return a.at < b.at; }

}  // namespace

bool Platform::before(const Destination& destination, Rank host) { return destination.host < host; }

Platform::Platform(int hosts) : hosts_(hosts) {
  if (hosts < 1) {
    refuse("hosts", fmt::format("{}", hosts), "there must be at least one");
  }
  egress_.assign(static_cast<std::size_t>(hosts), kNone);
  ingress_.assign(static_cast<std::size_t>(hosts), kNone);
  routes_.resize(static_cast<std::size_t>(hosts));
}

LinkId Platform::add_link(LinkSpec spec) {
  if (spec.trace != nullptr) {
    validate(*spec.trace);
    const LinkTrace& trace = *spec.trace->trace;
    if (spec.trace->trace != valid_trace_) {
      validate(trace);
      valid_trace_ = spec.trace->trace;
    }
    const std::size_t step = StepCursor(trace.steps, spec.trace->start).step();
    spec.bytes_per_s = spec.trace->times * trace.bytes_per_s[step];
    spec.latency = trace.latency.empty() ? 0 : trace.latency[step];
  }
  require_spec(spec);
  links_.push_back(std::move(spec));
  return static_cast<LinkId>(links_.size() - 1);
}

LinkId Platform::set_egress(Rank host, LinkSpec spec) {
  require_host(host);
  return egress_[static_cast<std::size_t>(host)] = add_link(std::move(spec));
}

LinkId Platform::set_ingress(Rank host, LinkSpec spec) {
  require_host(host);
  return ingress_[static_cast<std::size_t>(host)] = add_link(std::move(spec));
}

void Platform::set_route(Rank from, Rank to, std::span<const LinkId> links) {
  require_host(from);
  require_host(to);
  require_links(links);
  auto& destinations = routes_[static_cast<std::size_t>(from)];
  const auto at = std::lower_bound(destinations.begin(), destinations.end(), to, before);
  const Destination made = {to, static_cast<std::uint32_t>(route_links_.size()),
                            static_cast<std::uint32_t>(links.size())};
  route_links_.insert(route_links_.end(), links.begin(), links.end());
  if (at != destinations.end() && at->host == to) {
    *at = made;
  } else {
    destinations.insert(at, made);
  }
}

void Platform::set_default_route(std::vector<LinkId> links) {
  require_links(links);
  default_ = std::move(links);
  has_default_ = true;
}

void Platform::add_change(const LinkChange& change) {
  require_untraced({&change.link, 1});
  const LinkSpec& link = links_[change.link];
  require_bandwidth(link.name, change.bytes_per_s);
  if (change.at < 0 || change.latency < link.jitter || change.latency > kMostLatency) {
    refuse(fmt::format("change of link {}", link.name),
           fmt::format("latency {} ns at {} ns", change.latency, change.at),
           "the time must be 0 or more, and the latency no less than the jitter and no more than "
           "11 days");
  }
  auto& changes = changes_[change.link];
  changes.insert(std::upper_bound(changes.begin(), changes.end(), change, is_earlier), change);
}

void Platform::cut(std::span<const LinkId> links, SimTime from, SimTime until) {
  require_untraced(links);
  if (from < 0 || until <= from) {
    refuse("cut", fmt::format("from {} ns until {} ns", from, until), "it must end after it began");
  }
  for (const LinkId link : links) {
    auto& changes = changes_[link];
    LinkChange state{.at = from,
                     .link = link,
                     .bytes_per_s = links_[link].bytes_per_s,
                     .latency = links_[link].latency};
    LinkChange healed = state;
    const auto begin = std::lower_bound(changes.begin(), changes.end(), state, is_earlier);
    const auto known = std::upper_bound(begin, changes.end(), state, is_earlier);
    if (known != changes.begin()) {
      state = *std::prev(known);
    }
    const auto end =
        std::lower_bound(begin, changes.end(), LinkChange{.at = until, .link = link}, is_earlier);
    if (end != changes.begin()) {
      healed = *std::prev(end);
    }
    state.at = from;
    state.bytes_per_s = 0;
    std::vector<LinkChange> cut = {state};
    if (until != kNever) {
      // A change that comes at the very moment of healing stands behind it, and is to hold.
      healed.at = until;
      cut.push_back(healed);
    }
    changes.insert(changes.erase(begin, end), cut.begin(), cut.end());
  }
}

std::vector<LinkChange> Platform::changes() const {
  std::vector<LinkChange> sorted;
  for (const auto& [link, changes] : changes_) {
    sorted.insert(sorted.end(), changes.begin(), changes.end());
  }
  std::stable_sort(sorted.begin(), sorted.end(), is_earlier);
  return sorted;
}

bool Platform::connected(Rank from, Rank to) const {
  return from == to || has_default_ || find(from, to) != nullptr;
}

Route Platform::route(Rank from, Rank to) const {
  require_host(from);
  require_host(to);
  Route route;
  if (from == to) {
    return route;
  }
  if (!connected(from, to)) {
    refuse("route", fmt::format("host {} to host {}", from, to),
           "the platform has no link between them");
  }
  const auto add = [&](LinkId id) {
    if (id == kNone) {
      return;
    }
    const LinkSpec& link = links_[id];
    if (changes_.contains(id) || link.bytes_per_s < kUnlimited || link.latency > 0 ||
        link.loss > 0 || link.trace != nullptr) {
      route.links.push_back(id);
    }
  };
  const Destination* own = find(from, to);
  add(egress_[static_cast<std::size_t>(from)]);
  const auto links = own != nullptr ? std::span(route_links_).subspan(own->begin, own->count)
                                    : std::span(default_);
  for (const LinkId id : links) {
    add(id);
  }
  add(ingress_[static_cast<std::size_t>(to)]);
  return route;
}

void Platform::require_host(Rank host) const {
  if (host < 0 || host >= hosts_) {
    refuse("host", fmt::format("{}", host), fmt::format("hosts are 0 … {}", hosts_ - 1));
  }
}

void Platform::require_links(std::span<const LinkId> links) const {
  for (const LinkId id : links) {
    if (id >= links_.size()) {
      refuse("link", fmt::format("{}", id), fmt::format("there are {}", links_.size()));
    }
  }
}

void Platform::require_untraced(std::span<const LinkId> links) const {
  require_links(links);
  for (const LinkId id : links) {
    if (links_[id].trace != nullptr) {
      refuse(fmt::format("change of link {}", links_[id].name), "a link with a trace",
             "it changes as its trace says, and in no other way");
    }
  }
}

const Platform::Destination* Platform::find(Rank from, Rank to) const {
  const auto& destinations = routes_[static_cast<std::size_t>(from)];
  const auto at = std::lower_bound(destinations.begin(), destinations.end(), to, before);
  return at != destinations.end() && at->host == to ? &*at : nullptr;
}

Platform make_star(int hosts, double bytes_per_s, SimTime latency) {
  Platform platform(hosts);
  platform.set_default_route({});
  for (Rank host = 0; host < hosts; ++host) {
    platform.set_egress(
        host,
        {.name = fmt::format("{}.out", host), .bytes_per_s = bytes_per_s, .latency = latency / 2});
    platform.set_ingress(host, {.name = fmt::format("{}.in", host),
                                .bytes_per_s = bytes_per_s,
                                .latency = latency - latency / 2});
  }
  return platform;
}

}  // namespace sotto
