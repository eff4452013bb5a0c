#include "wires.h"

#include <algorithm>
#include <utility>

#include <sotto/base/check.h>

namespace sotto::sites {

Wires::Wires(const FaultPlan& plan, std::uint64_t seed, EventQueue& queue, Tell tell,
             Snapped snapped)
    : sites_(static_cast<std::size_t>(plan.sites)),
      link_(plan.link),
      silence_(plan.silence),
      reconnect_(plan.reconnect),
      queue_(queue),
      tell_(std::move(tell)),
      snapped_(std::move(snapped)),
      random_({.seed = seed, .purpose = Purpose::jitter}),
      newest_(sites_),
      blocked_(sites_ * sites_, 0),
      changed_(sites_ * sites_) {}

// Processes.

void Wires::begin(ProcessId process, Rank site, const std::vector<Rank>& listed) {
  processes_.resize(std::max<std::size_t>(processes_.size(), process + 1));
  processes_[process] = {.site = site,
                         .alive = true,
                         .listed = std::vector<char>(sites_, 0),
                         .connection = std::vector<WireId>(sites_, kNoWire),
                         .dialing = std::vector<char>(sites_, 0)};
  newest_[static_cast<std::size_t>(site)] = process;
  relist(process, listed);
}

void Wires::relist(ProcessId process, const std::vector<Rank>& listed) {
  std::vector<char> now(sites_, 0);
  for (const Rank peer : listed) {
    now[static_cast<std::size_t>(peer)] = 1;
  }
  const std::vector<char> before = std::exchange(processes_[process].listed, now);
  for (std::size_t peer = 0; peer < sites_; ++peer) {
    const WireId id = processes_[process].connection[peer];
    if (now[peer] == 0 && id != kNoWire) {
      close(process, id, 0);
    }
    if (now[peer] != 0 && before[peer] == 0) {
      redial(process, static_cast<Rank>(peer), 0);
    }
  }
}

void Wires::end(ProcessId process, bool in_good_order) {
  processes_[process].alive = false;
  for (const WireId id : std::vector<WireId>(processes_[process].connection)) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) {
      continue;
    }
    const std::size_t own = found->second.end_of(process);
    // The kernel may still deliver what it holds, or throw it away.
    if (!in_good_order && random_.below(2) == 0) {
      std::deque<Coming>& coming = found->second.ends[1 - own].coming;
      coming.resize(random_.below(coming.size() + 1));
    }
    close_end(id, own, 0, false);
  }
}

void Wires::stop(ProcessId process) {
  processes_[process].stopped = true;
  for (const WireId id : processes_[process].connection) {
    if (const auto found = connections_.find(id); found != connections_.end()) {
      update_quiet(id, 1 - found->second.end_of(process));
    }
  }
}

void Wires::resume(ProcessId process) {
  processes_[process].stopped = false;
  for (const WireId id : processes_[process].connection) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) {
      continue;
    }
    const std::size_t own = found->second.end_of(process);
    update_quiet(id, 1 - own);
    // A site's own time-outs wait for it to look at its clock.
    const End& end = found->second.ends[own];
    if (end.quiet_since != kNever) {
      queue_.push(
          make_silence(std::max(queue_.now(), plus(end.quiet_since, silence_)),
                       {.end = {.connection = id, .which = own}, .version = end.quiet_version}));
    }
  }
}

void Wires::send(ProcessId process, WireId connection, std::span<const std::byte> message) {
  const auto found = connections_.find(connection);
  if (found == connections_.end()) {
    return;
  }
  Connection& joined = found->second;
  const std::size_t own = joined.end_of(process);
  End& to = joined.ends[1 - own];
  if (!joined.ends[own].open || !to.open || joined.snapped) {
    return;
  }
  const LinkSpec spec = link(site_of(joined.ends[own]), site_of(to));
  to.line_free = plus(std::max(queue_.now(), to.line_free), transmission(message.size(), spec));
  const auto jitter = static_cast<SimTime>(
      random_.uniform() * static_cast<double>(std::min(spec.jitter, spec.latency)));
  SimTime due = plus(to.line_free, plus(spec.latency, jitter));
  if (!to.coming.empty()) {
    due = std::max(due, to.coming.back().due);
  }
  if (joined.bytes_left && *joined.bytes_left < message.size()) {
    joined.snapped = true;
    queue_.push(make_snap(due, connection));
    return;
  }
  if (joined.bytes_left) {
    *joined.bytes_left -= message.size();
  }
  to.coming.push_back({due, {message.begin(), message.end()}});
  queue_.push(
      make_event(WireEvent::arrive, due, WireEnd{.connection = connection, .which = 1 - own}));
}

