// Models against a plain double-precision copy of their definition: the scores directly, the
// gradient by central differences of that copy.
#include <sotto/trainers/tasks/model.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/philox.h>

#include "trainers/tasks/reference_models.h"
#include "trainers/tasks/reference_transformer.h"

namespace sotto::test::model_test {

namespace {

struct Case {
  const char* spec;
  ModelInput input;
};

ModelInput images(std::size_t channels, std::size_t height, std::size_t width) {
  return {.features = channels * height * width,
          .classes = 3,
          .image = ImageShape{.channels = channels, .height = height, .width = width}};
}

ModelInput sequences(std::size_t positions, std::size_t symbols) {
  return {.features = positions * symbols,
          .classes = symbols + 1,
          .sequence = SequenceShape{.positions = positions, .symbols = symbols}};
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"softmax", {.features = 5, .classes = 3, .image = {}}},
      {"softmax", {.features = 1, .classes = 2, .image = {}}},
      {"mlp:7", {.features = 6, .classes = 4, .image = {}}},
      {"mlp:1", {.features = 3, .classes = 2, .image = {}}},
      {"mlp:33,9,5", {.features = 20, .classes = 10, .image = {}}},
      {"cnn:2,3", images(1, 8, 8)},
      {"cnn:3,2", images(2, 5, 7)},
      {"cnn:1,1", images(1, 4, 4)},
      {"transformer:1,6,2", sequences(3, 4)},
      {"transformer:2,8,1", sequences(5, 3)},
      {"transformer:3,4,4", sequences(1, 2)},
      {"transformer:1,12,3", sequences(9, 7)},
      {"transformer:4,8,2,share=2", sequences(4, 3)},
      {"transformer:3,6,3,share=3", sequences(3, 2)},
      {"transformer:1,6,2,experts=3", sequences(5, 4)},
      {"transformer:2,4,2,experts=9", sequences(2, 3)},
      {"transformer:2,6,2,experts=3,balance=2.5", sequences(4, 3)},
  };
  return all;
}

std::vector<float> uniform(std::size_t count, float scale, std::uint32_t bucket) {
  RandomStream stream({.seed = 17, .purpose = Purpose::test, .bucket = bucket});
  std::vector<float> values(count);
  for (float& value : values) {
    value = scale * static_cast<float>(2 * stream.uniform() - 1);
  }
  return values;
}

std::size_t dimension_of(const Model& model) {
  return model.layout().back().offset + model.layout().back().size;
}

/// The scores; `imbalance` becomes the experts' balance loss, times its weight.
std::vector<double> expected_scores(const Model& model, const Case& c,
                                    const std::vector<double>& parameters,
                                    const std::vector<float>& x, std::size_t rows,
                                    double& imbalance) {
  imbalance = 0;
  if (c.input.sequence) {
    const std::string spec(c.spec);
    const std::string sizes =
        spec.substr(0, std::min(spec.find(",share="), spec.find(",experts=")));
    const std::size_t heads = std::stoul(sizes.substr(sizes.rfind(',') + 1));
    test::TransformerReference reference(model.layout(), *c.input.sequence, heads);
    auto scores = reference.scores(parameters, test::widen(x));
    const std::size_t weight = spec.find("balance=");
    imbalance = weight == std::string::npos
                    ? 0
                    : std::stod(spec.substr(weight + 8)) * reference.imbalance();
    return scores;
  }
  return test::reference_scores(model, c.input, parameters, test::widen(x), rows);
}

/// Some ∂loss/∂scores.
std::vector<float> score_gradient(const Model& model, const Case& c, std::size_t rows) {
  return uniform(rows * model.positions() * c.input.classes, 1.0F, 3);
}

/// Parameters away from zero everywhere, biases included.
std::vector<float> some_parameters(const Model& model) {
  return uniform(dimension_of(model), 0.6F, 1);
}

}  // namespace

