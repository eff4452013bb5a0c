// How the nodes meet: what they compare, and the transport and the driver of what follows.
#include <sotto/trainers/optimizer.h>

#include <utility>

#include <fmt/format.h>

#include <sotto/base/digest.h>
#include <sotto/base/error.h>
#include <sotto/comm/transport.h>
#include <sotto/trainers/driver.h>
#include <sotto/trainers/node_transport.h>

#include "internal/agreement/run_agreement.h"
#include "internal/agreement/run_settings.h"
#include "internal/optimizer/whole_model.h"
#include "internal/reporting/run_reporter.h"

namespace sotto {

Status Optimizer::connect() {
  if (driver_ || !status_.ok()) {
    return status_;
  }
  if (Status status = agreement_->agree([this] { return starting_point(); }); !status.ok()) {
    return ended_by(status);
  }
  if (options_.weight) {
    const auto share = agreement_->share(*options_.weight);
    if (!share.ok()) {
      return ended_by(share.status());
    }
    terms_->share = *share;
  }
  auto made = make_transport(options_.transport, transport_options());
  if (!made.ok()) {
    return ended_by(named(naming_timeout(made.status(), options_.timeout)));
  }
  transport_ = std::move(*made);
  try {
    driver_ = std::make_unique<Driver>(
        *algorithm_, *transport_,
        DriverOptions{
            .rank = options_.rank,
            .overlap = options_.overlap,
            .timeout = options_.timeout,
            .observer = options_.observer,
            .terms = terms_,
            .wait_fault =
                [this](std::span<const Rank> peers) { return agreement_->wait_fault(peers); },
            .given_up = [this] { return agreement_->given_up(); },
            .interrupted = options_.interrupted,
            .accelerator = options_.accelerator.get()});
  } catch (const Shortage& shortage) {
    return ended_by(named({Fault::io, shortage.what()}));
  }
  agreement_->watch_connections([this](Rank awaited) { return driver_->lost_neighbour(awaited); });
  stamp_settings();
  reporter_->clock().leave();
  return {};
}

Result<internal::StartingPoint> Optimizer::starting_point() const {
  internal::StartingPoint start{.agreement = agreement(), .done = round_};
  if (round_ == 0) {  // after a load each node has its own
    std::vector<float> room;
    const auto parameters = model_->parameters_on_host(room);
    if (!parameters.ok()) {
      return parameters.status();
    }
    start.parameters = sha256_hex(std::as_bytes(*parameters));
  }
  return start;
}

std::string Optimizer::agreement() const {
  return internal::run_settings_text(options_, layout_, *topology_, parameters_.size());
}

std::uint64_t Optimizer::run_id() const {
  const std::string settings = agreement();
  return std::stoull(sha256_hex(std::as_bytes(std::span(settings))).substr(0, 16), nullptr, 16);
}

TransportOptions Optimizer::transport_options() const {
  TransportOptions transport = sotto::transport_options(peers_, options_.rank, options_.nodes);
  transport.run_id = run_id();
  transport.store = options_.store;
  transport.bind = options_.bind;
  transport.insecure = options_.insecure;
  transport.streams = options_.streams;
  transport.security = options_.security;
  transport.connect_timeout = options_.timeout;
  transport.stop = stop_request_;
  return transport;
}

}  // namespace sotto
