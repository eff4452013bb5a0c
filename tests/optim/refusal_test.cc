// What make_algorithm refuses, and that it says what fails and what would do.
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/optim/common_hyperparameters.h>

#include "optim/cluster.h"

namespace sotto::test::refusal_test {

namespace {

/// The message with which node 0 of `options` is refused on `topology`; empty when it is taken.
std::string refusal(const ClusterOptions& options, std::shared_ptr<const Topology> topology,
                    std::vector<std::string>* warnings = nullptr) {
  std::vector<float> x(options.dimension);
  try {
    make_algorithm(spec_of(options), node_setup(options, 0, x, std::move(topology)), warnings);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

std::string refusal(const ClusterOptions& options) {
  return refusal(options, cluster_topology(options));
}

bool mentions(const std::string& text, std::initializer_list<std::string_view> parts) {
  for (const auto part : parts) {
    if (text.find(part) == std::string::npos) {
      return false;
    }
  }
  return true;
}

std::shared_ptr<const Topology> graph(std::string name, int nodes,
                                      std::vector<std::vector<WeightedEdge>> rounds) {
  return std::make_shared<const Topology>(std::move(name), nodes, std::move(rounds));
}

}  // namespace

TEST_CASE("an unknown algorithm is refused with the list of those there are") {
  try {
    algorithm_info("easgd");
    FAIL("it was found");
  } catch (const Error& error) {
    CHECK(mentions(error.what(), {"algorithm: 'easgd' is refused", "allreduce", "dcd", "choco"}));
  }
}

TEST_CASE("rings of more nodes than a round's phases can be numbered for are refused") {
  struct Case {
    std::string algorithm;
    std::size_t most;
  };
  for (const Case& ring : {Case{"allreduce", 32769}, Case{"powersgd", 16385}}) {
    CAPTURE(ring.algorithm);
    ClusterOptions options{.algorithm = ring.algorithm, .nodes = ring.most, .dimension = 8};
    CHECK(refusal(options, nullptr).empty());
    options.nodes = ring.most + 1;
    CHECK(mentions(refusal(options, nullptr), {"nodes: '", "in 16 bits", std::to_string(ring.most),
                                               "use an algorithm on a graph"}));
  }
}

TEST_CASE("the table of algorithms is complete and consistent") {
  std::vector<std::uint16_t> ids;
  for (const AlgorithmInfo& info : algorithms()) {
    CAPTURE(info.name);
    CHECK(&algorithm_info(info.name) == &info);
    for (const auto text : {info.title, info.paper, info.rule, info.summary}) {
      CHECK_FALSE(text.empty());
    }
    CHECK_FALSE(state_formula(info).empty());
    CHECK(std::find(ids.begin(), ids.end(), info.wire_id) == ids.end());
    ids.push_back(info.wire_id);
    const auto compressor = make_compressor(info.default_compressor, info.contract);
    CHECK(compressor->contract(1000).meets(info.contract));
    CHECK(refusal({.algorithm = std::string(info.name)}).empty());
  }
}

TEST_CASE("a compressor whose contract is not met is refused by the contract's name") {
  struct Pairing {
    std::string algorithm;
    std::string compressor;
    std::string contract;
    std::string would_do;
  };
  for (const Pairing& pairing : {
           Pairing{"dpsgd", "quant:8", "exact", "dcd"},
           Pairing{"allreduce", "sign", "exact", "deepsqueeze"},
           Pairing{"dcd", "topk:0.1", "unbiased", "choco"},
           Pairing{"dcd", "sign", "unbiased", "quant:8"},
           Pairing{"dcd", "quant:8,rounding=nearest", "unbiased", "choco"},
           Pairing{"ecd", "quant:8", "absolute", "grid"},
           Pairing{"deepsqueeze", "quant:1,rounding=stochastic", "contraction", "dcd"},
           Pairing{"choco", "sign,scale=l2", "contraction", "topk"},
       }) {
    CAPTURE(pairing.algorithm);
    CAPTURE(pairing.compressor);
    ClusterOptions options{.algorithm = pairing.algorithm, .compressor = pairing.compressor};
    const std::string why = refusal(options);
    CAPTURE(why);
    CHECK(mentions(why, {"compressor: '", "is refused", pairing.algorithm, pairing.contract,
                         pairing.would_do, "allow_contract_violation = true"}));
    // Nobody is sent to an algorithm that would refuse the compressor, too.
    for (const AlgorithmInfo& info : algorithms()) {
      if (!info.compressors.family.empty() &&
          !pairing.compressor.starts_with(info.compressors.family)) {
        CHECK_FALSE(mentions(why, {fmt::format("{} or", info.name)}));
      }
    }
    options.allow_contract_violation = true;
    if (algorithm_info(pairing.algorithm).has("eta")) {
      options.algorithm += ":eta=0.01";
    }
    CHECK(refusal(options).empty());
  }
}

TEST_CASE("a graph without the property that the algorithm needs is refused by that property") {
  const auto apart = graph("apart", 4, {{{0, 1, 0.5}, {1, 0, 0.5}, {2, 3, 0.5}, {3, 2, 0.5}}});
  const auto one_way = graph("one-way", 3, {{{0, 1, 0.5}, {1, 2, 0.5}, {2, 0, 0.5}}});
  const auto uneven = graph("uneven", 3, {{{0, 1, 0.5}, {1, 0, 0.25}, {1, 2, 0.5}, {2, 1, 0.25}}});
  const auto varying = graph("varying", 2, {{{0, 1, 0.5}, {1, 0, 0.5}}, {}});
  for (const AlgorithmInfo& info : algorithms()) {
    CAPTURE(info.name);
    ClusterOptions options{.algorithm = std::string(info.name)};
    const auto verdict = [&](const std::shared_ptr<const Topology>& topology, bool allow) {
      options.nodes = static_cast<std::size_t>(topology->nodes());
      options.allow_contract_violation = allow;
      return refusal(options, topology);
    };
    if (info.graph == GraphNeed::any) {
      CHECK(verdict(apart, false).empty());
      continue;
    }
    CHECK(mentions(verdict(apart, false), {"topology: 'apart'", "not connected", info.name}));
    CHECK(verdict(apart, true).empty());
    CHECK(mentions(verdict(uneven, false), {"topology: 'uneven'"}));
    CHECK(verdict(uneven, true).empty());
    if (info.graph == GraphNeed::symmetric) {
      CHECK(mentions(verdict(one_way, false), {"topology: 'one-way'", "directed"}));
    } else {
      CHECK(verdict(one_way, false).empty());
    }
    if (info.takes_changing_graphs()) {
      CHECK(verdict(varying, false).empty());
    } else {
      CHECK(mentions(verdict(varying, true), {"topology: 'varying'", "changes between rounds"}));
    }
  }
}

TEST_CASE("D² refuses a graph with an eigenvalue of −⅓ or less by that eigenvalue") {
  ClusterOptions options{.algorithm = "d2"};
  const auto why = refusal(options, make_topology("ring", 8));
  CAPTURE(why);
  CHECK(mentions(why, {"topology: 'ring'", "d2", "λ_n is -0.3333", "lazy = true",
                       "allow_contract_violation = true"}));
  CHECK(refusal(options, make_topology("ring", 8, {.lazy = true})).empty());
  options.nodes = 5;
  CHECK(refusal(options, make_topology("ring", 5)).empty());
  const auto swap = graph("swap", 2, {{{0, 1, 1}, {1, 0, 1}}});
  options.nodes = 2;
  CHECK(mentions(refusal(options, swap), {"λ_n is -1"}));
  options.allow_contract_violation = true;
  CHECK(refusal(options, swap).empty());
}

TEST_CASE("a graph of another size, or none, is refused even where violations are allowed") {
  ClusterOptions options{.nodes = 8, .allow_contract_violation = true};
  CHECK(mentions(refusal(options, make_topology("ring", 7)), {"7 nodes", "job has 8"}));
  CHECK(mentions(refusal(options, nullptr), {"topology: 'none given'", "ring"}));
  options.algorithm = "allreduce";
  CHECK(refusal(options, nullptr).empty());
}

TEST_CASE("settings outside their range are refused by name") {
  std::vector<float> x = {1, std::numeric_limits<float>::quiet_NaN(), 3};
  const auto why = [&](auto change) {
    AlgorithmSetup setup =
        node_setup({.algorithm = "choco", .nodes = 4}, 0, x, make_topology("ring", 4));
    setup.parameters = {};
    change(setup);
    try {
      make_algorithm("choco", std::move(setup));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(why([](AlgorithmSetup&) {}).empty());
  CHECK(mentions(why([](AlgorithmSetup& s) { s.rank = 4; }), {"rank: '4'", "0 … 3"}));
  CHECK(mentions(why([](AlgorithmSetup& s) { s.rank = -1; }), {"rank: '-1'"}));
  CHECK(mentions(why([](AlgorithmSetup& s) { s.nodes = 0; }), {"nodes: '0'"}));
  CHECK(mentions(why([](AlgorithmSetup& s) { s.step_rule = nullptr; }), {"step_rule"}));
  CHECK(mentions(why([&](AlgorithmSetup& s) { s.parameters = x; }),
                 {"parameters: 'nan'", "the first is 1"}));
}

TEST_CASE("hyperparameters that are needed are asked for, with what would do") {
  CHECK(refusal({.algorithm = "onebit-adam", .freeze_step = {}}).empty());
  CHECK(mentions(refusal({.algorithm = "apmsqueeze", .freeze_step = {}}),
                 {"freeze_step: 'none given'", "apmsqueeze needs freeze", "apmsqueeze:freeze=100",
                  "onebit-adam"}));
  CHECK(mentions(refusal({.algorithm = "zeroone-adam:limit=4", .freeze_step = {}}),
                 {"algorithm: 'zeroone-adam:limit=4'", "nothing without freeze"}));
  CHECK(refusal({.algorithm = "zeroone-adam:limit=4,freeze=9"}).empty());
}

TEST_CASE("η that cannot be derived is asked for") {
  ClusterOptions options{.algorithm = "choco",
                         .compressor = "quant:1,rounding=stochastic",
                         .allow_contract_violation = true};
  CHECK(mentions(refusal(options), {"consensus_stepsize: 'none given'", "choco:eta=0.01"}));
  options.algorithm = "choco:eta=0.01";
  CHECK(refusal(options).empty());
}

TEST_CASE("a step rule that the algorithm is not built on is refused by name") {
  std::vector<float> x(4);
  for (const std::string algorithm : {"apmsqueeze", "onebit-adam"}) {
    for (const char* rule : {"sgd", "adamw"}) {
      CAPTURE(algorithm);
      CAPTURE(rule);
      AlgorithmSetup setup =
          node_setup({.algorithm = algorithm, .nodes = 2, .dimension = 4}, 0, x, nullptr);
      setup.step_rule = make_step_rule({.rule = rule});
      try {
        make_algorithm(algorithm, std::move(setup));
        FAIL("it was taken");
      } catch (const Error& error) {
        CHECK(mentions(error.what(), {"step_rule: '", rule, algorithm, "use adam"}));
      }
    }
  }
}

TEST_CASE("DCD warns when α exceeds what the theory allows on the graph") {
  std::vector<std::string> warnings;
  const auto ring = make_topology("ring", 8);
  for (const char* fine : {"quant:8,chunk=64", "quant:8"}) {
    CHECK(refusal({.algorithm = "dcd", .compressor = fine}, ring, &warnings).empty());
    CHECK(warnings.empty());
  }
  CHECK(refusal({.algorithm = "dcd", .compressor = "quant:2"}, ring, &warnings).empty());
  REQUIRE(warnings.size() == 1);
  CHECK(mentions(warnings[0], {"dcd", "quant:2", "0.073"}));
}

TEST_CASE("a graph whose models cannot come together is warned of") {
  std::vector<std::string> warnings;
  const auto swap = graph("swap", 2, {{{0, 1, 1}, {1, 0, 1}}});
  CHECK(refusal({.algorithm = "dpsgd", .nodes = 2}, swap, &warnings).empty());
  REQUIRE(warnings.size() == 1);
  CHECK(mentions(warnings[0], {"spectral gap", "swap"}));
}

TEST_CASE("the default consensus step follows DeepSqueeze's rule") {
  const auto eta = [](const char* spec, double cap) {
    return default_consensus_stepsize(*make_compressor(spec, ContractKind::contraction), 10000,
                                      cap);
  };
  CHECK(eta("topk:0.1", 0.5) == doctest::Approx(0.2).epsilon(0.25));
  CHECK(eta("none", 0.5) == 0.5);
  CHECK(eta("none", 1) == 1);
  CHECK(eta("quant:8", 1) == 1);
  const double sign_alpha = measure_alpha(*make_compressor("sign"), 10000, 4);
  CHECK(eta("sign", 1) == doctest::Approx(std::pow(sign_alpha, -2.0 / 3) - 1));
}

}  // namespace sotto::test::refusal_test