TEST_CASE("scores agree with the definition") {
  for (const Case& c : cases()) {
    for (const std::size_t rows : {1UL, 2UL, 13UL}) {
      CAPTURE(c.spec);
      CAPTURE(rows);
      const auto model = make_model(c.spec, c.input);
      const auto parameters = some_parameters(*model);
      const auto x = uniform(rows * c.input.features, 1.0F, 2);
      double ignored = 0;
      const auto expected = expected_scores(*model, c, test::widen(parameters), x, rows, ignored);
      const auto scores = model->forward(parameters, x, rows);
      REQUIRE(scores.size() == expected.size());
      for (std::size_t i = 0; i < scores.size(); ++i) {
        CHECK(std::abs(static_cast<double>(scores[i]) - expected[i]) < 2e-5);
      }
    }
  }
}

TEST_CASE("gradients agree with central differences of the definition") {
  constexpr std::size_t kRows = 4;
  for (const Case& c : cases()) {
    CAPTURE(c.spec);
    const auto model = make_model(c.spec, c.input);
    const auto parameters = some_parameters(*model);
    const auto x = uniform(kRows * c.input.features, 1.0F, 2);
    const auto weights = score_gradient(*model, c, kRows);
    std::vector<float> gradient(parameters.size(), 1e30F);  // must all be overwritten
    model->forward(parameters, x, kRows);
    model->backward(parameters, weights, gradient);

    auto at = test::widen(parameters);
    const auto loss = [&] {
      double sum = 0;
      const auto scores = expected_scores(*model, c, at, x, kRows, sum);
      for (std::size_t i = 0; i < scores.size(); ++i) {
        sum += static_cast<double>(weights[i]) * scores[i];
      }
      return sum;
    };
    constexpr double kStep = 1e-6;
    double worst = 0;
    for (std::size_t i = 0; i < at.size(); ++i) {
      const double here = at[i];
      at[i] = here + kStep;
      const double above = loss();
      at[i] = here - kStep;
      const double below = loss();
      at[i] = here;
      const double slope = (above - below) / (2 * kStep);
      worst = std::max(worst, std::abs(slope - static_cast<double>(gradient[i])));
    }
    CHECK(worst < 5e-5);
  }
}

TEST_CASE("results do not depend on where the caller's values lie in memory") {
  constexpr std::size_t kRows = 19;
  auto all = cases();
  all.push_back({"mlp:65,33", {.features = 301, .classes = 10, .image = {}}});  // blocked products
  for (const Case& c : all) {
    const auto model = make_model(c.spec, c.input);
    const auto parameters = some_parameters(*model);
    const auto x = uniform(kRows * c.input.features, 1.0F, 2);
    const auto weights = score_gradient(*model, c, kRows);
    std::vector<float> expected;
    for (std::size_t shift = 0; shift < 8; ++shift) {
      CAPTURE(c.spec);
      CAPTURE(shift);
      const auto shifted = [shift](const std::vector<float>& values) {
        std::vector<float> moved(shift);
        moved.insert(moved.end(), values.begin(), values.end());
        return moved;
      };
      const auto p = shifted(parameters);
      const auto inputs = shifted(x);
      const auto w = shifted(weights);
      std::vector<float> gradient(shift + parameters.size());
      model->forward(std::span(p).subspan(shift), std::span(inputs).subspan(shift), kRows);
      model->backward(std::span(p).subspan(shift), std::span(w).subspan(shift),
                      std::span(gradient).subspan(shift));
      gradient.erase(gradient.begin(), gradient.begin() + static_cast<std::ptrdiff_t>(shift));
      if (shift == 0) {
        expected = gradient;
      }
      CHECK(gradient == expected);
    }
  }
}

TEST_CASE("layouts are dense and named") {
  const auto model = make_model("mlp:7,5", {.features = 6, .classes = 4, .image = {}});
  const auto& layout = model->layout();
  REQUIRE(layout.size() == 6);
  CHECK(layout[0].name == "layer1.weight");
  CHECK(layout[0].shape == std::vector<std::size_t>{7, 6});
  CHECK(layout[5].name == "layer3.bias");
  CHECK(layout[5].shape == std::vector<std::size_t>{4});
  std::size_t at = 0;
  for (const ParameterBlock& block : layout) {
    CHECK(block.offset == at);
    at += block.size;
  }
  CHECK(at == 7 * 6 + 7 + 5 * 7 + 5 + 4 * 5 + 4);
}

