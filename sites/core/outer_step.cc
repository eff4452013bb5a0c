#include <sotto/sites/core/outer_step.h>

#include <sotto/base/check.h>
#include <sotto/optim/state_io.h>

namespace sotto::sites {

OuterStep::OuterStep(const StepRuleOptions& options, const ParameterLayout& layout,
                     std::size_t dimension, const Ops& ops)
    : options_(options),
      layout_(complete_layout(layout, dimension)),
      ops_(ops),
      model_(dimension),
      room_(dimension) {
  forget();
}

void OuterStep::forget() {
  rule_ = make_outer_step_rule(options_, ops_);
  rule_->resize(layout_);
}

void OuterStep::begin(std::span<const float> model) {
  ops_.copy(model, model_);
  forget();
}

std::span<const float> OuterStep::step(Round round, std::span<const float> mixed) {
  ops_.subtract(model_, mixed, room_);
  const Status status = rule_->direction(round, model_, room_, room_);
  ops_.subtract(model_, room_, room_);
  const bool finite = status.ok() && ops_.count_non_finite(room_).count == 0;
  return finite ? std::span<const float>(room_) : std::span<const float>();
}

void OuterStep::put_back() {
  const Status status = kept_.restore(model_, *rule_);
  check(status.ok(), "what was kept can be put back");
}

void OuterStep::save(ByteBuffer& out) const {
  write_floats(model_, out);
  rule_->save(out);
}

Status OuterStep::load(ByteReader& in) {
  Status status = read_floats(in, "model before the round", model_);
  return status.ok() ? rule_->load(in) : status;
}

}  // namespace sotto::sites
