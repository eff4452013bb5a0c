// ONNX files against the checker of the package onnx, and what onnxruntime computes of them against
// the models themselves.
#include <sotto/trainers/files/exported_model.h>

#include <sys/wait.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/philox.h>
#include <sotto/trainers/tasks/model.h>

#include "support/scratch.h"
#include "support/skip.h"

namespace sotto::test::onnx_test {

namespace {

constexpr std::size_t kRows = 23;

struct OnnxCase {
  const char* spec;
  ModelInput input;
  bool scaled = false;
};

std::vector<OnnxCase> onnx_cases() {
  const ImageShape small{.channels = 1, .height = 9, .width = 7};
  const ImageShape deep{.channels = 3, .height = 8, .width = 12};
  return {{"softmax", {.features = 5, .classes = 3}, true},
          {"softmax", {.features = 4, .classes = 2}},
          {"mlp:16", {.features = 7, .classes = 4}, true},
          {"mlp:12,6,5", {.features = 30, .classes = 9}},
          {"linear", {.features = 6, .targets = 1}, true},
          {"linear", {.features = 3, .targets = 2}},
          {"mlp:10", {.features = 8, .targets = 3}, true},
          {"cnn:3,5", {.features = small.size(), .classes = 10, .image = small}},
          {"cnn", {.features = deep.size(), .classes = 4, .image = deep}}};
}

std::string bytes_text(const auto& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<FeatureScaling> random_scaling(RandomStream& stream, std::size_t count) {
  std::vector<FeatureScaling> scaling(count);
  for (FeatureScaling& one : scaling) {
    // Far from 0 against its deviation, as years and amounts are.
    one = {.mean = 1e6 * (stream.uniform() - 0.5), .factor = 0.01 + stream.uniform()};
  }
  return scaling;
}

/// Writes NAME.onnx, the rows that go in and what is to come out.
void write_onnx_case(const Scratch& scratch, const std::string& name, const OnnxCase& one,
                     std::uint64_t seed) {
  RandomStream stream({.seed = seed, .purpose = Purpose::test});
  const auto model = make_model(one.spec, one.input);
  std::vector<float> parameters(dimension_of(model->layout()));
  model->initialize(parameters, seed);
  for (float& parameter : parameters) {
    parameter += static_cast<float>(0.2 * (stream.uniform() - 0.5));
  }
  ModelUnits units{.features = one.input.features,
                   .image = one.input.image,
                   .regression = one.input.targets > 0};
  if (one.scaled) {
    units.scaling = random_scaling(stream, units.features);
    units.target_scaling = random_scaling(stream, one.input.targets);
  }
  std::vector<double> raw;
  std::vector<float> x;
  for (std::size_t i = 0; i < kRows * units.features; ++i) {
    const double value = 4 * (stream.uniform() - 0.5);
    const FeatureScaling by = one.scaled ? units.scaling[i % units.features] : FeatureScaling();
    raw.push_back(one.scaled ? value / by.factor + by.mean : static_cast<float>(value));
    x.push_back(static_cast<float>((raw.back() - by.mean) * by.factor));
  }
  const auto scores = model->forward(parameters, x, kRows);
  const std::size_t outputs = one.input.outputs();
  std::vector<double> expected(scores.begin(), scores.end());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (units.regression && one.scaled) {
      const FeatureScaling by = units.target_scaling[i % outputs];
      expected[i] = expected[i] / by.factor + by.mean;
    } else if (!units.regression) {
      const auto row = scores.subspan(i / outputs * outputs, outputs);
      double sum = 0;
      for (const float score : row) {
        sum += std::exp(static_cast<double>(score - scores[i]));
      }
      expected[i] = 1 / sum;
    }
  }
  const auto file = exported_model(name + ".onnx", model->layout(), parameters, units,
                                   {{"sotto", "test"}, {"columns", "[\"größe\"]"}, {"mean", "[]"}});
  scratch.write(name + ".onnx", bytes_text(file));
  scratch.write(name + ".in", bytes_text(raw));
  scratch.write(name + ".out", bytes_text(expected));
}

}  // namespace

TEST_CASE("onnxruntime says of ONNX files what the models say, and onnx's checker takes them") {
  const Scratch scratch;
  std::size_t number = 0;
  for (const OnnxCase& one : onnx_cases()) {
    const std::uint64_t seed = 100 + number;
    MESSAGE("case " << number << ": " << std::string(one.spec) << ", seed " << seed);
    write_onnx_case(scratch, fmt::format("{}", number++), one, seed);
  }
  const std::string command = fmt::format(
      "tools=$('{0}/scripts/python-tools' onnx) || exit 77; "
      "exec \"$tools/bin/python3\" '{0}/tests/trainers/files/onnx_check.py' '{1}' {2} {3}",
      SOTTO_SOURCE_DIR, scratch.path().string(), number, kRows);
  const int status = std::system(command.c_str());
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) {
    SOTTO_SKIP("no onnx and onnxruntime: scripts/python-tools onnx --fetch");
  }
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a model that is not written as ONNX is refused, with what would do") {
  const SequenceShape sequence{.positions = 3, .symbols = 4};
  const auto model = make_model("transformer:1,6,2",
                                {.features = sequence.size(), .classes = 4, .sequence = sequence});
  const auto said = refusal([&] { check_onnx(model->layout(), {.features = 12}); });
  CHECK(contains(said, ".safetensors"));
  CHECK(contains(refusal([] { check_onnx(one_tensor(4), {}); }), "another model"));
  ParameterLayout large;
  append_block(large, "layer1.weight", {1 << 15, 1 << 14});
  append_block(large, "layer1.bias", {1 << 15});
  CHECK(contains(refusal([&] { check_onnx(large, {}); }), "2 GiB"));
}

}  // namespace sotto::test::onnx_test
