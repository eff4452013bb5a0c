#include <sotto/sites/process/trust/trust_check.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/sites/core/mass_rule.h>
#include <sotto/sites/core/mixing_kind.h>
#include <sotto/sites/process/trust/site_hosts.h>
#include <sotto/trainers/settings/agreed_settings.h>

namespace sotto {
namespace {

using Found = TrustFinding::Kind;
using Neighbours = std::vector<std::vector<std::size_t>>;

std::vector<bool> reached_from(std::size_t start, const Neighbours& next) {
  std::vector<bool> seen(next.size(), false);
  std::vector<std::size_t> open = {start};
  seen[start] = true;
  while (!open.empty()) {
    const std::size_t at = open.back();
    open.pop_back();
    for (const std::size_t to : next[at]) {
      if (!seen[to]) {
        seen[to] = true;
        open.push_back(to);
      }
    }
  }
  return seen;
}

std::string yes_or_no(bool truth) { return truth ? "yes" : "no"; }

const SharedSetting* setting_of(const SiteView& site, std::string_view name) {
  const auto found = std::ranges::find(site.settings, name, &SharedSetting::name);
  return found == site.settings.end() ? nullptr : &*found;
}

/// "lr = 0.1 (federation/lab/site.toml:9)"
std::string setting_text(const SiteView& site, std::string_view name) {
  const SharedSetting* const one = setting_of(site, name);
  if (one == nullptr) {
    return fmt::format("none ({})", site.file);
  }
  return one->place.empty() ? fmt::format("{} (by default, {})", one->value, site.file)
                            : fmt::format("{} ({})", one->value, one->place);
}

class TrustCheck {
 public:
  explicit TrustCheck(const std::vector<SiteView>& sites)
      : sites_(sites), lines_(sites.size()), out_(sites.size()), in_(sites.size()) {
    for (std::size_t i = 0; i < sites.size(); ++i) {
      if (!places_.emplace(sites[i].name, i).second) {
        refuse("name", sites[i].name, "two of the files are of a site of this name");
      }
      for (const TrustedPeer& line : sites[i].lines) {
        lines_[i].emplace(line.name, &line);
      }
    }
  }

  TrustReport run() {
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      for (const TrustedPeer& line : sites_[i].lines) {
        const auto peer = places_.find(line.name);
        if (line.name != sites_[i].name && peer != places_.end()) {
          compare(i, peer->second, line);
        }
      }
    }
    compare_settings();
    check_monitors();
    check_reach();
    check_giving();
    check_masses();
    std::sort(report_.edges.begin(), report_.edges.end());
    check_sums();
    return std::move(report_);
  }

 private:
  const TrustedPeer* line_of(std::size_t site, std::size_t peer) const {
    const auto found = lines_[site].find(sites_[peer].name);
    return found == lines_[site].end() ? nullptr : found->second;
  }
  void find(Found kind, std::size_t site, std::size_t peer, std::string text) {
    report_.findings.push_back({kind, sites_[site].name, sites_[peer].name, std::move(text)});
  }
  /// "lab's list (federation/lab/peers.csv)"
  std::string list_of(std::size_t site) const {
    return fmt::format("{}'s list ({})", sites_[site].name, sites_[site].peers_file);
  }

