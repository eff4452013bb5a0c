// What a plan tries unasked, what it does not and why, and what steps cost besides gradients.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/compress/registry.h>
#include <sotto/optim/registry.h>
#include <sotto/optim/step_rule_spec.h>
#include <sotto/study/plan/plan_proposals.h>
#include <sotto/study/plan/plan_search.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/simulation/simulated_run.h>
#include <sotto/study/simulation/step_work.h>

namespace sotto::test::plan_proposals_test {

using namespace sotto::study;

namespace {

Scenario scenario(const std::string& task = "", const std::string& nodes = "",
                  const std::string& model = "mlp:40", const std::string& runs = "allreduce") {
  return parse_scenario("test",
                        fmt::format("sotto-scenario = 1\nrun = [\"{}\"]\n"
                                    "nodes = {{ count = 4, gradient = \"20 ms\"{} }}\n[network]\n"
                                    "link = {{ latency = \"20 ms\", bandwidth = \"20 Mbit/s\" }}\n"
                                    "[target]\naccuracy = 0.3\n"
                                    "[task]\ntask = \"digits,train=640,test=64\"\nmodel = \"{}\"\n"
                                    "rounds = 16\nlr = 0.05\n{}\n",
                                    runs, nodes, model, task));
}

std::vector<std::string> proposed(const Scenario& scenario, const CandidateLists& lists = {}) {
  std::vector<std::string> names;
  for (const Proposal& one : proposals(lists, scenario, {{"ring", "ring"}}, 16)) {
    names.push_back(one.run.name);
  }
  return names;
}

bool holds(const std::vector<std::string>& all, std::string_view one) {
  return std::ranges::find(all, one) != all.end();
}

std::string why_not(std::string_view algorithm, const Scenario& scenario) {
  return why_not_tried(algorithm_info(algorithm), scenario);
}

/// A search over what is asked for, and nothing simulated but the baseline and one more.
struct Searched {
  Searched(const Scenario& scenario, const CandidateLists& lists)
      : search({.lists = lists, .codec = "none", .budget = 1, .seeds = 1}, scenario) {
    REQUIRE(search.find().ok());
  }
  const Candidate* find(std::string_view name) const {
    const auto& all = search.candidates();
    const auto found =
        std::ranges::find_if(all, [&](const Candidate& one) { return one.run.name == name; });
    return found == all.end() ? nullptr : &*found;
  }
  std::string refusal(std::string_view name) const {
    for (const Refusal& one : search.refused()) {
      if (one.run == name) {
        return one.why;
      }
    }
    return {};
  }

