#include "real_fleet.h"

#include <algorithm>
#include <csignal>
#include <tuple>

#include <fmt/format.h>

#include <sotto/topology/registry.h>

#include "bench/support/loopback.h"
#include "real_liar.h"
#include "site_name.h"

namespace sotto::sitelab {
namespace {

/// What real processes get on top of the simulator's bound: to start, to be asked, and where others
/// use the machine.
constexpr SimTime kSlack = 10'000'000'000;
/// The longest message of the task that sites train.
constexpr std::size_t kMessageBytes = 4 * 7850 + 256;

}  // namespace

RealFleet::RealFleet(const FaultPlan& plan, const RealOptions& options)
    : plan_(plan),
      options_(options),
      topology_(make_topology(plan.graph, plan.sites)),
      relays_(plan.sites, plan.link),
      liveness_(plan, plus(recovery_bound(plan, kMessageBytes), kSlack)) {
  for (Rank site = 0; site < plan.sites; ++site) {
    const KeyPair keys = make_key_pair();
    sites_.push_back(std::make_unique<RealSite>(keys, make_home(site, site_name(site), keys)));
    listed_.push_back(neighbours(site));
    relays_.lead_to(site, at(site).port());
  }
  for (Rank site = 0; site < plan.sites; ++site) {
    write_peers(site);
  }
}

std::vector<Rank> RealFleet::neighbours(Rank site) const {
  return sotto::neighbours(*topology_, site);
}

bool RealFleet::any_runs() const {
  return std::ranges::any_of(sites_, [](const auto& site) { return site->runs(); });
}

SiteHome RealFleet::make_home(Rank site, const std::string& name, const KeyPair& keys) const {
  SiteHome home;
  home.files = std::make_unique<SiteFiles>(options_.folder + "/" + name, site, keys, options_.seed);
  std::tie(home.port_holder, home.port) = bench::hold_port();
  std::tie(home.monitor_holder, home.monitor) = bench::hold_port();
  home.files->write_site(plan_, home.port, home.monitor);
  return home;
}

void RealFleet::write_peers(Rank site) {
  const RealSite& own = at(site);
  std::vector<RealPeer> lines = {{.site = site, .key = own.keys().public_key, .port = own.port()}};
  const std::vector<Rank> heard = topology_->in_peers(site);
  const std::vector<Rank> told = topology_->out_peers(site);
  for (const Rank peer : listed(site)) {
    lines.push_back({.site = peer,
                     .key = at(peer).keys().public_key,
                     .port = relays_.open(site, peer),
                     .may_send = std::ranges::count(heard, peer) > 0,
                     .send_to = std::ranges::count(told, peer) > 0});
  }
  own.files().write_peers(lines);
}

/// What runs the site: `sotto node`, or what lies in its place.
std::vector<std::string> RealFleet::words_of(Rank site) const {
  const RealSite& own = at(site);
  if (!lies(site)) {
    return {options_.program, "node",   own.files().site_file(), "--log",
            "json",           "--json", own.files().result()};
  }
  std::vector<std::string> words = options_.liar;
  const auto more = liar_words(
      {.site = site, .seed = options_.seed, .folder = own.files().folder(), .port = own.port()});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void RealFleet::begin(Rank site, SimTime now) {
  if (!at(site).runs()) {
    at(site).begin(words_of(site), ++starts_, !lies(site), now);
    disturb(site, now);
  }
}

void RealFleet::resume(Rank site, std::uint64_t process, SimTime now) {
  RealSite& own = at(site);
  if (own.runs() && own.number() == process) {
    own.resume(now);
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
  SiteHome fresh =
      make_home(site, fmt::format("{}.{}", site_name(site), own.logs().size()), own.keys());
  fresh.files->copy_state(own.files());
  replaced_.push_back(own.move(site, std::move(fresh), now));
  write_peers(site);
  relays_.lead_to(site, own.port());
}

std::vector<std::pair<Rank, int>> RealFleet::take_replaced_ends() {
  std::vector<std::pair<Rank, int>> ends;
  std::erase_if(replaced_, [&](ReplacedProcess& old) {
    const auto status = old.process->ended();
    if (status) {
      ends.emplace_back(old.site, *status);
    }
    return status.has_value();
  });
  return ends;
}

void RealFleet::relist(Rank site, std::vector<Rank> listed) {
  listed_[static_cast<std::size_t>(site)] = std::move(listed);
  write_peers(site);
}

void RealFleet::disturb(Rank site, SimTime now) {
  liveness_.disturb(site, now);
  at(site).disturb(now);
}

std::optional<std::pair<Rank, std::string>> RealFleet::find_hang(SimTime now) {
  std::vector<ObservedSite> views;
  for (Rank site = 0; site < plan_.sites; ++site) {
    const RealSite& own = at(site);
    views.push_back({.site = site,
                     .running = own.at_work(),
                     .waits_for_model = own.seen().waits_for_model,
                     .moved = own.moved(),
                     .listed = own.seen().listed,
                     .state = &own.seen().state,
                     .peers = own.seen().peers});
  }
  std::vector<char> contested(size());
  for (const ReplacedProcess& old : replaced_) {
    if (old.holds) {
      contested[static_cast<std::size_t>(old.site)] = 1;
    }
  }
  return liveness_.look(now, views, contested, relays_);
}

void RealFleet::take_footprints(SimTime now, Footprints& footprints) const {
  for (const auto& own : sites_) {
    if (own->runs() && !own->stopped()) {
      if (const auto taken = footprint_of(own->pid())) {
        footprints.add(to_seconds(now), to_seconds(now - own->began()), *taken);
      }
    }
  }
}

}  // namespace sotto::sitelab
