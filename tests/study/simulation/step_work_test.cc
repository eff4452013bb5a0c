// What runs compute besides gradients, in virtual time and in plans: products of matrices, and a
// second decoding of what is clipped. All figures are worked out by hand.
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/study/plan/plan_search.h>
#include <sotto/study/simulation/simulated_run.h>

namespace sotto::test::step_work_test {

using namespace sotto::study;

namespace {

constexpr int kRounds = 6;
constexpr double kGradient_s = 0.02;

/// Four nodes of one pace on links without a limit, where the length of a frame does not count.
Scenario scenario(const std::string& model, const std::string& runs, const std::string& codec) {
  return parse_scenario("test",
                        fmt::format("sotto-scenario = 1\nrun = [\"{}\"]\n"
                                    "nodes = {{ count = 4, gradient = \"20 ms\"{} }}\n[network]\n"
                                    "link = {{ latency = \"20 ms\" }}\n[target]\naccuracy = 0.9\n"
                                    "[task]\ntask = \"digits,train=640,test=64\"\nmodel = \"{}\"\n"
                                    "batch = 20\nrounds = {}\nlr = 0.01\n",
                                    runs, codec, model, kRounds));
}

double seconds(const Scenario& scenario, const std::string& run, bool counts_products = true) {
  const auto found =
      simulate_run(scenario, parse_run(run), {.counts_products = counts_products}).result;
  CHECK(found.rounds == kRounds);
  return found.virtual_s;
}

}  // namespace

TEST_CASE("products of matrices take time in a simulated round, in proportion to the gradient's") {
  const Scenario of = scenario("mlp:40,30", "allreduce", "");
  // Two operations a multiply-add; a gradient passes each matrix three times, for 20 rows.
  const double elements = 784 * 40 + 40 * 30 + 30 * 10;
  const double gradient = 2.0 * 3 * elements * 20;
  // Five steps of Newton and Schulz on the one matrix of 30 × 40 that is Muon's.
  const double muon = 2 * (10.0 * 30 * 30 * 40 + 5.0 * 30 * 30 * 30) / gradient;
  const double plain = seconds(of, "allreduce");
  CHECK(seconds(of, "allreduce step-rule=muon") - plain ==
        doctest::Approx(kRounds * kGradient_s * muon).epsilon(1e-5));
  CHECK(seconds(of, "allreduce step-rule=muon", false) == plain);
  // Two columns, four products with each matrix.
  const double dion = 2 * (4 * 2 * elements) / gradient;
  CHECK(seconds(of, "dion lowrank:2 lr=0.001") - seconds(of, "dion lowrank:2 lr=0.001", false) ==
        doctest::Approx(kRounds * kGradient_s * dion).epsilon(1e-5));
}

TEST_CASE("exchanges in every third round have a third of their products a round") {
  const Scenario of = scenario("mlp:40,30", "allreduce", "");
  const std::string rare = "powersgd lowrank:2 communication-interval=3";
  const std::string often = "powersgd lowrank:2";
  const double rarely = seconds(of, rare) - seconds(of, rare, false);
  CHECK(rarely > 0);
  CHECK(seconds(of, often) - seconds(of, often, false) ==
        doctest::Approx(3 * rarely).epsilon(1e-5));
}

TEST_CASE("what is clipped to the median is decoded twice, and other frames once") {
  const Scenario of = scenario("mlp:40", "allreduce", ", codec = \"10 MB/s\"");
  const double vector_s = 4.0 * (784 * 40 + 40 + 40 * 10 + 10) / 10e6;
  struct Case {
    std::string algorithm;
    std::string compressor;
    double again_s;  ///< the second decoding in a round
  };
  // A whole message of each other node, or its part of the own chunk; updates are not clipped.
  for (const Case& known :
       {Case{"sparseloco", "topk:0.03,values=2", 3 * vector_s},
        Case{"demo", "dct/topk:0.0078125,chunk=4096", 3 * vector_s},
        Case{"qmean", "quant:8", 3 * vector_s / 4}, Case{"sharded", "quant:8", 3 * vector_s / 4}}) {
    CAPTURE(known.algorithm);
    const double once = seconds(of, known.algorithm + " " + known.compressor);
    const double twice = seconds(of, known.algorithm + ":clip=median " + known.compressor);
    CHECK(twice - once == doctest::Approx(kRounds * known.again_s).epsilon(1e-3));
  }
}

TEST_CASE("plans predict the second decoding of what is clipped") {
  const Scenario of = scenario(
      "mlp:40", "demo\", \"demo:clip=median\", \"qmean quant:8\", \"qmean:clip=median quant:8", "");
  PlanSearch search({.codec = "10 MB/s", .budget = 1, .seeds = 1}, of);
  REQUIRE(search.find().ok());
  const auto predicted = [&](const std::string& run) {
    for (const Candidate& one : search.candidates()) {
      if (one.own && one.run.name == run) {
        return one.predicted_seconds_per_round;
      }
    }
    FAIL("no candidate: " << run);
    return 0.0;
  };
  const double vector_s = 4.0 * (784 * 40 + 40 + 40 * 10 + 10) / 10e6;
  CHECK(predicted("demo:clip=median") - predicted("demo") ==
        doctest::Approx(3 * vector_s).epsilon(1e-3));
  CHECK(predicted("qmean:clip=median quant:8") - predicted("qmean quant:8") ==
        doctest::Approx(3 * vector_s / 4).epsilon(1e-3));
}

}  // namespace sotto::test::step_work_test
