// Experts at nodes: the gradients of the model with all experts everywhere, the same bits in
// virtual time as over threads, and what is refused.
#include <sotto/trainers/tasks/experts_at_nodes.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/sim/lockstep.h>
#include <sotto/study/internal/scenario_spelling.h>
#include <sotto/study/plan/internal/plan_pattern.h>
#include <sotto/study/plan/plan_search.h>
#include <sotto/study/simulation/job_nodes.h>
#include <sotto/study/simulation/simulated_run.h>
#include <sotto/study/simulation/step_work.h>
#include <sotto/study/train/train_plan.h>
#include <sotto/trainers/run.h>

#include "support/scratch.h"

namespace sotto::test::experts_at_nodes_test {

using namespace sotto::study;

namespace {

/// A text of some symbols.
class Verse {
 public:
  Verse() {
    std::string text;
    for (int line = 0; line < 150; ++line) {
      text += line % 3 == 0 ? "to be or not to be\n" : line % 3 == 1 ? "that is it\n" : "or so\n";
    }
    path_ = scratch_.write("verse.txt", text).string();
  }
  std::string task() const { return fmt::format("text:{},context=6", path_); }

 private:
  Scratch scratch_;
  std::string path_;
};

TrainOptions job(const Verse& verse, int nodes, const std::string& experts_at) {
  TrainOptions options;
  options.task = verse.task();
  options.model = "transformer:2,8,2,experts=4,balance=0.01";
  options.nodes = nodes;
  options.batch = 5;
  options.algorithm = "allreduce";
  options.rounds = 5;
  options.experts_at = experts_at;
  if (experts_at == "nodes") {
    options.expert_compressor = "none";
  }
  return options;
}

/// The models of all nodes after a run in lock step, whole.
std::vector<std::vector<float>> models_of(const TrainOptions& options, Round rounds,
                                          Delivery delivery = Delivery::eager) {
  const TrainPlan plan = make_train_plan(options);
  const JobNodes made = job_nodes(plan, plan.run.optimizer);
  std::vector<std::vector<float>> x(static_cast<std::size_t>(*options.nodes), made.start);
  std::vector<std::unique_ptr<Task>> tasks;
  LockstepDriver driver(delivery);
  for (std::size_t rank = 0; rank < x.size(); ++rank) {
    tasks.push_back(plan.unpaced_task_of(static_cast<Rank>(rank)));
    driver.add(made.make(static_cast<Rank>(rank), x[rank]));
  }
  const Status status = driver.run(
      rounds, [&](Rank rank, Round round, std::span<const float> at, std::span<float> g) {
        (void)tasks[static_cast<std::size_t>(rank)]->loss_and_gradient(round, at, g);
      });
  REQUIRE_MESSAGE(status.ok(), status.message());
  if (plan.run.optimizer.placed) {
    bring_together(*plan.run.optimizer.placed, x);
  }
  return x;
}

double largest_difference(std::span<const float> a, std::span<const float> b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    largest = std::max(largest, std::abs(static_cast<double>(a[k]) - static_cast<double>(b[k])));
  }
  return largest;
}

/// A scenario of these options.
Scenario scenario_of(const TrainOptions& options, const std::string& run,
                     const std::string& more = "") {
  return parse_scenario(
      "text",
      fmt::format("sotto-scenario = 1\nrun = [\"{}\"]\nnodes = {{ count = {}, gradient = \"5 ms\" "
                  "}}\nnetwork = {{ link = \"wan\" }}\n{}[task]\ntask = \"{}\"\nmodel = "
                  "\"{}\"\nbatch = {}\nrounds = {}\nexperts-at = \"{}\"\n",
                  run, *options.nodes, more, options.task, options.model, *options.batch,
                  *options.rounds, options.experts_at));
}

/// A run of these options in virtual time.
SimulationResult simulated(const TrainOptions& options, const std::string& run) {
  const Scenario scenario = scenario_of(options, run);
  return simulate_run(scenario, scenario.runs.front()).result;
}

}  // namespace

TEST_CASE("experts at nodes learn what experts everywhere do, but for rounding, on 1, 2, 4 nodes") {
  const Verse verse;
  for (const std::string rule : {"sgd", "adam"}) {
    for (const int nodes : {1, 2, 4}) {
      CAPTURE(rule);
      CAPTURE(nodes);
      TrainOptions everywhere = job(verse, nodes, "");
      everywhere.step_rule = rule;
      everywhere.lr = rule == "sgd" ? 0.2 : 0.001;
      TrainOptions at_nodes = job(verse, nodes, "nodes");
      at_nodes.step_rule = everywhere.step_rule;
      at_nodes.lr = everywhere.lr;
      const auto expected = models_of(everywhere, 4);
      const auto found = models_of(at_nodes, 4);
      const auto start = models_of(everywhere, 0);
      CHECK(largest_difference(expected[0], start[0]) > 1e-3);
      for (const auto& model : found) {
        CHECK(model == found[0]);
        // Adam's first steps divide by gradients, which may be near 0.
        CHECK(largest_difference(model, expected[0]) < (rule == "sgd" ? 1e-5 : 1e-3));
      }
    }
  }
}

