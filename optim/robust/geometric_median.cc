#include <sotto/optim/robust/geometric_median.h>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace sotto {

GeometricMedian::GeometricMedian(std::size_t steps, std::size_t neighbours, std::size_t dimension,
                                 const Ops& ops)
    : steps_(steps), ops_(ops), difference_(dimension) {
  betas_.reserve(neighbours + 1);
}

std::string GeometricMedian::spec() const {
  return steps_ == kDefaultSteps ? "geometric-median" : fmt::format("geometric-median:{}", steps_);
}

std::size_t GeometricMedian::aggregate(const Neighbourhood& models, std::span<float> out) {
  const auto beta = [&](std::span<const float> model) {
    ops_.subtract(model, out, difference_);
    const double squares = ops_.sum_squares(difference_);
    // Too far for its square to be a float32: no weight.
    return std::isfinite(squares) ? 1 / std::max(kSmoothing, std::sqrt(squares)) : 0;
  };
  ops_.copy(models.own, out);
  for (std::size_t step = 0; step < steps_; ++step) {
    betas_.assign(1, beta(models.own));
    double sum = betas_[0];
    for (const ReceivedModel& from : models.received) {
      betas_.push_back(beta(from.model));
      sum += betas_.back();
    }
    if (!(sum > 0)) {
      return models.received.size();
    }
    ops_.copy(models.own, out);
    ops_.scale(static_cast<float>(betas_[0] / sum), out);
    for (std::size_t j = 0; j < models.received.size(); ++j) {
      ops_.axpy(static_cast<float>(betas_[j + 1] / sum), models.received[j].model, out);
    }
  }
  return 0;
}

}  // namespace sotto
