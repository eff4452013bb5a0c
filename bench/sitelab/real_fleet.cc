#include "real_fleet.h"

#include <algorithm>
#include <csignal>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include <sotto/sites/faults/fault_schedule.h>
#include <sotto/topology/registry.h>

#include "bench/support/loopback.h"
#include "site_name.h"

namespace sotto::sitelab {

RealFleet::RealFleet(const FaultPlan& plan, const RealOptions& options)
    : plan_(plan),
      options_(options),
      topology_(make_topology(plan.graph, plan.sites)),
      relays_(plan.sites, plan.link) {
  for (Rank site = 0; site < plan.sites; ++site) {
    RealSite& made = *sites_.emplace_back(std::make_unique<RealSite>());
    made.listed = neighbours(site);
    made.home = make_home(site, site_name(site));
    made.logs.push_back(made.home.files->log());
    relays_.lead_to(site, made.home.port);
  }
  for (Rank site = 0; site < plan.sites; ++site) {
    write_peers(site);
  }
}

std::vector<Rank> RealFleet::neighbours(Rank site) const {
  return sotto::neighbours(*topology_, site);
}

bool RealFleet::any_runs() const {
  return std::ranges::any_of(sites_, [](const auto& site) { return site->process != nullptr; });
}

SiteHome RealFleet::make_home(Rank site, const std::string& name) {
  SiteHome home;
  home.files =
      std::make_unique<SiteFiles>(options_.folder + "/" + name, site, at(site).keys, options_.seed);
  std::tie(home.port_holder, home.port) = bench::hold_port();
  std::tie(home.monitor_holder, home.monitor) = bench::hold_port();
  home.files->write_site(plan_, home.port, home.monitor);
  return home;
}

void RealFleet::write_peers(Rank site) {
  RealSite& own = at(site);
  std::vector<RealPeer> lines = {{.site = site, .key = own.keys.public_key, .port = own.home.port}};
  const std::vector<Rank> heard = topology_->in_peers(site);
  const std::vector<Rank> told = topology_->out_peers(site);
  for (const Rank peer : own.listed) {
    const auto [place, fresh] = own.ports.try_emplace(peer, 0);
    if (fresh) {
      place->second = relays_.open(site, peer);
    }
    lines.push_back({.site = peer,
                     .key = at(peer).keys.public_key,
                     .port = place->second,
                     .may_send = std::count(heard.begin(), heard.end(), peer) > 0,
                     .send_to = std::count(told.begin(), told.end(), peer) > 0});
  }
  own.home.files->write_peers(lines);
}

/// What runs the site: `sotto node`, or what lies in its place.
std::vector<std::string> RealFleet::words_of(Rank site) const {
  const SiteHome& home = at(site).home;
  if (!lies(site)) {
    return {options_.program, "node",   home.files->site_file(), "--log",
            "json",           "--json", home.files->result()};
  }
  std::vector<std::string> words = options_.liar;
  const auto more = liar_words(site, options_.seed, home.files->folder(), home.port);
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void RealFleet::begin(Rank site, SimTime now) {
  RealSite& own = at(site);
  own.process = std::make_unique<console::Child>(
      words_of(site),
      // Ctrl-C is for this process, which ends its sites in good order.
      console::ChildSetup{.log = own.home.files->log(), .own_group = true});
  own.number = ++starts_;
  own.stopped = false;
  own.leaving.reset();
  own.began = own.moved = now;
  own.seen = {};
  own.watch.follow(lies(site) ? 0 : own.home.monitor, lies(site) ? 0 : own.number);
}

void RealFleet::kill(Rank site) {
  RealSite& own = at(site);
  own.process->signal(SIGKILL);
  own.process.reset();  // waits for its end
  own.leaving.reset();
  own.stopped = false;
  own.watch.follow(0, 0);
}

void RealFleet::stop(Rank site) {
  RealSite& own = at(site);
  own.process->signal(SIGSTOP);
  own.stopped = true;
}

void RealFleet::resume(Rank site, std::uint64_t process, SimTime now) {
  RealSite& own = at(site);
  if (own.process && own.number == process) {
    own.process->signal(SIGCONT);
    own.stopped = false;
    own.moved = now;
  }
  for (ReplacedProcess& old : replaced_) {
    if (old.site == site && old.number == process) {
      old.process->signal(SIGCONT);
      old.holds = now - old.since < 2 * plan_.silence;
    }
  }
}

void RealFleet::take_over(Rank site, SimTime now) {
  RealSite& own = at(site);
  SiteHome fresh = make_home(site, fmt::format("{}.{}", site_name(site), own.logs.size()));
  fresh.files->copy_state(*own.home.files);
  replaced_.push_back({.site = site,
                       .home = std::exchange(own.home, std::move(fresh)),
                       .process = std::move(own.process),
                       .number = own.number,
                       .since = now});
  own.logs.push_back(own.home.files->log());
  own.process.reset();
  write_peers(site);
  relays_.lead_to(site, own.home.port);
}

void RealFleet::relist(Rank site, std::vector<Rank> listed) {
  at(site).listed = std::move(listed);
  write_peers(site);
}

void RealFleet::take_footprints(SimTime now, Footprints& footprints) const {
  for (const auto& own : sites_) {
    if (own->process && !own->stopped) {
      if (const auto taken = footprint_of(own->process->number())) {
        footprints.add(to_seconds(now), to_seconds(now - own->began), *taken);
      }
    }
  }
}

}  // namespace sotto::sitelab
