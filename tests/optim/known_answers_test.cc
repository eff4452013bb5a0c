// Quadratics with known answers: 8 nodes, ring of weights ⅓, 64 parameters, H = diag(0.1 … 1),
// centres from N(1, 1). Orders of magnitude are the test, not the digits.
#include <string>

#include <doctest/doctest.h>

#include "optim/cluster.h"

namespace sotto::test::known_answers_test {

namespace {

struct Run {
  std::string algorithm;
  std::string compressor;
  double noise = 0;
};

/// f(x̄) − f* after the run; infinity when it met a fault.
double final_excess(const Run& run) {
  Cluster cluster({.algorithm = run.algorithm,
                   .compressor = run.compressor,
                   .step = {.learning_rate = run.noise == 0 ? 0.1 : 0.05},
                   .allow_contract_violation = true,
                   .initial_scale = 0});
  const Quadratic task(8, 64, 11, run.noise);
  const Status status = cluster.driver.run(run.noise == 0 ? 1500 : 1000, task);
  return status ? task.excess(cluster.mean()) : INFINITY;
}

std::string quant(int bits) { return "quant:" + std::to_string(bits) + ",chunk=0"; }

/// Within a factor of ten either way.
void check_order(double value, double expected) {
  CAPTURE(value);
  CAPTURE(expected);
  CHECK(value < 10 * expected);
  CHECK(value > expected / 10);
}

// What float32 leaves of an excess that goes to zero: a step below half a unit in the last place of
// x is lost, so x_k stops 2^-24 |x_k| / (γ h_k) from the optimum at the latest.
constexpr double kZero = 1e-10;

}  // namespace

TEST_CASE("without noise, full precision and DCD at 8, 4 and 2 bits reach the optimum") {
  CHECK(final_excess({"dpsgd", "none"}) < kZero);
  CHECK(final_excess({"allreduce", "none"}) < kZero);
  for (const int bits : {8, 4, 2}) {
    CAPTURE(bits);
    CHECK(final_excess({"dcd", quant(bits)}) < kZero);
  }
}

TEST_CASE("naive averaging of quantized models stays away from the optimum") {
  check_order(final_excess({"dpsgd", quant(8)}), 1.5e-4);
  check_order(final_excess({"dpsgd", quant(4)}), 4e-2);
  check_order(final_excess({"dpsgd", quant(2)}), 1.8);
}

TEST_CASE("ECD with a quantizer scaled by the norm stays away from the optimum, less far") {
  check_order(final_excess({"ecd", quant(8)}), 8e-6);
  check_order(final_excess({"ecd", quant(4)}), 2e-3);
  check_order(final_excess({"ecd", quant(2)}), 5e-2);
}

TEST_CASE("with noise, DCD at 8 and 4 bits is as good as full precision, and 2 bits cost some") {
  const double exact = final_excess({"dpsgd", "none", 1});
  CAPTURE(exact);
  CHECK(exact > 0.05);
  CHECK(exact < 0.2);
  CHECK(final_excess({"dcd", quant(8), 1}) < 1.5 * exact);
  CHECK(final_excess({"dcd", quant(4), 1}) < 1.5 * exact);
  const double coarse = final_excess({"dcd", quant(2), 1});
  CAPTURE(coarse);
  CHECK(coarse > 1.2 * exact);
  CHECK(coarse < 10 * exact);
}

TEST_CASE("with noise, ECD with a quantizer scaled by the norm does worse than D-PSGD") {
  check_order(final_excess({"ecd", quant(8), 1}), 0.24);
  CHECK(final_excess({"ecd", quant(4), 1}) > 10);
}

TEST_CASE("with noise, ECD needs a grid that holds the extrapolated model") {
  const double wide = final_excess({"ecd", "grid:8:2", 1});
  const double narrow = final_excess({"ecd", "grid:8:0.01", 1});
  const double relative = final_excess({"ecd", quant(4), 1});
  CAPTURE(wide);
  CAPTURE(narrow);
  CAPTURE(relative);
  CHECK(wide < 10);
  CHECK(narrow > wide);  // it saturates
  CHECK(relative > wide);
}

}  // namespace sotto::test::known_answers_test
