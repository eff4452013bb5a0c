// The planner's α–β model and what it concludes.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/philox.h>
#include <sotto/study/plan/plan_guess.h>
#include <sotto/study/plan/plan_model.h>
#include <sotto/study/plan/plan_search.h>
#include <sotto/study/plan/plan_verdict.h>
#include <sotto/study/plan/train_command.h>

namespace sotto::test::plan_model_test {

using namespace sotto::study;

namespace {

constexpr int kNodes = 8;
constexpr double kModel = 1.09e6;  ///< bytes

/// As StandInShape's ring: 2 (n − 1) exchanges of an n-th each.
PlannedJob all_reduce(double model_bytes) {
  PlannedRound round;
  for (int step = 0; step < 2 * (kNodes - 1); ++step) {
    PlannedExchange exchange;
    for (Rank rank = 0; rank < kNodes; ++rank) {
      exchange.push_back(
          {rank, (rank + 1) % kNodes, static_cast<std::uint64_t>(model_bytes / kNodes)});
    }
    round.after.push_back(exchange);
  }
  return {.steady = {round}};
}

/// Both neighbours on a ring; posted before the gradient, or behind it and hidden by the next.
PlannedJob gossip(double frame_bytes, bool before) {
  PlannedExchange exchange;
  for (Rank rank = 0; rank < kNodes; ++rank) {
    const auto bytes = static_cast<std::uint64_t>(frame_bytes);
    exchange.push_back({rank, (rank + kNodes - 1) % kNodes, bytes, true, bytes / sizeof(float)});
    exchange.push_back({rank, (rank + 1) % kNodes, bytes, false, bytes / sizeof(float)});
  }
  PlannedRound round;
  (before ? round.before : round.after).push_back(exchange);
  round.hides = !before;
  return {.steady = {round}};
}

JobTiming timing(double gradient_s, CodecCost codec = {}) {
  JobTiming made;
  made.nodes.assign(kNodes, {.compute = {.seconds = gradient_s}, .codec = codec});
  return made;
}

double seconds(const PlannedJob& job, const Platform& platform, const JobTiming& at) {
  return predict_seconds_per_round(job, platform, at, 50);
}

using Times = std::vector<std::optional<double>>;

PlannedRun finished(const std::string& words, bool compressed, Times times) {
  PlannedRun run;
  run.candidate.run = {words, {{"algorithm", words}}};
  run.candidate.compressed = compressed;
  run.label = words;
  run.simulated.result.virtual_s = 10;
  run.simulated.result.rounds = 10;
  run.times = std::move(times);
  return run;
}

}  // namespace

TEST_CASE("the model gives the known times of a round on three links") {
  struct Case {
    double bytes_per_s;
    SimTime latency;
    double all_reduce_s;
    double gossip_s;
    double compressed_s;
  };
  // 5 Mbit/s, 0.13 ms; 1.4 Gbit/s, 5 ms; 5 Mbit/s, 5 ms
  for (const Case& known :
       {Case{0.625e6, 130'000, 3.05, 3.49, 0.87}, Case{175e6, 5'000'000, 0.081, 0.0175, 0.0081},
        Case{0.625e6, 5'000'000, 3.12, 3.49, 0.88}}) {
    const Platform link = make_star(kNodes, known.bytes_per_s, known.latency);
    CAPTURE(known.bytes_per_s);
    CAPTURE(known.latency);
    // The table has three digits.
    CHECK(seconds(all_reduce(kModel), link, timing(0)) ==
          doctest::Approx(known.all_reduce_s).epsilon(0.006));
    CHECK(seconds(gossip(kModel, true), link, timing(0)) ==
          doctest::Approx(known.gossip_s).epsilon(0.006));
    CHECK(seconds(gossip(kModel / 4, false), link, timing(0)) ==
          doctest::Approx(known.compressed_s).epsilon(0.006));
  }
}

TEST_CASE("exchanges hide behind gradients where they may") {
  const Platform link = make_star(kNodes, 1e6, 10'000'000);
  const double exchange = 0.01 + 2 * 20'000 / 1e6;  // 50 ms
  for (const double gradient : {0.02, 0.2}) {
    JobTiming at = timing(gradient);
    const double hidden = std::max(gradient, exchange);
    CHECK(seconds(gossip(20'000, true), link, at) == doctest::Approx(hidden));
    // The last exchange has nothing to hide behind, and the first gradient nothing to hide.
    CHECK(seconds(gossip(20'000, false), link, at) ==
          doctest::Approx(hidden + std::min(gradient, exchange) / 50));
    at.overlap = false;
    CHECK(seconds(gossip(20'000, true), link, at) == doctest::Approx(gradient + exchange));
    CHECK(seconds(gossip(20'000, false), link, at) == doctest::Approx(gradient + exchange));
  }
}

TEST_CASE("a frame for several peers is encoded once, and each is decoded") {
  const Platform link = make_star(kNodes, 1e6, 10'000'000);
  JobTiming at = timing(0, {.encode_s_per_byte = 1e-6, .decode_s_per_byte = 2e-6});
  at.overlap = false;
  CHECK(seconds(gossip(20'000, true), link, at) ==
        doctest::Approx(0.02 + 0.01 + 2 * 0.02 + 2 * 0.04));
}

TEST_CASE("frames of a round's first phase are decoded as often as their algorithm does") {
  const Platform link = make_star(kNodes, 1e6, 10'000'000);
  JobTiming at = timing(0, {.decode_s_per_byte = 2e-6, .first_phase_decodings = 2});
  at.overlap = false;
  PlannedJob job = gossip(20'000, true);
  // Two frames of 20 ms each on the wire, whose decoding takes 40 ms.
  CHECK(seconds(job, link, at) == doctest::Approx(0.01 + 2 * 0.02 + 2 * 2 * 0.04));
  for (const ExchangeTag& other : {ExchangeTag{.phase = 1}, ExchangeTag{.bucket = kMostBuckets}}) {
    for (PlannedFrame& frame : job.steady.front().before.front()) {
      frame.tag = other;
    }
    CHECK(seconds(job, link, at) == doctest::Approx(0.01 + 2 * 0.02 + 2 * 0.04));
  }
}

TEST_CASE("the slowest node and the thinnest link of the graph set the pace") {
  JobTiming at = timing(0.02);
  at.nodes[3].compute.slowdown = 7;
  CHECK(seconds(gossip(1'000, true), make_star(kNodes, 1e6, 1'000'000), at) ==
        doctest::Approx(0.14).epsilon(0.01));
  Platform link = make_star(kNodes, 1e6, 10'000'000);
  link.set_egress(5, {.bytes_per_s = 1e5, .latency = 5'000'000});
  CHECK(seconds(gossip(20'000, true), link, timing(0)) ==
        doctest::Approx(0.01 + 0.4).epsilon(0.05));
}

TEST_CASE("a beginning is played before the steady rounds") {
  PlannedJob job = gossip(1'000, true);
  job.beginning = gossip(20'000, true).steady;
  job.beginning_rounds = 10;
  CHECK(bytes_per_round(job, kNodes, 50) == doctest::Approx((10 * 40'000 + 40 * 2'000) / 50.0));
  const Platform link = make_star(kNodes, 1e6, 10'000'000);
  CHECK(seconds(job, link, timing(0)) == doctest::Approx((10 * 0.05 + 40 * 0.012) / 50));
}

TEST_CASE("phases of an all-reduce that cross a distance are as long as in the simulator") {
  constexpr std::uint64_t kSeed = 2711;
  CAPTURE(kSeed);
  RandomStream random(RandomKey{.seed = kSeed});
  const auto between = [&](double least, double most) {
    return least * std::pow(most / least, random.uniform());
  };
  for (int draw = 0; draw < 12; ++draw) {
    const int nodes = 4 + static_cast<int>(5 * random.uniform());
    const std::string text = fmt::format(
        "sotto-scenario = 1\nrun = \"allreduce\"\ntiming-only = true\n[nodes]\ncount = {}\n"
        "gradient = \"{:.1f} ms\"\n[network]\ntransport = \"zmq\"\nlink = {{ bandwidth = \"{:.0f} "
        "Mbit/s\", latency = \"{:.2f} ms\" }}\nbetween = [{{ from = \"0-1\", to = \"2-{}\", link = "
        "{{ bandwidth = \"{:.0f} Mbit/s\", latency = \"{:.1f} ms\" }} }}]\n[task]\nmodel = "
        "\"mlp:{}\"\nrounds = 12\n",
        nodes, between(1, 20), between(100, 1000), between(0.1, 3), nodes - 1, between(10, 100),
        between(10, 100), 16 + static_cast<int>(48 * random.uniform()));
    CAPTURE(text);
    SearchOptions options = {.codec = "none", .budget = 1};
    options.lists.algorithms = {"allreduce"};
    PlanSearch search(options, parse_scenario("text", text));
    const auto runs = search.find();
    REQUIRE(runs.ok());
    REQUIRE(runs->front().error().has_value());
    CHECK(std::abs(*runs->front().error()) < 0.02);
  }
}

TEST_CASE("bits are recommended only where they are worth it") {
  const auto verdict = [](double all_reduce, double gossip_s, double choco) {
    return judge(
        {finished("allreduce", false, {all_reduce}), finished("dpsgd ring", false, {gossip_s}),
         finished("choco sign ring", true, {choco})},
        {Goal::target});
  };
  const Verdict fewer = verdict(61, 22, 12);
  CHECK(fewer.compress);
  CHECK(fewer.winner == 2U);
  CHECK(*fewer.over_allreduce == doctest::Approx(61.0 / 12));
  CHECK(*fewer.over_best_uncompressed == doctest::Approx(22.0 / 12));
  CHECK(fewer.lines.front() ==
        "choco sign ring: target in 12 s, 5.08 × sooner than full-precision all-reduce (61 s), "
        "1.83 × sooner than the best uncompressed run (dpsgd ring, 22 s).");
  const Verdict slower = verdict(61, 22, 25);
  CHECK_FALSE(slower.compress);
  CHECK(slower.winner == 1U);
  CHECK(slower.lines.front().starts_with("Do not compress: dpsgd ring: target in 22 s, "));
  CHECK_FALSE(verdict(61, 22, 21.5).compress);
  CHECK(verdict(20, 22, 25).lines.front().starts_with("Do not compress: allreduce: "));
  const Verdict none = judge({finished("allreduce", false, {std::nullopt})}, {Goal::target});
  CHECK_FALSE(none.winner);
  const Verdict only =
      judge({finished("allreduce", false, {std::nullopt}), finished("choco sign ring", true, {12})},
            {Goal::target});
  CHECK(only.compress);
  CHECK(only.lines.front().ends_with("Full-precision all-reduce does not reach the target."));
}

TEST_CASE("who ended early has no time of a round, and is named") {
  PlannedRun crashed = finished("allreduce", false, {});
  crashed.simulated.result.faults = {{2, 1, "node 2, round 1: it crashed"}};
  const PlannedRun whole = finished("dcd quant:8 ring", true, {});
  CHECK_FALSE(figure_of(crashed, {Goal::epoch}));
  CHECK_FALSE(crashed.error());
  CHECK(figure_of(whole, {Goal::epoch}) == 1.0);
  const Verdict verdict = judge({crashed, whole}, {Goal::epoch});
  CHECK(verdict.winner == 1U);
  CHECK(verdict.lines ==
        std::vector<std::string>{"dcd quant:8 ring: 1 s a round. Full-precision all-reduce does "
                                 "not come to its end.",
                                 "allreduce ended early: node 2, round 1: it crashed."});
  const Verdict none = judge({crashed}, {Goal::epoch});
  CHECK_FALSE(none.winner);
  CHECK(none.lines.front() == "No run comes to its end.");
}

TEST_CASE("graphs nearly as quick as the quickest are told apart by how they mix") {
  const auto candidate = [](const std::string& method, const std::string& graph, double time,
                            double gap) {
    Candidate made;
    made.run.name = method + " " + graph;
    made.method = method;
    made.predicted_seconds_per_round = time;
    made.spectral_gap = gap;
    return made;
  };
  const auto ordered = in_order_of_promise(
      {candidate("dcd", "ring", 1, 0.1), candidate("dcd", "torus", 1.04, 0.4),
       candidate("dcd", "complete", 3, 1), candidate("choco", "ring", 0.5, 0.1)},
      [](const Candidate& one) { return one.predicted_seconds_per_round; });
  std::vector<std::string> words;
  for (const Candidate& one : ordered) {
    words.push_back(one.run.name);
  }
  CHECK(words == std::vector<std::string>{"choco ring", "dcd torus", "dcd ring", "dcd complete"});
}

TEST_CASE("a compressed run is sooner with every seed, or nobody can tell") {
  const auto verdict = [](Times gossip_s, Times choco) {
    return judge({finished("allreduce", false, {61}), finished("dpsgd ring", false, gossip_s),
                  finished("choco sign ring", true, choco)},
                 {Goal::target});
  };
  CHECK(verdict({20, 22, 24}, {12, 13, 14}).compress);
  const Verdict one_later = verdict({20, 22, 24}, {21, 13, 14});
  CHECK_FALSE(one_later.compress);
  const auto says = [](const Verdict& said, std::string_view words) {
    CAPTURE(said.lines.front());
    return said.lines.front().find(words) != std::string::npos;
  };
  CHECK(says(one_later, "is 1.57 × sooner, but not with every seed"));
  CHECK(says(verdict({20, 22, 24}, {21, 22, 23}), "no more than a prediction is good for"));
  CHECK(says(verdict({20, 22, 24}, {42, 44, 46}), "takes 2 × as long"));
  // Sooner in the median, later where it counts: what one seed in three reaches is not reached.
  CHECK_FALSE(verdict({20, 22, 24}, {12, std::nullopt, std::nullopt}).compress);
  // A run with one seed was only looked at.
  CHECK_FALSE(verdict({20, 22, 24}, {1}).compress);
}

TEST_CASE("of runs that are alike the one that sends least is named") {
  auto complete = finished("dpsgd complete", false, {10});
  complete.candidate.bytes_per_round = 7'000;
  auto ring = finished("dpsgd ring", false, {10.1});
  ring.candidate.bytes_per_round = 2'000;
  auto late = finished("dpsgd line", false, {11});
  late.candidate.bytes_per_round = 1'000;
  CHECK(judge({complete, ring, late}, {Goal::target}).winner == 1U);
}

TEST_CASE("local steps hide an exchange behind all their gradients") {
  const Platform link = make_star(kNodes, 1e6, 10'000'000);
  const double exchange = 0.01 + 2 * 100'000 / 1e6;  // 210 ms
  const auto with = [&](bool before, Round interval, bool overlap) {
    JobTiming at = timing(0.02);
    at.overlap = overlap;
    return predict_seconds_per_round(with_local_steps(gossip(100'000, before), interval), link, at,
                                     400);
  };
  for (const bool before : {true, false}) {
    CAPTURE(before);
    CHECK(with(before, 1, true) == doctest::Approx(exchange).epsilon(0.01));
    CHECK(with(before, 4, true) == doctest::Approx(exchange / 4).epsilon(0.02));
    CHECK(with(before, 20, true) == doctest::Approx(0.02).epsilon(0.05));
    CHECK(with(before, 4, false) == doctest::Approx(exchange / 4 + 0.02).epsilon(0.02));
  }
  const PlannedJob job = with_local_steps(gossip(100'000, true), 5);
  CHECK(bytes_per_round(job, kNodes, 100) == doctest::Approx(200'000 / 5.0));
}

TEST_CASE(
    "fragments are waited for where they are applied, and together send what the whole does") {
  const Platform link = make_star(kNodes, 1e6, 10'000'000);
  const double half = 0.01 + 2 * 50'000 / 1e6;  // 110 ms
  const auto with = [&](Round delay, bool overlap) {
    JobTiming at = timing(0.02);
    at.overlap = overlap;
    const Streaming streaming{.fragments = 2, .delay = delay, .mix = {.carry = true}};
    return predict_seconds_per_round(with_local_steps(gossip(100'000, false), 12, streaming), link,
                                     at, 1200);
  };
  CHECK(with(0, true) == doctest::Approx(0.02 + 2 * half / 12).epsilon(0.01));
  CHECK(with(2, true) == doctest::Approx(0.02 + 2 * (half - 2 * 0.02) / 12).epsilon(0.01));
  CHECK(with(5, true) == doctest::Approx(0.02 + 2 * (half - 5 * 0.02) / 12).epsilon(0.01));
  CHECK(with(5, false) == doctest::Approx(with(0, true)).epsilon(0.01));
  const PlannedJob job = with_local_steps(gossip(100'000, false), 12, {.fragments = 2, .delay = 5});
  CHECK(bytes_per_round(job, kNodes, 120) == doctest::Approx(200'000 / 12.0).epsilon(0.01));
}

TEST_CASE("the model knows TCP's share, its windows, and sends on demand") {
  const Platform link = make_star(kNodes, 1e6, 10'000'000);
  JobTiming at = timing(0);
  at.network.bandwidth_factor = 0.5;
  CHECK(seconds(gossip(20'000, true), link, at) == doctest::Approx(0.01 + 2 * 0.04));
  at = timing(0);
  at.transport.on_demand = true;
  // A second latency until receives are foretold, and always where frames are too long for that.
  CHECK(predict_seconds_per_round(gossip(20'000, true), link, at, 3) ==
        doctest::Approx(0.02 + 2 * 0.02));
  CHECK(predict_seconds_per_round(gossip(20'000, true), link, at, 1000) ==
        doctest::Approx(0.01 + 2 * 0.02).epsilon(0.01));
  CHECK(predict_seconds_per_round(gossip(10'000'000, true), link, at, 20) ==
        doctest::Approx(0.02 + 2 * 10).epsilon(1e-5));
  // 20 kB a round trip at first: the window, not the link, says how fast frames of 80 kB go.
  const Platform far = make_star(kNodes, 1e8, 100'000'000);
  at = timing(0);
  at.network.initial_window_bytes = 20'000;
  at.network.window_decays = false;
  const auto first = [&](Round rounds) {
    return predict_seconds_per_round(gossip(80'000, true), far, at, rounds);
  };
  CHECK(first(1) == doctest::Approx(0.1 + 2 * 0.2).epsilon(0.02));
  CHECK(first(100) < 0.12);
}

TEST_CASE("rounds are guessed from runs that have something in common") {
  const auto candidate = [](const std::string& method, const std::string& graph, Round interval) {
    Candidate made;
    made.method = method;
    made.graph = graph;
    made.interval = interval;
    made.spectral_gap = 1;
    return made;
  };
  RoundsGuess guess;
  // Nothing is known yet: alike, but for what decides between equals.
  CHECK(guess.of(candidate("a", "ring", 8)) == doctest::Approx(1).epsilon(0.05));
  guess.learn(candidate("a", "ring", 1), 100);
  CHECK(guess.of(candidate("b", "torus", 8)) == doctest::Approx(100).epsilon(0.05));
  guess.learn(candidate("a", "ring", 8), 300);
  guess.learn(candidate("b", "ring", 1), 100);
  CHECK(guess.of(candidate("a", "ring", 8)) == doctest::Approx(300).epsilon(0.25));
  CHECK(guess.of(candidate("b", "torus", 8)) > 1.8 * guess.of(candidate("b", "torus", 1)));
}

TEST_CASE("measured codecs leave a node's overhead as it is") {
  Scenario scenario;
  scenario.node_specs.assign(2, {.codec = {.seconds_per_exchange = 0.5}});
  CodecMeter("1 GB/s", scenario).apply({2, 3}, scenario);
  CHECK(scenario.node_specs[1].codec.encode_s_per_byte == 2);
  CHECK(scenario.node_specs[1].codec.decode_s_per_byte == 3);
  CHECK(scenario.node_specs[1].codec.seconds_per_exchange == 0.5);
}

TEST_CASE("graphs are made of the quick links of a table") {
  // 0-2, 2-1 and 1-3 are quick, the others slow.
  Scenario scenario;
  scenario.nodes = 4;
  scenario.hosts.assign(4, {});
  scenario.link = {.bytes_per_s = 1e5, .latency = 1'000'000};
  const auto specs = [&] {
    std::vector<std::string> found;
    for (const PlannedGraph& graph : planned_graphs(scenario, 1e6)) {
      found.push_back(graph.spec);
    }
    return found;
  };
  CHECK(specs().size() == 5);  // all links are the same: none of listed edges
  for (const auto& [a, b] : {std::pair(0, 2), std::pair(2, 1), std::pair(1, 3)}) {
    const LinkSpec quick = {.bytes_per_s = 1e7, .latency = 1'000'000};
    scenario.between.push_back({{a}, {b}, quick});
    scenario.between.push_back({{b}, {a}, quick});
  }
  const auto found = specs();
  const auto has = [&](const std::string& spec) {
    return std::find(found.begin(), found.end(), spec) != found.end();
  };
  CHECK(has("edges:0-2,1-2,1-3"));
  CHECK(has("edges:0-2,0-3,1-2,1-3"));  // the ring with but one slow link
  // One way that is slow makes an exchange slow.
  scenario.between.push_back({{2}, {1}, {.bytes_per_s = 1e3, .latency = 1'000'000}});
  const auto other = planned_graphs(scenario, 1e6);
  CHECK(std::none_of(other.begin(), other.end(), [](const PlannedGraph& graph) {
    return graph.spec.find("1-2") != std::string::npos && graph.label != "star*";
  }));
}

TEST_CASE("a graph that is another one under a second name is considered once") {
  Scenario scenario;
  scenario.hosts.assign(1, {});
  const auto specs = [&](int nodes) {
    scenario.nodes = nodes;
    std::vector<std::string> found;
    for (const PlannedGraph& graph : planned_graphs(scenario, 1e6)) {
      found.push_back(graph.spec);
    }
    return found;
  };
  using Specs = std::vector<std::string>;
  CHECK(specs(5) == Specs{"ring", "exponential", "one-peer-exponential", "complete"});
  CHECK(specs(8) == Specs{"ring", "torus", "exponential", "one-peer-exponential", "complete"});
  const auto three = specs(3);
  CHECK(std::count(three.begin(), three.end(), "complete") == 0);
}

TEST_CASE("the command has the scenario's settings, and the run's own in their place") {
  Scenario scenario;
  scenario.nodes = 8;
  scenario.task_settings = {{"task", "text:my notes.txt"}, {"lr", "0.1"}, {"rounds", "30"}};
  CHECK(train_command(parse_run("dcd quant:4 ring lr=0.2"), scenario, 100)
            .starts_with("sotto train --nodes=8 '--task=text:my notes.txt' --rounds=30 "
                         "--algorithm=dcd --compressor=quant:4 --topology=ring --lr=0.2"));
  scenario.task.seed = 7;
  CHECK(train_command(parse_run("allreduce"), scenario, 100)
            .find(" --algorithm=allreduce --seed=7") != std::string::npos);
  // A shell takes what it reads for what it is.
  scenario.task_settings = {{"task", "text:o'brien & (sons)`ls`.txt"}};
  CHECK(train_command(parse_run("allreduce"), scenario, 100)
            .find(" '--task=text:o'\\''brien & (sons)`ls`.txt' ") != std::string::npos);
  scenario.task_settings.clear();
  CHECK(train_command(parse_run("allreduce"), scenario, 120).find(" --rounds=120") !=
        std::string::npos);
  scenario.transport = TransportModel::gloo();
  const std::string gloo = train_command(parse_run("dpsgd ring"), scenario, 120);
  CHECK(gloo.find("zmq") == std::string::npos);
  CHECK(gloo.find("inproc") == std::string::npos);
}

}  // namespace sotto::test::plan_model_test
