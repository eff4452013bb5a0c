// What an optimizer saves and takes back.
#include <sotto/trainers/optimizer.h>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/kernels/vector.h>
#include <sotto/optim/privacy/private_gradient.h>
#include <sotto/optim/step_rules/learning_rate.h>
#include <sotto/trainers/privacy_ledger.h>

namespace sotto {

const Ops& Optimizer::ops() const {
  return options_.accelerator ? options_.accelerator->ops() : host_ops();
}

Status Optimizer::accelerator_status() const {
  return options_.accelerator ? options_.accelerator->status() : Status();
}

Result<std::span<const float>> Optimizer::on_host(std::vector<float>& room) const {
  const AcceleratorScope scope(options_.accelerator.get());
  const std::span<const float> values = sotto::on_host(parameters_, ops(), room);
  const Status status = accelerator_status();
  return status.ok() ? Result<std::span<const float>>(values) : status;
}

void Optimizer::save(ByteBuffer& out) const {
  require_whole_step();
  check(begun_ || algorithm_->idle(), "Optimizer::save comes after drain");
  out.write(std::uint64_t{parameters_.size()});
  {
    const AcceleratorScope scope(options_.accelerator.get());
    std::vector<float> room;
    out.write_span(sotto::on_host(parameters_, ops(), room));
    out.write(weight_of_model(options_));
    out.write(options_.weight.value_or(0));
    algorithm_->save(out);
  }
  if (Status status = accelerator_status(); !status.ok()) {
    throw Error(named(status).message());  // what was written is worthless
  }
  const auto sent = traffic();
  out.write(static_cast<std::uint32_t>(sent.size()));
  for (const LinkTraffic& edge : sent) {
    out.write(edge.to);
    out.write(edge.bytes);
    out.write(edge.frames);
  }
  out.write(times().algorithm_s);
  out.write(times().wait_s);
  // What the caller's own step rule has by the caller itself is that rule's to save.
  out.write(static_cast<std::uint8_t>(rate_.has_value()));
  out.write(rate_.value_or(0));
}

Status Optimizer::load(ByteReader& in) {
  check(round() == 0 && !begun_, "Optimizer::load comes before the first step");
  std::vector<float> saved(parameters_.size());
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
    ops().from_host(std::as_bytes(std::span(saved)), parameters_);
    status = algorithm_->load(in);
  }
  if (Status fault = accelerator_status(); !fault.ok()) {
    return named(fault);
  }
  if (!status.ok()) {
    return status;
  }
  if (ledger_ && private_->steps() > 0 && !ledger_->existed()) {
    return {Fault::malformed,
            fmt::format("{} is missing: what is spent of the privacy budget cannot be known",
                        options_.privacy->ledger)};
  }
  round_ = algorithm_->round();
  if (in.read<std::uint32_t>() != peers_.to.size()) {
    return {Fault::malformed, "the saved traffic is that of other neighbours"};
  }
  traffic_before_.clear();
  for (const Rank peer : peers_.to) {
    LinkTraffic edge{options_.rank, in.read<Rank>(), 0, 0};
    edge.bytes = in.read<std::uint64_t>();
    edge.frames = in.read<std::uint64_t>();
    if (edge.to != peer) {
      return {Fault::malformed, "the saved traffic is that of other neighbours"};
    }
    traffic_before_.push_back(edge);
  }
  times_before_.algorithm_s = in.read<double>();
  times_before_.wait_s = in.read<double>();
  const bool changed = in.read<std::uint8_t>() != 0;
  const auto rate = in.read<double>();
  if (in.failed()) {
    return {Fault::malformed, "the saved state ends too early"};
  }
  if (!is_learning_rate(rate)) {
    return {Fault::malformed, fmt::format("the saved learning rate, {}, is none", rate)};
  }
  if (changed || rate_) {
    set_learning_rate(changed ? rate : options_.step_rule.learning_rate);
  }
  return {};
}

}  // namespace sotto
