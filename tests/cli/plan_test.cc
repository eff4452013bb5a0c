// `sotto plan`, as a user runs it.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/philox.h>

#include "cli/program.h"
#include "support/skip.h"
#include "support/text_of_file.h"

namespace sotto::test::plan_test {

using nlohmann::json;

namespace {

/// A model of 7,850 parameters.
std::string scenario(const std::string& nodes, const std::string& network,
                     const std::string& target = "target = { accuracy = 0.5 }\n") {
  return "sotto-scenario = 1\ntitle = \"a test\"\nrun = [\"dpsgd ring\"]\nnodes = { " + nodes +
         " }\nnetwork = { " + network +
         " }\ntask = { task = \"digits,train=320,test=100\", model = \"softmax\", rounds = 40, "
         "eval-every = 1, lr = 0.05 }\n" +
         target;
}

json planned(const std::string& text, const Arguments& more = {}) {
  const Scratch scratch;
  Arguments all = {"plan", scratch.write("s.toml", text).string(), "--json", "-"};
  all.insert(all.end(), more.begin(), more.end());
  return run(all).json();
}

json run_of(const json& plan, const std::string& name) {
  for (const json& run : plan.at("runs")) {
    if (run.at("name") == name) {
      return run;
    }
  }
  FAIL(name, " was not simulated");
  return {};
}

json candidate_of(const json& plan, const std::string& name) {
  for (const json& candidate : plan.at("candidates")) {
    if (candidate.at("name") == name) {
      return candidate;
    }
  }
  FAIL(name, " was not considered");
  return {};
}

/// 8 nodes whose ways out and in are `bandwidth` wide.
std::string links(const std::string& bandwidth, const std::string& latency) {
  return fmt::format(
      "link = {{ latency = \"{1}\" }}, hosts = [{{ nodes = \"all\", up = \"{0}\", down = \"{0}\" "
      "}}]",
      bandwidth, latency);
}

const Arguments kFewer = {"--algorithm",  "dpsgd",   "--algorithm",  "dcd",
                          "--compressor", "quant:8", "--compressor", "quant:4",
                          "--topology",   "ring",    "--codec",      "none"};

}  // namespace

TEST_CASE("a plan says do not compress where links are good, and compress where they are thin") {
  const std::string nodes = "count = 8, gradient = \"20 ms\"";
  const auto good = planned(scenario(nodes, links("10 Gbit/s", "50 us")), kFewer);
  CHECK(good.at("compress") == false);
  CHECK(good.at("verdict")[0].get<std::string>().starts_with("Do not compress: "));

  const auto late = planned(scenario(nodes, links("10 Gbit/s", "20 ms")), kFewer);
  CHECK(late.at("compress") == false);
  CHECK(late.at("winner") == "dpsgd ring");
  CHECK(late.at("over_allreduce") > 5);

  const auto thin = planned(scenario(nodes, links("2 Mbit/s", "50 us")), kFewer);
  CHECK(thin.at("compress") == true);
  CHECK(thin.at("over_best_uncompressed") > 1.5);

  const auto both = planned(scenario(nodes, links("2 Mbit/s", "20 ms")), kFewer);
  CHECK(both.at("compress") == true);
  CHECK(both.at("winner").get<std::string>().starts_with("dcd quant:4"));
  CHECK(both.at("over_allreduce") > 2);
  CHECK(both.at("command").get<std::string>().starts_with("sotto train "));
}

TEST_CASE("the model is near the simulator on random networks") {
  // The model adds up what an exchange puts on a link as if all of it came at once; frames that
  // come one after another meet less, and those of different rounds more.
  constexpr double kBound = 0.15;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    sotto::RandomStream random({.seed = seed});
    const auto between = [&](double low, double high) {
      return low * std::pow(high / low, random.uniform());
    };
    std::string hosts;
    for (int node = 0; node < 8; ++node) {
      hosts +=
          fmt::format("{{ nodes = \"{}\", up = \"{:.3f} Mbit/s\", down = \"{:.3f} Mbit/s\" }}, ",
                      node, between(2, 50), between(2, 50));
    }
    const std::string text = scenario(
        fmt::format("count = 8, gradient = \"lognormal:{:.2f} ms,0.2\"", between(2, 50)),
        fmt::format("link = {{ latency = \"{:.3f} ms\" }}, hosts = [{}]", between(0.1, 30), hosts),
        "");
    const auto plan =
        planned(text, {"--codec", "1 GB/s", "--algorithm", "dpsgd", "--algorithm", "choco",
                       "--algorithm", "dcd", "--topology", "ring", "--topology", "torus",
                       "--topology", "exponential", "--budget", "6"});
    CAPTURE(seed);
    CAPTURE(text);
    CHECK(plan.at("runs").size() >= 4);
    for (const json& run : plan.at("runs")) {
      CAPTURE(run.at("name").get<std::string>());
      CHECK(std::abs(run.at("prediction_error").get<double>()) < kBound);
      CHECK(run.at("simulated_s_per_round").get<double>() ==
            doctest::Approx(run.at("virtual_s").get<double>() / 40));
    }
  }
}

