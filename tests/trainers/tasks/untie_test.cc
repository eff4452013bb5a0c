// Layers that share weights, and the model that they become when each gets its own.
#include <sotto/trainers/tasks/untie.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/trainers/tasks/model.h>

#include "support/scratch.h"
#include "support/seed.h"

namespace sotto::test::untie_test {

using sotto::test::contains;

namespace {

constexpr ModelInput kInput{
    .features = 6 * 5, .classes = 6, .sequence = SequenceShape{.positions = 6, .symbols = 5}};

std::vector<float> drawn(std::size_t count, std::mt19937_64& random) {
  std::vector<float> values(count);
  for (float& value : values) {
    value = static_cast<float>(random() % 2001) / 2000.0F - 0.5F;
  }
  return values;
}

/// A tied model of random size with random parameters, and what it is untied.
struct Pair {
  std::uint64_t seed = test::drawn_seed();
  std::mt19937_64 random{seed};
  std::size_t sets = 1 + random() % 3;
  std::size_t share = 2 + random() % 3;
  std::size_t heads = 1 + random() % 3;
  // A normalization of width 2 gives −1 and 1 whatever comes, and no gradient passes it.
  std::size_t width = heads * (3 + random() % 3);
  std::string plain = fmt::format("transformer:{},{},{}", sets* share, width, heads);
  std::unique_ptr<Model> tied = make_model(fmt::format("{},share={}", plain, share), kInput);
  std::unique_ptr<Model> untied = make_model(plain, kInput);
  std::vector<float> parameters = drawn(dimension_of(tied->layout()), random);
  std::size_t rows = 1 + random() % 3;
  std::vector<float> x = drawn(rows * kInput.features, random);
};

/// ∂loss/∂parameters for some ∂loss/∂scores, both drawn from the pair's seed.
std::vector<float> gradient_of(Model& model, std::span<const float> parameters, const Pair& pair) {
  std::mt19937_64 random(pair.seed + 1);
  const std::size_t scores = model.forward(parameters, pair.x, pair.rows).size();
  std::vector<float> gradient(parameters.size());
  model.backward(parameters, drawn(scores, random), gradient);
  return gradient;
}

const ParameterBlock& block_of(const ParameterLayout& layout, const std::string& name) {
  const auto found = std::ranges::find(layout, name, &ParameterBlock::name);
  REQUIRE(found != layout.end());
  return *found;
}

/// The tensor of a tied model that stands for one of the untied model's.
std::string owner_of(const std::string& name, std::size_t share) {
  if (!name.starts_with("h.") || contains(name, ".ln_")) {
    return name;
  }
  const std::size_t end = name.find('.', 2);
  const std::size_t layer = std::stoul(name.substr(2, end - 2));
  return fmt::format("h.{}{}", layer - layer % share, name.substr(end));
}

std::string refusal(const ParameterLayout& layout) {
  try {
    untie_layers(layout, std::vector<float>(dimension_of(layout)));
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("an untied transformer has the plain one's layout, and its scores are equal to the bit") {
  for (int repeat = 0; repeat < 12; ++repeat) {
    Pair pair;
    CAPTURE(pair.seed);
    CAPTURE(pair.plain);
    CAPTURE(pair.share);
    const UntiedModel untied = untie_layers(pair.tied->layout(), pair.parameters);
    CHECK(layout_text(untied.layout) == layout_text(pair.untied->layout()));
    CHECK(untied.layers == pair.sets * pair.share);
    CHECK(untied.sets == pair.sets);
    const auto before = pair.tied->forward(pair.parameters, pair.x, pair.rows);
    const auto after = pair.untied->forward(untied.parameters, pair.x, pair.rows);
    REQUIRE(before.size() == after.size());
    CHECK(std::ranges::equal(before, after));
  }
}

TEST_CASE("a tied tensor's gradient is the sum of those of the layers that have it") {
  for (int repeat = 0; repeat < 12; ++repeat) {
    Pair pair;
    CAPTURE(pair.seed);
    CAPTURE(pair.plain);
    CAPTURE(pair.share);
    const UntiedModel untied = untie_layers(pair.tied->layout(), pair.parameters);
    const auto tied_gradient = gradient_of(*pair.tied, pair.parameters, pair);
    const auto own_gradients = gradient_of(*pair.untied, untied.parameters, pair);
    std::vector<double> sum(tied_gradient.size());
    double largest = 1;
    for (const ParameterBlock& block : untied.layout) {
      const auto& owner = block_of(pair.tied->layout(), owner_of(block.name, pair.share));
      for (std::size_t k = 0; k < block.size; ++k) {
        const auto g = static_cast<double>(own_gradients[block.offset + k]);
        sum[owner.offset + k] += g;
        largest = std::fmax(largest, std::fabs(g));
      }
    }
    for (std::size_t k = 0; k < sum.size(); ++k) {
      REQUIRE(std::fabs(sum[k] - static_cast<double>(tied_gradient[k])) < 1e-6 * largest);
    }
    // Again: nothing of the round before is in it.
    CHECK(gradient_of(*pair.tied, pair.parameters, pair) == tied_gradient);
  }
}

TEST_CASE("after untying each layer moves by its own gradient") {
  constexpr float kRate = 0.125F;
  Pair pair;
  CAPTURE(pair.seed);
  const UntiedModel untied = untie_layers(pair.tied->layout(), pair.parameters);
  const auto gradient = gradient_of(*pair.untied, untied.parameters, pair);
  auto moved = untied.parameters;
  std::ranges::transform(moved, gradient, moved.begin(),
                         [](float x, float g) { return x - kRate * g; });
  const auto& first = block_of(untied.layout, "h.0.mlp.c_fc.weight");
  const auto& second = block_of(untied.layout, "h.1.mlp.c_fc.weight");
  std::size_t apart = 0;
  for (std::size_t k = 0; k < first.size; ++k) {
    REQUIRE(untied.parameters[first.offset + k] == untied.parameters[second.offset + k]);
    apart += moved[first.offset + k] != moved[second.offset + k] ? 1U : 0U;
  }
  CHECK(apart > first.size / 4);
}

TEST_CASE("tied layers have one set of weights, and normalizations of their own") {
  for (const std::size_t share : {1U, 2U, 4U}) {
    CAPTURE(share);
    const auto model = make_model(fmt::format("transformer:4,8,2,share={}", share), kInput);
    constexpr std::size_t kWidth = 8;
    const std::size_t norms = 4 * kWidth;
    const std::size_t block = 12 * kWidth * kWidth + 6 * kWidth;
    const std::size_t rest = 5 * kWidth + 6 * kWidth + 2 * kWidth + 6 * kWidth + 6;
    CHECK(dimension_of(model->layout()) == rest + 4 * norms + 4 / share * block);
    std::vector<float> parameters(dimension_of(model->layout()), 7);
    model->initialize(parameters, 3);
    CHECK(parameters[block_of(model->layout(), "h.3.ln_2.weight").offset] == 1);
  }
  const auto plain = make_model("transformer:4,8,2", kInput);
  CHECK(layout_text(make_model("transformer:4,8,2,share=1", kInput)->layout()) ==
        layout_text(plain->layout()));
}

TEST_CASE("a share that does not divide the layers is refused, with what would do") {
  for (const char* spec : {"transformer:4,8,2,share=3", "transformer:4,8,2,share=0",
                           "transformer:4,8,2,share=8", "transformer:4,8,2,share=",
                           "transformer:4,8,2,share=2,share=2", "transformer:4,8,2,share=two"}) {
    CAPTURE(spec);
    CHECK_THROWS_WITH_AS(make_model(spec, kInput), doctest::Contains("transformer:4,64,4,share=2"),
                         Error);
  }
  CHECK_THROWS_AS(make_model("transformer:share=2", kInput), Error);
  CHECK_THROWS_AS(make_model("mlp:8,share=1", kInput), Error);
}

TEST_CASE("what is no tied transformer is refused, and the message says why") {
  CHECK(contains(refusal(make_model("transformer:4,8,2", kInput)->layout()),
                 "none of its 4 layers is tied"));
  CHECK(contains(refusal(make_model("transformer:1,8,2", kInput)->layout()), "could be"));
  CHECK(contains(refusal(one_tensor(9)), "it is no transformer"));
  ParameterLayout gap;
  append_block(gap, "h.0.ln_1.weight", {2});
  append_block(gap, "h.2.ln_1.weight", {2});
  CHECK(contains(refusal(gap), "layer 2 and none of layer 1"));
  ParameterLayout late;
  append_block(late, "h.0.ln_1.weight", {2});
  append_block(late, "h.1.attn.weight", {2});
  CHECK(contains(refusal(late), "layer 0 has no such tensor"));
}

}  // namespace sotto::test::untie_test
