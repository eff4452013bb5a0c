// A gradient that comes in parts, before a backward pass has all of it.
#include <sotto/trainers/optimizer.h>

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/base/text.h>
#include <sotto/comm/transport.h>
#include <sotto/optim/exchange/gradient_parts.h>
#include <sotto/optim/registry.h>
#include <sotto/optim/step_rule_info.h>
#include <sotto/trainers/driver.h>

#include "internal/optimizer/checked_options.h"
#include "internal/optimizer/overflow.h"
#include "internal/optimizer/step_settings.h"
#include "internal/optimizer/whole_model.h"
#include "internal/reporting/run_reporter.h"

namespace sotto {

bool Optimizer::takes_parts() const {
  const auto transport = std::ranges::find(transports(), options_.transport, &TransportInfo::name);
  return algorithm_->takes_parts() && transport != transports().end() && transport->any_order;
}

Status Optimizer::gradient_part(std::size_t first, std::span<const float> part) {
  require_part(first, part.size());
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
    status = enter_gradient();
  }
  if (status.ok()) {
    status = driver_->gradient_part(first, part);
  }
  reporter_->clock().resume();
  const bool overflows =
      internal::is_overflow(status, part, model_->ops(), options_.accelerator.get());
  // A step() after it returns what ended the run.
  if (overflows) {
    status = ended_by(internal::final_overflow(status));
  } else if (!keep_open(status)) {
    status = ended_by(status);
  }
  if (status.ok()) {
    parts_->add(first, part.size());
  }
  return status;
}

Status Optimizer::step() {
  if (status_.ok()) {
    parts_->require_all(parameters_.size());
  }
  parts_->clear();
  reporter_->clock().enter(round_);
  Status status = driver_ && status_.ok() ? driver_->end_parts() : status_;
  if (status_.ok() && status.fault() == Fault::non_finite) {  // all parts were finite
    status = ended_by(internal::final_overflow(status));
  }
  return end_step(status);
}

void Optimizer::require_part(std::size_t first, std::size_t elements) const {
  const auto refuse_part = [&](const Message& why) {
    refuse("gradient_part", fmt::format("{} elements from {} on", elements, first), why);
  };
  if (!takes_parts()) {
    const auto cut = names_with(algorithms(), [](const AlgorithmInfo& info) {
      return info.takes_buckets() && info.cutting != Cutting::by_itself;
    });
    const auto whole = names_with(step_rules(), std::not_fn(&StepRuleInfo::separable));
    refuse_part("this run takes gradients whole: parts need an algorithm with " +
                mention("buckets") +
                fmt::format(" ({}), another transport than nccl, no clipping, privacy or local "
                            "steps, and no {} or step rule of the program's own that takes them "
                            "whole",
                            word_list(cut), word_list(whole)));
  }
  parts_->require(first, elements, parameters_.size());
  if (!step_settings_->takes_any_part()) {
    const auto cuts = [&](const ParameterBlock& tensor) {
      const auto inside = [&](std::size_t place) {
        return place > tensor.offset && place < tensor.offset + tensor.size;
      };
      return elements > 0 && (inside(first) || inside(first + elements));
    };
    if (const auto cut = std::ranges::find_if(layout_, cuts); cut != layout_.end()) {
      refuse_part(fmt::format("it cuts the tensor {}, and the step rule takes whole ones",
                              excerpt(cut->name)));
    }
  }
}

void Optimizer::require_whole_step() const {
  if (!parts_->empty()) {
    throw Error("gradient",
                "parts of it were given; give the rest, and end this step by its parts first");
  }
}

}  // namespace sotto
