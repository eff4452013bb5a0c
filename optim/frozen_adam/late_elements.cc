#include <sotto/optim/frozen_adam/late_elements.h>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <sotto/optim/state_io.h>

namespace sotto {
namespace {

/// Rounds that an element's own Adam lasts at most, as memory for its powers of β bounds them.
constexpr Round kLongest = 1 << 20;

bool is_finite(float value) { return std::isfinite(value); }

Status overflow_of(std::size_t element) {
  return {Fault::non_finite,
          fmt::format("the second moment of element {}, whose gradients came late, overflows; clip "
                      "the gradients, or look at the data",
                      element)};
}

}  // namespace

void LateElements::begin(const Adam& adam, Round freeze_step) {
  learning_ = std::max<Round>(1, std::min({freeze_step, adam.variance_memory(), kLongest}));
  learning_ = std::max(learning_, agreement_);
  const std::span<const float> variance = adam.variance();
  at_.clear();
  for (std::size_t k = 0; k < variance.size(); ++k) {
    if (variance[k] == 0) {
      at_.push_back(k);
    }
  }
  ages_.assign(at_.size(), 0);
  first_.assign(at_.size(), 0);
  second_.assign(at_.size(), 0);
  gradient_.assign(at_.size(), 0);
  step_.assign(at_.size(), 0);
  joined_.clear();
  joined_.reserve(at_.size());
  rounds_ = 0;
  rates_ = 0;
  if (at_.empty()) {
    return;
  }
  beta1_powers_.assign(1, 1);
  beta2_powers_.assign(1, 1);
  for (Round t = 1; t <= learning_ + agreement_; ++t) {
    beta1_powers_.push_back(beta1_powers_.back() * static_cast<double>(adam.beta1()));
    const double learnt = t <= learning_ ? static_cast<double>(adam.beta2()) : 1;
    beta2_powers_.push_back(beta2_powers_.back() * learnt);
  }
}

void LateElements::take_gradient(std::span<const float> gradient, const Adam& adam, Round round,
                                 Round freeze_step) {
  if (!begun()) {
    begin(adam, freeze_step);
  }
  for (std::size_t i = 0; i < at_.size(); ++i) {
    gradient_[i] += gradient[at_[i]];
  }
  ++rounds_;
  rates_ += adam.learning_rate(round);
}

ExactElements LateElements::gradients() {
  if (rounds_ > 1) {
    for (float& sum : gradient_) {
      sum /= static_cast<float>(rounds_);
    }
  }
  return {at_, gradient_};
}

Adam::Moments LateElements::moments(std::size_t first, std::size_t last) {
  return {.m = std::span(first_).subspan(first, last - first),
          .v = std::span(second_).subspan(first, last - first),
          .beta1_power = beta1_powers_[ages_[first]],
          .beta2_power = beta2_powers_[ages_[first]],
          .learns = ages_[first] <= learning_};
}

void LateElements::step_once(const Adam& adam, double gamma, std::span<const float> x,
                             std::span<float> d) {
  step_ = gradient_;
  const auto awake = [this](std::size_t i) { return ages_[i] > 0 || gradient_[i] != 0; };
  for (std::size_t first = 0; first < at_.size();) {
    // Elements that woke up together have one t, and mostly lie together.
    std::size_t last = first + 1;
    while (last < at_.size() && ages_[last] == ages_[first] && awake(last) == awake(first)) {
      ++last;
    }
    if (awake(first) && ages_[first] < learning_ + agreement_) {
      const auto run = std::span(ages_).subspan(first, last - first);
      std::ranges::fill(run, run.front() + 1);
      for (std::size_t i = first; i < last; ++i) {
        adam.penalize(x.subspan(at_[i], 1), std::span(step_).subspan(i, 1));
      }
      adam.step_with(gamma, moments(first, last), std::span(step_).subspan(first, last - first));
      for (std::size_t i = first; i < last; ++i) {
        d[at_[i]] += step_[i];
      }
    }
    first = last;
  }
}

Status LateElements::step(const Adam& adam, std::span<const float> x, std::span<float> d) {
  const double gamma = rounds_ > 0 ? rates_ / static_cast<double>(rounds_) : 0;
  for (; rounds_ > 0; --rounds_) {
    step_once(adam, gamma, x, d);
  }
  rates_ = 0;
  std::ranges::fill(gradient_, 0.0F);
  const auto bad = std::ranges::find_if_not(second_, is_finite);
  return bad == second_.end() ? Status()
                              : overflow_of(at_[static_cast<std::size_t>(bad - second_.begin())]);
}

Status LateElements::join(Adam& adam) {
  joined_.clear();
  std::size_t kept = 0;
  for (std::size_t i = 0; i < at_.size(); ++i) {
    const std::size_t k = at_[i];
    if (ages_[i] > 0 && ages_[i] == learning_ + agreement_) {
      adam.adopt(k, moments(i, i + 1));
      if (!is_finite(adam.variance()[k]) || !is_finite(adam.momentum()[k])) {
        return overflow_of(k);
      }
      if (adam.variance()[k] != 0) {
        joined_.push_back(k);
        continue;
      }
      adam.momentum()[k] = 0;
      ages_[i] = 0;
      first_[i] = 0;
      second_[i] = 0;
    }
    at_[kept] = k;
    ages_[kept] = ages_[i];
    first_[kept] = first_[i];
    second_[kept] = second_[i];
    ++kept;
  }
  keep(kept);
  return {};
}

void LateElements::keep(std::size_t elements) {
  at_.resize(elements);
  ages_.resize(elements);
  first_.resize(elements);
  second_.resize(elements);
  gradient_.resize(elements);
  step_.resize(elements);
}

void LateElements::save(ByteBuffer& out) const {
  out.write(static_cast<std::uint8_t>(begun()));
  if (!begun()) {
    return;
  }
  out.write(rounds_);
  out.write(rates_);
  out.write_span(std::span(ages_));
  write_floats(first_, out);
  write_floats(second_, out);
  write_floats(gradient_, out);
}

Status LateElements::load(ByteReader& in, const Adam& adam, Round freeze_step) {
  Status malformed = {Fault::malformed,
                      "checkpoint without the state of elements whose gradients come late"};
  const auto begun = in.read<std::uint8_t>();
  if (in.failed() || begun > 1) {
    return malformed;
  }
  if (begun == 0) {
    learning_ = 0;
    return {};
  }
  begin(adam, freeze_step);
  rounds_ = in.read<Round>();
  rates_ = in.read<double>();
  in.read_into(std::span(ages_));
  if (in.failed() || rounds_ > kLongest || !std::isfinite(rates_) || rates_ < 0 ||
      std::ranges::any_of(ages_, [&](std::uint32_t t) { return t >= learning_ + agreement_; })) {
    return malformed;
  }
  if (Status status = read_floats(in, "late first moment", first_); !status.ok()) {
    return status;
  }
  if (Status status = read_floats(in, "late second moment", second_); !status.ok()) {
    return status;
  }
  return read_floats(in, "late gradient", gradient_);
}

}  // namespace sotto
