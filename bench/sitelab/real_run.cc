#include "real_run.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/unix_time.h>
#include <sotto/sites/process/site_event.h>
#include <sotto/topology/registry.h>

#include "bench/support/loopback.h"

namespace sotto::sitelab {
namespace {

using std::chrono::nanoseconds;

constexpr int kMostProcesses = 32;
constexpr int kStep = 20;  // ms between looks
constexpr SimTime kLookEvery = 250'000'000;
constexpr SimTime kSampleEvery = 1'000'000'000;
/// What real processes get on top of the simulator's bound: to start, to be asked, and where others
/// use the machine.
constexpr SimTime kSlack = 10'000'000'000;
/// This process got no time for so long: nor did, perhaps, the sites.
constexpr SimTime kPause = 2'000'000'000;
/// The longest message of the task that sites train.
constexpr std::size_t kMessageBytes = 4 * 7850 + 256;

}  // namespace

void check_real(const FaultPlan& plan) {
  check_sites(plan);
  if (!plan.lies.empty() && plan.exchange == sites::MixingKind::secure_mean) {
    refuse("liar", plan.title, "real sites that sum in secret do not lie");
  }
  const bool turns = std::ranges::any_of(plan.lies, [](const PlannedLie& lie) {
    return lie.at > 0 || lie.lasting != kNever || lie.restarts;
  });
  if (turns || plan.random_lies.liars > 0) {
    refuse("liar", plan.title,
           "real sites lie from their beginning to their end, and are named by the plan");
  }
  if (plan.sites > kMostProcesses) {
    refuse("sites", fmt::to_string(plan.sites),
           fmt::format("each is a process with relays to its peers: {} at most", kMostProcesses));
  }
  if (plan.link.jitter != 0) {
    refuse("link.jitter", fmt::to_string(plan.link.jitter),
           "the relays between real sites have bandwidth and latency alone");
  }
  const auto graph = make_topology(plan.graph, plan.sites);
  for (Rank site = 0; site < plan.sites; ++site) {
    if (sites::neighbours(*graph, site).empty()) {
      refuse("graph", plan.graph,
             fmt::format("site {} of {} has no neighbour in it, and a real site does not start "
                         "without peers; give every site an edge",
                         site, plan.sites));
    }
  }
  const auto check_kind = [](FaultKind kind, const char* where) {
    if (kind == FaultKind::clock) {
      refuse(where, fault_kind(kind).name,
             "real processes share one clock; give [random] kinds without it");
    }
  };
  for (const PlannedFault& fault : plan.faults) {
    check_kind(fault.kind, "kind");
    if (fault.link.jitter != 0) {
      refuse("link.jitter", fmt::to_string(fault.link.jitter),
             "the relays between real sites have bandwidth and latency alone");
    }
  }
  for (const FaultKind kind : plan.random ? plan.random->kinds : std::vector<FaultKind>()) {
    check_kind(kind, "kinds");
  }
}

RealRun::RealRun(const FaultPlan& plan, const RealOptions& options)
    : plan_(plan),
      options_(options),
      faults_(plan, options.seed, *this),
      topology_(make_topology(plan.graph, plan.sites)),
      relays_(plan.sites, plan.link),
      liveness_(plan, plus(sites::recovery_bound(plan, kMessageBytes), kSlack)),
      inotify_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)),
      start_(std::chrono::steady_clock::now()),
      unix_start_(unix_time()),
      minted_before_(static_cast<std::size_t>(plan.sites)),
      naming_(plan) {
  if (!inotify_) {
    throw std::runtime_error(fmt::format("files cannot be watched: {}", std::strerror(errno)));
  }
  report_.seed = options.seed;
  report_.bound_s = to_seconds(liveness_.bound());
  for (Rank site = 0; site < plan.sites; ++site) {
    Slot& made = *slots_.emplace_back(std::make_unique<Slot>());
    made.listed = sites::neighbours(*topology_, site);
    made.home = make_home(site, site_name(site));
    made.logs.push_back(made.home.files->log());
    relays_.lead_to(site, made.home.port);
  }
  for (Rank site = 0; site < plan.sites; ++site) {
    write_peers(site);
  }
  last_over_ = faults_.last_end();
}

