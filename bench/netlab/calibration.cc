#include "calibration.h"

#include <algorithm>
#include <thread>

#include <fmt/format.h>

#include "probe.h"
#include "scenario_text.h"

namespace sotto::netlab {
namespace {

/// RFC 6928, of Linux's segments; a kernel tells it only to who looks at its source.
constexpr double kInitialWindow = 10 * 1448;
constexpr double kMbit_per_s = 10;
constexpr double kWarmUp_s = 0.5;
constexpr double kTransfer_s = 4;
constexpr std::uint64_t kRounds = 100;

struct Transfers {
  double one_way = 0;
  double both_ways = 0;
};

Result<Transfers> measure_transfers() {
  const auto lab = make_lab(scenario_from(MadeScenario{
      .title = "calibration", .words = "dpsgd", .mbit_per_s = kMbit_per_s, .latency_ms = 5}
                                              .text()));
  const auto alone = measure_rate(*lab, 0, 1, kWarmUp_s, kTransfer_s);
  if (!alone.ok()) {
    return alone.status();
  }
  Result<double> there = 0.0;
  std::thread other([&] { there = measure_rate(*lab, 0, 1, kWarmUp_s, kTransfer_s); });
  const Result<double> back = measure_rate(*lab, 1, 0, kWarmUp_s, kTransfer_s);
  other.join();
  if (!there.ok() || !back.ok()) {
    return there.ok() ? back.status() : there.status();
  }
  return Transfers{*alone, (*there + *back) / 2};
}

/// Seconds that an exchange takes longer than the network alone says, and its frame's bytes.
struct Excess {
  double seconds = 0;
  double bytes = 0;
};

Result<Excess> measure_excess(const std::string& model, const std::string& transport,
                              const Calibration& so_far, const Laboratory& laboratory) {
  const MadeScenario made = {.title = "calibration",
                             .words = "dcd quant:8 ring",
                             .latency_ms = 1,
                             .gradient = "10 ms",
                             .model = model,
                             .rounds = kRounds};
  const cli::Scenario scenario = scenario_from(made.text());
  const Comparison found =
      compare(calibrated(scenario, so_far, transport), made.words, transport, laboratory);
  if (!found.ok()) {
    return Status(Fault::unexpected, found.failure);
  }
  return Excess{(found.measured_s - found.predicted_s) / kRounds, found.bytes_per_edge / kRounds};
}

}  // namespace

Result<Calibration> calibrate(const std::vector<std::string>& transports,
                              const Laboratory& laboratory) {
  const auto transfers = measure_transfers();
  if (!transfers.ok()) {
    return transfers.status();
  }
  Calibration found;
  found.share = std::min(1.0, transfers->one_way / (kMbit_per_s * 1e6 / 8));
  found.acknowledgements = std::max(0.0, transfers->one_way / transfers->both_ways - 1);
  found.window_bytes = kInitialWindow;
  for (const std::string& transport : transports) {
    const Calibration so_far = found;
    const auto small = measure_excess("mlp:2", transport, so_far, laboratory);
    const auto large = measure_excess("mlp:128", transport, so_far, laboratory);
    if (!small.ok() || !large.ok()) {
      return small.ok() ? large.status() : small.status();
    }
    ExchangeCost cost;
    cost.seconds_per_byte =
        std::max(0.0, (large->seconds - small->seconds) / (large->bytes - small->bytes));
    cost.seconds = std::max(0.0, small->seconds - cost.seconds_per_byte * small->bytes);
    found.exchange[transport] = cost;
  }
  return found;
}

cli::Scenario calibrated(cli::Scenario scenario, const Calibration& calibration,
                         const std::string& transport) {
  scenario.network.bandwidth_factor = calibration.share;
  scenario.network.crosstraffic = calibration.acknowledgements;
  scenario.network.initial_window_bytes = calibration.window_bytes;
  scenario.transport = transport == "gloo" ? TransportModel::gloo() : TransportModel::zmq();
  if (const auto cost = calibration.exchange.find(transport); cost != calibration.exchange.end()) {
    for (NodeSpec& pace : scenario.paces) {
      pace.codec = {.encode_s_per_byte = cost->second.seconds_per_byte / 2,
                    .decode_s_per_byte = cost->second.seconds_per_byte / 2,
                    .seconds_per_exchange = cost->second.seconds};
    }
  }
  return scenario;
}

std::string calibration_toml(const Calibration& calibration, const std::string& transport) {
  const ExchangeCost& cost = calibration.exchange.at(transport);
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
      1e6 * cost.seconds, codec, transport, calibration.share, calibration.acknowledgements,
      calibration.window_bytes);
}

cli::Json calibration_json(const Calibration& calibration) {
  cli::Json exchange = cli::Json::object();
  for (const auto& [transport, cost] : calibration.exchange) {
    exchange[transport] = {{"seconds", cost.seconds}, {"seconds_per_byte", cost.seconds_per_byte}};
  }
  return {{"share", calibration.share},
          {"acknowledgements", calibration.acknowledgements},
          {"window_bytes", calibration.window_bytes},
          {"exchange", exchange}};
}

}  // namespace sotto::netlab
