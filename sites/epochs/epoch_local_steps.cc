#include <sotto/sites/epochs/epoch_local_steps.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <sotto/kernels/ops.h>

namespace sotto::sites {

EpochLocalSteps::EpochLocalSteps(std::span<float> parameters, const ParameterLayout& layout,
                                 Round interval, std::unique_ptr<StepRule> rule)
    : x_(parameters),
      interval_(interval),
      rule_(std::move(rule)),
      run_model_(parameters.size()),
      moved_(parameters.size()),
      work_(parameters.size()) {
  rule_->resize(complete_layout(layout, x_.size()));
}

void EpochLocalSteps::take_initial() { std::ranges::copy(x_, run_model_.begin()); }

void EpochLocalSteps::begin() {
  std::ranges::copy(run_model_, x_.begin());
  std::ranges::fill(moved_, 0.0F);
  taken_ = 0;
  losses_ = 0;
}

Status EpochLocalSteps::spoil(Status status) {
  spoilt_ = true;
  return status;
}

Status EpochLocalSteps::take(Round round, std::span<const float> gradient, double loss) {
  const Ops& ops = host_ops();
  const Round step = round * interval_ + taken_;
  if (ops.count_non_finite(gradient).count > 0) {
    return {Fault::non_finite,
            fmt::format("local step {}: the gradient has elements that are not finite; lower the "
                        "learning rate, or look at the data",
                        step + 1)};
  }
  if (Status status = rule_->direction(step, x_, gradient, work_); !status.ok()) {
    return spoil(status.with_context(fmt::format("local step {}", step + 1)));
  }
  ops.axpy(1, moved_, work_);
  ops.subtract(run_model_, work_, x_);
  if (ops.count_non_finite(x_).count > 0) {
    return spoil({Fault::non_finite,
                  fmt::format("local step {}: the updated model has elements that are not finite; "
                              "lower the learning rate, or look at the data",
                              step + 1)});
  }
  std::swap(moved_, work_);
  ++taken_;
  losses_ += loss;
  return {};
}

}  // namespace sotto::sites