SimTime RealRun::now() const {
  return nanoseconds(std::chrono::steady_clock::now() - start_).count();
}

void RealRun::fail(Rank site, std::string during, std::string what) {
  if (!report_.violation) {
    report_.violation = {
        .time = now(), .site = site, .during = std::move(during), .what = std::move(what)};
  }
}

void RealRun::disturb(Rank site) {
  liveness_.disturb(site, now());
  slot(site).disturbed.push_back(now());
}

RealRun::Home RealRun::make_home(Rank site, const std::string& name) {
  Home home;
  home.files = std::make_unique<SiteFiles>(options_.folder + "/" + name, site, slot(site).keys,
                                           options_.seed);
  std::tie(home.port_holder, home.port) = bench::hold_port();
  std::tie(home.monitor_holder, home.monitor) = bench::hold_port();
  home.files->write_site(plan_, home.port, home.monitor);
  return home;
}

void RealRun::write_peers(Rank site) {
  Slot& own = slot(site);
  std::vector<RealPeer> lines = {{.site = site, .key = own.keys.public_key, .port = own.home.port}};
  const std::vector<Rank> heard = topology_->in_peers(site);
  const std::vector<Rank> told = topology_->out_peers(site);
  for (const Rank peer : own.listed) {
    const auto [place, fresh] = own.ports.try_emplace(peer, 0);
    if (fresh) {
      place->second = relays_.open(site, peer);
    }
    lines.push_back({.site = peer,
                     .key = slot(peer).keys.public_key,
                     .port = place->second,
                     .may_send = std::count(heard.begin(), heard.end(), peer) > 0,
                     .send_to = std::count(told.begin(), told.end(), peer) > 0});
  }
  own.home.files->write_peers(lines);
}

void RealRun::begin_process(Rank site) {
  Slot& own = slot(site);
  if (own.process) {
    return;
  }
  own.process = std::make_unique<console::Child>(
      words_of(site),
      // Ctrl-C is for this process, which ends its sites in good order.
      console::ChildSetup{.log = own.home.files->log(), .own_group = true});
  own.number = ++report_.starts;
  own.stopped = false;
  own.leaving.reset();
  own.began = own.moved = now();
  own.seen = {};
  own.watch.follow(lies(site) ? 0 : own.home.monitor, lies(site) ? 0 : own.number);
  disturb(site);
}

