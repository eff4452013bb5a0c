// `sotto simulate`: scenario files, and what comes out of them.
#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include "cli/scenario_text.h"
#include "support/text_of_file.h"

namespace sotto::test::simulate_test {

using nlohmann::json;

TEST_CASE("a simulated run ends with the models of a real one, and says when") {
  const Scratch scratch;
  const auto result = simulated(scratch, scenario(kNodes, kNetwork, "seed = 0\n"));
  const auto& dcd = result.at("runs")[1];
  const auto real = run({"train", "--task", "digits,train=320,test=100", "--model", "softmax",
                         "--rounds", "12", "--eval-every", "4", "--nodes", "4", "--algorithm",
                         "dcd", "--compressor", "quant:8", "--json", "-"})
                        .json();
  CHECK(dcd.at("name") == "dcd quant:8 ring");
  CHECK(dcd.at("parameters_sha256") == real.at("parameters_sha256"));
  CHECK(dcd.at("bytes_sent_per_node") == real.at("bytes_sent_per_node"));
  CHECK(dcd.at("final").at("loss") == real.at("final").at("loss"));
  CHECK(dcd.at("final").at("consensus_distance") == real.at("final").at("consensus_distance"));
  CHECK(dcd.at("rounds") == 12);
  CHECK(dcd.at("faults").empty());
  const auto& history = dcd.at("history");
  REQUIRE(history.size() == 3);
  CHECK(history[2].at("loss") == real.at("history")[2].at("loss"));
  CHECK(history[0].at("virtual_s") > 4 * 0.010);
  CHECK(history[2].at("virtual_s") <= dcd.at("virtual_s"));
  double fractions = 0;
  for (const auto& [of, share] : dcd.at("fractions").items()) {
    fractions += share.get<double>();
  }
  CHECK(fractions == doctest::Approx(1));
}

TEST_CASE("nodes with unequal data end with the models of a real run") {
  const Scratch scratch;
  const auto result = simulated(
      scratch,
      scenario(kNodes, kNetwork, "seed = 0\n",
               "\"allreduce partition=sizes:0.4 weight=examples communication-interval=2\", "
               "\"choco partition=sizes:0.4 join=zeros epochs=3\""));
  const auto real = [](const Arguments& more) {
    Arguments words = {"--eval-every", "4", "--partition", "sizes:0.4", "--json", "-"};
    words.insert(words.end(), more.begin(), more.end());
    return run(small_train(words)).json().at("parameters_sha256");
  };
  CHECK(result.at("runs")[0].at("parameters_sha256") ==
        real({"--rounds", "12", "--algorithm", "allreduce", "--weight", "examples",
              "--communication-interval", "2"}));
  CHECK(result.at("runs")[1].at("parameters_sha256") ==
        real({"--epochs", "3", "--algorithm", "choco", "--join", "zeros"}));
}

TEST_CASE("threads change nothing, the seed does") {
  const Scratch scratch;
  const auto text = scenario(kNodes, kNetwork);
  const auto one = simulated(scratch, text, {"--threads", "1"});
  CHECK(simulated(scratch, text, {"--threads", "5"}) == one);
  CHECK(simulated(scratch, text, {"--seed", "9"}).at("runs")[0].at("trace_sha256") !=
        one.at("runs")[0].at("trace_sha256"));
}

TEST_CASE("slower links and stragglers take longer, fewer bytes less") {
  const Scratch scratch;
  const auto time = [&](const std::string& nodes, const std::string& network, std::size_t run) {
    return simulated(scratch, scenario(nodes, network))
        .at("runs")[run]
        .at("virtual_s")
        .get<double>();
  };
  const std::string slow = "link = { bandwidth = \"1 Mbit/s\", latency = \"15 ms\" }";
  CHECK(time(kNodes, slow, 1) > time(kNodes, kNetwork, 1));
  CHECK(time(kNodes, slow, 1) < time(kNodes, slow, 0));
  CHECK(time(kNodes + ", stragglers = [{ nodes = \"2\", slower = 5 }]", kNetwork, 1) >
        2 * time(kNodes, kNetwork, 1));
}

TEST_CASE("an easy target is reached at the first evaluation, a hard one never") {
  const Scratch scratch;
  const auto easy = simulated(scratch, scenario(kNodes, kNetwork, "target = { loss = 100 }\n"));
  const auto& run = easy.at("runs")[0];
  CHECK(run.at("time_to_target_s") == run.at("history")[0].at("virtual_s"));
  const auto hard = simulated(scratch, scenario(kNodes, kNetwork, "target = { accuracy = 1 }\n"));
  CHECK(hard.at("runs")[0].at("time_to_target_s").is_null());
}

TEST_CASE("at equal virtual time each run stands where the fastest one ended") {
  const Scratch scratch;
  const auto text = scenario(kNodes, kNetwork, "", "\"choco sign ring\", \"dcd quant:8 ring\"");
  const auto result = simulated(scratch, text, {"--equal", "time"});
  const auto& slow = result.at("runs")[0];
  const auto& fast = result.at("runs")[1];
  CHECK(slow.at("at_equal").at("virtual_s") == fast.at("history").back().at("virtual_s"));
  CHECK(fast.at("at_equal").at("round") == doctest::Approx(12));
  CHECK(slow.at("at_equal").at("round") < 12);
  CHECK(simulate(scratch, scenario(kNodes, kNetwork), {"--equal", "energy"}).status == 2);
}

TEST_CASE("a partition that heals is waited for, and one that does not ends the run with a fault") {
  const Scratch scratch;
  const std::string cut = "[[events]]\nat = \"50 ms\"\npartition = [\"0-1\", \"2-3\"]\n";
  const auto healed = simulated(scratch, scenario(kNodes, kNetwork, cut + "for = \"20 s\"\n"));
  CHECK(healed.at("runs")[1].at("faults").empty());
  CHECK(healed.at("runs")[1].at("virtual_s") > 20);
  const auto ended = simulate(scratch, scenario(kNodes, kNetwork, cut), {"--json", "-"});
  const auto result = ended.json();
  const auto& lost = result.at("runs")[1];
  CHECK(lost.at("rounds") < 12);
  CHECK(lost.at("faults").size() == 4);
  CHECK(contains(ended.err, "ended early: "));
}

TEST_CASE("a crash is in the result, with who ended by it") {
  const Scratch scratch;
  const auto result = simulated(
      scratch, scenario(kNodes, kNetwork, "[[events]]\nat = \"100 ms\"\ncrash = \"3\"\n"));
  for (const auto& run : result.at("runs")) {
    CHECK(run.at("faults").size() == 4);
  }
}

TEST_CASE("timing only sends the same bytes in the same time, and takes no gradients") {
  const Scratch scratch;
  const auto real = simulated(scratch, scenario(kNodes, kNetwork));
  const auto timing = simulated(scratch, "timing-only = true\n" + scenario(kNodes, kNetwork));
  for (std::size_t run = 0; run < real.at("runs").size(); ++run) {
    for (const char* field : {"virtual_s", "bytes_sent_per_node", "trace_sha256"}) {
      CHECK(timing.at("runs")[run].at(field) == real.at("runs")[run].at(field));
    }
  }
  CHECK(timing.at("runs")[1].at("final").at("loss").is_null());
}

TEST_CASE("a report is a page with curves against virtual time") {
  const Scratch scratch;
  const auto page = (scratch.path() / "r.html").string();
  const auto ended = simulate(scratch, scenario(kNodes, kNetwork), {"--report", page});
  CHECK(ended.status == 0);
  CHECK(contains(ended.out, "virtual time"));
  const std::string html = text_of_file(page);
  CHECK(contains(html, "Loss against virtual seconds"));
}

TEST_CASE("what is wrong in a scenario is named with its line and key") {
  const Scratch scratch;
  const auto apart = scratch.write("apart.csv", "from,to\n0,1\n1,0\n2,3\n3,2\n").string();
  const auto event = [](const std::string& text) {
    return scenario(kNodes, kNetwork, "[[events]]\n" + text + "\n");
  };
  struct Case {
    std::string text;
    std::string says;
  };
  const Case cases[] = {
      {"run = 3", "sotto-scenario: it is missing"},
      {"sotto-scenario = 2", "s.toml:1: sotto-scenario: it must be 1"},
      {"nodes = [", "s.toml:1: not TOML"},
      {scenario("count = 0, gradient = \"1 s\"", kNetwork), "s.toml:3: nodes.count: "},
      {scenario("count = 4", kNetwork), "nodes.gradient: it is missing"},
      {scenario("count = 4, gradient = \"20\"", kNetwork), "'20' is no duration"},
      {scenario("count = 4, gradient = \"-1 s\"", kNetwork), "'-1 s' is no duration"},
      {scenario(kNodes + ", gradeint = 3", kNetwork),
       "nodes.gradeint: there is no such key; did "
       "you mean gradient?"},
      {scenario(kNodes + ", stragglers = { nodes = \"9\", slower = 2 }", kNetwork),
       "nodes.stragglers.nodes: '9' names no nodes"},
      {scenario(kNodes, "link = \"wam\""), "s.toml:4: network.link: 'wam' is no link"},
      {scenario(kNodes, "link = { bandwidth = \"-3 Mbit/s\" }"),
       "s.toml:4: network.link.bandwidth: '-3 Mbit/s' is no bandwidth"},
      {scenario(kNodes, "link = { loss = 1.5 }"), "network.link.loss: it is a share"},
      {scenario(kNodes, "link = { latency = \"1 ms\", jitter = \"2 ms\" }"),
       "network.link.jitter: the jitter is larger"},
      {scenario(kNodes, kNetwork, "", ""), "run: give one or more runs"},
      {scenario(kNodes, kNetwork, "", "\"dcdd\""), "did you mean dcd?"},
      {scenario(kNodes, kNetwork, "", "\"dpsgd\",\n\"dcd topk:0.1\""),
       "s.toml:3: run: 'dcd topk:0.1': "},
      {scenario(kNodes, kNetwork, "", "\"dcd topk:0.1\""),
       "allow it explicitly with task.allow-contract-violation = true"},
      {scenario(kNodes, kNetwork, "", "\"dpsgd file:" + apart + "\""), "it is not connected"},
      {"\xff\xfe\x01[[[=", "s.toml:1: not TOML"},
      {scenario(kNodes, kNetwork, "", "\"dpsgd file:/nowhere.csv\""), "/nowhere.csv"},
      {event("crash = \"1\""), "events[1].at: it is missing"},
      {event("at = \"1 s\""), "s.toml:7: events[1].at: nothing happens then"},
      {event("at = \"1 s\"\npartition = \"0-1\""), "give two parts or more"},
      {event("at = \"1 s\"\nfrom = \"0\"\nlink = \"lan\""), "events[1].to: it is missing"},
      {scenario(kNodes, "link = { latency = \"300 h\" }"),
       "s.toml:4: network.link.latency: '300 h' is too long"},
      {scenario(kNodes + ", overhead = \"300 h\"", kNetwork),
       "s.toml:3: nodes.overhead: '300 h' is too long"},
      {scenario(kNodes, kNetwork, "target = { accuracy = 95 }\n"),
       "s.toml:6: target.accuracy: it is a share"},
      {scenario(kNodes, kNetwork, "[task2]\n"), "s.toml:6: task2: there is no such key"},
      {"sotto-scenario = 1\nrun = \"dcd\"\nnodes = { " + kNodes + " }\nnetwork = { " + kNetwork +
           " }\n[task]\nmodle = \"cnn\"\n",
       "s.toml:6: 'modle' is no setting"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.text);
    const auto ended = simulate(scratch, one.text);
    CAPTURE(ended.err);
    CHECK(ended.status == 2);
    CHECK(ended.out.empty());
    CHECK(contains(ended.err, one.says));
  }
  CHECK(run({"simulate", "/nowhere.toml"}).status == 2);
}

TEST_CASE("parameters without a variance at Adam's freeze are named once a run") {
  const Scratch scratch;
  const auto problem = scratch.write("p.json", R"({"start": [0, 1, 1], "nodes": [
      {"h": [1, 1, 1], "c": [1, 1, 1]}, {"h": [2, 2, 2], "c": [2, 1, 1]}]})");
  const auto text = [&](const std::string& more) {
    return "sotto-scenario = 1\nrun = [\"zeroone-adam freeze-step=3\", \"dcd\"]\n"
           "nodes = { count = 2, gradient = \"20 ms\" }\nnetwork = { " +
           kNetwork + " }\ntask = { task = \"quadratic:" + problem.string() +
           "\", rounds = 12 }\n" + more;
  };
  const std::string told =
      "sotto: warning: zeroone-adam freeze-step=3: 2 of 3 parameters had no gradient";
  const auto ended = simulate(scratch, text(""));
  CAPTURE(ended.err);
  CHECK(ended.status == 0);
  const auto at = ended.err.find(told);
  REQUIRE(at != std::string::npos);
  CHECK(ended.err.find("had no gradient", at + told.size()) == std::string::npos);
}

}  // namespace sotto::test::simulate_test
