// A model in fewer bits at a bounded loss (study/measure/quantized_model.h).
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/philox.h>
#include <sotto/study/measure/quantized_model.h>

namespace sotto::test::quantized_model_test {

using study::quantize_model;
using study::QuantizedModel;

namespace {

constexpr std::uint64_t kSeed = 77041;

/// f(x) = ½ Σ h_k (x_k − c_k)², on each batch and on the test set; there `steeper` ‖x − c‖⁴ is
/// added.
class Valley final : public Task {
 public:
  Valley(std::vector<std::size_t> tensors, double off, double steeper = 0) : steeper_(steeper) {
    for (std::size_t k = 0; k < tensors.size(); ++k) {
      append_block(layout_, fmt::format("t{}", k), {tensors[k]});
    }
    RandomStream drawn({.seed = kSeed});
    for (std::size_t k = 0; k < dimension(); ++k) {
      curvature_.push_back(0.1 + drawn.uniform());
      lowest_.push_back(drawn.normal());
      start_.push_back(static_cast<float>(lowest_.back() + off * drawn.normal()));
    }
  }

  const std::vector<float>& start() const { return start_; }
  const ParameterLayout& layout() const override { return layout_; }
  void initialize(std::span<float> x, std::uint64_t) const override {
    std::ranges::copy(start_, x.begin());
  }
  Round rounds_per_epoch() const override { return 1; }
  double loss_and_gradient(Round, std::span<const float> x, std::span<float> g) override {
    for (std::size_t k = 0; k < x.size(); ++k) {
      g[k] = static_cast<float>(curvature_[k] * (static_cast<double>(x[k]) - lowest_[k]));
    }
    return loss(x);
  }
  Evaluation evaluate(std::span<const float> x) override {
    double far = 0;
    for (std::size_t k = 0; k < x.size(); ++k) {
      far += std::pow(static_cast<double>(x[k]) - lowest_[k], 2);
    }
    return {.loss = loss(x) + steeper_ * far * far};
  }

 private:
  double loss(std::span<const float> x) const {
    double sum = 0;
    for (std::size_t k = 0; k < x.size(); ++k) {
      sum += 0.5 * curvature_[k] * std::pow(static_cast<double>(x[k]) - lowest_[k], 2);
    }
    return sum;
  }

  ParameterLayout layout_;
  std::vector<double> curvature_;
  std::vector<double> lowest_;
  std::vector<float> start_;
  double steeper_;
};

QuantizedModel quantized(Valley& task, double budget) {
  return quantize_model(task, task.start(), {.loss_budget = budget, .batches = 1});
}

}  // namespace

TEST_CASE("on a quadratic the predicted change of the loss is the measured one") {
  CAPTURE(kSeed);
  for (const double off : {0.0, 0.05, 1.0}) {
    CAPTURE(off);
    Valley task({3000, 1500, 7, 2048}, off);
    for (const double budget : {0.0, 0.01, 0.5, 30.0}) {
      CAPTURE(budget);
      const QuantizedModel model = quantized(task, budget);
      const double change = model.after.loss - model.before.loss;
      CHECK(model.predicted == doctest::Approx(change).epsilon(1e-4).scale(1));
      CHECK(change <= budget);
      REQUIRE(model.uniform.size() == 8);
      CHECK(model.uniform[1].bytes > model.uniform[2].bytes);
      CHECK(model.after.loss == task.evaluate(model.parameters).loss);
    }
  }
}

TEST_CASE("a larger budget takes fewer bytes, down to those of the coarsest encoding") {
  Valley task({3000, 1500, 2048}, 0.05);
  std::size_t before = std::numeric_limits<std::size_t>::max();
  for (const double budget : {0.0, 0.001, 0.01, 0.1, 1.0, 10.0, 1e6}) {
    CAPTURE(budget);
    const std::size_t bytes = quantized(task, budget).bytes();
    CHECK(bytes <= before);
    before = bytes;
  }
  for (const auto& tensor : quantized(task, 1e6).tensors) {
    CHECK(tensor.encoding == "quant:2,rounding=nearest");
  }
  CHECK(quantized(task, 0.2).bytes() < 6548 * sizeof(float) / 3);
}

TEST_CASE("at its lowest point a model that may lose nothing stays as it is") {
  Valley task({3000, 1500}, 0);
  const QuantizedModel model = quantized(task, 0);
  CHECK(std::ranges::equal(model.parameters, task.start()));
  CHECK(model.encodings().empty());
  CHECK(model.bytes() == 4500 * sizeof(float));
  CHECK(model.after.loss == model.before.loss);
}

TEST_CASE("where the prediction promises too much, what is measured counts") {
  Valley task({3000, 1500}, 0.02, 1e-3);
  for (const double budget : {0.05, 0.5, 5.0}) {
    CAPTURE(budget);
    const QuantizedModel model = quantized(task, budget);
    CHECK(model.after.loss - model.before.loss <= budget);
    CHECK(model.measured >= 1);
  }
}

TEST_CASE("one encoding for all is taken where it is the smallest that keeps the budget") {
  for (const double steeper : {0.0, 1e-3, 1e-1}) {
    CAPTURE(steeper);
    Valley task({3000, 1500}, 0.02, steeper);
    for (const double budget : {0.001, 0.05, 5.0}) {
      CAPTURE(budget);
      const QuantizedModel model = quantized(task, budget);
      for (const auto& alike : model.uniform) {
        CHECK((alike.loss > model.before.loss + budget || alike.bytes >= model.bytes()));
      }
    }
  }
}

TEST_CASE("short tensors stay as they are, and a bound that cannot be kept is refused") {
  Valley task({1023, 1024}, 0);
  const QuantizedModel model = quantized(task, 1e9);
  CHECK(model.tensors[0].encoding.empty());
  CHECK_FALSE(model.tensors[1].encoding.empty());
  CHECK_THROWS_WITH_AS(quantized(task, -1), doctest::Contains("loss_budget"), Error);
  CHECK_THROWS_WITH_AS(quantized(task, std::nan("")), doctest::Contains("finite"), Error);
  const std::vector<float> other(5);
  CHECK_THROWS_AS(quantize_model(task, other, {}), Error);
}

TEST_CASE("a caller's stop ends it, and nothing is told of a half") {
  Valley task({1500, 1500}, 0);
  const QuantizedModel model =
      quantize_model(task, task.start(), {.batches = 1, .stop = [] { return true; }});
  CHECK(model.stopped);
  CHECK(model.parameters.empty());
}

}  // namespace sotto::test::quantized_model_test
