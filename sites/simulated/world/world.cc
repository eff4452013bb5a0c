#include "world.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/compress/registry.h>
#include <sotto/topology/registry.h>

namespace sotto::sites {

namespace {

constexpr double kLearningRate = 0.05;

/// The digest of settings that all sites share; what they are does not matter here.
constexpr Agreement kAgreement = {std::byte{1}};

bool holds(const std::vector<Rank>& ranks, Rank rank) {
  return std::binary_search(ranks.begin(), ranks.end(), rank);
}

}  // namespace

World::World(const FaultPlan& plan, const SimulatedSitesOptions& options)
    : plan_(plan),
      options_(options),
      faults_(plan, options.seed, *this),
      topology_(make_topology(plan.graph, plan.sites)),
      random_({.seed = options.seed, .rank = 1, .purpose = Purpose::faults}),
      wires_(
          plan, options.seed, queue_,
          [this](ProcessId id, ChannelNews news) { tell(id, std::move(news)); },
          [this](Rank a, Rank b) {
            liveness_.disturb(a, queue_.now());
            liveness_.disturb(b, queue_.now());
          }),
      forger_(make_compressor(plan.compressor)),
      liar_random_({.seed = options.seed, .rank = 3, .purpose = Purpose::faults}),
      audit_(plan, options.dimension),
      naming_(plan),
      liveness_(plan, recovery_bound(plan, 256 + sizeof(float) * options.dimension)),
      polls_while_busy_(random_.below(2) == 0),
      whole_(plan.lies.empty()),
      slots_(static_cast<std::size_t>(plan.sites)) {
  report_.seed = options.seed;
  for (Rank site = 0; site < plan.sites; ++site) {
    Slot& slot = slots_[static_cast<std::size_t>(site)];
    slot.disk = std::make_shared<Disk>();
    slot.disk->bare.peers.resize(slots_.size());
    slot.listed = neighbours(*topology_, site);
  }
}

// A process, from its beginning to its end.

SiteSetup World::setup_of(Process& process) {
  SiteSetup setup;
  setup.name = fmt::format("site-{}", process.site);
  setup.agreement = kAgreement;
  setup.peers = peers_of(process.site, process.listed);
  setup.parameters = process.parameters;
  setup.step_rule = make_step_rule({.learning_rate = kLearningRate});
  setup.compressor = make_compressor(plan_.compressor);
  setup.exchange = plan_.exchange;
  setup.rule = plan_.rule;
  setup.communication_interval = plan_.interval;
  setup.outer_step_rule = plan_.outer;
  setup.step_weighting = plan_.weighting;
  setup.slack = plan_.slack;
  setup.window = plan_.window;
  setup.sum = plan_.sum;
  for (std::uint8_t& byte : setup.secret) {
    byte = static_cast<std::uint8_t>(random_.next_u64());
  }
  setup.seed = options_.seed;
  setup.rounds = plan_.rounds.value_or(0);
  setup.incarnation = random_.next_u64() | 1U;
  setup.life = process.life;
  return setup;
}

std::vector<SitePeer> World::peers_of(Rank site, const std::vector<Rank>& listed) const {
  const std::vector<Rank> heard = topology_->in_peers(site);
  const std::vector<Rank> told = topology_->out_peers(site);
  std::vector<SitePeer> peers;
  peers.reserve(listed.size());
  for (const Rank rank : listed) {
    peers.push_back({.name = fmt::format("site-{}", rank),
                     .hears = holds(heard, rank),
                     .tells = holds(told, rank)});
  }
  return peers;
}

void World::begin_process(Rank site) {
  Slot& slot = slots_[static_cast<std::size_t>(site)];
  const auto id = static_cast<ProcessId>(processes_.size());
  Process& process = processes_.emplace_back();
  slot.process = id;
  process.id = id;
  process.site = site;
  process.disk = slot.disk;
  process.listed = slot.listed;
  process.resumes.assign(slots_.size(), 1);
  process.arrivals.resize(slots_.size());
  process.parameters.assign(options_.dimension, 0.0F);
  process.moved = queue_.now();
  process.patience = Patience(to_seconds(plan_.patience));
  if (process.disk->damaged) {
    try_damaged(process);
  }
  // As a site's folder counts: one more than before, and at least the clock's seconds.
  const auto clock = static_cast<std::uint32_t>(queue_.now() / 1'000'000'000) + 1;
  process.life = process.disk->life = std::max(process.disk->life + 1, clock);
  note(SimulatedSiteEvent::Kind::began, site, -1, process.life);
  liveness_.disturb(site, queue_.now());
  audit_.begin_event(queue_.now(), site, "the start of its process");
  process.node = std::make_unique<Site>(setup_of(process));
  process.access = options_.access(process.site, *process.node);
  load(process);
  process.node->plan_steps(steps_of(site));
  process.channels.assign(process.listed.size(), kNoConnection);
  audit_.began(process);
  if (process.disk->commits.empty()) {
    write(process);
  } else {
    open_channels(process);
  }
}

void World::open_channels(Process& process) {
  process.reachable = true;
  process.moved = process.waits_since = queue_.now();
  wires_.begin(process.id, process.site, process.listed);
  await_model(process);
}

void World::await_model(Process& process) {
  process.offered = false;
  enter(process, ProcessPhase::waiting, plan_.found_after);
  drain(process);
  if (process.running() && process.phase == ProcessPhase::waiting) {
    advance(process);
  }
}

void World::load(Process& process) {
  if (process.disk->commits.empty()) {
    return;
  }
  const Commit& commit = process.disk->commits.back();
  ByteReader in(commit.bytes);
  if (const Status status = process.node->load(in); !status.ok()) {
    audit_.fail(fmt::format("refuses the state that it wrote: {}", status.message()));
  }
}

/// The checksum of the file does not match: the state is gone. What would happen if it did must
/// not be the end of the process either.
void World::try_damaged(Process& process) {
  Disk& disk = *process.disk;
  std::vector<std::byte> bytes = disk.commits.back().bytes;
  bytes[random_.below(bytes.size())] ^= std::byte{1} << random_.below(8);
  if (random_.below(2) == 0) {
    bytes.resize(random_.below(bytes.size()));
  }
  process.life = 1;
  Site victim(setup_of(process));
  ByteReader in(bytes);
  (void)victim.load(in);
  std::fill(process.parameters.begin(), process.parameters.end(), 0.0F);
  disk.bare = disk.account();
  disk.bare.give_up();
  disk.commits.clear();
  disk.damaged = false;
  disk.life = 0;
}

void World::end_process(Process& process, bool in_good_order) {
  note(SimulatedSiteEvent::Kind::ended, process.site, -1, in_good_order ? 1 : 0);
  process.alive = false;
  process.inbox.clear();
  process.access.reset();
  process.node.reset();
  liveness_.disturb(process.site, queue_.now());
  if (process.reachable) {
    wires_.end(process.id, in_good_order);
  }
}

/// An honest site ends of itself only where an older state of it was restored, or another process
/// of it ran.
void World::note_end(const Process& process) {
  const std::string why = process.node->alive().message();
  report_.ended.push_back(
      fmt::format("site {} at {:.3f} s: {}", process.site, to_seconds(queue_.now()), why));
  if (!slots_[static_cast<std::size_t>(process.site)].may_end) {
    audit_.begin_event(queue_.now(), process.site, "its end");
    audit_.fail(fmt::format("ends of itself: {}", why));
  }
}

bool World::still_alive(Process& process) {
  if (process.node->alive().ok()) {
    return true;
  }
  const Rank site = process.site;
  const bool replaced = process.fenced;
  if (!replaced && honest(site)) {
    note_end(process);
  }
  end_process(process, false);
  if (!replaced) {
    // The operator of the site starts it again.
    queue_.push({.time = plus(queue_.now(), plan_.reconnect),
                 .subject = static_cast<std::uint32_t>(site),
                 .kind = begin_due});
  }
  return false;
}

// Sites that lie.

const PlannedLie* World::lie_now(Rank site) const {
  const PlannedLie* lie = plan_.lie_of(site);
  const bool now = lie != nullptr && queue_.now() >= lie->at && queue_.now() < lie->end();
  return now ? lie : nullptr;
}

void World::turn_lies() {
  for (const PlannedLie& lie : plan_.lies) {
    const bool turns = queue_.now() == lie.end() || (lie.restarts && queue_.now() == lie.at);
    for (const Rank site : turns ? lie.sites : std::vector<Rank>()) {
      if (Process* process = present(site); process != nullptr && process->alive) {
        end_process(*process, false);
        queue_.push({.time = plus(queue_.now(), plan_.reconnect),
                     .subject = static_cast<std::uint32_t>(site),
                     .kind = begin_due});
      }
    }
  }
}

Round World::steps_of(Rank site) const {
  return plan_.uneven ? 1 + static_cast<Round>(site) % plan_.interval : plan_.interval;
}

// The run.

Process* World::present(Rank site) {
  const auto& id = slots_[static_cast<std::size_t>(site)].process;
  return id ? &processes_[*id] : nullptr;
}

void World::note(SimulatedSiteEvent::Kind kind, Rank site, Rank peer, std::uint64_t value) {
  const SimulatedSiteEvent event = {queue_.now(), kind, site, peer, value};
  hash_.add(event);
  if (options_.trace) {
    options_.trace(event);
  }
}

void World::handle(const Event& event) {
  if (event.kind >= Wires::kFirstEvent) {
    wires_.handle(event);
    return;
  }
  switch (static_cast<Kind>(event.kind)) {
    case phase_over:
      if (Process& process = processes_[event.subject];
          process.running() && process.version == event.version) {
        on_phase_over(process);
      }
      break;
    case fault_due:
      faults_.begin(event.subject);
      break;
    case fault_over:
      faults_.end(event.subject);
      break;
    case begin_due: {
      const auto site = static_cast<Rank>(event.subject);
      if (const Process* process = present(site); process == nullptr || !process->alive) {
        begin_process(site);
      } else if (process->leaving) {  // it is on its way out still
        queue_.push({.time = plus(queue_.now(), plan_.reconnect),
                     .subject = event.subject,
                     .kind = begin_due});
      }
      break;
    }
    case lie_turns:
      turn_lies();
      break;
    case tick:
      look();
      queue_.push({.time = plus(queue_.now(), plan_.silence / 20), .kind = tick});
      break;
  }
}

/// The onlooker's view of all sites at once.
void World::look() {
  std::vector<SiteView> sites;
  sites.reserve(slots_.size());
  for (Rank site = 0; site < plan_.sites; ++site) {
    const Process* process = present(site);
    sites.push_back(process != nullptr && process->alive ? process->view()
                                                         : SiteView{.site = site});
  }
  std::vector<char> contested(slots_.size());
  for (const Process& process : processes_) {
    if (process.running() && process.fenced) {
      contested[static_cast<std::size_t>(process.site)] = 1;
    }
  }
  auto trouble = liveness_.look(queue_.now(), sites, std::move(contested), wires_);
  for (Process& process : processes_) {
    if (process.alive && process.fenced && !trouble) {
      trouble = liveness_.look_at_replaced(queue_.now(), process.view(), process.alone_until, sites,
                                           wires_);
    }
  }
  if (trouble) {
    audit_.begin_event(queue_.now(), trouble->first, "waiting");
    audit_.fail(std::move(trouble->second));
  }
}

bool World::all_done() const {
  if (!plan_.rounds || queue_.now() <= last_over_) {
    return false;
  }
  return std::all_of(slots_.begin(), slots_.end(), [&](const Slot& slot) {
    const Process* process = slot.process ? &processes_[*slot.process] : nullptr;
    return process == nullptr || !process->alive || !honest(process->site) ||
           process->state.round >= *plan_.rounds;
  });
}

SimulatedSitesReport World::run() {
  for (Rank site = 0; site < plan_.sites; ++site) {
    if (!faults_.joins_later(site)) {
      queue_.push({.subject = static_cast<std::uint32_t>(site), .kind = begin_due});
    }
  }
  const std::span<const PlannedFault> faults = faults_.faults();
  for (std::size_t i = 0; i < faults.size(); ++i) {
    queue_.push(
        {.time = faults[i].at, .subject = static_cast<std::uint32_t>(i), .kind = fault_due});
  }
  for (const PlannedLie& lie : plan_.lies) {
    for (const SimTime turn : {lie.restarts ? lie.at : kNever, lie.end()}) {
      if (turn > 0 && turn < plan_.duration) {
        queue_.push({.time = turn, .kind = lie_turns});
      }
    }
  }
  last_over_ = faults_.last_end();
  queue_.push({.time = 0, .kind = tick});
  std::vector<const MassAccount*> accounts(slots_.size());
  while (!queue_.empty() && queue_.next_time() <= plan_.duration && !audit_.violation() &&
         !all_done()) {
    const Event event = queue_.pop();
    ++report_.events;
    handle(event);
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const Process* process = present(static_cast<Rank>(i));
      accounts[i] =
          process != nullptr && process->alive ? &process->account : &slots_[i].disk->account();
    }
    audit_.begin_event(queue_.now(), -1, "looking at all sites");
    audit_.check_total(accounts, whole_);
    if (options_.stop && report_.events % 1024 == 0 && options_.stop()) {
      break;
    }
  }
  return report();
}

SimulatedSitesReport World::report() {
  if (plan_.rounds && !all_done() && !audit_.violation() && queue_.next_time() > plan_.duration) {
    audit_.begin_event(plan_.duration, -1, "the end of the run");
    audit_.fail(fmt::format("some have not done {} rounds", *plan_.rounds));
  }
  audit_.report(report_);
  report_.injected = faults_.injected();
  report_.worst_recovery = liveness_.worst_recovery();
  report_.end = queue_.now();
  std::optional<Round> least;
  for (Rank site = 0; site < plan_.sites; ++site) {
    report_.rounds.push_back(0);
    if (const Process* process = present(site);
        process != nullptr && process->alive && honest(site)) {
      report_.rounds.back() = process->state.round;
      least = std::min(least.value_or(process->state.round), process->state.round);
      report_.rounds_most = std::max(report_.rounds_most, process->state.round);
    }
  }
  report_.rounds_least = least.value_or(0);
  naming_.report(report_);
  report_.error = error_of_models();
  for (Rank site = 0; site < plan_.sites; ++site) {
    const Process* process = present(site);
    if (process == nullptr || !process->alive || !honest(site)) {
      continue;
    }
    for (const PeerState& peer : process->node->peers()) {
      report_.cuts += peer.cut;
      const bool named = peer.habit != PeerHabit::none || !peer.waited_for || !peer.answers ||
                         peer.barred || peer.blamed > 0;
      report_.habits += named ? 1 : 0;
    }
  }
  report_.trace_sha256 = hash_.finish_hex();
  return report_;
}

/// The rms distance of the honest sites' models from the optimum of their own losses.
double World::error_of_models() {
  std::vector<double> optimum(options_.dimension);
  std::vector<const Process*> there;
  for (Rank site = 0; site < plan_.sites; ++site) {
    if (const Process* process = present(site);
        process != nullptr && process->alive && honest(site)) {
      there.push_back(process);
      const std::vector<float> target = target_of(site);
      for (std::size_t i = 0; i < optimum.size(); ++i) {
        optimum[i] += static_cast<double>(target[i]);
      }
    }
  }
  double sum = 0;
  for (const Process* process : there) {
    for (std::size_t i = 0; i < optimum.size(); ++i) {
      const double difference = static_cast<double>(process->node->parameters()[i]) -
                                optimum[i] / static_cast<double>(there.size());
      sum += difference * difference;
    }
  }
  return there.empty() ? 0 : std::sqrt(sum / static_cast<double>(there.size()));
}

}  // namespace sotto::sites

namespace sotto {

SimulatedSitesReport simulate_sites(const FaultPlan& plan, const SimulatedSitesOptions& options) {
  check_plan(plan);
  const FaultPlan drawn = with_drawn_lies(plan, options.seed);
  return sites::World(drawn, options).run();
}

void check_sites(const FaultPlan& plan) {
  check_plan(plan);
  FaultPlan moment = plan;
  moment.duration = 1;
  moment.faults.clear();
  moment.random.reset();
  moment.random_lies = {};
  moment.rounds.reset();
  (void)simulate_sites(moment, {});
}

}  // namespace sotto
