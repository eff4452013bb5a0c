#include "trust.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include <sotto/base/error.h>

#include "address/address.h"
#include "address/host_port.h"
#include "backends.h"
#include "neighbours.h"

namespace sotto::internal {
namespace {

bool holds(const std::vector<Rank>& sorted, Rank rank) {
  return std::binary_search(sorted.begin(), sorted.end(), rank);
}

/// The sends and receives of the graph that the list does not allow with a peer, in words; empty
/// when it allows all.
std::string missing_trust(const TransportOptions& options, Rank rank,
                          const std::optional<TrustedPeer>& line) {
  if (!line) {
    return "names no such rank";
  }
  if (holds(options.from, rank) && !line->may_send) {
    return "says may_send no";
  }
  if (holds(options.to, rank) && !line->send_to) {
    return "says send_to no";
  }
  return {};
}

}  // namespace

void check_trust(const TransportOptions& options) {
  const Security& security = *options.security;
  for (const TrustedPeer& line : security.peers->peers()) {
    const bool ours = line.key == security.own.public_key;
    if (line.rank == options.rank && !ours) {
      refuse("key", security.own.public_key.text(),
             fmt::format("the list of peers gives rank {} another key: {}", line.rank,
                         line.key.text()));
    }
    if (line.rank != options.rank && ours) {
      refuse("rank", fmt::to_string(options.rank),
             fmt::format("the list of peers gives this node's key to rank {}", line.rank));
    }
  }
  for (const Rank rank : neighbours(options)) {
    const auto missing = missing_trust(options, rank, security.peers->find(rank));
    if (!missing.empty()) {
      refuse(
          "peers", fmt::format("rank {}", rank),
          fmt::format("the graph makes it a neighbour that {}, but the list {}; change the list, "
                      "or take a graph along the edges that are trusted",
                      !holds(options.from, rank) ? "this node sends to"
                      : !holds(options.to, rank) ? "sends to this node"
                                                 : "this node hears and sends to",
                      missing));
    }
  }
}

TransportOptions with_present_list(TransportOptions options) {
  options.security->peers = std::make_shared<AllowList>(options.security->peers->peers());
  return options;
}

std::map<Rank, std::string> static_endpoints(const TransportOptions& options) {
  std::map<Rank, std::string> endpoints;
  const auto ranks = neighbours(options);
  for (const Rank rank : ranks) {
    const auto line = options.security->peers->find(rank);
    const auto address = line ? parse_host_port(line->address) : std::nullopt;
    if (address) {
      endpoints[rank] =
          resolve_host("peers", address->host).endpoint(fmt::to_string(address->port));
    }
  }
  if (!endpoints.empty() && endpoints.size() != ranks.size()) {
    refuse("peers", fmt::format("{} addresses", endpoints.size()),
           fmt::format("of {} neighbours; give one for each, or for none", ranks.size()));
  }
  return endpoints;
}

std::string own_port(const TransportOptions& options) {
  const auto line = options.security->peers->find(options.rank);
  const auto address = line ? parse_host_port(line->address) : std::nullopt;
  return address ? fmt::to_string(address->port) : "*";
}

std::optional<std::string> trusted_key(const TransportOptions& options, Rank peer) {
  const auto line = options.security->peers->find(peer);
  return missing_trust(options, peer, line).empty() ? std::optional(line->key.text())
                                                    : std::nullopt;
}

}  // namespace sotto::internal
