// A graph in parts as a task: rows of boundary people are those of the undivided graph, the same
// bits in virtual time as over threads, bytes as computed beforehand, and what is refused.
#include <sotto/trainers/tasks/graph_task.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/philox.h>
#include <sotto/groups/program_gradient.h>
#include <sotto/sim/lockstep.h>
#include <sotto/study/plan/plan_search.h>
#include <sotto/study/simulation/job_nodes.h>
#include <sotto/study/simulation/simulated_run.h>
#include <sotto/study/train/train_plan.h>
#include <sotto/trainers/run.h>

#include "support/rated_people.h"

namespace sotto::test::graph_in_parts_test {

using namespace sotto::study;

namespace {

TrainOptions job(const RatedPeople& people, int nodes, const std::string& more) {
  TrainOptions options;
  options.task = people.task(more);
  options.nodes = nodes;
  options.algorithm = "allreduce";
  options.step_rule = "adam";
  options.lr = 0.02;
  options.rounds = 6;
  return options;
}

/// A scenario of these options.
Scenario scenario_of(const TrainOptions& options, const std::string& run,
                     const std::string& more = "") {
  return parse_scenario(
      "text", fmt::format("sotto-scenario = 1\nrun = [\"{}\"]\nnodes = {{ count = {}, gradient = "
                          "\"5 ms\" }}\nnetwork = {{ link = \"wan\" }}\n{}[task]\ntask = "
                          "\"{}\"\nrounds = {}\nlr = 0.02\n",
                          run, *options.nodes, more, options.task, *options.rounds));
}

SimulationResult simulated(const TrainOptions& options, const std::string& run) {
  const Scenario scenario = scenario_of(options, run);
  return simulate_run(scenario, scenario.runs.front()).result;
}

/// The models of all nodes after a run in lock step.
std::vector<std::vector<float>> models_of(const TrainOptions& options,
                                          Delivery delivery = Delivery::eager) {
  const TrainPlan plan = make_train_plan(options);
  const JobNodes made = job_nodes(plan, plan.run.optimizer);
  std::vector<std::vector<float>> x(static_cast<std::size_t>(*options.nodes), made.start);
  LockstepDriver driver(delivery);
  for (std::size_t rank = 0; rank < x.size(); ++rank) {
    driver.add(made.make(static_cast<Rank>(rank), x[rank]));
  }
  const Status status = driver.run(
      *options.rounds,
      [](Rank, Round, std::span<const float>, std::span<float> g) { std::ranges::fill(g, 0.0F); });
  REQUIRE_MESSAGE(status.ok(), status.message());
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

}  // namespace

TEST_CASE("a graph in parts is learnt as the undivided one but for rounding") {
  const RatedPeople people;
  for (const std::string cut : {"walk", "random"}) {
    const std::string exact = "halo=none,gradient-halo=none,cut=" + cut;
    TrainOptions alone = job(people, 1, exact);
    alone.step_rule = "sgd";
    const auto whole = models_of(alone).front();
    for (const int nodes : {2, 3, 5}) {
      CAPTURE(cut);
      CAPTURE(nodes);
      TrainOptions parts = job(people, nodes, exact);
      parts.step_rule = "sgd";
      const auto found = models_of(parts);
      for (const auto& model : found) {
        CHECK(model == found[0]);
      }
      CHECK(largest_difference(found[0], whole) < 1e-5);
      CHECK(models_of(parts, Delivery::late) == found);
      parts.rounds = 1;
      CHECK(largest_difference(models_of(parts)[0], whole) > 1e-3);
    }
  }
}

TEST_CASE("compressed and cached rows and changes of them alter the model a little") {
  const RatedPeople people;
  const auto exact = models_of(job(people, 3, "halo=none,gradient-halo=none"));
  for (const std::string rows : {"halo=quant:8", "halo=keyed:8", "halo=keyed:4", "halo=keyed:2",
                                 "halo=none,cache=3", "halo=keyed:4,cache=3,share=90"}) {
    CAPTURE(rows);
    const auto found = models_of(job(people, 3, rows));
    CHECK(found != exact);
    CHECK(found[0] == found[2]);
    CHECK(largest_difference(found[0], exact[0]) < 0.3);
  }
}

TEST_CASE("a simulated graph in parts has the bits of the same run over threads") {
  const RatedPeople people;
  for (const std::string run : {"allreduce", "qmean quant:8", "onebit-adam freeze-step=2"}) {
    for (const std::string more : {"", "hidden=6,halo=keyed:4,cache=3,share=70"}) {
      CAPTURE(run);
      CAPTURE(more);
      const TrainOptions options = job(people, 4, more);
      const SimulationResult result = simulated(options, run);
      const Scenario scenario = scenario_of(options, run);
      const TrainPlan plan = make_train_plan(with_run(scenario.task, scenario.runs[0]));
      RunOptions threads = plan.run;
      threads.optimizer.transport = "inproc";
      const auto real =
          run_threads(threads, [&](Rank rank) { return plan.unpaced_task_of(rank); }, {});
      REQUIRE_MESSAGE(real.ok(), real.status().message());
      CHECK(result.parameters_sha256 == real->parameters_sha256);
      CHECK(result.bytes_sent == real->bytes_sent_per_node());
      REQUIRE(result.final);
      CHECK(result.final->mean.loss == real->final.loss);
      CHECK(result.final->mean.accuracy == real->final.accuracy);
      CHECK(real->final.consensus_distance == 0);
    }
  }
}

TEST_CASE("rows of a graph take as many bytes as its volume says") {
  const RatedPeople people;
  const auto volume_of = [&](const TrainOptions& options, Rank rank) {
    const TrainPlan plan = make_train_plan(options);
    const JobNodes made = job_nodes(plan, plan.run.optimizer);
    std::vector<float> x = made.start;
    const auto node = made.make(rank, x);
    return dynamic_cast<const ProgramGradient&>(*node).volume().all_sent().bytes;
  };
  for (const std::string rows : {"halo=none,gradient-halo=none", "halo=quant:8"}) {
    CAPTURE(rows);
    TrainOptions options = job(people, 3, rows);
    options.rounds = 1;
    TrainOptions apart = options;
    apart.task = people.task(rows + ",apart");
    const auto sent = simulated(options, "allreduce").bytes_sent;
    const auto of_weights = simulated(apart, "allreduce").bytes_sent;
    for (Rank rank = 0; rank < 3; ++rank) {
      const auto node = static_cast<std::size_t>(rank);
      CHECK(volume_of(apart, rank) == 0);
      CHECK(volume_of(options, rank) > 0);
      CHECK(sent[node] - of_weights[node] == volume_of(options, rank));
    }
    // Features go once.
    options.rounds = 2;
    apart.rounds = 2;
    const auto later = simulated(options, "allreduce").bytes_sent;
    const auto later_weights = simulated(apart, "allreduce").bytes_sent;
    CHECK(later[0] - later_weights[0] < 2 * volume_of(options, 0));
  }
}

TEST_CASE("the network tells held-out ratings better than chance") {
  const RatedPeople people;
  TrainOptions options = job(people, 3, "hidden=8,halo=keyed:4");
  options.rounds = 60;
  const auto task = make_train_plan(options).unpaced_task_of(0);
  const double learnt = task->evaluate(models_of(options)[0]).accuracy;
  CAPTURE(learnt);
  CHECK(learnt > 0.7);
  CHECK(learnt <= 1);
}

TEST_CASE("a plan times a graph in parts and leaves out what does not go with it") {
  const RatedPeople people;
  TrainOptions options = job(people, 3, "");
  options.rounds = 16;
  PlanSearch search(
      {.lists = {.algorithms = {"allreduce", "qmean"}, .compressors = {}, .topologies = {}},
       .codec = "none",
       .budget = 4,
       .seeds = 1},
      scenario_of(options, "allreduce", "target = { loss = 0.1 }\n"));
  const auto runs = search.find();
  REQUIRE_MESSAGE(runs.ok(), runs.status().message());
  REQUIRE(!search.candidates().empty());
  for (const Candidate& one : search.candidates()) {
    CHECK(one.interval == 1);
  }
  CHECK(std::ranges::any_of(search.refused(), [](const Refusal& one) {
    return one.why.starts_with("not tried where a graph lies in parts at nodes: ");
  }));
}

TEST_CASE("a graph in parts is refused where it cannot be learnt and says why") {
  const RatedPeople people;
  const auto says = [&](const std::function<void(TrainOptions&)>& change, const std::string& text) {
    TrainOptions options = job(people, 3, "");
    change(options);
    std::string said = "taken";
    try {
      (void)make_train_plan(options);
    } catch (const Error& error) {
      said = error.what();
    }
    CHECK_MESSAGE(said.find(text) != std::string::npos, said);
  };
  using O = TrainOptions&;
  says([](O) {}, "taken");
  says([](O o) { o.clip_norm = 1; }, "taken");
  says([](O o) { o.experts_at = "everywhere"; }, "taken");
  says([](O o) { o.experts_at = "nodes"; }, "has no experts");
  says([](O o) { o.expert_compressor = "none"; }, "does nothing where all nodes have all experts");
  says([](O o) { o.model = "mlp:4"; }, "is a model itself");
  says([](O o) { o.partition = "blocks"; }, "no examples to split");
  says([](O o) { o.nodes = 100; }, "nodes: '100' is refused");
  says([](O o) { o.algorithm = "dcd"; }, "rows of a round are those of one model");
  says([](O o) { o.algorithm = "adpsgd"; }, "rows of a round are those of one model");
  says([](O o) { o.algorithm = "zeroone-adam:freeze=2"; }, "steps of their own between exchanges");
  says([](O o) { o.communication_interval = 4; }, "does not go with communication_interval");
  says([](O o) { o.delayed_gradient = true; }, "weights of another");
  says([](O o) { o.outer_step_rule = "sgd"; }, "models that have gone apart");
  says([](O o) { o.compressor = "auto:1000"; }, "none of its own");
  says([](O o) { o.deal = false; }, "timing only");
  says([](O o) { o.batch_share = "1,1,2"; }, "no examples to share out");
  says([](O o) { o.weight = "examples"; }, "no examples that could be counted");
  says(
      [](O o) {
        o.privacy_epsilon = 3;
        o.clip_norm = 1;
        o.privacy_unit = "update";
      },
      "rows of boundary people tell of the data");
}

TEST_CASE("nodes that read other ratings, of the same signs, agree on no program") {
  const auto settings = [](int most) {
    const RatedPeople people(most);
    return make_train_plan(job(people, 2, "hidden=4")).run.optimizer.placed->settings;
  };
  CHECK(settings(5) == settings(5));
  CHECK(settings(5) != settings(4));
}

}  // namespace sotto::test::graph_in_parts_test
