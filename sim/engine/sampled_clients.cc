#include "sampled_clients.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto {
namespace {

void validate(const ClientSampling& sampling, std::size_t nodes) {
  const std::vector<Client>& clients = *sampling.clients;
  const auto able = [](const Client& client) {
    return client.gradient_s >= 0 && client.gradient_s < kUnlimited && client.bytes_per_s > 0 &&
           client.bytes_per_s < kUnlimited;
  };
  if (!(sampling.model_bytes >= 0 && sampling.model_bytes < kUnlimited)) {
    refuse("model_bytes", fmt::to_string(sampling.model_bytes), "it is 0 or more bytes");
  }
  if (clients.size() < nodes || sampling.every == 0 || !std::ranges::all_of(clients, able)) {
    refuse("clients", fmt::format("{}", clients.size()),
           fmt::format("there must be one for each of the {} nodes, with a time for a gradient and "
                       "a bandwidth, and some rounds from one sample to the next",
                       nodes));
  }
}

}  // namespace

SampledClients::SampledClients(const ClientSampling& sampling, std::size_t nodes,
                               std::uint64_t seed, const Platform& platform, Network& network)
    : sampling_(sampling), network_(network), sample_(seed, nodes, sampling.clients->size()) {
  validate(sampling_, nodes);
  ways_.reserve(nodes);
  for (Rank rank = 0; static_cast<std::size_t>(rank) < nodes; ++rank) {
    const auto out = platform.egress(rank);
    const auto in = platform.ingress(rank);
    const auto limited = [&](const std::optional<LinkId>& link) {
      return link && platform.links()[*link].bytes_per_s < kUnlimited;
    };
    if (!limited(out) || !limited(in)) {
      refuse("clients", fmt::format("node {}", rank),
             "a client's bandwidth takes the place of its ways out and in, which have none");
    }
    network_.expect_bandwidths(*out);
    network_.expect_bandwidths(*in);
    ways_.push_back({*out, *in});
  }
}

SimTime SampledClients::gradient_time(Rank node, Round round) {
  const auto draw = static_cast<std::uint32_t>(round / sampling_.every);
  const Client& client = (*sampling_.clients)[sample_.client(node, draw)];
  if (round % sampling_.every != 0) {
    return from_seconds(client.gradient_s);
  }
  const Ways& ways = ways_[static_cast<std::size_t>(node)];
  network_.set_bandwidth(ways.out, client.bytes_per_s);
  network_.set_bandwidth(ways.in, client.bytes_per_s);
  return from_seconds(sampling_.model_bytes / client.bytes_per_s + client.gradient_s);
}

}  // namespace sotto