  PlanSearch search;
};

}  // namespace

TEST_CASE("every algorithm is tried by plans, or says in words why it is not") {
  for (const AlgorithmInfo& info : algorithms()) {
    CAPTURE(info.name);
    CHECK(info.planned.compressors.empty() != info.planned.why_not.empty());
    for (const std::string_view compressor : info.planned.compressors) {
      (void)make_compressor(compressor, info.contract);
    }
    if (!info.planned.hyperparameters.empty()) {
      const std::string spec = fmt::format("{}:{}", info.name, info.planned.hyperparameters);
      CHECK(parse_algorithm(spec).text() == spec);
    }
  }
}

TEST_CASE("algorithms are proposed with what their facts say, where they are for the scenario") {
  const auto like = proposed(scenario());
  for (const std::string_view one :
       {"allreduce", "powersgd lowrank:2", "dion lowrank:4 lr=0.001",
        "sparseloco topk:0.03,values=2", "ef21:momentum=0.1 topk:0.1,values=4",
        "powergossip lowrank:2 ring", "qmean quant:4", "onebit-adam sign freeze-step=2 lr=0.001"}) {
    CAPTURE(one);
    CHECK(holds(like, one));
  }
  CHECK_FALSE(holds(like, "d2 ring lazy=true"));
  CHECK_FALSE(holds(like, "adpsgd ring"));
  CHECK(why_not("d2", scenario()).find("data differ") != std::string::npos);
  CHECK(why_not("adpsgd", scenario()).find("uneven speed") != std::string::npos);
  CHECK(why_not("robust", scenario()).find("nodes that lie") != std::string::npos);
  CHECK(why_not("zeroone-adam", scenario()).find("rarer") != std::string::npos);

  const Scenario unlike = scenario("partition = \"label\"");
  CHECK(holds(proposed(unlike), "d2 ring lazy=true"));
  CHECK(holds(proposed(unlike), "beer quant:4 ring"));
  const Scenario uneven = scenario("", ", stragglers = [{ nodes = \"1\", slower = 2 }]");
  CHECK(holds(proposed(uneven), "adpsgd ring"));
  // Asked for, it is tried wherever it is.
  CHECK(holds(proposed(scenario(), {.algorithms = {"d2"}, .compressors = {}, .topologies = {}}),
              "d2 ring lazy=true"));
}

TEST_CASE("lazy mixing is no step rule, and no rule is tried that an algorithm does not take") {
  const Searched d2(scenario(), {.algorithms = {"d2"}, .compressors = {}, .topologies = {"ring"}});
  REQUIRE(d2.find("d2 ring lazy=true") != nullptr);
  CHECK(d2.find("d2 ring lazy=true")->step_rule.empty());
  const Searched adams(
      scenario(), {.algorithms = {"dion", "onebit-adam"}, .compressors = {}, .topologies = {}});
  for (const Candidate& one : adams.search.candidates()) {
    CAPTURE(one.run.name);
    CHECK((one.algorithm != "dion" || one.step_rule.find("step-rule=adam") == std::string::npos));
  }
}

TEST_CASE("step rules are tried in place of plain sgd, at their own rates") {
  const auto names = [](const Scenario& scenario, const std::vector<std::string>& algorithms) {
    std::vector<std::string> rules;
    for (const StepRuleInfo* rule :
         tried_rules({.algorithms = algorithms, .compressors = {}, .topologies = {}}, scenario)) {
      rules.emplace_back(rule->name);
    }
    return rules;
  };
  CHECK(names(scenario(), {}) == std::vector<std::string>{"adam", "muon"});
  CHECK(names(scenario("momentum = 0.9"), {}).empty());
  CHECK(names(scenario(), {"dpsgd"}).empty());
  CHECK(names(scenario(), {"dpsgd", "onebit-adam"}) == std::vector<std::string>{"adam"});
  CHECK(rate_of(step_rule_info("muon"), scenario()) == MoreSettings{{"lr", "0.02"}});
}

TEST_CASE("the work of a step is that of Muon's products, and of low-rank factors") {
  const auto plan_of = [](const Scenario& scenario, const std::string& run) {
    return make_train_plan(with_run(scenario.task, parse_run(run)));
  };
  const auto layout_of = [](const TrainPlan& plan) { return plan.tasks->make(0)->layout(); };
  const Scenario base = scenario("batch = 20", "", "mlp:40,30");
  const TrainPlan sgd = plan_of(base, "allreduce");
  const auto layout = layout_of(sgd);
  CHECK(multiply_adds_of(sgd, layout, 0).of_round(1) == 0);

  // The first and the last of the matrices are AdamW's, and 30 × 40 is Muon's.
  const TrainPlan muon = plan_of(base, "allreduce step-rule=muon");
  const double products = 10.0 * 30 * 30 * 40 + 5.0 * 30 * 30 * 30;
  CHECK(multiply_adds_of(muon, layout, 0).step == products);
  const double row = 2.0 * 3 * (784 * 40 + 40 * 30 + 30 * 10);
  const auto work = step_work(muon, layout, 0);
  REQUIRE(work);
  CHECK(work->of_round(8) == doctest::Approx(2 * products / (20 * row)));

  // Four columns; of the last matrix, 10 × 30, too.
  const double elements = 784 * 40 + 40 * 30 + 30 * 10;
  const TrainPlan dion = plan_of(base, "dion lowrank:4");
  CHECK(multiply_adds_of(dion, layout, 0).exchange == 4 * 4 * elements);
  CHECK(multiply_adds_of(dion, layout, 0).of_round(8) == 2 * elements);
  const TrainPlan gossip = plan_of(base, "powergossip lowrank:2 ring");
  CHECK(multiply_adds_of(gossip, layout, 3).exchange == 3 * 2 * 2 * elements);
}

TEST_CASE("Muon is tried where nodes step as one, slower by its products, or refused in words") {
  const Searched plan(scenario(), {});
  const Candidate* muon = plan.find("allreduce step-rule=muon lr=0.02");
  REQUIRE(muon != nullptr);
  CHECK(muon->step_work > 0.1);
  const Candidate* sgd = plan.find("allreduce");
  REQUIRE(sgd != nullptr);
  CHECK(muon->predicted_seconds_per_round - sgd->predicted_seconds_per_round ==
        doctest::Approx(0.02 * muon->step_work).epsilon(1e-3));
  const Candidate* mixed = plan.find(
      "qmean quant:4 step-rule=muon lr=0.02 communication-interval=4 outer-lr=0.7 "
      "outer-momentum=0.9 outer-nesterov=true");
  REQUIRE(mixed != nullptr);
  CHECK(mixed->step_rule == "step-rule=muon lr=0.02");
  CHECK(mixed->outer_rule == "outer-lr=0.7 outer-momentum=0.9 outer-nesterov=true");
  CHECK(plan.find("dpsgd ring step-rule=muon lr=0.02") == nullptr);
  CHECK(
      plan.refusal("sharded quant:8 step-rule=muon lr=0.02").find("goes by the model's tensors") !=
      std::string::npos);
  CHECK(plan.refusal("moniqua").starts_with("not tried: its grid"));
  CHECK(plan.refusal("allreduce").empty());

  // A softmax has one matrix of 10 rows, which 16 columns would not make shorter.
  const Searched small(scenario("", "", "softmax"), {});
  CHECK(small.refusal("dion lowrank:16 lr=0.001").find("nothing would be compressed") !=
        std::string::npos);
  CHECK(small.find("dion lowrank:4 lr=0.001") != nullptr);
}

TEST_CASE("outer rules are tried with local steps: after the mixing of gossip, and as DiLoCo's") {
  const Searched plan(scenario(), {.algorithms = {"dpsgd", "allreduce", "sparseloco"},
                                   .compressors = {},
                                   .topologies = {"ring"}});
  const std::string noloco = " outer-after-mixing=true outer-lr=0.7 outer-momentum=0.5";
  const std::string diloco = " outer-lr=0.7 outer-momentum=0.9 outer-nesterov=true";
  const Candidate* after = plan.find("dpsgd ring" + noloco + " communication-interval=4");
  REQUIRE(after != nullptr);
  // The exchange waits for the movement; without the outer rule it hides behind four gradients.
  const Candidate* before = plan.find("dpsgd ring communication-interval=4");
  REQUIRE(before != nullptr);
  CHECK(after->predicted_seconds_per_round > 1.2 * before->predicted_seconds_per_round);
  CHECK(plan.find("dpsgd ring" + noloco) == nullptr);
  const Candidate* outer = plan.find("allreduce communication-interval=4" + diloco);
  REQUIRE(outer != nullptr);
  CHECK(outer->interval == 4);
  // What its nodes hold back stands for an outer momentum.
  CHECK(plan.find("sparseloco topk:0.03,values=2 communication-interval=4" + diloco) == nullptr);
  CHECK(plan.find("sparseloco topk:0.03,values=2 communication-interval=4") != nullptr);
}

TEST_CASE("rounds of what plans try are as long as simulated, with the products of matrices") {
  std::string runs;
  for (const std::string_view run :
       {"powersgd lowrank:2", "dion lowrank:4 lr=0.001", "ef21:momentum=0.1 topk:0.1,values=4",
        "powergossip lowrank:2 ring", "d2 ring lazy=true", "beer quant:4 ring",
        "onebit-adam sign freeze-step=2 lr=0.001", "allreduce step-rule=muon lr=0.02",
        "qmean quant:4 communication-interval=4 outer-lr=0.7 outer-momentum=0.9",
        "dpsgd ring communication-interval=4 outer-after-mixing=true outer-momentum=0.5"}) {
    runs += fmt::format("{}{}", runs.empty() ? "" : "\", \"", run);
  }
  PlanSearch search({.codec = "none", .budget = 1, .seeds = 1}, scenario("", "", "mlp:40", runs));
  const auto found = search.find();
  REQUIRE(found.ok());
  std::size_t own = 0;
  for (const PlannedRun& run : *found) {
    CAPTURE(run.label);
    REQUIRE(run.error());
    CHECK(std::abs(*run.error()) < 0.1);
    own += run.candidate.own ? 1 : 0;
    const bool multiplies = run.label.find("lowrank") != std::string::npos ||
                            run.label.find("muon") != std::string::npos;
    CHECK((run.candidate.step_work > 0) == multiplies);
  }
  CHECK(own == 10);
}

}  // namespace sotto::test::plan_proposals_test