void Wires::close(ProcessId process, WireId connection, SimTime pause) {
  const auto found = connections_.find(connection);
  if (found != connections_.end()) {
    close_end(connection, found->second.end_of(process), pause, true);
  }
}

// Links.

template <typename Act>
void Wires::for_way(Rank from, Rank to, const Act& act) {
  std::vector<std::pair<WireId, std::size_t>> found;
  for (const auto& [id, connection] : connections_) {
    for (const std::size_t end : {0U, 1U}) {
      if (site_of(connection.ends[end]) == to && site_of(connection.ends[1 - end]) == from) {
        found.emplace_back(id, end);
      }
    }
  }
  for (const auto& [id, end] : found) {
    act(id, end);
  }
}

void Wires::block(Rank from, Rank to) {
  if (++blocked_[way(from, to)] == 1) {
    for_way(from, to, [&](WireId id, std::size_t end) { update_quiet(id, end); });
  }
}

void Wires::unblock(Rank from, Rank to) {
  check(blocked_[way(from, to)] > 0, "a way that is blocked is opened");
  if (--blocked_[way(from, to)] > 0) {
    return;
  }
  for_way(from, to, [&](WireId id, std::size_t end) {
    update_quiet(id, end);
    retime(id, end);
    if (!connections_.at(id).ends[1 - end].open) {
      queue_.push(make_event(WireEvent::fin, plus(queue_.now(), latency(from, to)),
                             WireEnd{.connection = id, .which = end}));
    }
  });
}

void Wires::set_link(Rank from, Rank to, std::optional<LinkSpec> link) {
  changed_[way(from, to)] = std::move(link);
  for_way(from, to, [&](WireId id, std::size_t end) { retime(id, end); });
}

bool Wires::reset(Rank a, Rank b, std::uint64_t bytes) {
  const std::optional<ProcessId> newest = newest_[static_cast<std::size_t>(a)];
  if (!newest) {
    return false;
  }
  const WireId id = wire(*newest, b);
  const auto found = connections_.find(id);
  if (found == connections_.end()) {
    return false;
  }
  found->second.bytes_left = bytes;
  if (bytes == 0) {
    break_now(id);
  }
  return true;
}

bool Wires::open_both_ways(Rank a, Rank b) const {
  return blocked_[way(a, b)] == 0 && blocked_[way(b, a)] == 0;
}

bool Wires::slowed(Rank a, Rank b) const {
  return changed_[way(a, b)].has_value() || changed_[way(b, a)].has_value();
}

SimTime Wires::transmission(std::size_t bytes, const LinkSpec& link) const {
  return from_seconds(static_cast<double>(bytes) / link.bytes_per_s);
}

bool Wires::passes(const Connection& connection, std::size_t to) const {
  return blocked_[way(site_of(connection.ends[1 - to]), site_of(connection.ends[to]))] == 0;
}

/// What is under way to this end starts over from now on.
void Wires::retime(WireId id, std::size_t to) {
  Connection& connection = connections_.at(id);
  End& end = connection.ends[to];
  const LinkSpec spec = link(site_of(connection.ends[1 - to]), site_of(end));
  end.line_free = queue_.now();
  for (Coming& coming : end.coming) {
    end.line_free = plus(end.line_free, transmission(coming.message.size(), spec));
    coming.due = plus(end.line_free, spec.latency);
    queue_.push(make_event(WireEvent::arrive, coming.due, WireEnd{.connection = id, .which = to}));
  }
}