TEST_CASE("initial weights are bounded, depend on the seed, and biases are zero") {
  for (const Case& c : cases()) {
    CAPTURE(c.spec);
    const auto model = make_model(c.spec, c.input);
    std::vector<float> first(dimension_of(*model), 7.0F);
    std::vector<float> again = first;
    std::vector<float> other = first;
    model->initialize(first, 1);
    model->initialize(again, 1);
    model->initialize(other, 2);
    CHECK(first == again);
    CHECK(first != other);
    for (const ParameterBlock& block : model->layout()) {
      const auto values = std::span(first).subspan(block.offset, block.size);
      const bool bias = block.name.ends_with("bias");
      const double fan_in = static_cast<double>(block.size) / static_cast<double>(block.shape[0]);
      for (const float value : values) {
        CHECK(std::abs(static_cast<double>(value)) <= (bias ? 0.0 : std::sqrt(6.0 / fan_in)));
      }
    }
  }
}

TEST_CASE("wrong model specifications are refused with what would do") {
  const ModelInput input{.features = 6, .classes = 4, .image = {}};
  for (const char* spec :
       {"mlp", "mlp:", "mlp:0", "mlp:-1", "mlp:8,", "mlp:,8", "mlp:8;8", "mlp:99999999999999999999",
        "mlp:65537", "transformer", "transformer:1,8,2"}) {
    CAPTURE(spec);
    CHECK_THROWS_WITH_AS(make_model(spec, input), doctest::Contains("expected"), Error);
  }
  for (const char* spec : {"", "softmax:3"}) {
    CHECK_THROWS_WITH_AS(make_model(spec, input), doctest::Contains("there are softmax; mlp"),
                         Error);
  }
  for (const char* spec : {"cnn:", "cnn:8", "cnn:8,16,32", "cnn:0,1"}) {
    CAPTURE(spec);
    CHECK_THROWS_WITH_AS(make_model(spec, images(1, 8, 8)), doctest::Contains("expected"), Error);
  }
  CHECK_THROWS_WITH_AS(make_model("cnn", images(1, 3, 8)), doctest::Contains("4 × 4"), Error);
  for (const char* spec :
       {"transformer:", "transformer:2", "transformer:2,64", "transformer:2,64,0",
        "transformer:17,64,4", "transformer:2,64,3", "transformer:2,64,4,1", "transformer:2,4,8"}) {
    CAPTURE(spec);
    CHECK_THROWS_WITH_AS(make_model(spec, sequences(8, 5)), doctest::Contains("heads"), Error);
  }
  CHECK_THROWS_WITH_AS(make_model("transformer", images(1, 8, 8)), doctest::Contains("text"),
                       Error);
  CHECK_THROWS_AS(make_model("transformer:16,65536,1", sequences(8, 5)), Error);
  // Every width is in range, their product is not.
  CHECK_THROWS_AS(make_model("mlp:65536,65536", input), Error);
}

TEST_CASE("a convolutional network's layout is torch's") {
  const auto model = make_model("cnn", images(2, 8, 12));
  const auto& layout = model->layout();
  REQUIRE(layout.size() == 6);
  CHECK(layout[0].name == "conv1.weight");
  CHECK(layout[0].shape == std::vector<std::size_t>{8, 2, 5, 5});
  CHECK(layout[2].shape == std::vector<std::size_t>{16, 8, 3, 3});
  CHECK(layout[4].name == "dense.weight");
  CHECK(layout[4].shape == std::vector<std::size_t>{3, 16 * 2 * 3});
}

