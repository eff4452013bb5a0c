#include "cnn.h"

#include <sotto/base/check.h>

namespace sotto {

Cnn::Cnn(const ImageShape& image, std::size_t channels1, std::size_t channels2, std::size_t classes)
    : first_(layout_, "conv1", image, channels1, 5),
      second_(layout_, "conv2", first_.output(), channels2, 3),
      last_(layout_, "dense", second_.output().size(), classes) {}

void Cnn::initialize(std::span<float> parameters, std::uint64_t seed) const {
  const auto key = [seed](std::uint32_t layer) {
    return RandomKey{.seed = seed, .purpose = Purpose::initialize, .bucket = layer};
  };
  first_.initialize(parameters, key(0));
  second_.initialize(parameters, key(1));
  last_.initialize(parameters, glorot_bound(last_.in, last_.out), key(2));
}

std::size_t Cnn::activations() const { return 2 * (first_.output().size() + last_.in + last_.out); }

std::span<const float> Cnn::forward(std::span<const float> parameters, std::span<const float> x,
                                    std::size_t rows) {
  check(rows > 0 && x.size() % rows == 0, "forward: rows × features values");
  x_ = x;
  rows_ = rows;
  hidden1_.resize(rows * first_.output().size());
  hidden2_.resize(rows * last_.in);
  scores_.resize(rows * last_.out);
  first_.forward(parameters, x, rows, hidden1_);
  second_.forward(parameters, hidden1_, rows, hidden2_);
  last_.forward(parameters, view(hidden2_, rows, last_.in), mutable_view(scores_, rows, last_.out));
  return scores_;
}

void Cnn::backward(std::span<const float> parameters, std::span<const float> score_gradient,
                   std::span<float> gradient) {
  check(score_gradient.size() == scores_.size(), "backward: rows × classes values");
  const MatrixView dy = view(score_gradient, rows_, last_.out);
  last_.backward(view(hidden2_, rows_, last_.in), dy, gradient);
  delta2_.resize(hidden2_.size());
  last_.backward_input(parameters, dy, mutable_view(delta2_, rows_, last_.in));
  delta1_.resize(hidden1_.size());
  second_.backward(parameters, hidden1_, hidden2_, delta2_, rows_, gradient, delta1_);
  first_.backward(parameters, x_, hidden1_, delta1_, rows_, gradient, {});
}

}  // namespace sotto
