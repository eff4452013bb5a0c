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

/// Each of "HOST:PORT HOST:PORT …".
std::vector<std::string_view> each_of(std::string_view addresses) {
  std::vector<std::string_view> all;
  while (!addresses.empty()) {
    all.push_back(addresses.substr(0, addresses.find(' ')));
    addresses.remove_prefix(std::min(addresses.size(), all.back().size() + 1));
  }
  return all;
}

std::optional<int> port_of(std::string_view endpoint) {
  return parse_number<int>(endpoint.substr(endpoint.rfind(':') + 1));
}

}  // namespace

std::string host_of_addresses(std::string_view addresses) {
  const auto first = addresses.substr(0, addresses.find(' '));
  const auto host = first.substr(0, first.rfind(':'));
  const bool loopback = host.starts_with("127.") || host == "[::1]" || host == kLoopback;
  return std::string(loopback ? kLoopback : host);
}

bool listens_at(std::string_view addresses, std::string_view endpoint) {
  return std::ranges::any_of(each_of(addresses), [&](std::string_view one) {
    return port_of(one).has_value() && port_of(one) == port_of(endpoint) &&
           host_of_addresses(one) == host_of_addresses(endpoint);
  });
}

std::vector<int> monitor_ports(const TrustPlan& plan, int first,
                               const std::vector<std::optional<int>>& present) {
  const auto host_of = [&](const PlannedSite& site) {
    return site.address.empty() ? std::string(kLoopback) : host_of_addresses(site.address);
  };
  std::map<std::string, std::set<int>> taken;
  for (std::size_t i = 0; i < plan.sites.size(); ++i) {
    auto& ports = taken[host_of(plan.sites[i])];
    for (const std::string_view address : each_of(plan.sites[i].address)) {
      if (const auto port = port_of(address)) {
        ports.insert(*port);
      }
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
      throw Error("monitor",
                  fmt::format("no port from {} on is left for {}", first, plan.sites[i].name));
    }
    chosen.push_back(present[i].value_or(port));
  }
  return chosen;
}

}  // namespace sotto