/// What runs the site: `sotto node`, or what lies in its place.
std::vector<std::string> RealRun::words_of(Rank site) const {
  const Home& home = slot(site).home;
  if (!lies(site)) {
    return {options_.program, "node",   home.files->site_file(), "--log",
            "json",           "--json", home.files->result()};
  }
  std::vector<std::string> words = options_.liar;
  const auto more = liar_words(site, options_.seed, home.files->folder(), home.port);
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Finds processes that have ended, and whether that is as it should be.
void RealRun::look_after_processes() {
  for (Rank site = 0; site < plan_.sites; ++site) {
    Slot& own = slot(site);
    if (!own.process) {
      continue;
    }
    if (const auto status = own.process->ended()) {
      ended(site, *status);
    } else if (own.leaving && !own.stopped && now() - *own.leaving > liveness_.bound()) {
      fail(site, "leaving",
           fmt::format("has not ended {:.1f} s after SIGTERM", to_seconds(now() - *own.leaving)));
    }
  }
  std::erase_if(replaced_, [&](Replaced& old) {
    const auto status = old.process->ended();
    if (status && *status != 1) {
      fail(old.site, "the end of a process that was replaced",
           fmt::format("ends with status {}", *status));
    }
    return status.has_value();
  });
}

void RealRun::ended(Rank site, int status) {
  Slot& own = slot(site);
  own.process.reset();
  own.watch.follow(0, 0);
  disturb(site);
  if (const auto leaving = std::exchange(own.leaving, std::nullopt)) {
    report_.worst_leave_s = std::max(report_.worst_leave_s, to_seconds(now() - *leaving));
    if (status != 0) {
      fail(site, "leaving", fmt::format("ends with status {}", status));
    }
    return;
  }
  const std::vector<LogEntry> log = read_log(own.home.files->log());
  const LogEntry last = log.empty() ? LogEntry() : log.back();
  if (status == 1 && !report_.whole && last.event == name_of(SiteEvent::Kind::newer_process)) {
    // The operator of the site starts it again.
    begins_.push_back({.site = site, .at = now() + plan_.reconnect});
    return;
  }
  fail(site, "a round", fmt::format("ends by itself with status {}: {}", status, last.text));
}

/// What the monitors say.
void RealRun::look_at_sites() {
  for (Rank site = 0; site < plan_.sites; ++site) {
    Slot& own = slot(site);
    const auto latest = own.watch.latest();
    if (!own.process || !latest || latest->process != own.number) {
      continue;
    }
    const SiteStatus& before = own.seen;
    if (before.process != own.number || latest->state.round != before.state.round ||
        latest->waits_for_model != before.waits_for_model) {
      own.moved = now();
    }
    own.seen = *latest;
    naming_.see_status(site, own.seen);
    for (const sites::PeerState& peer : own.seen.peers) {
      report_.offences = std::max(report_.offences, peer.offences);
      if (peer.offences > 0 && !lies(site_rank(peer.name))) {
        fail(site, "a round",
             fmt::format("accuses {}, which is honest: {}", peer.name, peer.trouble));
      }
    }
    const Round round = own.seen.state.round;
    while (faults_.inject_due(site, round, FaultMoment::any)) {
    }
  }
}

void RealRun::look_for_hangs() {
  std::vector<sites::SiteView> views;
  for (Rank site = 0; site < plan_.sites; ++site) {
    const Slot& own = slot(site);
    views.push_back({.site = site,
                     .running = own.process && !own.stopped && !own.leaving,
                     .waits_for_model = own.seen.waits_for_model,
                     .moved = own.moved,
                     .listed = own.seen.listed,
                     .state = &own.seen.state,
                     .peers = own.seen.peers});
  }
  std::vector<char> contested(slots_.size());
  for (const Replaced& old : replaced_) {
    if (old.holds) {
      contested[static_cast<std::size_t>(old.site)] = 1;
    }
  }
  auto trouble = liveness_.look(now(), views, contested, relays_);
  if (trouble) {
    fail(trouble->first, "waiting", std::move(trouble->second));
  }
}

void RealRun::take_footprints() {
  for (const auto& own : slots_) {
    if (own->process && !own->stopped) {
      if (const auto taken = footprint_of(own->process->number())) {
        footprints_.add(to_seconds(now()), to_seconds(now() - own->began), *taken);
      }
    }
  }
}

/// What the sites have written meanwhile.
void RealRun::look_at_states() {
  alignas(inotify_event) std::array<char, 16384> buffer{};
  ssize_t got = 0;
  while ((got = ::read(inotify_.get(), buffer.data(), buffer.size())) > 0) {
    for (const char* at = buffer.data(); at < buffer.data() + got;) {
      inotify_event event{};
      std::memcpy(&event, at, sizeof event);
      const std::string_view name(event.len > 0 ? at + sizeof event : "");
      at += sizeof event + event.len;
      for (Rank site = 0; site < plan_.sites; ++site) {
        Home& home = slot(site).home;
        if (home.watch != event.wd || !name.starts_with("state.")) {
          continue;
        }
        if ((event.mask & IN_CREATE) != 0 && name.ends_with(".new")) {
          reach(site, FaultMoment::before_commit);
        } else if ((event.mask & IN_MOVED_TO) != 0) {
          home.files->keep_state(name);
          reach(site, FaultMoment::before_release);
        }
      }
    }
  }
  for (auto& own : slots_) {
    if (own->process && own->home.watch < 0) {
      own->home.watch = ::inotify_add_watch(inotify_.get(), own->home.files->state().c_str(),
                                            IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
    }
  }
}

bool RealRun::all_done() const {
  return plan_.rounds && now() > last_over_ &&
         std::all_of(slots_.begin(), slots_.end(), [&](const auto& own) {
           const Rank site = static_cast<Rank>(&own - slots_.data());
           return !own->process || lies(site) || own->seen.state.round >= *plan_.rounds;
         });
}

RealProgress RealRun::progress() const {
  RealProgress progress = {.run_s = to_seconds(now())};
  for (const std::uint64_t count : faults_.injected()) {
    progress.faults += count;
  }
  for (const auto& own : slots_) {
    if (own->process && own->seen.process == own->number && own->seen.state.has_model) {
      const Round round = own->seen.state.round;
      progress.least = progress.running == 0 ? round : std::min(progress.least, round);
      progress.most = std::max(progress.most, round);
      ++progress.running;
    }
  }
  return progress;
}

/// Injects the faults whose time has come, and ends those whose time has passed.
void RealRun::inject_and_end() {
  const SimTime moment = now();
  while (next_fault_ < faults_.faults().size() && faults_.faults()[next_fault_].at <= moment) {
    faults_.begin(next_fault_++);
  }
  for (const End& end : std::exchange(ends_, {})) {
    if (end.at <= moment) {
      faults_.end(end.number);
    } else {
      ends_.push_back(end);
    }
  }
  for (const Begin& begin : std::exchange(begins_, {})) {
    // A process that is told to leave ends first.
    if (begin.at > moment || slot(begin.site).leaving) {
      begins_.push_back(begin);
    } else {
      begin_process(begin.site);
    }
  }
}

void RealRun::step() {
  inject_and_end();
  look_after_processes();
  look_at_sites();
  look_at_states();
  if (now() - looked_ >= kLookEvery) {
    looked_ = now();
    look_for_hangs();
    if (options_.progress) {
      options_.progress(progress());
    }
  }
  if (now() - sampled_ >= kSampleEvery) {
    sampled_ = now();
    take_footprints();
  }
}

RealReport RealRun::run() {
  for (Rank site = 0; site < plan_.sites; ++site) {
    if (!faults_.joins_later(site)) {
      begin_process(site);
    }
  }
  SimTime last = now();
  while (now() < plan_.duration && !report_.violation && !all_done() &&
         !(options_.stop && options_.stop())) {
    step();
    pollfd written = {.fd = inotify_.get(), .events = POLLIN, .revents = 0};
    ::poll(&written, 1, kStep);
    if (now() - last > kPause) {
      report_.pauses_s += to_seconds(now() - last);
      for (Rank site = 0; site < plan_.sites; ++site) {
        disturb(site);
      }
    }
    last = now();
  }
  if (plan_.rounds && !all_done() && now() >= plan_.duration) {
    fail(-1, "the end of the run", fmt::format("some have not done {} rounds", *plan_.rounds));
  }
  report_.run_s = to_seconds(now());
  report_.worst_recovery_s = to_seconds(liveness_.worst_recovery());
  report_.injected = faults_.injected();
  ask_for_metrics();
  end_all();
  audit();
  return std::move(report_);
}

std::vector<std::string> liar_words(Rank site, std::uint64_t seed, const std::string& folder,
                                    int port) {
  return {"--lie",  fmt::to_string(site), "--seed", fmt::to_string(seed), "--keep", folder,
          "--port", fmt::to_string(port)};
}

RealReport run_real_sites(const FaultPlan& plan, const RealOptions& options) {
  check_real(plan);
  return RealRun(plan, options).run();
}

}  // namespace sotto::sitelab