TEST_CASE("the model knows that buckets are encoded, sent and waited for one by one") {
  // A million parameters, in four buckets. First the wire and the latency are what nodes wait for,
  // then the codec.
  struct Network {
    const char* bandwidth;
    const char* latency;
    const char* codec;
    double delayed;  ///< a round of choco with delayed gradients over one without, at most
  };
  for (const Network& network : {Network{"100 Mbit/s", "10 ms", "2 GB/s", 0.75},
                                 Network{"10 Gbit/s", "100 us", "1 GB/s", 0.9}}) {
    CAPTURE(network.bandwidth);
    const auto plan = planned(
        fmt::format(
            "sotto-scenario = 1\ntitle = \"buckets\"\nrun = [\"choco sign ring\", \"choco sign "
            "ring delayed-gradient=true\", \"dcd quant:8 ring\", \"dpsgd ring\", \"allreduce\"]\n"
            "nodes = {{ count = 4, gradient = \"2 ms\", codec = \"{}\" }}\nnetwork = {{ {} }}\n"
            "task = {{ task = \"digits,train=320,test=10\", model = \"mlp:1258\", batch = 1, "
            "rounds = 8, lr = 0.05 }}\n",
            network.codec, links(network.bandwidth, network.latency)),
        {"--budget", "1"});
    for (const char* name : {"choco sign ring", "choco sign ring delayed-gradient=true",
                             "dcd quant:8 ring", "dpsgd ring", "allreduce"}) {
      CAPTURE(name);
      CAPTURE(run_of(plan, name).at("prediction_error").get<double>());
      CHECK(std::abs(run_of(plan, name).at("prediction_error").get<double>()) < 0.02);
    }
    const auto round_s = [&](const char* name) {
      return run_of(plan, name).at("simulated_s_per_round").get<double>();
    };
    CHECK(round_s("choco sign ring delayed-gradient=true") <
          network.delayed * round_s("choco sign ring"));
  }
}

TEST_CASE("the model knows the bytes of a round exactly") {
  const auto plan = planned(scenario("count = 4, gradient = \"20 ms\"", "link = \"wan\""), kFewer);
  for (const json& candidate : plan.at("candidates")) {
    for (const json& run : plan.at("runs")) {
      if (run.at("name") == candidate.at("name")) {
        double bytes = 0;
        for (const json& node : run.at("bytes_sent_per_node")) {
          bytes += node.get<double>() / 4 / 40;
        }
        CHECK(candidate.at("predicted_bytes_per_round").get<double>() == doctest::Approx(bytes));
      }
    }
  }
}

TEST_CASE("the same scenario gives the same plan") {
  const std::string text =
      scenario("count = 4, gradient = \"lognormal:20 ms,0.3\"", "link = \"wan\"");
  const auto one = planned(text, {"--codec", "1 GB/s", "--budget", "4", "--threads", "1"});
  const bool same = planned(text, {"--codec", "1 GB/s", "--budget", "4", "--threads", "3"}) == one;
  CHECK(same);
  CHECK(one.at("ranked_by") == "time_to_target");
  CHECK(one.at("codec_measured") == false);
}