  /// `line` is that of `peer` in the list of `site`.
  void compare(std::size_t site, std::size_t peer, const TrustedPeer& line) {
    const std::string& name = sites_[peer].name;
    if (const TrustedPeer* own = line_of(peer, peer)) {
      const auto keys = own->keys();
      if (std::ranges::none_of(keys, [&](const PeerKey& key) { return line.holds(key.key); })) {
        find(Found::key, site, peer,
             fmt::format("{} has another key of {} than {}", list_of(site), name, list_of(peer)));
      }
      if (line.address != own->address) {
        find(Found::address, site, peer,
             fmt::format("{} has the address '{}' for {}, and {} has '{}'", list_of(site),
                         line.address, name, list_of(peer), own->address));
      }
    }
    const TrustedPeer* back = line_of(peer, site);
    if (back == nullptr) {
      if (!line.may_send && !line.send_to) {
        return;  // neither wants an edge
      }
      find(Found::missing, site, peer,
           fmt::format("{} has no line for {}", list_of(peer), sites_[site].name));
      return;
    }
    const bool sends = line.send_to && !sites_[site].observer;
    if (sends != back->may_send && !sites_[site].observer) {
      find(Found::edge, site, peer,
           fmt::format("{} has send_to = {} for {}, and {} has may_send = {} for {}: {} sends "
                       "nothing to {}",
                       list_of(site), yes_or_no(line.send_to), name, list_of(peer),
                       yes_or_no(back->may_send), sites_[site].name, sites_[site].name, name));
    }
    if (sends && back->may_send) {
      report_.edges.emplace_back(site, peer);
      out_[site].push_back(peer);
      in_[peer].push_back(site);
    }
  }

  void compare_settings() {
    for (std::size_t i = 1; i < sites_.size(); ++i) {
      for (const SharedSetting& one : sites_[0].settings) {
        compare_setting(i, one.name);
      }
      for (const SharedSetting& one : sites_[i].settings) {
        if (setting_of(sites_[0], one.name) == nullptr) {
          compare_setting(i, one.name);
        }
      }
    }
  }
  /// The setting of this name at the first site and at site `i`.
  void compare_setting(std::size_t i, const std::string& name) {
    const SharedSetting* const first = setting_of(sites_[0], name);
    const SharedSetting* const other = setting_of(sites_[i], name);
    if (first == nullptr || other == nullptr || first->value != other->value) {
      find(Found::settings, 0, i,
           fmt::format("{} is {} at {} and {} at {}", name, setting_text(sites_[0], name),
                       sites_[0].name, setting_text(sites_[i], name), sites_[i].name));
    }
  }

  /// Where sites run on one host, each monitor needs a port of its own, which no site listens at.
  void check_monitors() {
    const auto address_of = [&](std::size_t site) -> std::string {
      const TrustedPeer* const own = line_of(site, site);
      return own == nullptr || sites_[site].listens_elsewhere ? "" : own->address;
    };
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      const std::string own = address_of(i);
      if (own.empty() || sites_[i].monitor.empty()) {
        continue;
      }
      for (std::size_t j = 0; j < sites_.size(); ++j) {
        const std::string other = address_of(j);
        if (listens_at(other, sites_[i].monitor)) {
          find(Found::monitor, i, j,
               fmt::format("monitor = \"{}\" in {} is where {} listens", sites_[i].monitor,
                           sites_[i].file, sites_[j].name));
        }
        if (j > i && host_of_addresses(own) == host_of_addresses(other) &&
            listens_at(sites_[i].monitor, sites_[j].monitor)) {
          find(Found::monitor, i, j,
               fmt::format("monitor = \"{}\" in {} and in {}, and both sites have addresses on "
                           "{}: give one of the two monitors another port",
                           sites_[i].monitor, sites_[i].file, sites_[j].file,
                           host_of_addresses(own)));
        }
      }
    }
  }

