#include <sotto/sites/core/mixing/robust_average.h>

#include <utility>

namespace sotto::sites {

RobustAverage::RobustAverage(std::string rule, std::span<const float> x, const Ops& ops)
    : name_(std::move(rule)),
      x_(x),
      ops_(ops),
      rule_(make_aggregation(name_, 0, x.size(), ops)),
      start_(x.size()) {}

void RobustAverage::expect(std::size_t neighbours) {
  neighbours_ = neighbours;
  models_.clear();  // views of what is received
  rule_ = nullptr;
  received_.assign(neighbours, {});
}

void RobustAverage::add(std::size_t neighbour, std::span<const float> copy, double part,
                        float weight) {
  std::vector<float>& model = received_[neighbour];
  model.resize(x_.size());
  if (part < 1) {
    for (std::size_t k = 0; k < model.size(); ++k) {
      const auto own = static_cast<double>(x_[k]);
      model[k] = static_cast<float>(own + part * (static_cast<double>(copy[k]) - own));
    }
  } else {
    ops_.copy(copy, model);
  }
  models_.push_back({model, weight});
}

void RobustAverage::average(std::span<float> room, std::span<float> next) {
  if (rule_ == nullptr) {
    rule_ = make_aggregation(name_, neighbours_, x_.size(), ops_);
  }
  ops_.subtract(x_, start_, room);
  rule_->aggregate({.own = x_, .step = room, .received = models_}, next);
  models_.clear();
}

}  // namespace sotto::sites