TEST_CASE("the cheapest run is not the quickest where bytes cost and hours do not") {
  const std::string nodes = "count = 4, gradient = \"20 ms\"";
  const auto text = [&](const std::string& costs) {
    return scenario(nodes, "link = \"datacenter\"") + "[costs]\ncurrency = \"EUR\"\n" + costs;
  };
  const Arguments some = {"--algorithm",  "dpsgd", "--algorithm", "choco", "--compressor", "none",
                          "--compressor", "sign",  "--seeds",     "1",     "--codec",      "none"};
  const auto with = [&](const std::string& costs, const std::string& minimize) {
    Arguments all = some;
    all.insert(all.end(), {"--minimize", minimize});
    return planned(text(costs), all);
  };
  // Nothing but bytes costs: money goes as bytes do.
  const json bytes = with("per-GB = 1000\n", "money");
  CHECK(bytes.at("ranked_by") == "money_to_target");
  CHECK(bytes.at("winner").get<std::string>().starts_with("choco sign"));
  CHECK(contains(bytes.at("verdict")[0].get<std::string>(), " EUR"));
  CHECK(contains(bytes.at("verdict")[0].get<std::string>(), "cheaper than"));
  for (const json& run : bytes.at("runs")) {
    if (run.at("figure").is_number()) {
      // The figure is that of the crossing, between the evaluation and the one before.
      const double spent = 4 * 1000e-9 * run.at("bytes_to_target").get<double>();
      CHECK(run.at("figure").get<double>() <= 1.0001 * spent);
      CHECK(run.at("figure").get<double>() > 0.5 * spent);
    }
  }
  // Nothing but hours costs: money goes as time does.
  const json hours = with("per-node-hour = 36\n", "money");
  const json time = with("per-node-hour = 36\n", "time");
  CHECK(hours.at("winner") == time.at("winner"));
  const json& run = hours.at("runs")[0];
  CHECK(run.at("figure").get<double>() == doctest::Approx(0.04 * run.at("seconds").get<double>()));
  const Scratch scratch;
  const auto refused = [&](const std::string& file, const std::string& minimize) {
    const auto ended =
        sotto::test::run({"plan", scratch.write("s.toml", file).string(), "--minimize", minimize});
    CHECK(ended.status == 2);
    return ended.err;
  };
  CHECK(
      contains(refused(scenario(nodes, "link = \"lan\""), "money"), "the scenario has no [costs]"));
  CHECK(contains(refused(text("per-GB = 1\n"), "bytes"), "it is time or money"));
}

TEST_CASE("a task with the rule of gossip alone is no task to plan for, and says what is") {
  const Scratch scratch;
  for (const char* setting : {"step-rule = \"quasi-global\"", "quasi-global-momentum = 0.9"}) {
    std::string text = scenario("count = 4, gradient = \"20 ms\"", "link = \"lan\"");
    text.insert(text.find("lr = 0.05"), std::string(setting) + ", ");
    const auto ended = sotto::test::run({"plan", scratch.write("s.toml", text).string()});
    CHECK(ended.status == 2);
    CHECK(contains(ended.err, "give the momentum alone"));
  }
}

TEST_CASE("Ctrl-C keeps what a plan has found") {
  const Scratch scratch;
  const auto file = scratch.path() / "p.json";
  const std::string text = scenario("count = 8, gradient = \"20 ms\"", "link = \"wan\"");
  Process process(command({"plan", scratch.write("s.toml", text).string(), "--codec", "none",
                           "--json", file.string()}));
  REQUIRE(process.wait_for("run 3: "));
  process.send(SIGINT);
  const auto ended = process.wait();
  CHECK(ended.status == 128 + SIGINT);
  CHECK(contains(ended.out, "interrupted: only runs that had ended by then are ranked"));
  const json plan = json::parse(std::ifstream(file));
  CHECK(plan.at("interrupted") == true);
  CHECK(plan.at("runs").size() >= 2);
  CHECK(plan.at("winner").is_string());
}