// Connections.

void Wires::redial(ProcessId process, Rank peer, SimTime pause) {
  Caller& dialer = processes_[process];
  const auto at = static_cast<std::size_t>(peer);
  if (!dialer.alive || dialer.listed[at] == 0 || dialer.dialing[at] != 0) {
    return;
  }
  dialer.dialing[at] = 1;
  const double share = 0.5 + random_.uniform();
  const SimTime wait = from_nanoseconds(share * static_cast<double>(reconnect_));
  queue_.push(make_event(WireEvent::dial, plus(queue_.now(), plus(pause, wait)),
                         Dialing{.process = process, .peer = peer}));
}

bool Wires::may_connect(ProcessId process, Rank peer) const {
  const Caller& dialer = processes_[process];
  const auto at = static_cast<std::size_t>(peer);
  if (!dialer.alive || dialer.stopped || dialer.listed[at] == 0 || !newest_[at] ||
      dialer.connection[at] != kNoWire) {
    return false;
  }
  const Caller& other = processes_[*newest_[at]];
  return other.alive && !other.stopped &&
         other.listed[static_cast<std::size_t>(dialer.site)] != 0 &&
         open_both_ways(dialer.site, peer);
}

void Wires::on_dial(const Dialing& dialing) {
  const auto [process, peer] = dialing;
  processes_[process].dialing[static_cast<std::size_t>(peer)] = 0;
  if (wire(process, peer) != kNoWire) {
    return;
  }
  if (!may_connect(process, peer)) {
    redial(process, peer, 0);
    return;
  }
  processes_[process].dialing[static_cast<std::size_t>(peer)] = 1;
  const Rank site = processes_[process].site;
  queue_.push(make_event(WireEvent::connected,
                         plus(queue_.now(), plus(latency(site, peer), latency(peer, site))),
                         Dialing{.process = process, .peer = peer}));
}

void Wires::on_connected(const Dialing& dialing) {
  const auto [process, peer] = dialing;
  processes_[process].dialing[static_cast<std::size_t>(peer)] = 0;
  const Rank site = processes_[process].site;
  if (may_connect(process, peer)) {
    // The newest connection of a key counts. A site that hears of the other's end goes on, and may
    // die of a fault that is due then.
    const ProcessId other = *newest_[static_cast<std::size_t>(peer)];
    if (const WireId old = wire(other, site); old != kNoWire) {
      close(other, old, 0);
    }
  }
  if (!may_connect(process, peer)) {
    if (wire(process, peer) == kNoWire) {
      redial(process, peer, 0);
    }
    return;
  }
  const ProcessId other = *newest_[static_cast<std::size_t>(peer)];
  const WireId id = ++last_;
  Connection& joined = connections_[id];
  joined.ends[0].process = process;
  joined.ends[1].process = other;
  wire(process, peer) = id;
  wire(other, site) = id;
  queue_.push(make_event(WireEvent::tell_up, queue_.now(), WireEnd{.connection = id, .which = 0}));
  queue_.push(make_event(WireEvent::tell_up, plus(queue_.now(), latency(site, peer)),
                         WireEnd{.connection = id, .which = 1}));
}

void Wires::on_arrive(const WireEnd& at) {
  const auto [id, to] = at;
  // A site that is told may close the connection.
  for (auto found = connections_.find(id); found != connections_.end();
       found = connections_.find(id)) {
    End& end = found->second.ends[to];
    if (!end.open || !end.told || !passes(found->second, to) || end.coming.empty() ||
        end.coming.front().due > queue_.now()) {
      return;
    }
    ChannelNews news = {.kind = ChannelNews::Kind::message,
                        .peer = site_of(found->second.ends[1 - to]),
                        .connection = id,
                        .from = found->second.ends[1 - to].process,
                        .message = std::move(end.coming.front().message)};
    end.coming.pop_front();
    tell_(end.process, std::move(news));
  }
}

