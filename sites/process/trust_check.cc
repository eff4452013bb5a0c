#include "trust_check.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/trainers/settings/agreed_settings.h>

namespace sotto {
namespace {

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

class TrustCheck {
 public:
  explicit TrustCheck(const std::vector<SiteView>& sites)
      : sites_(sites), lines_(sites.size()), out_(sites.size()), in_(sites.size()) {
    for (std::size_t i = 0; i < sites.size(); ++i) {
      if (!places_.emplace(sites[i].name, i).second) {
        refuse("site", sites[i].name, "two of the files are of a site of this name");
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
    check_reach();
    check_giving();
    std::sort(report_.edges.begin(), report_.edges.end());
    check_sums();
    return std::move(report_);
  }

 private:
  const TrustedPeer* line_of(std::size_t site, std::size_t peer) const {
    const auto found = lines_[site].find(sites_[peer].name);
    return found == lines_[site].end() ? nullptr : found->second;
  }
  void find(const char* kind, std::size_t site, std::size_t peer, std::string text) {
    report_.findings.push_back({kind, sites_[site].name, sites_[peer].name, std::move(text)});
  }

  /// `line` is that of `peer` in the list of `site`.
  void compare(std::size_t site, std::size_t peer, const TrustedPeer& line) {
    const std::string& name = sites_[peer].name;
    if (const TrustedPeer* own = line_of(peer, peer)) {
      const auto keys = own->keys();
      if (std::ranges::none_of(keys, [&](const PeerKey& key) { return line.holds(key.key); })) {
        find("key", site, peer,
             fmt::format("its list has another key of {} than {} has", name, name));
      }
      if (line.address != own->address) {
        find("address", site, peer,
             fmt::format("its list has '{}', and that of {} '{}'", line.address, name,
                         own->address));
      }
    }
    const TrustedPeer* back = line_of(peer, site);
    if (back == nullptr) {
      if (!line.may_send && !line.send_to) {
        return;  // neither wants an edge
      }
      find("missing", site, peer, fmt::format("{} does not list it", name));
      return;
    }
    const bool sends = line.send_to && !sites_[site].observer;
    if (sends != back->may_send && !sites_[site].observer) {
      find("edge", site, peer,
           sends ? fmt::format("it sends to {}, which does not take it", name)
                 : fmt::format("{} takes what it does not send", name));
    }
    if (sends && back->may_send) {
      report_.edges.emplace_back(site, peer);
      out_[site].push_back(peer);
      in_[peer].push_back(site);
    }
  }

  void compare_settings() {
    for (std::size_t i = 1; i < sites_.size(); ++i) {
      const auto text = first_difference(sites_[0].settings, sites_[i].settings);
      if (!text.empty()) {
        find("settings", 0, i, text);
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
        find("reach", root, i, fmt::format("nothing of it reaches {}", sites_[i].name));
      }
      if (!from[i] && !sites_[i].observer) {
        find("reach", i, root, fmt::format("nothing of it reaches {}", sites_[root].name));
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
            {"gives", sites_[i].name, "", "it gives, and nothing comes back to it"});
      }
      if (out_[i].empty() && !in_[i].empty() && !sites_[i].observer) {
        report_.findings.push_back({"takes", sites_[i].name, "",
                                    "it only takes; say observer = true in its file, so that its "
                                    "peers lose no mass by it"});
      }
    }
  }

  /// Masks cancel only among sites that all have each other in their lists.
  void check_sums() {
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      if (sites_[i].secure_sum && sites_[i].lines.size() < sites_[i].colluders + 3) {
        report_.findings.push_back(
            {"sum", sites_[i].name, "",
             fmt::format("its list has {} sites, and secure-colluders = {} needs {} or more",
                         sites_[i].lines.size(), sites_[i].colluders, sites_[i].colluders + 3)});
      }
      for (std::size_t j = 0; sites_[i].secure_sum && j < sites_.size(); ++j) {
        if (i != j && !std::ranges::binary_search(report_.edges, std::pair(i, j))) {
          find("sum", i, j,
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

TrustReport check_trust(const std::vector<SiteView>& sites) { return TrustCheck(sites).run(); }

}  // namespace sotto