TEST_CASE("a transformer's layout is GPT-2's") {
  const auto model = make_model("transformer:2,8,2", sequences(5, 3));
  std::vector<std::string> names;
  for (const ParameterBlock& block : model->layout()) {
    names.push_back(block.name);
  }
  CHECK(names == std::vector<std::string>{"wte.weight",
                                          "wpe.weight",
                                          "h.0.ln_1.weight",
                                          "h.0.ln_1.bias",
                                          "h.0.attn.c_attn.weight",
                                          "h.0.attn.c_proj.weight",
                                          "h.0.attn.c_proj.bias",
                                          "h.0.ln_2.weight",
                                          "h.0.ln_2.bias",
                                          "h.0.mlp.c_fc.weight",
                                          "h.0.mlp.c_fc.bias",
                                          "h.0.mlp.c_proj.weight",
                                          "h.0.mlp.c_proj.bias",
                                          "h.1.ln_1.weight",
                                          "h.1.ln_1.bias",
                                          "h.1.attn.c_attn.weight",
                                          "h.1.attn.c_proj.weight",
                                          "h.1.attn.c_proj.bias",
                                          "h.1.ln_2.weight",
                                          "h.1.ln_2.bias",
                                          "h.1.mlp.c_fc.weight",
                                          "h.1.mlp.c_fc.bias",
                                          "h.1.mlp.c_proj.weight",
                                          "h.1.mlp.c_proj.bias",
                                          "ln_f.weight",
                                          "ln_f.bias",
                                          "lm_head.weight",
                                          "lm_head.bias"});
  CHECK(model->layout()[0].shape == std::vector<std::size_t>{3, 8});
  CHECK(model->layout()[1].shape == std::vector<std::size_t>{5, 8});
  CHECK(model->layout()[4].shape == std::vector<std::size_t>{24, 8});
  CHECK(model->layout()[26].shape == std::vector<std::size_t>{4, 8});
  CHECK(model->positions() == 5);
}

TEST_CASE("a transformer sees no position behind the one that it predicts from") {
  const Case c{"transformer:2,8,2", sequences(6, 3)};
  const auto model = make_model(c.spec, c.input);
  const auto parameters = some_parameters(*model);
  auto x = uniform(2 * c.input.features, 1.0F, 2);
  const auto before = model->forward(parameters, x, 2);
  const std::vector<float> expected(before.begin(), before.end());
  constexpr std::size_t kChanged = 4;
  x[kChanged * 3 + 1] += 0.5F;  // of the first of the two
  const auto scores = model->forward(parameters, x, 2);
  for (std::size_t at = 0; at < scores.size(); ++at) {
    const std::size_t position = at / c.input.classes;
    CAPTURE(position);
    CHECK((scores[at] == expected[at]) == (position < kChanged || position >= 6));
  }
}

TEST_CASE("a NaN in a convolution's input reaches the scores") {
  const auto model = make_model("cnn:1,1", images(1, 4, 4));
  const auto parameters = some_parameters(*model);
  for (std::size_t pixel = 0; pixel < 16; ++pixel) {
    auto x = uniform(16, 1.0F, 2);
    x[pixel] = std::nanf("");
    CHECK(std::isnan(model->forward(parameters, x, 1)[0]));
  }
}

TEST_CASE("every listed example builds") {
  const ModelInput input{.features = 64,
                         .classes = 4,
                         .image = ImageShape{.channels = 1, .height = 8, .width = 8},
                         .sequence = SequenceShape{.positions = 16, .symbols = 4}};
  for (const ModelInfo& info : models()) {
    CAPTURE(info.name);
    CHECK(make_model(info.example, input) != nullptr);
  }
}