TEST_CASE("without a target the time for an epoch decides, also where no gradients are taken") {
  const auto plan = planned(
      "timing-only = true\n" + scenario("count = 4, gradient = \"20 ms\"", "link = \"dsl\"", ""),
      {"--codec", "none"});
  CHECK(plan.at("ranked_by") == "time_per_epoch");
  CHECK(plan.at("compress") == true);
  CHECK(run_of(plan, "allreduce").at("final").at("loss").is_null());
}

TEST_CASE("what an exchange costs besides its codec is planned with, whatever the codec") {
  const auto plan = planned(
      scenario("count = 4, gradient = \"20 ms\", overhead = \"200 ms\"", "link = \"lan\"", ""),
      kFewer);
  for (const json& run : plan.at("runs")) {
    CHECK(run.at("simulated_s_per_round").get<double>() > 0.2);
    CHECK(run.at("prediction_error").get<double>() == doctest::Approx(0).epsilon(0.05));
  }
}

TEST_CASE("a run that ended early says nothing of a round, and why it did is told") {
  const Scratch scratch;
  const auto plan_with = [&](const std::string& event, const std::string& target) {
    const std::string text = scenario("count = 4, gradient = \"20 ms\"", "link = \"wan\"", target) +
                             "[[events]]\nat = \"1 ms\"\n" + event + "\n";
    Arguments words = {"plan", scratch.write("s.toml", text).string(), "--json", "-"};
    words.insert(words.end(), kFewer.begin(), kFewer.end());
    return run(words).json();
  };
  for (const char* event : {"crash = \"0\"", "vanish = \"0\""}) {
    for (const char* target : {"", "target = { accuracy = 0.5 }\n"}) {
      CAPTURE(event);
      CAPTURE(target);
      const json plan = plan_with(event, target);
      CHECK(plan.at("winner").is_null());
      CHECK(plan.at("command").is_null());
      REQUIRE_FALSE(plan.at("runs").empty());
      for (const json& run : plan.at("runs")) {
        CHECK(run.at("simulated_s_per_round").is_null());
        CHECK(run.at("prediction_error").is_null());
      }
      CHECK(plan.at("verdict").dump().find("ended early: node 0, round 0: it ") !=
            std::string::npos);
    }
  }
}

TEST_CASE(
    "the command is the scenario's own run, and no compressed run is missed that nobody wants") {
  const std::string text =
      "sotto-scenario = 1\nrun = [\"dpsgd ring\"]\nnodes = { count = 4, gradient = \"1 ms\" }\n"
      "network = { link = \"lan\" }\n"
      "task = { task = \"digits,train=320,test=100\", model = \"softmax\", rounds = 40 }\n";
  const auto plan = planned(text, {"--codec", "none", "--algorithm", "dpsgd"});
  const auto command = plan.at("command").get<std::string>();
  CHECK(command.find(" --rounds=40") != std::string::npos);
  CHECK(command.find("--eval-every") == std::string::npos);
  CHECK(plan.at("verdict")[0].get<std::string>().find("no compressed run was tried") !=
        std::string::npos);
}

TEST_CASE("a method that freezes is told when, and keeps its own rate") {
  const auto plan = planned(scenario("count = 4, gradient = \"20 ms\"", "link = \"wan\""),
                            {"--codec", "none", "--algorithm", "apmsqueeze"});
  const auto run = run_of(plan, "apmsqueeze sign freeze-step=6 lr=0.001");
  CHECK(run.at("config").at("freeze_step") == 6);
  CHECK(std::abs(run.at("prediction_error").get<double>()) < 0.05);
}

TEST_CASE("an algorithm built on Adam is measured by Adam in full precision") {
  // Without a difference in bytes that counts, nothing is gained by them.
  const auto plan =
      planned(scenario("count = 4, gradient = \"20 ms\"", links("10 Gbit/s", "20 us")),
              {"--codec", "none", "--algorithm", "dpsgd", "--algorithm", "onebit-adam",
               "--topology", "complete", "--budget", "8", "--seeds", "1"});
  CHECK(plan.at("compress") == false);
  (void)run_of(plan, "allreduce");
  CHECK(candidate_of(plan, "allreduce step-rule=adam lr=0.001").at("simulated").is_boolean());
  CHECK(candidate_of(plan, "dpsgd complete step-rule=adam lr=0.001").at("simulated") == true);
}

