// How the nodes meet: what they compare, and the transport and the driver of what follows.
#include <sotto/trainers/optimizer.h>

#include <utility>

#include <sotto/base/error.h>
#include <sotto/comm/transport.h>
#include <sotto/trainers/driver.h>
#include <sotto/trainers/node_transport.h>

#include "internal/agreement/run_agreement.h"
#include "internal/agreement/run_settings.h"
#include "internal/optimizer/early_stop.h"
#include "internal/optimizer/run_outcome.h"
#include "internal/optimizer/step_settings.h"
#include "internal/optimizer/whole_model.h"
#include "internal/reporting/run_reporter.h"

namespace sotto {

Status Optimizer::connect() {
  if (driver_ || !outcome_->status().ok()) {
    return outcome_->status();
  }
  const auto start = [this]() -> Result<internal::StartingPoint> {
    // After a load each node has its own parameters.
    auto digest = round_ == 0 ? model_->digest() : Result<std::string>("");
    return digest.ok() ? internal::StartingPoint{agreement(), round_, std::move(*digest)}
                       : Result<internal::StartingPoint>(digest.status());
  };
  if (Status status = agreement_->agree(start); !status.ok()) {
    return outcome_->ended_by(status);
  }
  if (options_.weight) {
    const auto share = agreement_->share(*options_.weight);
    if (!share.ok()) {
      return outcome_->ended_by(share.status());
    }
    step_settings_->terms()->share = *share;
  }
  auto made = make_transport(options_.transport, transport_options());
  if (!made.ok()) {
    return outcome_->ended_by(outcome_->named(naming_timeout(made.status(), options_.timeout)));
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
            .terms = step_settings_->terms(),
            .wait_fault =
                [this](std::span<const Rank> peers) { return agreement_->wait_fault(peers); },
            .given_up = [this] { return agreement_->given_up(); },
            .interrupted = options_.interrupted,
            .accelerator = options_.accelerator.get()});
  } catch (const Shortage& shortage) {
    return outcome_->ended_by(outcome_->named({Fault::io, shortage.what()}));
  }
  agreement_->watch_connections([this](Rank awaited) { return driver_->lost_neighbour(awaited); });
  stamp_settings();
  reporter_->clock().leave();
  return {};
}

std::string Optimizer::agreement() const {
  return internal::run_settings_text(options_, layout_, *topology_, model_->parameters().size());
}

TransportOptions Optimizer::transport_options() const {
  TransportOptions transport =
      sotto::transport_options(algorithm_->peers(), options_.rank, options_.nodes);
  transport.run_id = internal::run_number(agreement());
  transport.store = options_.store;
  transport.bind = options_.bind;
  transport.insecure = options_.insecure;
  transport.streams = options_.streams;
  transport.security = options_.security;
  transport.connect_timeout = options_.timeout;
  transport.stop = internal::EarlyStop::request(options_, early_stop_);
  return transport;
}

}  // namespace sotto
