#include "calibration.h"

#include <algorithm>

#include <fmt/format.h>

#include "bench/netlab/network/probe.h"
#include "bench/netlab/network/scenario_network.h"
#include "comparison.h"
#include "scenario_text.h"

namespace sotto::netlab {
namespace {

/// RFC 6928, of Linux's segments; a kernel tells it only to who looks at its source.
constexpr double kInitialWindow = 10 * 1448;
constexpr double kMbit_per_s = 10;
constexpr double kWarmUp_s = 0.5;
constexpr double kTransfer_s = 4;
constexpr std::uint64_t kRounds = 100;

MadeScenario slow_link() {
  return {.title = "calibration",
          .words = "dpsgd ring",
          .mbit_per_s = kMbit_per_s,
          .latency_ms = 5,
          .rounds = 20};
}

Result<double> measure_share() {
  const auto network = make_network(scenario_from(slow_link().text()));
  const auto rate = measure_rate(*network, 0, 1, kWarmUp_s, kTransfer_s);
  return rate.ok() ? Result<double>(std::min(1.0, *rate / (kMbit_per_s * 1e6 / 8))) : rate;
}

Result<Comparison> try_out(const MadeScenario& made, const std::string& transport,
                           const Calibration& so_far, const RealProgram& program) {
  Comparison found = compare(calibrated(scenario_from(made.text()), so_far, transport), made.words,
                             transport, program);
  return found.ok() ? Result<Comparison>(std::move(found))
                    : Status(Fault::unexpected, found.failure);
}

/// An exchange of a fast link: how much longer it takes than the network alone says.
double excess_s(const Comparison& found) {
  return (found.measured_s - found.predicted_s) / kRounds;
}

/// Bytes of the vector that a node encodes in one, and of that which it decodes.
double bytes_of(const Comparison& found) {
  return sizeof(float) * static_cast<double>(found.dimension);
}

Result<TransportCost> measure_transport(const std::string& transport, const Calibration& so_far,
                                        const RealProgram& program) {
  const auto fast_link = [](const char* model) {
    return MadeScenario{.title = "calibration",
                        .words = "dcd quant:8 ring",
                        .latency_ms = 1,
                        .gradient = "10 ms",
                        .model = model,
                        .rounds = kRounds};
  };
  const auto slow = try_out(slow_link(), transport, so_far, program);
  const auto small = try_out(fast_link("mlp:2"), transport, so_far, program);
  const auto large = try_out(fast_link("mlp:128"), transport, so_far, program);
  for (const auto* run : {&slow, &small, &large}) {
    if (!run->ok()) {
      return run->status();
    }
  }
  TransportCost cost;
  cost.acknowledgements = std::max(0.0, so_far.share * slow->wire_bytes / slow->frame_bytes - 1);
  cost.seconds_per_byte =
      std::max(0.0, (excess_s(*large) - excess_s(*small)) / (bytes_of(*large) - bytes_of(*small)));
  cost.seconds = std::max(0.0, excess_s(*small) - cost.seconds_per_byte * bytes_of(*small));
  return cost;
}

}  // namespace

Result<Calibration> calibrate(const std::vector<std::string>& transports,
                              const RealProgram& program) {
  const auto say = [&](const std::string& what) {
    if (program.say) {
      program.say(what);
    }
  };
  say("calibrating: a long transfer between two nodes");
  const auto share = measure_share();
  if (!share.ok()) {
    return share.status();
  }
  const Calibration network = {.share = *share, .window_bytes = kInitialWindow, .transports = {}};
  Calibration found = network;
  RealProgram silent = program;
  silent.say = {};
  for (const std::string& transport : transports) {
    say(fmt::format("calibrating: three runs of two nodes over {}", transport));
    const auto cost = measure_transport(transport, network, silent);
    if (!cost.ok()) {
      return cost.status();
    }
    found.transports[transport] = *cost;
  }
  return found;
}

study::Scenario calibrated(study::Scenario scenario, const Calibration& calibration,
                           const std::string& transport) {
  scenario.network = NetworkModel::linux_tcp();
  scenario.network.bandwidth_factor = calibration.share;
  scenario.network.initial_window_bytes = calibration.window_bytes;
  scenario.transport = transport == "gloo" ? TransportModel::gloo() : TransportModel::zmq();
  if (const auto cost = calibration.transports.find(transport);
      cost != calibration.transports.end()) {
    scenario.network.acknowledgements = cost->second.acknowledgements;
    for (NodeSpec& node : scenario.node_specs) {
      node.codec = {.encode_s_per_byte = cost->second.seconds_per_byte / 2,
                    .decode_s_per_byte = cost->second.seconds_per_byte / 2,
                    .seconds_per_exchange = cost->second.seconds};
    }
  }
  return scenario;
}

std::string calibration_toml(const Calibration& calibration, const std::string& transport) {
  const TransportCost& cost = calibration.transports.at(transport);
  std::string codec;
  if (cost.seconds_per_byte > 0) {
    codec = fmt::format("codec = \"{:.4g} MB/s\"\n", 2e-6 / cost.seconds_per_byte);
  }
  return fmt::format(
      "[nodes]\n"
      "overhead = \"{:.4g} us\"\n"
      "{}"
      "[network]\n"
      "transport = \"{}\"\n"
      "tcp = {{ share = {:.4f}, acknowledgements = {:.4f}, window = {:.0f} }}\n",
      1e6 * cost.seconds, codec, transport, calibration.share, cost.acknowledgements,
      calibration.window_bytes);
}

Json calibration_json(const Calibration& calibration) {
  Json transports = Json::object();
  for (const auto& [transport, cost] : calibration.transports) {
    transports[transport] = {{"acknowledgements", cost.acknowledgements},
                             {"seconds", cost.seconds},
                             {"seconds_per_byte", cost.seconds_per_byte}};
  }
  return {{"share", calibration.share},
          {"window_bytes", calibration.window_bytes},
          {"transports", transports}};
}

}  // namespace sotto::netlab