TEST_CASE("local steps are combined with compressors where links are thin, and predicted") {
  const auto plan =
      planned(scenario("count = 4, gradient = \"20 ms\"", links("1 Mbit/s", "50 ms")),
              {"--codec", "none", "--algorithm", "dpsgd", "--algorithm", "dcd", "--compressor",
               "quant:8", "--topology", "ring", "--budget", "8", "--seeds", "1"});
  int local = 0;
  for (const json& run : plan.at("runs")) {
    CAPTURE(run.at("name").get<std::string>());
    if (run.at("rounds") == 40) {
      CHECK(std::abs(run.at("prediction_error").get<double>()) < 0.05);
    }
    local += run.at("name").get<std::string>().find("interval") != std::string::npos ? 1 : 0;
  }
  CHECK(local >= 2);
  (void)candidate_of(plan, "dcd quant:8 ring communication-interval=8");
  CHECK(plan.at("compress") == true);
}

TEST_CASE("fragments behind gradients are tried where latency is long, and predicted") {
  const auto plan =
      planned(scenario("count = 4, gradient = \"50 ms\"", links("100 Mbit/s", "50 ms")),
              {"--codec", "none", "--algorithm", "qmean", "--compressor", "quant:4", "--budget",
               "8", "--seeds", "1"});
  const json streamed = candidate_of(
      plan, "qmean quant:4 communication-interval=8 fragments=2 sync-delay=3 sync-mix=0.5");
  CHECK(streamed.at("predicted_s_per_round") < 0.9 * 0.0625);
  for (const json& run : plan.at("runs")) {
    CAPTURE(run.at("name").get<std::string>());
    CHECK(std::abs(run.at("prediction_error").get<double>()) < 0.05);
  }
}

TEST_CASE("TCP and a transport that sends on demand are predicted too") {
  const auto plan =
      planned(scenario("count = 4, gradient = \"20 ms\", overhead = \"3 ms\"",
                       "link = { bandwidth = \"10 Mbit/s\", latency = \"100 ms\" }, tcp = {}, "
                       "transport = \"gloo\"",
                       ""),
              kFewer);
  for (const json& run : plan.at("runs")) {
    CAPTURE(run.at("name").get<std::string>());
    CHECK(std::abs(run.at("prediction_error").get<double>()) < 0.15);
  }
  CHECK(plan.at("command").get<std::string>().find("--nodes=4") != std::string::npos);
}

TEST_CASE("the scenario's own runs are simulated, and none is overlooked") {
  const auto plan =
      planned(scenario("count = 4, gradient = \"20 ms\"", links("10 Gbit/s", "20 us")),
              {"--codec", "none", "--budget", "1", "--seeds", "1"});
  CHECK(run_of(plan, "dpsgd ring").at("rounds") == 40);
  const json& winner = run_of(plan, plan.at("winner"));
  CHECK(winner.at("seconds").get<double>() <=
        1.02 * run_of(plan, "dpsgd ring").at("seconds").get<double>());
}

TEST_CASE("graphs follow the quick links of a measured table") {
  // 0-2-1-3 is quick; every ring has a slow link.
  std::string between;
  for (const char* pair :
       {"from = \"0\", to = \"2\"", "from = \"2\", to = \"1\"", "from = \"1\", to = \"3\""}) {
    between += fmt::format(
        "{{ {}, link = {{ bandwidth = \"100 Mbit/s\", latency = \"1 ms\" }} }}, ", pair);
  }
  const auto plan =
      planned(scenario("count = 4, gradient = \"20 ms\"",
                       "link = { bandwidth = \"200 kbit/s\", latency = \"1 ms\" }, between = [" +
                           between + "]"),
              {"--codec", "none", "--algorithm", "dpsgd", "--algorithm", "dcd", "--seeds", "1"});
  const auto winner = plan.at("winner").get<std::string>();
  CHECK(winner.find("edges:0-2,1-2,1-3") != std::string::npos);
  CHECK(run_of(plan, winner).at("label").get<std::string>().find("tree*") != std::string::npos);
  CHECK(plan.at("command").get<std::string>().find("edges:0-2,1-2,1-3") != std::string::npos);
}

