// Random schedules for a SiteNetwork: deliveries, lost channels, crashes at every point of a round,
// restarts, states put back, with the mass audited after every event.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "optim/cluster.h"
#include "sites/core/mass_audit.h"
#include "sites/core/site_network.h"

namespace sotto::test {

enum class Faults {
  crashes,  ///< lost channels, crashes and restarts
  all,      ///< also older states put back, and states lost
};

class Chaos {
 public:
  Chaos(SiteNetworkOptions options, std::uint64_t seed)
      : network(std::move(options)),
        audit(network),
        random_({.seed = seed, .purpose = Purpose::test}) {}

  void run(int events, Faults faults) {
    for (int k = 0; k < events; ++k) {
      event(faults);
    }
  }

  /// After the last fault all come back, all rounds go on, and all streams run dry.
  void check_recovery() {
    for (std::size_t i = 0; i < network.size(); ++i) {
      if (!network.running(i)) {
        network.start(i);
        follow();
      }
    }
    std::vector<Round> before;
    for (std::size_t i = 0; i < network.size(); ++i) {
      before.push_back(network.state(i).round);
    }
    for (int k = 0; k < 40; ++k) {
      calm_round(k < 20 ? Patience::little : Patience::all);
    }
    for (std::size_t i = 0; i < network.size(); ++i) {
      CHECK(network.state(i).round >= before[i] + 20);
      for (const PeerState& peer : network.peers(i)) {
        CAPTURE(i);
        CAPTURE(peer.trouble);
        CHECK(peer.up);
        CHECK(peer.offences == 0);
        CHECK(peer.pending <= network.options().window);
      }
    }
  }

  /// Brings all to the end of the same round, with nothing under way.
  void settle() {
    Round last = 0;
    for (std::size_t i = 0; i < network.size(); ++i) {
      const bool offered = network.node(i).phase == SiteNetwork::Phase::offered;
      last = std::max(last, network.state(i).round + (offered ? 1 : 0));
    }
    for (bool all = false; !all;) {
      all = true;
      for (std::size_t i = 0; i < network.size(); ++i) {
        if (network.state(i).round < last) {
          all = false;
          network.advance(i, false, true);
          network.deliver_all();
        }
      }
    }
    // What came too early was for the round that all are in now.
    network.deliver_all();
    network.run_in_step(2);
    follow();
  }

  /// Public copies of one incarnation and version are equal. Returns how many followers have the
  /// latest one.
  std::size_t check_copies() {
    std::size_t latest = 0;
    for (std::size_t i = 0; i < network.size(); ++i) {
      for (std::size_t j = 0; j < network.size(); ++j) {
        if (!network.tells(j, i) || !network.running(i) || !network.running(j)) {
          continue;
        }
        const std::size_t place = network.place(i, j);
        const PeerState followed = network.peers(i)[place];
        const auto copy = network.site(i).public_copy(place);
        const auto own = network.site(j).public_copy({});
        const SiteState owner = network.state(j);
        if (!copy.empty() && !own.empty() && followed.incarnation == owner.incarnation &&
            followed.version == owner.version) {
          ++latest;
          CHECK(same_bits(copy, own));
        }
      }
    }
    return latest;
  }

  SiteNetwork network;
  MassAudit audit;

 private:
  enum class Patience { little, all };

  static constexpr std::size_t kNobody = ~std::size_t{0};

  void follow(std::size_t outdated = kNobody) {
    if (network.options().exchange != sites::MixingKind::push_sum) {
      check_copies();
      return;
    }
    if (outdated == kNobody) {
      audit.follow();
    } else {
      audit.follow(outdated);
    }
    CHECK(std::fabs(audit.error()) < 1e-9);
  }

  std::size_t any_site() { return random_.below(network.size()); }

  void event(Faults faults) {
    const auto dice = random_.below(100);
    const std::size_t i = any_site();
    const std::size_t j = any_site();
    if (dice < 50) {
      const auto pairs = network.loaded();
      if (!pairs.empty()) {
        const auto [from, to] = pairs[random_.below(pairs.size())];
        const Status status = network.deliver(from, to);
        CAPTURE(status.message());
        CHECK(status.ok());
      }
    } else if (dice < 80) {
      if (network.running(i)) {
        advance(i);
      }
    } else if (dice < 88) {
      network.connect(i, j);
    } else if (dice < 91) {
      network.disconnect(i, j);
    } else if (dice < 94) {
      network.kill(i);
    } else if (dice < 99 || faults == Faults::crashes) {
      if (!network.running(i)) {
        network.start(i);
      }
    } else {
      put_back(i);
      return;
    }
    follow();
  }

  /// What a driver does next, or half of it.
  void advance(std::size_t i) {
    if (network.node(i).phase == SiteNetwork::Phase::offered) {
      if (network.site(i).complete() || random_.below(4) == 0) {
        if (network.site(i).ask_for_sum()) {
          network.pump(i);
        } else {
          network.collect(i);
        }
      }
      return;
    }
    const bool ready = network.site(i).try_begin(random_.below(3) == 0);
    network.pump(i);
    follow();
    if (!ready) {
      return;
    }
    network.train(i);
    follow();
    const auto cut = random_.below(12);
    if (cut == 0) {
      network.kill(i);  // before the write
      return;
    }
    network.write(i);
    if (cut == 1) {
      network.kill(i);  // before anything left
      return;
    }
    network.pump(i);
  }

  /// An older state, or none.
  void put_back(std::size_t i) {
    auto& node = network.node(i);
    if (node.history.empty()) {
      follow();
      return;
    }
    network.kill(i);
    follow();
    const auto pick = random_.below(node.history.size() + 1);
    const bool lost = pick == node.history.size();
    if (lost) {
      node.durable.clear();
    } else {
      node.durable = node.history[pick];
    }
    node.history.clear();
    network.start(i);
    follow(lost ? kNobody : i);
  }

  void calm_round(Patience patience) {
    network.connect_all();
    network.deliver_all();
    follow();
    for (std::size_t i = 0; i < network.size(); ++i) {
      network.advance(i, patience == Patience::all, true);
      follow();
    }
    for (int part = 0; part < 2; ++part) {  // secure sums ask before they collect
      network.connect_all();
      network.deliver_all();
      follow();
      for (std::size_t i = 0; i < network.size(); ++i) {
        if (network.node(i).phase == SiteNetwork::Phase::offered) {
          network.advance(i, patience == Patience::all, true);
        }
        follow();
      }
    }
    network.connect_all();
    network.deliver_all();
  }

  RandomStream random_;
};

}  // namespace sotto::test
