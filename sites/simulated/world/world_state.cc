#include "world_state.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <sotto/topology/registry.h>

namespace sotto::sites {
namespace {

bool holds(const std::vector<Rank>& ranks, Rank rank) {
  return std::binary_search(ranks.begin(), ranks.end(), rank);
}

}  // namespace

WorldState::WorldState(const FaultPlan& of_plan, const SimulatedSitesOptions& with,
                       Wires::Tell tell)
    : plan(of_plan),
      options(with),
      topology(make_topology(plan.graph, plan.sites)),
      random({.seed = options.seed, .rank = 1, .purpose = Purpose::faults}),
      wires(plan, options.seed, queue, std::move(tell),
            [this](Rank a, Rank b) {
              liveness.disturb(a, now());
              liveness.disturb(b, now());
            }),
      audit(plan, options.dimension),
      naming(plan),
      liveness(plan, recovery_bound(plan, 256 + sizeof(float) * options.dimension)),
      whole(plan.lies.empty()),
      slots(static_cast<std::size_t>(plan.sites)) {
  report.seed = options.seed;
  for (Rank site = 0; site < plan.sites; ++site) {
    slot(site).disk = std::make_shared<Disk>();
    slot(site).disk->bare.peers.resize(slots.size());
    slot(site).listed = neighbours(*topology, site);
  }
}

void WorldState::push(WorldEvent kind, SimTime time, std::uint32_t subject, std::uint32_t version) {
  queue.push({.time = time,
              .subject = subject,
              .version = version,
              .kind = static_cast<std::uint32_t>(kind)});
}

const Process* WorldState::living(Rank site) const {
  const auto& id = slot(site).process;
  return id && processes[*id].alive ? &processes[*id] : nullptr;
}

Process* WorldState::living(Rank site) {
  const auto& id = slot(site).process;
  return id && processes[*id].alive ? &processes[*id] : nullptr;
}

std::vector<const Process*> WorldState::living_honest() const {
  std::vector<const Process*> honest_ones;
  for (Rank site = 0; site < plan.sites; ++site) {
    if (const Process* process = living(site); process != nullptr && honest(site)) {
      honest_ones.push_back(process);
    }
  }
  return honest_ones;
}

std::vector<SitePeer> WorldState::peers_of(Rank site, const std::vector<Rank>& listed) const {
  const std::vector<Rank> heard = topology->in_peers(site);
  const std::vector<Rank> told = topology->out_peers(site);
  std::vector<SitePeer> peers;
  peers.reserve(listed.size());
  for (const Rank rank : listed) {
    peers.push_back({.name = fmt::format("site-{}", rank),
                     .hears = holds(heard, rank),
                     .tells = holds(told, rank)});
  }
  return peers;
}

Round WorldState::steps_of(Rank site) const {
  return plan.uneven ? 1 + static_cast<Round>(site) % plan.interval : plan.interval;
}

std::vector<float> WorldState::target_of(Rank site) const {
  RandomStream stream({.seed = options.seed, .rank = site, .purpose = Purpose::generate});
  std::vector<float> target(options.dimension);
  for (float& value : target) {
    value = static_cast<float>(2 * stream.uniform() - 1);
  }
  return target;
}

void WorldState::observe(Process& process) {
  const Incarnation before = process.seen.state.incarnation;
  audit.heard(process);
  note_renewal(process, before);
}

void WorldState::note_renewal(const Process& process, Incarnation before) {
  if (process.seen.state.incarnation != before) {
    whole = false;
    note(SimulatedSiteEvent::Kind::renewed, process.site, -1, process.seen.state.incarnation);
  }
}

void WorldState::note(SimulatedSiteEvent::Kind kind, Rank site, Rank peer, std::uint64_t value) {
  const SimulatedSiteEvent event = {now(), kind, site, peer, value};
  hash.add(event);
  if (options.trace) {
    options.trace(event);
  }
}

void WorldState::end_process(Process& process, bool in_good_order) {
  note(SimulatedSiteEvent::Kind::ended, process.site, -1, in_good_order ? 1 : 0);
  process.alive = false;
  process.inbox.clear();
  process.access.reset();
  process.node.reset();
  liveness.disturb(process.site, now());
  if (process.reachable) {
    wires.end(process.id, in_good_order);
  }
}

void WorldState::end_and_begin_again(Process& process) {
  end_process(process, false);
  push(WorldEvent::begin_due, plus(now(), plan.reconnect),
       static_cast<std::uint32_t>(process.site));
}

}  // namespace sotto::sites
