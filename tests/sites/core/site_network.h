// Sites and the channels between them, in memory and under the test's control: every
// delivery, loss of a channel, crash and restart happens when the test says so.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/philox.h>
#include <sotto/compress/registry.h>
#include <sotto/sites/core/site.h>

namespace sotto::test {

using sites::PeerState;
using sites::Released;
using sites::Site;
using sites::SitePeer;
using sites::SiteSetup;
using sites::SiteState;

/// Writes the gradient of site i in a round at x.
using SiteGradient = std::function<void(std::size_t site, Round round, std::span<const float> x,
                                        std::span<float> g)>;

struct SiteNetworkOptions {
  std::size_t sites = 4;
  std::size_t dimension = 8;
  /// Whether `from` sends to `to`; all to all when empty.
  std::function<bool(std::size_t from, std::size_t to)> edge = {};
  std::string compressor = "none";
  sites::MixingKind exchange = sites::MixingKind::push_sum;
  std::string rule = {};
  StepRuleOptions step = {.learning_rate = 0};
  Round communication_interval = 1;
  std::optional<StepRuleOptions> outer_step = {};
  /// H_i of a site; H when empty.
  std::function<Round(std::size_t site)> own_steps = {};
  sites::StepWeighting step_weighting = sites::StepWeighting::work;
  Round slack = 0;
  std::size_t window = 2;
  sites::MassRule mass = {};
  sites::PullLimits pull = {};
  sites::SecureSumRule sum = {};
  std::function<bool(std::size_t site)> observer = {};
  Round rounds = 0;
  std::uint64_t seed = 1;
  std::uint64_t era = 0;  ///< of the incarnations first drawn, see first_incarnation
  SiteGradient gradient = {};
  bool same_start = true;
};

/// Mass stays as it is: nothing comes back to 1, and a parcel may weigh anything.
inline constexpr sites::MassRule kMassStays = {
    .back = 0, .least = 0x1p-60, .most = 1024, .parcel = 1024};

/// ‖a − b‖ / ‖b‖
inline double relative_distance(std::span<const float> a, std::span<const float> b) {
  double difference = 0;
  double norm = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    difference += std::pow(static_cast<double>(a[k]) - static_cast<double>(b[k]), 2);
    norm += std::pow(static_cast<double>(b[k]), 2);
  }
  return std::sqrt(difference / norm);
}

/// The rounding of a site with this one is that of rank `site` in a run with seed + era.
inline sites::Incarnation first_incarnation(std::uint64_t era, std::size_t site) {
  return ((era + 1) << 31) + site;
}

class SiteNetwork {
 public:
  /// Where a site stands in its round.
  enum class Phase { waiting, ready, offered };

  struct Node {
    std::vector<float> x;
    std::unique_ptr<Site> site;  ///< null while its process is down
    std::vector<std::byte> durable;
    std::vector<std::vector<std::byte>> history;  ///< what was durable before
    SiteState durable_state;
    std::vector<PeerState> durable_peers;
    std::uint32_t life = 0;
    Phase phase = Phase::waiting;
    int waits = 0;  ///< for those who are late, in this round
  };

