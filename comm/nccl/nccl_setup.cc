// How the nodes of a job find each other and come to share a communicator.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "../internal/backends.h"
#include "../internal/meeting/rendezvous.h"
#include "nccl_transport.h"

namespace sotto::internal {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{1};

/// The communicator's id from rank 0, which all nodes meet, so that it is of now and all are known
/// to have come. The others have nothing to say.
Result<CommunicatorId> share_id(const TransportOptions& options, NcclApi& api, Deadline deadline) {
  TransportOptions star = options;
  star.to.clear();
  star.from.clear();
  CommunicatorId id{};
  Addresses mine;
  if (options.rank == 0) {
    auto made = api.make_id();
    if (!made) {
      return made.status();
    }
    id = *made;
    for (Rank peer = 1; peer < options.nodes; ++peer) {
      star.to.push_back(peer);
      mine[peer] = {id.begin(), id.end()};
    }
  } else {
    star.to.push_back(0);
    mine[0] = {};
  }
  const auto theirs = meet(star, "nccl-id", mine, deadline);
  if (!theirs) {
    return theirs.status();
  }
  if (options.rank != 0) {
    const auto& bytes = theirs->at(0);
    if (bytes.size() != id.size()) {
      return Status(Fault::malformed, "node 0 gave no id of a communicator");
    }
    std::memcpy(id.data(), bytes.data(), id.size());
  }
  return id;
}

/// Waits until all have joined. What neighbours say meanwhile goes into `early`.
Status await_all(const TransportOptions& options, NcclApi& api, Communicator communicator,
                 ControlLinks& control, std::vector<News>& early, Deadline deadline) {
  for (;;) {
    const auto settled = api.settled(communicator);
    if (!settled || *settled) {
      return settled.status();
    }
    if (deadline.expired()) {
      return {deadline.fault(),
              fmt::format("NCCL did not join its {} ranks in time", options.nodes)};
    }
    for (News& news :
         control.wait(std::min<Deadline::Clock::duration>(kBetweenLooks, deadline.left()))) {
      if (!news.notice) {
        return {Fault::peer_lost, fmt::format("node {} is gone: {}", news.peer, news.reason)};
      }
      early.push_back(std::move(news));
    }
  }
}

Result<NcclLinks> connect(const TransportOptions& options, std::shared_ptr<Device> device,
                          std::shared_ptr<NcclApi> api, const Address& address) {
  const Deadline deadline = Deadline::after(options.connect_timeout, &options.stop);
  NcclLinks links;
  links.device = device;
  if (auto status = device->use(); !status.ok()) {
    return status;
  }
  const auto id = share_id(options, *api, deadline);
  if (!id) {
    return id.status();
  }
  links.control = std::make_unique<ControlLinks>(options);
  if (auto status = links.control->connect(address, deadline); !status.ok()) {
    return status;
  }
  const auto communicator = api->join(options.nodes, *id, options.rank);
  if (!communicator) {
    return communicator.status();
  }
  if (auto status = await_all(options, *api, *communicator, *links.control, links.early, deadline);
      !status.ok()) {
    api->abort(*communicator);
    return status;
  }
  const auto bytes_for = [&](const std::vector<Rank>& peers) {
    std::map<Rank, std::size_t> bytes;
    for (const Rank peer : peers) {
      bytes[peer] = links.control->message_bytes(peer);
    }
    return bytes;
  };
  auto carrier = Carrier::make(std::move(device), std::move(api), *communicator,
                               bytes_for(options.to), bytes_for(options.from));
  if (!carrier) {
    return carrier.status();
  }
  links.carrier = std::move(*carrier);
  return links;
}

}  // namespace

Result<std::unique_ptr<Transport>> make_nccl_transport(const TransportOptions& options,
                                                       std::shared_ptr<Device> device,
                                                       std::shared_ptr<NcclApi> api) {
  const auto address = resolve_bind_address(
      "bind", options.bind, {.beyond_loopback = options.insecure, .everywhere = false});
  auto kept = std::make_unique<TransportOptions>(options);
  NcclLinks links;
  if (options.nodes > 1) {
    auto connected = connect(*kept, std::move(device), std::move(api), address);
    if (!connected) {
      return connected.status().with_context("nccl");
    }
    links = std::move(*connected);
  }
  return Result<std::unique_ptr<Transport>>(
      std::make_unique<NcclTransport>(std::move(kept), std::move(links)));
}

}  // namespace sotto::internal