void Wires::on_fin(const WireEnd& at) {
  const auto [id, to] = at;
  const auto found = connections_.find(id);
  if (found == connections_.end() || !found->second.ends[to].open || !passes(found->second, to)) {
    return;
  }
  close_end(id, to, 0, true);
}

void Wires::close_end(WireId id, std::size_t which, SimTime pause, bool tell) {
  Connection& connection = connections_.at(id);
  End& end = connection.ends[which];
  End& other = connection.ends[1 - which];
  if (!end.open) {
    return;
  }
  end.open = false;
  end.coming.clear();
  const ProcessId process = end.process;
  const Rank peer = site_of(other);
  WireId& current = wire(process, peer);
  current = current == id ? kNoWire : current;
  const bool was_told = end.told;
  if (other.open) {
    SimTime hears = plus(queue_.now(), latency(site_of(end), peer));
    if (!other.coming.empty()) {
      hears = std::max(hears, other.coming.back().due);
    }
    queue_.push(make_event(WireEvent::fin, hears, WireEnd{.connection = id, .which = 1 - which}));
    update_quiet(id, 1 - which);
  } else {
    connections_.erase(id);
  }
  if (tell && was_told && processes_[process].alive) {
    tell_(process, {.kind = ChannelNews::Kind::down, .peer = peer, .connection = id});
  }
  redial(process, peer, pause);
}

void Wires::update_quiet(WireId id, std::size_t which) {
  Connection& connection = connections_.at(id);
  End& end = connection.ends[which];
  const End& other = connection.ends[1 - which];
  const bool quiet = !other.open || processes_[other.process].stopped || !passes(connection, which);
  if (quiet == (end.quiet_since != kNever)) {
    return;
  }
  ++end.quiet_version;
  end.quiet_since = quiet ? queue_.now() : kNever;
  if (quiet) {
    queue_.push(
        make_silence(plus(queue_.now(), silence_),
                     {.end = {.connection = id, .which = which}, .version = end.quiet_version}));
  }
}

void Wires::break_now(WireId id) {
  if (!connections_.contains(id)) {
    return;
  }
  Connection& connection = connections_.at(id);
  connection.ends[0].coming.clear();
  connection.ends[1].coming.clear();
  close_end(id, 0, 0, true);
  if (connections_.contains(id)) {
    close_end(id, 1, 0, true);
  }
}

void Wires::on_up(const WireEnd& at) {
  const auto [id, which] = at;
  const auto found = connections_.find(id);
  if (found == connections_.end() || !found->second.ends[which].open) {
    return;
  }
  End& end = found->second.ends[which];
  const End& other = found->second.ends[1 - which];
  end.told = true;
  tell_(end.process, {.kind = ChannelNews::Kind::up,
                      .peer = site_of(other),
                      .connection = id,
                      .from = other.process});
  on_arrive(at);
}

void Wires::on_silence(const WireSilence& silence) {
  const auto [id, which] = silence.end;
  const auto found = connections_.find(id);
  if (found != connections_.end() && found->second.ends[which].open &&
      found->second.ends[which].quiet_version == silence.version &&
      !processes_[found->second.ends[which].process].stopped) {
    close_end(id, which, 0, true);
  }
}

void Wires::on_snap(WireId id) {
  if (const auto found = connections_.find(id); found != connections_.end()) {
    snapped_(site_of(found->second.ends[0]), site_of(found->second.ends[1]));
    break_now(id);
  }
}

void Wires::handle(const Event& event) {
  switch (wire_event(event)) {
    case WireEvent::dial:
      return on_dial(dialing_of(event));
    case WireEvent::connected:
      return on_connected(dialing_of(event));
    case WireEvent::tell_up:
      return on_up(end_of(event));
    case WireEvent::arrive:
      return on_arrive(end_of(event));
    case WireEvent::fin:
      return on_fin(end_of(event));
    case WireEvent::silence:
      return on_silence(silence_of(event));
    case WireEvent::snap:
      return on_snap(snapping_of(event));
  }
}

}  // namespace sotto::sites