TEST_CASE("step rules go by the tensors of the whole model, at experts' nodes too") {
  const Verse verse;
  for (const std::string rule :
       {"muon", "sgd; ends=sgd:lr=2", "sgd; lm_head.*=sgd:lr=2; *.mlp.*.c_fc.*=sgd:lr=1"}) {
    for (const int nodes : {2, 4}) {
      CAPTURE(rule);
      CAPTURE(nodes);
      TrainOptions everywhere = job(verse, nodes, "");
      everywhere.step_rule = rule;
      TrainOptions at_nodes = job(verse, nodes, "nodes");
      at_nodes.step_rule = rule;
      const auto expected = models_of(everywhere, 2);
      const auto found = models_of(at_nodes, 2);
      const auto start = models_of(everywhere, 0);
      CHECK(largest_difference(expected[0], start[0]) > 1e-2);
      // Muon leaves vectors to AdamW, the first steps of which divide by gradients near 0.
      CHECK(largest_difference(found[0], expected[0]) < (rule == "muon" ? 5e-3 : 2e-5));
    }
  }
}

TEST_CASE("compressed rows and dropped ones change the model, and late exchanges do not") {
  const Verse verse;
  TrainOptions options = job(verse, 2, "nodes");
  const auto exact = models_of(options, 3);
  CHECK(models_of(options, 3, Delivery::late) == exact);
  options.expert_compressor = "quant:8";
  const auto compressed = models_of(options, 3);
  CHECK(models_of(options, 3, Delivery::late) == compressed);
  CHECK(compressed != exact);
  CHECK(largest_difference(compressed[0], exact[0]) < 0.02);
  options.expert_compressor = "none";
  options.expert_capacity = 0.5;
  CHECK(models_of(options, 3) != exact);
}

TEST_CASE("a simulated run with experts at nodes has the bits of the same run over threads") {
  const Verse verse;
  for (const std::string run : {"allreduce", "qmean quant:8", "onebit-adam freeze-step=2"}) {
    CAPTURE(run);
    TrainOptions options = job(verse, 4, "nodes");
    options.expert_compressor.clear();  // quant:8
    const SimulationResult result = simulated(options, run);
    const Scenario scenario = parse_scenario(
        "text",
        fmt::format("sotto-scenario = 1\nrun = [\"{}\"]\nnodes = {{ count = 4, gradient = "
                    "\"5 ms\" }}\nnetwork = {{ link = \"wan\" }}\n[task]\ntask = "
                    "\"{}\"\nmodel = \"{}\"\nbatch = 5\nrounds = 5\nexperts-at = \"nodes\"\n",
                    run, options.task, options.model));
    const TrainPlan plan = make_train_plan(with_run(scenario.task, scenario.runs[0]));
    RunOptions threads = plan.run;
    threads.optimizer.transport = "inproc";
    const auto real =
        run_threads(threads, [&](Rank rank) { return plan.unpaced_task_of(rank); }, {});
    REQUIRE_MESSAGE(real.ok(), real.status().message());
    CHECK(result.parameters_sha256 == real->parameters_sha256);
    CHECK(std::ranges::count(real->parameters_sha256, real->parameters_sha256[0]) == 4);
    REQUIRE(result.final);
    CHECK(result.final->mean.loss == real->final.loss);
    CHECK(real->final.consensus_distance == 0);
  }
}

TEST_CASE("few rows cost less than averaging experts") {
  const Verse verse;
  TrainOptions everywhere = job(verse, 4, "everywhere");
  everywhere.model = "transformer:2,16,2,experts=8";
  TrainOptions at_nodes = everywhere;
  at_nodes.experts_at = "nodes";
  const SimulationResult without = simulated(everywhere, "allreduce");
  const SimulationResult with = simulated(at_nodes, "allreduce");
  CHECK(with.bytes_sent[0] * 3 < without.bytes_sent[0]);
}