TEST_CASE("layers with experts have a gate and as many mlps, and share no weights") {
  const auto model = make_model("transformer:2,8,2,experts=3", sequences(4, 3));
  for (const char* name : {"h.0.mlp.gate.weight", "h.0.mlp.gate.bias", "h.1.mlp.2.c_fc.weight",
                           "h.1.mlp.2.c_proj.bias"}) {
    CAPTURE(name);
    CHECK(std::ranges::count(model->layout(), name, &ParameterBlock::name) == 1);
  }
  CHECK(std::ranges::count(model->layout(), "h.0.mlp.c_fc.weight", &ParameterBlock::name) == 0);
  const auto plain = make_model("transformer:2,8,2", sequences(4, 3));
  const std::size_t mlp = 2 * 8 * 32 + 32 + 8;
  CHECK(dimension_of(*model) == dimension_of(*plain) + 2 * (2 * mlp + 3 * 8 + 3));
  for (const char* spec :
       {"transformer:2,8,2,experts=1", "transformer:2,8,2,experts=257",
        "transformer:2,8,2,experts=", "transformer:2,8,2,experts=two",
        "transformer:2,8,2,share=2,experts=2", "transformer:2,8,2,experts=2,share=2"}) {
    CAPTURE(spec);
    CHECK_THROWS_WITH_AS(make_model(spec, sequences(4, 3)),
                         doctest::Contains("transformer:2,64,4,experts=8"), Error);
  }
}

TEST_CASE("a balance loss has a weight, and changes the gate's gradient alone in the last layer") {
  const Case c = {"transformer:1,6,2,experts=3", sequences(5, 4)};
  const auto plain = make_model(c.spec, c.input);
  const auto balanced = make_model("transformer:1,6,2,experts=3,balance=0.5", sequences(5, 4));
  const auto none = make_model("transformer:1,6,2,experts=3,balance=0", sequences(5, 4));
  const auto parameters = some_parameters(*plain);
  const auto x = uniform(4 * c.input.features, 1.0F, 2);
  const auto gradient_of = [&](Model& model) {
    std::vector<float> gradient(parameters.size());
    model.forward(parameters, x, 4);
    model.backward(parameters, score_gradient(model, c, 4), gradient);
    return gradient;
  };
  const auto without = gradient_of(*plain);
  const auto with = gradient_of(*balanced);
  CHECK(gradient_of(*none) == without);
  for (const ParameterBlock& block : plain->layout()) {
    CAPTURE(block.name);
    const bool behind = block.name.starts_with("lm_head") || block.name.starts_with("ln_f") ||
                        block.name.find(".c_fc") != std::string::npos ||
                        block.name.find("mlp.0.c_proj") != std::string::npos;
    const bool same = std::ranges::equal(block.of(std::span<const float>(without)),
                                         block.of(std::span<const float>(with)));
    CHECK((!behind || same));
    CHECK((block.name != "h.0.mlp.gate.weight" || !same));
  }
  for (const char* spec :
       {"transformer:2,8,2,balance=1", "transformer:2,8,2,experts=2,balance=-1",
        "transformer:2,8,2,experts=2,balance=", "transformer:2,8,2,share=2,balance=1"}) {
    CAPTURE(spec);
    CHECK_THROWS_WITH_AS(make_model(spec, sequences(4, 3)),
                         doctest::Contains("experts=8,balance=0.01"), Error);
  }
}

TEST_CASE("an expert without rows has no gradient") {
  // One row goes to one expert of three.
  const auto model = make_model("transformer:1,4,2,experts=3", sequences(1, 2));
  const auto parameters = some_parameters(*model);
  const auto x = uniform(2, 1.0F, 2);
  std::vector<float> gradient(parameters.size(), 1e30F);
  model->forward(parameters, x, 1);
  model->backward(parameters, uniform(3, 1.0F, 3), gradient);
  int silent = 0;
  for (const ParameterBlock& block : model->layout()) {
    if (block.name.ends_with(".c_fc.weight") || block.name.ends_with(".c_proj.bias")) {
      const auto values = block.of(std::span<const float>(gradient));
      silent += std::ranges::all_of(values, [](float value) { return value == 0; }) &&
                        block.name.find(".mlp.") != std::string::npos
                    ? 1
                    : 0;
    }
  }
  CHECK(silent == 4);
}

}  // namespace sotto::test::model_test
