// What an optimizer saves and takes back.
#include <sotto/trainers/optimizer.h>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/kernels/vector.h>
#include <sotto/trainers/privacy_budget.h>

#include "internal/optimizer/run_outcome.h"
#include "internal/optimizer/step_parts.h"
#include "internal/optimizer/step_settings.h"
#include "internal/optimizer/whole_model.h"
#include "internal/optimizer/work_before.h"

namespace sotto {

void Optimizer::save(ByteBuffer& out) const {
  parts_->require_none();
  check(begun_ || algorithm_->idle(), "Optimizer::save comes after drain");
  out.write(std::uint64_t{model_->parameters().size()});
  {
    const AcceleratorScope scope(options_.accelerator.get());
    std::vector<float> room;
    out.write_span(sotto::on_host(model_->parameters(), model_->ops(), room));
    out.write(weight_of_model(options_));
    out.write(options_.weight.value_or(0));
    algorithm_->save(out);
  }
  if (Status status = model_->accelerator_status(); !status.ok()) {
    throw Error(outcome_->named(status).message());  // what was written is worthless
  }
  const NodeStanding done = standing();
  internal::WorkBefore::save(done.traffic, done.times, out);
  step_settings_->save(out);
}

Status Optimizer::load(ByteReader& in) {
  if (round() > 0 || begun_) {
    throw Error("load", "it comes before the first step");
  }
  std::vector<float> saved(model_->parameters().size());
  if (in.read<std::uint64_t>() != saved.size() || !in.read_into(std::span(saved))) {
    return {Fault::malformed, "the saved model has another number of parameters"};
  }
  if (host_ops().count_non_finite(saved).count > 0) {
    return {Fault::non_finite, "the saved model holds a NaN or an infinity"};
  }
  const auto of_model = in.read<double>();
  const auto weight = in.read<double>();
  if (in.failed() || of_model != weight_of_model(options_) ||
      weight != options_.weight.value_or(0)) {
    return {Fault::malformed, fmt::format("the state of a node of weight {} where this one has {}",
                                          weight, options_.weight.value_or(0))};
  }
  Status status;
  {
    const AcceleratorScope scope(options_.accelerator.get());
    model_->ops().from_host(std::as_bytes(std::span(saved)), model_->parameters());
    status = algorithm_->load(in);
  }
  if (Status fault = model_->accelerator_status(); !fault.ok()) {
    return outcome_->named(fault);
  }
  if (!status.ok()) {
    return status;
  }
  if (Status fault = budget_ ? budget_->check_saved(budget_->steps()) : Status(); !fault.ok()) {
    return fault;
  }
  round_ = algorithm_->round();
  if (Status fault = before_->load(in); !fault.ok()) {
    return fault;
  }
  if (Status fault = step_settings_->load(in); !fault.ok()) {
    return fault;
  }
  stamp_settings();
  return {};
}

}  // namespace sotto