TEST_CASE("what is asked for is possible, or refused") {
  const Scratch scratch;
  const std::string path =
      scratch.write("s.toml", scenario("count = 6, gradient = \"20 ms\"", "link = \"wan\""))
          .string();
  const auto refusal = [&](const Arguments& lists) {
    Arguments words = {"plan", path};
    words.insert(words.end(), lists.begin(), lists.end());
    const auto ended = run(words);
    CHECK(ended.status == 2);
    CHECK(ended.out.empty());
    return ended.err;
  };
  CHECK(contains(refusal({"--topology", "foo"}), "--topology: 'foo' is refused"));
  CHECK(contains(refusal({"--topology", "hypercube"}), "hypercube"));
  CHECK(contains(refusal({"--algorithm", "dcd", "--topology", "exponential"}),
                 "nothing that was asked for is possible"));
}

TEST_CASE("a plan refuses what it cannot read, and writes a page") {
  const Scratch scratch;
  const std::string path =
      scratch.write("s.toml", scenario("count = 4, gradient = \"20 ms\"", "link = \"wan\""))
          .string();
  CHECK(run({"plan"}).status == 2);
  CHECK(run({"plan", "absent.toml"}).status == 2);
  CHECK(run({"plan", path, "--budget", "0"}).status == 2);
  const auto codec = run({"plan", path, "--codec", "fast"});
  CHECK(codec.status == 2);
  CHECK(codec.err.find("--codec: 'fast' is refused: give a speed") != std::string::npos);
  const auto mistyped = run({"plan", path, "--algorithm", "chco"});
  CHECK(mistyped.status == 2);
  CHECK(mistyped.err.find("choco") != std::string::npos);
  const auto page = (scratch.path() / "plan.html").string();
  Arguments words = {"plan", path, "--report", page};
  words.insert(words.end(), kFewer.begin(), kFewer.end());
  const auto ended = run(words);
  CHECK(ended.status == 0);
  CHECK(ended.out.find("sotto train ") != std::string::npos);
  const std::string html = text_of_file(page);
  CHECK(html.find("<svg") != std::string::npos);
  CHECK(html.find("dpsgd") != std::string::npos);
}

TEST_CASE("a plan may be ranked by the worst node, which is there no sooner than the average") {
  const std::string text = scenario("count = 8, gradient = \"10 ms\"", links("2 Mbit/s", "20 ms"),
                                    "target = { accuracy = 0.3 }\n");
  const Arguments few = {"--codec", "none", "--budget", "1", "--seeds", "1"};
  Arguments worst = few;
  worst.insert(worst.end(), {"--rank-by", "worst"});
  const json by_mean = planned(text, few);
  const json by_worst = planned(text, worst);
  CHECK(by_mean.at("rank_by") == "mean");
  CHECK(by_worst.at("rank_by") == "worst");
  const json mean = run_of(by_mean, "dpsgd ring");
  const json last = run_of(by_worst, "dpsgd ring");
  CHECK(mean.at("history_of") == "averaged model");
  CHECK(last.at("history_of") == "worst node");
  REQUIRE(mean.at("seconds").is_number());
  REQUIRE(last.at("seconds").is_number());
  CHECK(last.at("seconds").get<double>() >= mean.at("seconds").get<double>());
  CHECK(last.at("parameters_sha256") == mean.at("parameters_sha256"));
  CHECK(last.at("final") == mean.at("final"));

  const Scratch scratch;
  const auto path = scratch.write("s.toml", text).string();
  CHECK(run({"plan", path, "--rank-by", "best"}).status == 2);
}

TEST_CASE("the printed command trains over real processes what was simulated") {
  if (!has_transport("gloo")) {
    SOTTO_SKIP("built without Gloo");
  }
  const json plan =
      planned(scenario("count = 4, gradient = \"5 ms\"", "link = \"wan\", transport = \"gloo\""),
              {"--budget", "2", "--seeds", "1", "--codec", "none"});
  const std::string printed = plan.at("command");
  CAPTURE(printed);
  CHECK(contains(printed, "--transport=gloo"));
  Arguments words;
  std::istringstream in(printed);
  for (std::string word; in >> word;) {
    words.push_back(word);
  }
  REQUIRE(words.size() > 2);
  words.erase(words.begin());
  words.insert(words.end(), {"--quiet", "--json", "-"});
  CHECK(run(words).json().at("parameters_sha256") ==
        run_of(plan, plan.at("winner").get<std::string>()).at("parameters_sha256"));
}

