#include "simgrid_ring.h"

#include <chrono>
#include <cstddef>
#include <string>

#include <simgrid/s4u.hpp>

namespace sg = simgrid::s4u;

namespace {

/// Sends to the peers and hears from them, round by round.
void exchange(const std::vector<sg::Mailbox*>& to, const std::vector<sg::Mailbox*>& from,
              std::uint64_t bytes, int rounds) {
  static char payload = 0;
  for (int round = 0; round < rounds; ++round) {
    std::vector<sg::CommPtr> under_way;
    std::vector<char*> heard(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) {
      under_way.push_back(from[i]->get_async<char>(&heard[i]));
    }
    for (sg::Mailbox* peer : to) {
      under_way.push_back(peer->put_async(&payload, bytes));
    }
    for (const sg::CommPtr& comm : under_way) {
      comm->wait();
    }
  }
}

}  // namespace

double play_simgrid_ring(const std::vector<double>& bandwidths, double latency_s,
                         std::uint64_t bytes, bool both_ways, int rounds) {
  std::vector<std::string> words = {"sim_bench",
                                    "--log=root.thres:error",
                                    "--cfg=network/model:CM02",
                                    "--cfg=network/latency-factor:1",
                                    "--cfg=network/bandwidth-factor:1",
                                    "--cfg=network/weight-S:0",
                                    "--cfg=network/TCP-gamma:0",
                                    "--cfg=network/crosstraffic:0",
                                    "--cfg=contexts/stack-size:64"};
  std::vector<char*> arguments;
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  int count = static_cast<int>(arguments.size());
  sg::Engine engine(&count, arguments.data());
  auto* zone = sg::create_star_zone("star");
  const std::size_t n = bandwidths.size();
  std::vector<sg::Host*> hosts;
  for (std::size_t i = 0; i < n; ++i) {
    const std::string name = std::to_string(i);
    hosts.push_back(zone->create_host(name, 1e9));
    auto* link = zone->create_split_duplex_link(name, bandwidths[i]);
    link->set_latency(latency_s / 2)->seal();
    zone->add_route(hosts[i]->get_netpoint(), nullptr, nullptr, nullptr,
                    {{link, sg::LinkInRoute::Direction::UP}}, true);
  }
  zone->seal();
  const auto box = [](std::size_t from, std::size_t to) {
    return sg::Mailbox::by_name(std::to_string(from) + ">" + std::to_string(to));
  };
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t next = (i + 1) % n;
    const std::size_t previous = (i + n - 1) % n;
    std::vector<sg::Mailbox*> to = {box(i, next)};
    std::vector<sg::Mailbox*> from = {box(previous, i)};
    if (both_ways) {
      to.push_back(box(i, previous));
      from.push_back(box(next, i));
    }
    sg::Actor::create("ring", hosts[i],
                      [to, from, bytes, rounds] { exchange(to, from, bytes, rounds); });
  }
  const auto start = std::chrono::steady_clock::now();
  engine.run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}
