// Reads a case from standard input, lets SimGrid play it, and prints when each message is complete.
// A program of its own, because SimGrid's engine lives once a process. SimGrid's settings are taken
// from the command line (--cfg=…).
//
// Case, all separated by white space: hosts; links, then for each bytes/s and latency in s; routes,
// then for each from, to, number of links and the links; messages, then for each the start in s,
// from, to and bytes. Output: a time in s a line, in the order of the messages.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include <simgrid/s4u.hpp>

namespace sg = simgrid::s4u;

namespace {

template <typename T>
T next() {
  T value{};
  if (!(std::cin >> value)) {
    std::fprintf(stderr, "the case ends too early\n");
    std::exit(1);
  }
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  sg::Engine engine(&argc, argv);
  auto* zone = sg::create_full_zone("zone");
  std::vector<sg::Host*> hosts(next<std::size_t>());
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    hosts[i] = zone->create_host("host" + std::to_string(i), 1e9);
  }
  std::vector<sg::Link*> links(next<std::size_t>());
  for (std::size_t i = 0; i < links.size(); ++i) {
    links[i] = zone->create_link("link" + std::to_string(i), next<double>());
    links[i]->set_latency(next<double>());
    links[i]->seal();
  }
  for (auto routes = next<std::size_t>(); routes > 0; --routes) {
    auto* from = hosts.at(next<std::size_t>());
    auto* to = hosts.at(next<std::size_t>());
    std::vector<sg::LinkInRoute> crossed;
    for (auto count = next<std::size_t>(); count > 0; --count) {
      crossed.emplace_back(links.at(next<std::size_t>()), sg::LinkInRoute::Direction::NONE);
    }
    zone->add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, crossed, false);
  }
  zone->seal();
  std::vector<double> times(next<std::size_t>());
  for (double& time : times) {
    const auto start = next<double>();
    auto* from = hosts.at(next<std::size_t>());
    auto* to = hosts.at(next<std::size_t>());
    const auto bytes = next<std::uint64_t>();
    sg::Actor::create("message", from, [start, from, to, bytes, &time] {
      sg::this_actor::sleep_until(start);
      sg::Comm::sendto(from, to, bytes);
      time = sg::Engine::get_clock();
    });
  }
  engine.run();
  for (const double time : times) {
    std::printf("%.17g\n", time);
  }
  return 0;
}