TEST_CASE("a plan knows of experts at nodes what passes between these, and how long it takes") {
  const Verse verse;
  constexpr std::size_t kLayers = 2;
  TrainOptions options = job(verse, 4, "nodes");
  const Scenario scenario = scenario_of(options, "allreduce");
  const PlannedJob planned =
      planned_job(scenario, make_train_plan(with_run(scenario.task, scenario.runs[0])));
  REQUIRE(planned.steady.size() == 1);
  // Rows and gradients go to the experts of each layer and back, and the ring has 2 (n - 1) steps.
  CHECK(planned.steady[0].after.size() == 4 * kLayers + 2 * 3);
  CHECK(planned.steady[0].before.empty());
  PlanSearch search({.lists = {.algorithms = {"allreduce"}, .compressors = {}, .topologies = {}},
                     .codec = "none",
                     .budget = 1},
                    scenario);
  const auto runs = search.find();
  REQUIRE_MESSAGE(runs.ok(), runs.status().message());
  REQUIRE(runs->front().error().has_value());
  CHECK(std::abs(*runs->front().error()) < 0.1);
}

TEST_CASE("a search with experts at nodes tries nothing that these do not go with") {
  const Verse verse;
  TrainOptions options = job(verse, 4, "nodes");
  options.rounds = 16;
  PlanSearch search(
      {.lists = {.algorithms = {"allreduce", "qmean"}, .compressors = {}, .topologies = {}},
       .codec = "none",
       .budget = 8,
       .seeds = 1},
      scenario_of(options, "allreduce", "target = { loss = 0.1 }\n"));
  const auto runs = search.find();
  REQUIRE_MESSAGE(runs.ok(), runs.status().message());
  CHECK(search.candidates().size() > 1);
  for (const Candidate& one : search.candidates()) {
    CAPTURE(one.run.name);
    CHECK(one.interval == 1);
    CHECK(one.outer_rule.empty());
    (void)make_train_plan(with_run(search.scenario().task, one.run));
  }
  // What is left out is among what was refused, once and with its reason.
  const auto why = [&](const std::string& name) {
    std::vector<std::string> found;
    for (const Refusal& one : search.refused()) {
      if (one.run == name) {
        found.push_back(one.why);
      }
    }
    CHECK_MESSAGE(found.size() == 1, name);
    return found.empty() ? std::string() : found.front();
  };
  const std::string local = why("communication-interval=4");
  CAPTURE(local);
  CHECK(local.starts_with("not tried where experts lie at nodes: "));
  CHECK(local.find("an expert has one owner, who steps it in every round") != std::string::npos);
  CHECK_FALSE(why(words_of({{"communication-interval", "4"},
                            {"outer-lr", "0.7"},
                            {"outer-momentum", "0.9"},
                            {"outer-nesterov", "true"}}))
                  .empty());
}

TEST_CASE("a scenario whose nodes do not divide the experts is refused in words of its file") {
  const Verse verse;
  TrainOptions options = job(verse, 4, "nodes");
  options.model = "transformer:2,8,2,experts=6";
  const Scenario scenario = scenario_of(options, "allreduce");
  std::string said = "taken";
  try {
    (void)simulate_run(scenario, scenario.runs.front());
  } catch (const Error& error) {
    said = error.render(ScenarioSpelling(scenario, scenario.runs.front()));
  }
  CAPTURE(said);
  CHECK(said.find("task.model: 'transformer:2,8,2,experts=6' is refused") != std::string::npos);
  CHECK(said.find("the 6 experts of a layer are dealt evenly to 4 nodes") != std::string::npos);
  CHECK(said.find("as experts=8, or give nodes a number that divides 6") != std::string::npos);
}

