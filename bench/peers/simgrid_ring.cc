// sotto-simgrid-ring: the ring exchange of `sotto bench sim` in SimGrid, an actor for each host.
//
//   sotto-simgrid-ring NODES alone|contended ROUNDS
//
// prints the seconds of processor time that it took, the platform's construction not counted. A
// program of its own: `sotto` runs it as a child and stays free of libsimgrid.
#include <cstddef>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <simgrid/s4u.hpp>

#include <sotto/sim/ring_exchange.h>

namespace sg = simgrid::s4u;
using namespace sotto;

namespace {

/// Sends to the peers and hears from them, round by round.
void exchange(const std::vector<sg::Mailbox*>& to, const std::vector<sg::Mailbox*>& from,
              int rounds) {
  static char payload = 0;
  for (int round = 0; round < rounds; ++round) {
    std::vector<sg::CommPtr> under_way;
    std::vector<char*> heard(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) {
      under_way.push_back(from[i]->get_async<char>(&heard[i]));
    }
    for (sg::Mailbox* peer : to) {
      under_way.push_back(peer->put_async(&payload, kRingMessageBytes));
    }
    for (const sg::CommPtr& comm : under_way) {
      comm->wait();
    }
  }
}

sg::Mailbox* box(int from, int to) {
  return sg::Mailbox::by_name(std::to_string(from) + ">" + std::to_string(to));
}

/// Hosts at a switch, and on each the actor that plays it.
void set_up(int nodes, bool contention, int rounds) {
  auto* zone = sg::create_star_zone("star");
  std::vector<sg::Host*> hosts;
  for (int i = 0; i < nodes; ++i) {
    const std::string name = std::to_string(i);
    hosts.push_back(zone->create_host(name, 1e9));
    auto* link = zone->create_split_duplex_link(name, ring_bandwidth(i, contention));
    link->set_latency(kRingLatencyS / 2)->seal();
    zone->add_route(hosts.back()->get_netpoint(), nullptr, nullptr, nullptr,
                    {{link, sg::LinkInRoute::Direction::UP}}, true);
  }
  zone->seal();
  for (int i = 0; i < nodes; ++i) {
    const int next = (i + 1) % nodes;
    const int previous = (i + nodes - 1) % nodes;
    std::vector<sg::Mailbox*> to = {box(i, next)};
    std::vector<sg::Mailbox*> from = {box(previous, i)};
    if (contention) {
      to.push_back(box(i, previous));
      from.push_back(box(next, i));
    }
    sg::Actor::create("ring", hosts[static_cast<std::size_t>(i)],
                      [to, from, rounds] { exchange(to, from, rounds); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int nodes = argc == 4 ? std::atoi(argv[1]) : 0;
  const int rounds = argc == 4 ? std::atoi(argv[3]) : 0;
  if (nodes < 3 || rounds < 1) {
    fmt::print(stderr, "usage: sotto-simgrid-ring NODES alone|contended ROUNDS\n");
    return 2;
  }
  std::vector<std::string> words = {argv[0],
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
  set_up(nodes, std::string_view(argv[2]) == "contended", rounds);
  const std::clock_t start = std::clock();
  engine.run();
  fmt::print("{}\n", static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  return 0;
}
