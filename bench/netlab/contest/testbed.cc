#include "testbed.h"

#include <chrono>
#include <thread>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/comm/deadline.h>
#include <sotto/study/units.h>

#include "bench/netlab/network/scenario_network.h"
#include "bench/netlab/prediction/scenario_text.h"

namespace sotto::netlab {
namespace {

constexpr std::chrono::milliseconds kTestbedLook{5};
constexpr std::chrono::seconds kLongestSettling{5};
constexpr double kBytesPerMbit = 125'000;

}  // namespace

Testbed::Testbed(const TestbedShape& shape) : shape_(shape) {
  if (shape.hosts < 2 || shape.hosts > kMostHosts) {
    refuse("--hosts", fmt::to_string(shape.hosts), fmt::format("it must be 2 to {}", kMostHosts));
  }
  if (shape.loopback) {
    return;
  }
  const MadeScenario made = {.title = "race",
                             .words = "allreduce",
                             .nodes = shape.hosts,
                             .mbit_per_s = study::parse_bandwidth(shape.bandwidth) / kBytesPerMbit,
                             .latency_ms = 1000 * to_seconds(study::parse_duration(shape.latency)),
                             .loss = shape.loss};
  scenario_ = scenario_from(made.text());
  try {
    check_emulable(*scenario_);
  } catch (const Error& error) {  // all else of it is made here
    throw Error(fmt::format("--bandwidth: {}", error.what()));
  }
  // Programs meet through files. Open MPI cannot tell two addresses of a device apart.
  network_ = make_network(*scenario_, false);
}

const NetworkNamespace* Testbed::at(Host host) const {
  return network_ ? &network_->at(host) : nullptr;
}

std::string Testbed::address(Host host) const {
  return network_ ? shaped_address(host) : std::string("127.0.0.1");
}

std::string Testbed::device() const { return network_ ? "link" : "lo"; }

std::uint64_t Testbed::carried() const { return network_ ? network_->carried() : 0; }

void Testbed::settle() const {
  const Deadline deadline = Deadline::after(kLongestSettling);
  while (network_ && !network_->idle() && !deadline.expired()) {
    std::this_thread::sleep_for(kTestbedLook);
  }
}

std::vector<LinkCheck> Testbed::check() const {
  return network_ ? check_links(*network_, *scenario_, {{0, 1}}) : std::vector<LinkCheck>{};
}

std::string Testbed::text() const {
  return network_
             ? fmt::format("{} hosts, {} up and down, {} one way{}", shape_.hosts, shape_.bandwidth,
                           shape_.latency,
                           shape_.loss > 0 ? fmt::format(", {} % lost", 100 * shape_.loss) : "")
             : fmt::format("{} processes on loopback, without shaping", shape_.hosts);
}

Json Testbed::json() const {
  return {{"hosts", shape_.hosts},
          {"loopback", shape_.loopback},
          {"bandwidth", network_ ? Json(shape_.bandwidth) : Json()},
          {"latency", network_ ? Json(shape_.latency) : Json()},
          {"loss", network_ ? Json(shape_.loss) : Json()}};
}

}  // namespace sotto::netlab