TEST_CASE("a plan with experts at nodes is refused where these cannot work, and says why") {
  const Verse verse;
  const auto refusal = [&](const auto& change) {
    TrainOptions options = job(verse, 4, "nodes");
    change(options);
    try {
      (void)make_train_plan(options);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("taken");
  };
  const auto says = [&](const auto& change, const std::string& text) {
    const std::string said = refusal(change);
    CHECK_MESSAGE(said.find(text) != std::string::npos, said);
  };
  using O = TrainOptions&;
  CHECK(refusal([](O) {}) == "taken");
  says([](O o) { o.experts_at = "home"; }, "everywhere or nodes");
  says([](O o) { o.experts_at.clear(); }, "does nothing where all nodes have all experts");
  says([](O o) { o.model = "transformer:2,8,2"; }, "has no experts");
  says([](O o) { o.nodes = 3; },
       "model: 'transformer:2,8,2,experts=4,balance=0.01' is refused: the 4 experts of a layer are "
       "dealt evenly to 3 nodes; take a multiple of 3, as experts=6, or give nodes a number that "
       "divides 4");
  says([](O o) { o.algorithm = "dcd"; }, "mix whole models");
  says([](O o) { o.algorithm = "adpsgd"; }, "mix whole models");
  says([](O o) { o.algorithm = "demo"; }, "steps of its own kind");
  says([](O o) { o.expert_compressor = "quant:4"; }, "expert_compressor");
  says([](O o) { o.expert_compressor = "sign"; }, "expert_compressor");
  says([](O o) { o.expert_capacity = 0; }, "take a factor above 0");
  says([](O o) { o.communication_interval = 4; }, "communication_interval");
  says([](O o) { o.delayed_gradient = true; }, "delayed_gradient");
  says([](O o) { o.outer_step_rule = "sgd"; }, "outer_step_rule");
  says([](O o) { o.batch_share = "1,1,2,2"; }, "how much each row counts");
  says(
      [](O o) {
        o.rounds.reset();
        o.epochs = 1;
        o.join = "stop";
      },
      "still has experts");
  says([](O o) { o.compressor = "auto:1000"; }, "has no whole model");
  says([](O o) { o.deal = false; }, "timing only");
  says([](O o) { o.batch = 11'000; }, "65535 are the most");
  CHECK(refusal([](O o) {
          o.batch = 11'000;
          o.expert_capacity = 1.25;
        }) == "taken");
  says([](O o) { o.clip_norm = 1; }, "clipping goes by all of it");
  says([](O o) { o.algorithm = "zeroone-adam:freeze=2"; }, "steps of their own between exchanges");
  for (const std::string algorithm : {"zeroone-adam", "zeroone-adam:freeze=2,limit=1",
                                      "onebit-adam:freeze=2", "apmsqueeze:freeze=2"}) {
    CAPTURE(algorithm);
    CHECK(refusal([&](O o) { o.algorithm = algorithm; }) == "taken");
  }
  says(
      [](O o) {
        o.privacy_epsilon = 3;
        o.clip_norm = 1;
        o.privacy_unit = "update";
      },
      "rows that go to experts tell of the data");
}

TEST_CASE("a compressor that rows cannot take is refused with its contract, and what would do") {
  const Verse verse;
  const auto refusal = [&](const std::string& compressor) {
    TrainOptions options = job(verse, 4, "nodes");
    options.expert_compressor = compressor;
    try {
      (void)make_train_plan(options);
    } catch (const Error& error) {
      CHECK(error.field() == "expert_compressor");
      return std::string(error.what());
    }
    return std::string("taken");
  };
  for (const std::string spec : {"none", "quant:8", "quant:8,chunk=4"}) {
    CAPTURE(spec);
    CHECK(refusal(spec) == "taken");
  }
  for (const std::string spec :
       {"quant:4", "quant:8,rounding=nearest", "fp16", "sign", "topk:0.5", "randk:0.5"}) {
    CAPTURE(spec);
    const std::string said = refusal(spec);
    CAPTURE(said);
    CHECK(said.find("take quant:8, or none") != std::string::npos);
    CHECK(said.find("KeyedLink") == std::string::npos);
    CHECK(said.find("exact") == std::string::npos);  // which rows of one element would be
    CHECK(said.find("for a row of 8 elements") != std::string::npos);
  }
  // A row has 8 elements, the model's width: α² ≤ 8 / (2 · 15²).
  CHECK(refusal("quant:4").find("unbiased, α ≤ 0.13") != std::string::npos);
  const std::string unknown = refusal("quantum");
  CHECK(unknown.find("take quant:8, or none") == std::string::npos);
  CHECK(unknown.find("quantum") != std::string::npos);
}

TEST_CASE("experts that are more than a value of the store are refused before a run begins") {
  constexpr std::size_t kMost = (std::size_t{1} << 30) / sizeof(float);
  const auto refusal = [](std::size_t own, int nodes) {
    PlacedModel placed;
    placed.own = {{{.offset = 0, .size = own}}, {{.offset = own, .size = 1}}};
    OptimizerOptions options;
    options.algorithm = "allreduce";
    options.nodes = nodes;
    options.placed = std::make_shared<const PlacedModel>(placed);
    try {
      check_placed(options);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("taken");
  };
  CHECK(refusal(kMost - 1, 2) == "taken");
  CHECK(refusal(kMost, 1) == "taken");
  CHECK(refusal(kMost, 2).find("268435457 parameters together") != std::string::npos);
}

TEST_CASE("a node multiplies matrices for the experts that it steps and for no others") {
  const Verse verse;
  const auto products = [&](int nodes, const std::string& experts_at) {
    TrainOptions options = job(verse, nodes, experts_at);
    options.step_rule = "muon";
    const TrainPlan plan = make_train_plan(options);
    return multiply_adds_of(plan, plan.unpaced_task_of(0)->layout(), 0).step;
  };
  const double whole = products(2, "everywhere");
  CHECK(products(4, "everywhere") == whole);
  const double without_half = whole - products(2, "nodes");
  CHECK(without_half > 0);
  // A node of two has two of the four experts of a layer, and a node of four has one.
  CHECK(whole - products(4, "nodes") == doctest::Approx(1.5 * without_half));
}

}  // namespace sotto::test::experts_at_nodes_test
