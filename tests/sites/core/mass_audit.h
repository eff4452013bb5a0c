// Where all mass of all sites is, followed from event to event.
//
// What is there: ω of every site, in memory where its process runs and else as it last wrote
// itself, and what is in parcels that their receivers have not applied. A site whose state was
// replaced by an older one does not count from then on, nor does what it holds, gave and is given,
// until it starts anew with mass 1; whatever still passes between it and others is booked as lost
// or made.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "sites/core/site_network.h"

namespace sotto::test {

class MassAudit {
 public:
  explicit MassAudit(const SiteNetwork& network)
      : network_(network), outdated_(network.size()), before_(snapshot()) {
    expected_ = before_.there();
    book_void(before_);
  }

  /// To be called after every event. `outdated` has been put back to an older state by it.
  void follow(std::size_t outdated = kNone) {
    if (outdated != kNone) {
      expected_ -= holds(before_, outdated);
      outdated_[outdated] = true;
      left_.insert({outdated, network_.state(outdated).incarnation});
    }
    for (std::size_t i = 0; i < network_.size(); ++i) {
      const SiteState now = network_.state(i);
      const SiteState& then = before_.sites[i];
      if (now.incarnation == then.incarnation) {
        expected_ += outdated_[i] ? 0 : minted(now) - minted(then);
        continue;
      }
      if (!outdated_[i]) {
        expected_ -= holds(before_, i);  // its state is gone
      }
      // It may have died before it wrote that it starts anew.
      outdated_[i] = left_.contains({i, now.incarnation});
      expected_ += !outdated_[i] && now.mass > 0 ? 1 : 0;
    }
    Snapshot after = snapshot();
    book_void(after);
    before_ = std::move(after);
  }

  /// What is there, less what should be.
  double error() const { return before_.there() - expected_; }
  double expected() const { return expected_; }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  struct Edge {
    bool valid = false;           ///< what is under way can still be applied
    sites::Incarnation to = 0;    ///< as the giver knows it
    sites::Incarnation from = 0;  ///< as the taker knows it
    double given = 0;
    double taken = 0;
    bool known = false;  ///< what was taken is of this stream
    double under_way() const { return valid ? given - (known ? taken : 0) : 0; }
  };
  struct Snapshot {
    std::vector<SiteState> sites;
    std::vector<bool> counts;
    std::vector<std::vector<Edge>> edges;

    double there() const {
      double sum = 0;
      for (std::size_t i = 0; i < sites.size(); ++i) {
        sum += counts[i] ? sites[i].mass : 0;
        for (const Edge& edge : edges[i]) {
          sum += edge.under_way();
        }
      }
      return sum;
    }
  };

  Snapshot snapshot() const {
    const std::size_t n = network_.size();
    Snapshot now;
    std::vector<std::vector<PeerState>> peers;
    for (std::size_t i = 0; i < n; ++i) {
      now.sites.push_back(network_.state(i));
      now.counts.push_back(!outdated_[i]);
      peers.push_back(network_.peers(i));
      now.edges.emplace_back(n);
    }
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        if (!network_.tells(i, j)) {
          continue;
        }
        const PeerState& giver = peers[i][network_.place(i, j)];
        const PeerState& taker = peers[j][network_.place(j, i)];
        Edge& edge = now.edges[i][j];
        edge.to = giver.incarnation;
        edge.from = taker.incarnation;
        edge.valid = now.counts[i] && now.counts[j] && edge.to == now.sites[j].incarnation;
        edge.given = giver.given;
        edge.taken = taker.taken;
        edge.known = edge.from == now.sites[i].incarnation;
      }
    }
    return now;
  }

  /// And what its mass came back to 1 by.
  static double minted(const SiteState& site) { return site.minted + site.raised - site.lowered; }

  double holds(const Snapshot& at, std::size_t i) const {
    double sum = at.counts[i] ? at.sites[i].mass : 0;
    for (std::size_t j = 0; j < at.sites.size(); ++j) {
      sum += at.edges[i][j].under_way() + at.edges[j][i].under_way();
    }
    return sum;
  }

  /// What passed to or from those that do not count. A site that goes back to what it wrote takes
  /// back what it gave and took since, of streams that have ended too.
  void book_void(const Snapshot& after) {
    const std::size_t n = after.sites.size();
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        const Edge& edge = after.edges[i][j];
        const auto own = [&](std::size_t site) { return after.sites[site].incarnation; };
        const auto live = [&](std::size_t site, sites::Incarnation as) {
          return after.counts[site] && own(site) == as;
        };
        follow_end(given_[{i, j, own(i)}], edge.to, edge.given,
                   [&](sites::Incarnation to, double given) {
                     expected_ -= after.counts[i] && !live(j, to) ? given : 0;
                   });
        follow_end(taken_[{i, j, own(j)}], edge.from, edge.taken,
                   [&](sites::Incarnation from, double taken) {
                     expected_ += after.counts[j] && !live(i, from) ? taken : 0;
                   });
      }
    }
  }

  /// One end of an edge: the incarnations of the other end in the order in which they were
  /// met, and the mass that went between.
  using Met = std::vector<std::pair<sites::Incarnation, double>>;
  /// Giver, taker, and the incarnation of this end.
  using End = std::tuple<std::size_t, std::size_t, sites::Incarnation>;

  /// Books what went to or from each. An end that went back has not met those that it met since.
  template <typename Book>
  static void follow_end(Met& met, sites::Incarnation last, double now, const Book& book) {
    auto at = std::ranges::find(met, last, &std::pair<sites::Incarnation, double>::first);
    if (at == met.end()) {
      at = met.insert(met.end(), {last, 0});
    }
    book(last, now - std::exchange(at->second, now));
    for (auto undone = at + 1; undone != met.end(); ++undone) {
      book(undone->first, -undone->second);
    }
    met.erase(at + 1, met.end());
  }

  const SiteNetwork& network_;
  std::vector<bool> outdated_;
  /// Sites and incarnations that have been outdated.
  std::set<std::pair<std::size_t, sites::Incarnation>> left_;
  Snapshot before_;
  double expected_ = 0;
  std::map<End, Met> given_;
  std::map<End, Met> taken_;
};

}  // namespace sotto::test
