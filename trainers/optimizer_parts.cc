// A gradient that comes in parts, before a backward pass has all of it.
#include <sotto/trainers/optimizer.h>

#include <algorithm>

#include <sotto/comm/transport.h>
#include <sotto/trainers/driver.h>

#include "internal/agreement/run_agreement.h"
#include "internal/optimizer/checked_options.h"
#include "internal/optimizer/overflow.h"
#include "internal/optimizer/run_outcome.h"
#include "internal/optimizer/step_parts.h"
#include "internal/optimizer/whole_model.h"
#include "internal/reporting/run_reporter.h"

namespace sotto {

bool Optimizer::takes_parts() const {
  const auto transport = std::ranges::find(transports(), options_.transport, &TransportInfo::name);
  return algorithm_->takes_parts() && transport != transports().end() && transport->any_order;
}

Status Optimizer::gradient_part(std::size_t first, std::span<const float> part) {
  parts_->require(first, part.size(), takes_parts());
  internal::require_reached(options_, part, "gradient_part");
  if (Status status = connect(); !status.ok()) {
    return status;
  }
  reporter_->clock().pause();
  Status status = start_round();
  if (status.fault() == Fault::ended) {
    return status;
  }
  if (status.ok() && parts_->empty()) {
    status = agreement_->enter_round(round_);
  }
  if (status.ok()) {
    status = driver_->gradient_part(first, part);
  }
  reporter_->clock().resume();
  const bool overflows =
      driver_ && driver_->status().ok() &&
      internal::is_overflow(status, part, model_->ops(), options_.accelerator.get());
  // A step() after it returns what ended the run.
  if (overflows) {
    status = outcome_->ended_by(internal::final_overflow(status));
  } else if (!keep_open(status)) {
    status = outcome_->ended_by(status);
  }
  if (status.ok()) {
    parts_->add(first, part.size());
  }
  return status;
}

Status Optimizer::step() {
  const Status& status = outcome_->status();
  if (status.ok()) {
    parts_->require_all();
  }
  parts_->clear();
  reporter_->clock().enter(round_);
  Status ended = driver_ && status.ok() ? driver_->end_parts() : status;
  if (status.ok() && ended.fault() == Fault::non_finite && driver_->status().ok()) {
    // All parts were finite.
    ended = outcome_->ended_by(internal::final_overflow(ended));
  }
  return end_step(ended);
}

}  // namespace sotto