  explicit SiteNetwork(SiteNetworkOptions options)
      : options_(std::move(options)), nodes_(options_.sites) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      start(i);
    }
  }

  std::size_t size() const { return nodes_.size(); }
  Node& node(std::size_t i) { return nodes_[i]; }
  bool running(std::size_t i) const { return nodes_[i].site != nullptr; }
  Site& site(std::size_t i) { return *nodes_[i].site; }
  SiteState state(std::size_t i) const {
    return nodes_[i].site ? nodes_[i].site->state() : nodes_[i].durable_state;
  }
  std::vector<PeerState> peers(std::size_t i) const {
    return nodes_[i].site ? nodes_[i].site->peers() : nodes_[i].durable_peers;
  }

  bool tells(std::size_t from, std::size_t to) const {
    return from != to && (!options_.edge || options_.edge(from, to));
  }
  /// The place of `peer` in the list of `i`, and back.
  std::size_t place(std::size_t i, std::size_t peer) const {
    return static_cast<std::size_t>(std::ranges::find(listed(i), peer) - listed(i).begin());
  }
  const std::vector<std::size_t>& listed(std::size_t i) const { return lists_.at(i); }

  SiteSetup setup(std::size_t i) {
    Node& node = nodes_[i];
    SiteSetup setup;
    setup.name = fmt::format("site-{}", i);
    auto& list = lists_[i];
    list.clear();
    for (std::size_t j = 0; j < nodes_.size(); ++j) {
      if (tells(i, j) || tells(j, i)) {
        list.push_back(j);
        setup.peers.push_back(
            {.name = fmt::format("site-{}", j), .hears = tells(j, i), .tells = tells(i, j)});
      }
    }
    node.x.resize(options_.dimension);
    RandomStream stream({.seed = options_.seed,
                         .rank = options_.same_start ? 0 : static_cast<Rank>(i),
                         .purpose = Purpose::initialize});
    for (float& value : node.x) {
      value = static_cast<float>(stream.normal());
    }
    setup.parameters = node.x;
    setup.step_rule = make_step_rule(options_.step);
    setup.compressor = make_compressor(options_.compressor, ContractKind::contraction);
    setup.exchange = options_.exchange;
    setup.rule = options_.rule;
    setup.communication_interval = options_.communication_interval;
    setup.outer_step_rule = options_.outer_step;
    setup.step_weighting = options_.step_weighting;
    setup.slack = options_.slack;
    setup.window = options_.window;
    setup.mass = options_.mass;
    setup.pull = options_.pull;
    setup.sum = options_.sum;
    setup.observer = options_.observer && options_.observer(i);
    setup.rounds = options_.rounds;
    setup.seed = options_.seed;
    setup.life = ++node.life;
    setup.incarnation = first_incarnation(options_.era, i) + (std::uint64_t{node.life - 1} << 8);
    const std::array<std::uint64_t, 3> drawn = {options_.seed, i, node.life};
    setup.secret = sites::derived_scalar({}, drawn);
    return setup;
  }

  /// Starts the process of a site from what is durable.
  void start(std::size_t i) {
    Node& node = nodes_[i];
    REQUIRE(node.site == nullptr);
    node.site = std::make_unique<sites::Site>(setup(i));
    node.phase = Phase::waiting;
    if (node.durable.empty()) {
      write(i);
      return;
    }
    ByteReader in(node.durable);
    const Status status = node.site->load(in);
    CAPTURE(status.message());
    REQUIRE(status.ok());
    node.durable_state = node.site->state();
    node.durable_peers = node.site->peers();
  }

  void kill(std::size_t i) {
    nodes_[i].site.reset();
    for (std::size_t j = 0; j < nodes_.size(); ++j) {
      disconnect(i, j);
    }
  }

  void write(std::size_t i) {
    Node& node = nodes_[i];
    ByteBuffer out;
    node.site->save(out);
    if (!node.durable.empty()) {
      node.history.push_back(std::move(node.durable));
    }
    node.durable = std::move(out).take();
    node.durable_state = node.site->state();
    node.durable_peers = node.site->peers();
  }

  bool connected(std::size_t i, std::size_t j) const {
    return channels_.contains({std::min(i, j), std::max(i, j)});
  }
  bool linked(std::size_t i, std::size_t j) const { return tells(i, j) || tells(j, i); }

  void connect(std::size_t i, std::size_t j) {
    if (i == j || !linked(i, j) || connected(i, j) || !running(i) || !running(j)) {
      return;
    }
    channels_[{std::min(i, j), std::max(i, j)}] = {};
    nodes_[i].site->peer_up(place(i, j));
    nodes_[j].site->peer_up(place(j, i));
    pump(i);
    pump(j);
  }

  void disconnect(std::size_t i, std::size_t j) {
    if (!connected(i, j)) {
      return;
    }
    channels_.erase({std::min(i, j), std::max(i, j)});
    for (const auto& [own, peer] : {std::pair{i, j}, std::pair{j, i}}) {
      if (running(own)) {
        nodes_[own].site->peer_down(place(own, peer));
      }
    }
  }

  /// Puts what a site has released on its channels.
  void pump(std::size_t i) {
    for (Released& released : nodes_[i].site->released()) {
      const std::size_t j = listed(i)[released.peer];
      if (released.hang_up) {
        disconnect(i, j);
      } else if (connected(i, j)) {
        queue(i, j).push_back(released.bytes());
      }
    }
  }

  std::deque<std::vector<std::byte>>& queue(std::size_t from, std::size_t to) {
    auto& channel = channels_.at({std::min(from, to), std::max(from, to)});
    return from < to ? channel.first : channel.second;
  }

  /// The pairs from → to with something under way, in a fixed order.
  std::vector<std::pair<std::size_t, std::size_t>> loaded() const {
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    for (const auto& [ends, channel] : channels_) {
      if (!channel.first.empty()) {
        pairs.emplace_back(ends.first, ends.second);
      }
      if (!channel.second.empty()) {
        pairs.emplace_back(ends.second, ends.first);
      }
    }
    return pairs;
  }

  /// Delivers the first message from → to.
  Status deliver(std::size_t from, std::size_t to) {
    auto& waiting = queue(from, to);
    const auto message = std::move(waiting.front());
    waiting.pop_front();
    Status status = nodes_[to].site->receive(place(to, from), message);
    pump(to);
    return status;
  }

  void deliver_all() {
    for (auto pairs = loaded(); !pairs.empty(); pairs = loaded()) {
      for (const auto& [from, to] : pairs) {
        if (connected(from, to) && !queue(from, to).empty()) {
          const Status status = deliver(from, to);
          CAPTURE(status.message());
          CHECK(status.ok());
        }
      }
    }
  }

  void connect_all() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        connect(i, j);
      }
    }
  }

  /// The local steps of a round, and the offer.
  void train(std::size_t i) {
    Node& node = nodes_[i];
    std::vector<float> gradient(options_.dimension);
    const Round steps =
        options_.own_steps ? options_.own_steps(i) : options_.communication_interval;
    node.site->plan_steps(steps);
    for (Round k = 0; k < steps; ++k) {
      if (options_.gradient) {
        options_.gradient(i, node.site->round(), node.site->parameters(), gradient);
      }
      const Status status = node.site->step(gradient);
      CAPTURE(status.message());
      REQUIRE(status.ok());
    }
    const Status status = node.site->offer();
    CAPTURE(status.message());
    REQUIRE(status.ok());
    node.phase = Phase::offered;
  }

  void collect(std::size_t i) {
    const Status status = nodes_[i].site->collect();
    CAPTURE(status.message());
    REQUIRE(status.ok());
    nodes_[i].phase = Phase::waiting;
    pump(i);
  }

  /// Does what the driver of a site does next; `patient` waits for those who are late.
  void advance(std::size_t i, bool patient, bool waited = false) {
    Node& node = nodes_[i];
    if (node.phase == Phase::waiting) {
      const bool ready = node.site->try_begin(waited);
      pump(i);
      if (ready) {
        train(i);
        write(i);
        pump(i);
      }
    } else if (!patient || node.site->complete() || over(node)) {
      node.waits = 0;
      if (node.site->ask_for_sum()) {
        pump(i);
        if (patient && !node.site->complete()) {
          return;
        }
      }
      collect(i);
    }
  }

  /// Rounds in which all that runs is in step, and nothing fails.
  void run_in_step(Round rounds) {
    for (Round round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (running(i)) {
          advance(i, true);
        }
      }
      deliver_all();
      for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (running(i) && nodes_[i].phase == Phase::offered) {
          CHECK(nodes_[i].site->complete());
          advance(i, true);
        }
      }
      deliver_all();
      for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (running(i) && nodes_[i].phase == Phase::offered) {  // secure sums had to be asked for
          CHECK(nodes_[i].site->complete());
          advance(i, true);
        }
      }
      deliver_all();
    }
  }

  const SiteNetworkOptions& options() const { return options_; }

 private:
  /// A mask may never come: secure sums do not wait for ever.
  bool over(Node& node) const {
    constexpr int kPatience = 3;
    return options_.exchange == sites::MixingKind::secure_mean && ++node.waits > kPatience;
  }

  using Queue = std::deque<std::vector<std::byte>>;

  SiteNetworkOptions options_;
  std::vector<Node> nodes_;
  std::map<std::size_t, std::vector<std::size_t>> lists_;
  std::map<std::pair<std::size_t, std::size_t>, std::pair<Queue, Queue>> channels_;
};

}  // namespace sotto::test
