#include <sotto/sim/network/network.h>

#include <algorithm>
#include <vector>

#include "internal/connection_pairs.h"
#include "internal/connection_ways.h"
#include "internal/flows.h"
#include "internal/fluid_streams.h"
#include "internal/link_events.h"
#include "internal/packet_streams.h"
#include "internal/windowed_streams.h"

namespace sotto {
namespace {

const NetworkModel& valid(const NetworkModel& model) {
  validate(model);
  return model;
}

std::unique_ptr<FluidStreams> make_messages(const NetworkModel& model, const ConnectionPairs& pairs,
                                            ConnectionWays& ways, Flows& flows, EventQueue& queue) {
  if (model.slow_start()) {
    return std::make_unique<WindowedStreams>(model, pairs, ways, flows, queue);
  }
  return std::make_unique<FluidStreams>(model.latency_first, ways, flows, queue);
}

}  // namespace

struct Network::Parts {
  Parts(const Platform& platform, const NetworkModel& of_model, std::uint64_t seed,
        EventQueue& queue)
      : model(valid(of_model)),
        link_events(platform, queue),
        ways(platform, of_model, seed),
        flows(platform, of_model, ways, queue),
        messages(make_messages(of_model, pairs, ways, flows, queue)),
        packets(of_model, seed, pairs, ways, flows, queue),
        carried(platform.links().size(), 0) {}

  /// What moves the bytes of a connection.
  Streams& streams(ConnectionId id) {
    return packets.has(id) ? static_cast<Streams&>(packets) : *messages;
  }
  bool idle(ConnectionId id) { return streams(id).under_way(id) == 0; }

  NetworkModel model;
  LinkEvents link_events;
  ConnectionPairs pairs;  ///< those whose acknowledgements queue
  ConnectionWays ways;
  Flows flows;
  std::unique_ptr<FluidStreams> messages;  ///< of all connections but those that lose packets
  PacketStreams packets;
  std::vector<double> carried;
};

Network::Network(const Platform& platform, const NetworkModel& model, std::uint64_t seed,
                 EventQueue& queue)
    : queue_(queue),
      parts_(std::make_unique<Parts>(platform, model, seed, queue)),
      shares_(parts_->flows.shares()) {}

Network::~Network() = default;

void Network::reserve(std::size_t connections) {
  parts_->ways.reserve(connections);
  parts_->flows.reserve(connections);
  parts_->messages->reserve(connections);
}

ConnectionId Network::connect(const Platform& platform, Rank from, Rank to) {
  const ConnectionId id = parts_->ways.add(platform, from, to);
  parts_->flows.add();
  parts_->messages->add();
  if (parts_->model.slow_start()) {
    parts_->packets.add_if_lossy(id);
    if (parts_->packets.has(id) || parts_->model.packet_bytes > 0) {
      parts_->pairs.add(id, from, to);
    }
  }
  return id;
}

void Network::send(ConnectionId id, std::uint64_t bytes) { parts_->streams(id).send(id, bytes); }

void Network::notify_back(ConnectionId id) {
  if (const auto back = parts_->pairs.reverse(id); back && parts_->packets.has(*back)) {
    parts_->packets.send_notice(*back);
  }
}

void Network::abort(ConnectionId id) { parts_->streams(id).abort(id); }

void Network::expect_bandwidths(LinkId link) { parts_->ways.links().expect_change(link); }

void Network::set_bandwidth(LinkId link, double bytes_per_s) {
  parts_->flows.change({.at = now(),
                        .link = link,
                        .bytes_per_s = bytes_per_s,
                        .latency = parts_->ways.links()[link].latency});
}

std::optional<Arrival> Network::handle(const Event& event) {
  if (LinkEvents::takes(event)) {
    parts_->flows.change(parts_->link_events.take(event));
    return {};
  }
  const ConnectionId id = event.subject;
  const auto bytes = parts_->streams(id).handle(event);
  if (!bytes) {
    return {};
  }
  for (const LinkId link : parts_->ways.there(id)) {
    parts_->carried[link] += static_cast<double>(*bytes);
  }
  return Arrival{id, *bytes};
}

void Network::settle() {
  for (const ConnectionId id : parts_->flows.settle()) {
    parts_->streams(id).take_rate(id);
  }
}

std::optional<Arrival> Network::step() {
  while (true) {
    if (shares().dirty() && queue_.next_time() > queue_.now()) {
      settle();
    }
    if (queue_.empty()) {
      return {};
    }
    if (auto arrival = handle(queue_.pop())) {
      return arrival;
    }
  }
}

SimTime Network::latency(ConnectionId id) const { return parts_->ways.latency(id); }

SimTime Network::latency_back(ConnectionId id) const { return parts_->ways.latency_back(id); }

bool Network::passable(ConnectionId id) const { return parts_->ways.open(id); }

bool Network::passable_back(ConnectionId id) const { return parts_->ways.open_back(id); }

std::size_t Network::under_way(ConnectionId id) const { return parts_->streams(id).under_way(id); }

std::optional<ConnectionId> Network::moving() const {
  for (ConnectionId id = 0; id < parts_->ways.size(); ++id) {
    if (!parts_->idle(id) && passable(id)) {
      return id;
    }
  }
  return {};
}

bool Network::will_move() const {
  const auto opens = [this](LinkId link) {
    return parts_->ways.links()[link].bytes_per_s > 0 || parts_->link_events.steps_later(link);
  };
  for (ConnectionId id = 0; id < parts_->ways.size(); ++id) {
    if (!parts_->idle(id) && std::ranges::all_of(parts_->ways.there(id), opens)) {
      return true;
    }
  }
  return false;
}

std::span<const double> Network::carried() const { return parts_->carried; }

double Network::offered(LinkId link) const { return parts_->ways.links().offered(link, now()); }

std::size_t Network::trace_events() const { return parts_->link_events.steps_queued(); }

}  // namespace sotto
