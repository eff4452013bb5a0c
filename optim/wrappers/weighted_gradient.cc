#include <sotto/optim/wrappers/weighted_gradient.h>

#include <utility>

namespace sotto {

WeightedGradient::WeightedGradient(std::unique_ptr<Algorithm> inner,
                                   std::shared_ptr<RoundTerms> terms, const Ops& ops,
                                   std::shared_ptr<const Accelerator> accelerator)
    : ForwardingAlgorithm(std::move(inner)),
      accelerator_(std::move(accelerator)),
      ops_(ops),
      terms_(std::move(terms)),
      weighted_(parameters().size(), ops) {}

Status WeightedGradient::take_gradient(std::span<const float> gradient) {
  if (terms_->share == 1) {
    return inner().take_gradient(gradient);
  }
  ops_.combine({{terms_->share, gradient}}, weighted_);
  return inner().take_gradient(weighted_);
}

}  // namespace sotto
