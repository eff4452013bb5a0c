#include "step_settings.h"

#include <cstdint>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/optim/step_rules/learning_rate.h>

namespace sotto::internal {

namespace {

void require_learning_rate(double rate) {
  if (!is_learning_rate(rate)) {
    refuse("lr", fmt::format("{}", rate), fmt::format("it must {}", kLearningRates));
  }
}

}  // namespace

void StepSettings::set_rate(double rate) {
  require_learning_rate(rate);
  rule_.set_learning_rate(rate);
  rate_ = rate;
}

void StepSettings::announce(double rate, std::string_view others) {
  require_learning_rate(rate);
  announced_rate_ = rate;
  announced_ = others;
}

SettingsStamp StepSettings::stamp() const {
  if (!announced_.empty()) {
    return stamp_of_settings(fmt::format("lr={} {}", rate(), announced_));
  }
  return rate() == agreed_rate_ ? kAsAgreed : stamp_of_rate(rate());
}

void StepSettings::save(ByteBuffer& out) const {
  out.write(static_cast<std::uint8_t>(rate_.has_value()));
  out.write(rate_.value_or(0));
}

Status StepSettings::load(ByteReader& in) {
  const bool changed = in.read<std::uint8_t>() != 0;
  const auto rate = in.read<double>();
  if (in.failed()) {
    return {Fault::malformed, "the saved state ends too early"};
  }
  if (!is_learning_rate(rate)) {
    return {Fault::malformed, fmt::format("the saved learning rate, {}, is none", rate)};
  }
  if (changed || rate_) {
    set_rate(changed ? rate : agreed_rate_);
  }
  return {};
}

}  // namespace sotto::internal
