#include "stream_cell.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include <sotto/sim/network/network.h>

namespace sotto::netlab {
namespace {

/// Payload's share of a full packet, and what acknowledgements take beside it.
constexpr double kShare = 1448.0 / 1500;
constexpr double kAcknowledgements = 0.019;

double figure(std::mt19937_64& random, double least, double most) {
  const double at = static_cast<double>(random() >> 11U) * 0x1p-53;
  return least * std::pow(most / least, at);
}

}  // namespace

StreamCell draw_cell(std::uint64_t seed, std::uint64_t number, const StreamRange& range) {
  std::mt19937_64 random(seed * 1'000'003 + number);
  StreamCell cell;
  cell.loss = figure(random, range.least_loss, range.most_loss);
  cell.round_trip_ms = figure(random, 10, 300);
  cell.mbit_per_s = figure(random, 5, 200);
  cell.bytes = static_cast<std::uint64_t>(figure(random, 1e4, 1e6));
  cell.loss_burst = range.bursts ? figure(random, 1.2, 2) : 0;
  return cell;
}

double predicted_seconds(const StreamCell& cell, Congestion congestion, std::uint64_t seed,
                         int seeds) {
  Platform platform(2);
  const LinkSpec link = {.bytes_per_s = cell.mbit_per_s * 1e6 / 8,
                         .latency = from_seconds(cell.round_trip_ms / 2e3),
                         .loss = cell.loss,
                         .loss_burst = cell.loss_burst};
  platform.set_route(0, 1, {platform.add_link(link)});
  platform.set_route(1, 0, {platform.add_link(link)});
  NetworkModel model = NetworkModel::linux_tcp();
  model.bandwidth_factor = kShare;
  model.acknowledgements = kAcknowledgements;
  model.congestion = congestion;
  double sum = 0;
  for (int i = 1; i <= seeds; ++i) {
    EventQueue queue;
    Network network(platform, model, seed + static_cast<std::uint64_t>(i), queue);
    const std::array<ConnectionId, 2> to_other = {network.connect(platform, 0, 1),
                                                  network.connect(platform, 1, 0)};
    std::array<int, 2> received = {};
    network.send(to_other[0], cell.bytes);
    network.send(to_other[1], cell.bytes);
    while (received[0] < cell.rounds || received[1] < cell.rounds) {
      const std::size_t from = network.step()->connection == to_other[0] ? 0 : 1;
      if (++received[1 - from] < cell.rounds) {
        network.send(to_other[1 - from], cell.bytes);
      }
    }
    sum += to_seconds(queue.now());
  }
  return sum / seeds;
}

void shape(EmulatedNetwork& network, const StreamCell& cell, Host first, Host second) {
  const LinkShape link = {.bytes_per_s = cell.mbit_per_s * 1e6 / 8,
                          .latency = from_seconds(cell.round_trip_ms / 2e3),
                          .loss = cell.loss,
                          .loss_burst = cell.loss_burst};
  network.set_link(first, second, link);
  network.set_link(second, first, link);
}

}  // namespace sotto::netlab