  /// Every site that gives must reach every other site: once from the first giver, both ways.
  void check_reach() {
    const auto giver = std::ranges::find(sites_, false, &SiteView::observer);
    if (giver == sites_.end()) {
      return;
    }
    const auto root = static_cast<std::size_t>(giver - sites_.begin());
    const auto to = reached_from(root, out_);
    const auto from = reached_from(root, in_);
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      if (!to[i]) {
        find(Found::reach, root, i,
             fmt::format("nothing of {} reaches {}", sites_[root].name, sites_[i].name));
      }
      if (!from[i] && !sites_[i].observer) {
        find(Found::reach, i, root,
             fmt::format("nothing of {} reaches {}", sites_[i].name, sites_[root].name));
      }
    }
  }

  void check_giving() {
    report_.degree_min = sites_.empty() ? 0 : sites_.size();
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      report_.degree_min = std::min(report_.degree_min, in_[i].size());
      report_.degree_max = std::max(report_.degree_max, in_[i].size());
      if (in_[i].empty() && !out_[i].empty()) {
        report_.findings.push_back(
            {Found::gives, sites_[i].name, "", "it gives, and nothing comes back to it"});
      }
      if (out_[i].empty() && !in_[i].empty() && !sites_[i].observer) {
        report_.findings.push_back({Found::takes, sites_[i].name, "",
                                    "it only takes; say observer = true in its file, so that its "
                                    "peers lose no mass by it"});
      }
    }
  }

  /// Push-sum: sites that give more than comes back come near the floor of mass, by the default
  /// rule.
  void check_masses() {
    const SharedSetting* const exchange =
        sites_.empty() ? nullptr : setting_of(sites_[0], "exchange");
    if (exchange != nullptr && exchange->value != name_of(sites::MixingKind::push_sum)) {
      return;
    }
    const sites::MassRule rule;
    const std::vector<double> masses = masses_in_step(rule);
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      if (!sites_[i].observer && !in_[i].empty() && masses[i] <= 2 * rule.least) {
        report_.findings.push_back(
            {Found::drained, sites_[i].name, "",
             fmt::format("where all exchange in step its mass comes to {:.2g} of 1, so that others "
                         "hear little of what it learns: let more sites send to it",
                         masses[i])});
      }
    }
  }

  /// The masses after many rounds of all sites, from 1 each.
  std::vector<double> masses_in_step(const sites::MassRule& rule) const {
    constexpr int kRounds = 1024;
    std::vector<double> masses(sites_.size(), 1);
    for (int round = 0; round < kRounds; ++round) {
      std::vector<double> next = masses;
      for (std::size_t i = 0; i < sites_.size(); ++i) {
        const auto gives = [&](std::size_t to) { return !sites_[to].observer; };
        const auto receivers = static_cast<double>(std::ranges::count_if(out_[i], gives));
        const double share = std::min(masses[i] / (1 + receivers), rule.parcel);
        for (const std::size_t to : out_[i]) {
          next[i] -= gives(to) ? share : 0;
          next[to] += gives(to) ? share : 0;
        }
      }
      for (std::size_t i = 0; i < sites_.size(); ++i) {
        masses[i] = std::clamp(next[i] + rule.back * (1 - next[i]), rule.least, rule.most);
      }
    }
    return masses;
  }

  /// Masks cancel only among sites that all have each other in their lists.
  void check_sums() {
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      if (sites_[i].secure_sum && sites_[i].lines.size() < sites_[i].colluders + 3) {
        report_.findings.push_back(
            {Found::sum, sites_[i].name, "",
             fmt::format("its list has {} sites, and secure-colluders = {} needs {} or more",
                         sites_[i].lines.size(), sites_[i].colluders, sites_[i].colluders + 3)});
      }
      for (std::size_t j = 0; sites_[i].secure_sum && j < sites_.size(); ++j) {
        if (i != j && !std::ranges::binary_search(report_.edges, std::pair(i, j))) {
          find(Found::sum, i, j,
               fmt::format("it sums in secret, and does not send to {}", sites_[j].name));
        }
      }
    }
  }

  const std::vector<SiteView>& sites_;
  std::map<std::string, std::size_t> places_;
  std::vector<std::map<std::string, const TrustedPeer*>> lines_;
  Neighbours out_;
  Neighbours in_;
  TrustReport report_;
};

}  // namespace

std::string_view name_of(TrustFinding::Kind kind) {
  constexpr auto kNames =
      std::to_array<std::string_view>({"edge", "key", "address", "missing", "settings", "monitor",
                                       "reach", "gives", "takes", "drained", "sum", "own", "data"});
  return kNames.at(static_cast<std::size_t>(kind));
}

TrustReport check_trust(const std::vector<SiteView>& sites) { return TrustCheck(sites).run(); }

}  // namespace sotto