TEST_CASE("delayed gradients are tried where they hide an exchange, and only there") {
  const std::string delayed = "choco sign ring delayed-gradient=true";
  const Arguments only = {"--algorithm", "choco",      "--algorithm", "dcd",     "--compressor",
                          "sign",        "--topology", "ring",        "--codec", "1 GB/s"};
  const auto names = [](const json& plan) {
    std::vector<std::string> all;
    for (const json& candidate : plan.at("candidates")) {
      all.push_back(candidate.at("name"));
    }
    return all;
  };
  const auto has = [&](const json& plan, const std::string& name) {
    const auto all = names(plan);
    return std::find(all.begin(), all.end(), name) != all.end();
  };
  const std::string nodes = "count = 8, gradient = \"20 ms\"";
  const auto late = planned(scenario(nodes, links("100 Mbit/s", "15 ms")), only);
  CHECK(late.at("winner") == delayed);
  const json run = run_of(late, delayed);
  CHECK(std::abs(run.at("prediction_error").get<double>()) < 0.15);
  CHECK(late.at("command").get<std::string>().find(" --delayed-gradient=true") !=
        std::string::npos);
  CHECK_FALSE(has(late, "dcd sign ring delayed-gradient=true"));

  CHECK_FALSE(has(planned(scenario(nodes, links("10 Gbit/s", "50 us")), only), delayed));
  // Without a target nothing is tried that changes the steps.
  CHECK_FALSE(has(planned(scenario(nodes, links("100 Mbit/s", "15 ms"), ""), only), delayed));
}

TEST_CASE("a plan prices strategies, and says why not in bytes") {
  const std::string text =
      scenario("count = 4, gradient = \"5 ms\"", links("4 Mbit/s", "1 ms")) + "";
  const auto plan = planned(text, {"--strategies", "--codec", "none", "--budget", "1", "--seeds",
                                   "1", "--topology", "ring", "--compressor", "quant:8"});
  const json& strategies = plan.at("strategies");
  REQUIRE(strategies.size() > 7);
  CHECK(strategies[0].at("refused") == nullptr);
  for (const json& one : strategies) {
    if (one.at("strategy") == "data" && one.at("compressor") == "none") {
      // 2 (n − 1)/n of 7,850 floats, and a header in each of 6 frames.
      CHECK(one.at("bytes_per_step") == 6 * 7850 + 6 * 64);
      CHECK(one.at("command").get<std::string>().starts_with("sotto train --nodes=4"));
    }
    if (one.at("strategy") == "ring") {
      CHECK(one.at("s_per_step") == nullptr);
      CHECK(one.at("refused") == "its model has no attention; a transformer has");
    }
  }
  const auto plain = planned(text, kFewer);
  CHECK(plain.at("strategies") == nullptr);
  const json first = plain.at("runs")[0];
  const double spent =
      first.at("score").at("flops_per_s").get<double>() * first.at("virtual_s").get<double>();
  // 4 nodes with 32 rows of 784 and 10 classes, forward and twice that back.
  CHECK(spent / first.at("rounds").get<double>() == doctest::Approx(4 * 6 * 32 * 7840.0));
  CHECK(first.at("score").at("regulated") > 0);

  const Scratch scratch;
  const auto file = scratch.write("s.toml", text).string();
  const auto shown = run({"plan", file, "--strategies", "--codec", "none", "--budget", "1",
                          "--seeds", "1", "--topology", "ring"});
  CHECK(shown.out.find("The quickest step is that of") != std::string::npos);
  CHECK(shown.out.find("ring : its model has no attention") == std::string::npos);
  CHECK(shown.out.find("ring: its model has no attention") != std::string::npos);
}

}  // namespace sotto::test::plan_test
