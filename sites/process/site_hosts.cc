#include "site_hosts.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/number.h>

namespace sotto {
namespace {

constexpr int kLargestPort = 65'535;
constexpr std::string_view kLoopback = "localhost";

/// The ports of "HOST:PORT HOST:PORT …".
std::vector<int> ports_of(std::string_view addresses) {
  std::vector<int> ports;
  while (!addresses.empty()) {
    const auto one = addresses.substr(0, addresses.find(' '));
    addresses.remove_prefix(std::min(addresses.size(), one.size() + 1));
    if (const auto port = parse_number<int>(one.substr(one.rfind(':') + 1))) {
      ports.push_back(*port);
    }
  }
  return ports;
}

}  // namespace

std::string host_of_addresses(std::string_view addresses) {
  const auto first = addresses.substr(0, addresses.find(' '));
  const auto host = first.substr(0, first.rfind(':'));
  const bool loopback = host.starts_with("127.") || host == "[::1]" || host == kLoopback;
  return std::string(loopback ? kLoopback : host);
}

std::vector<int> monitor_ports(const TrustPlan& plan, int first,
                               const std::vector<std::optional<int>>& present) {
  const auto host_of = [&](const PlannedSite& site) {
    return site.address.empty() ? std::string(kLoopback) : host_of_addresses(site.address);
  };
  std::map<std::string, std::set<int>> taken;
  for (std::size_t i = 0; i < plan.sites.size(); ++i) {
    auto& ports = taken[host_of(plan.sites[i])];
    for (const int port : ports_of(plan.sites[i].address)) {
      ports.insert(port);
    }
    if (present.at(i)) {
      ports.insert(*present[i]);
    }
  }
  std::vector<int> chosen;
  for (std::size_t i = 0; i < plan.sites.size(); ++i) {
    auto& ports = taken[host_of(plan.sites[i])];
    int port = first;
    while (!present[i] && !ports.insert(port).second) {
      ++port;
    }
    if (port > kLargestPort) {
      throw Error(
          fmt::format("monitor: no port from {} on is left for {}", first, plan.sites[i].name));
    }
    chosen.push_back(present[i].value_or(port));
  }
  return chosen;
}

}  // namespace sotto
