#include "owed_step.h"

#include <utility>

#include <sotto/base/error.h>

namespace sotto {

void OwedStep::require_no_parts() const {
  if (!given_.empty() && !misses_) {
    throw Error("gradient", "parts of it were given; end this step with step_by_parts() first");
  }
}

void OwedStep::require_part(std::size_t first, std::size_t elements, std::size_t parameters) {
  if (misses_ && given_.elements() == parameters) {
    given_.clear();  // a step of that gradient has ended early, and the caller gives another one
  }
  given_.require(first, elements, parameters);
}

void OwedStep::leave_out() {
  misses_ = false;
  given_.clear();
}

void OwedStep::require_none_pending() const {
  if (pending_) {
    throw Error("gradient", "one is pending: go on with wait()");
  }
}

void OwedStep::require_pending() const {
  if (!pending_) {
    throw Error("gradient", "none is pending: give one to step()");
  }
}

void OwedStep::note(const std::optional<sites::EpochOutcome>& outcome) {
  if (pending_ && !outcome_) {
    outcome_ = outcome;
  }
}

void OwedStep::lose(Round step) {
  note(sites::EpochOutcome{.step = step, .left_out = true});
  misses_ = misses_ || !given_.empty();
}

OwedStep::Made OwedStep::take() {
  const sites::EpochOutcome outcome = *std::exchange(outcome_, {});
  return {.loss = *std::exchange(pending_, {}), .left_out = outcome.left_out};
}

}  // namespace sotto
