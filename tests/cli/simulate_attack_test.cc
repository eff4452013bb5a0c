// Scenarios in which nodes lie: [attack].
#include <string>

#include <doctest/doctest.h>

#include "cli/scenario_text.h"

namespace sotto::test::simulate_attack_test {

namespace {

const std::string kRobust = "\"robust complete\", \"robust complete rule=mean\"";
const std::string kGrouped = kNodes + ", groups = { liars = \"1, 3\" }";

std::string attacked(const std::string& attack, const std::string& runs = kRobust) {
  return scenario(kGrouped, kNetwork, "[attack]\n" + attack, runs);
}

const std::string kAttack = "nodes = \"liars\"\nkind = \"sign-flip\"\n";

}  // namespace

TEST_CASE("who lies in a scenario lies as in sotto train, in every run") {
  const Scratch scratch;
  const auto result = simulated(scratch, attacked(kAttack));
  CHECK(result.at("attack") == nlohmann::json({{"nodes", {1, 3}}, {"kind", "sign-flip"}}));
  for (const std::string rule : {"clipped:auto", "mean"}) {
    CAPTURE(rule);
    const auto trained = run(small_train({"--algorithm", "robust", "--rule", rule, "--topology",
                                          "complete", "--byzantine", "1,3", "--attack", "sign-flip",
                                          "--rounds", "12", "--eval-every", "4", "--json", "-"}))
                             .json();
    const auto& played = result.at("runs")[rule == "mean" ? 1 : 0];
    CHECK(played.at("parameters_sha256") == trained.at("parameters_sha256"));
    CHECK(played.at("final").at("loss") == trained.at("final").at("loss"));
    CHECK(played.at("final").at("nodes_evaluated") == 2);
    CHECK(played.at("config").at("byzantine") == nlohmann::json({1, 3}));
  }
  const auto& runs = result.at("runs");
  CHECK(runs[0].at("final").at("accuracy") > runs[1].at("final").at("accuracy"));
}

TEST_CASE("a scenario's table says who lies, one without liars has none, and a run may differ") {
  const Scratch scratch;
  CHECK(contains(simulate(scratch, attacked(kAttack)).out,
                 "nodes 1, 3 lie (sign-flip); accuracies are of the others"));
  CHECK_FALSE(simulated(scratch, scenario(kNodes, kNetwork, "", kRobust)).contains("attack"));
  const auto own =
      simulated(scratch, attacked(kAttack, "\"robust complete byzantine=2 attack=noise:3\""));
  CHECK(own.at("runs")[0].at("config").at("byzantine") == nlohmann::json({2}));
  CHECK(own.at("runs")[0].at("config").at("attack") == "noise:3");
}

TEST_CASE("what is wrong with an attack is named with its line and key") {
  const Scratch scratch;
  struct Case {
    std::string text;
    std::string says;
  };
  const auto timing_only = [](const std::string& text) { return "timing-only = true\n" + text; };
  const std::string task = "[task]\nbyzantine = \"1\"\nattack = \"alie\"\n";
  const std::string without_task = "sotto-scenario = 1\nrun = \"robust\"\nnodes = { " + kGrouped +
                                   " }\nnetwork = { " + kNetwork + " }\n";
  const Case cases[] = {
      {attacked("nodes = \"9\"\nkind = \"alie\"\n"), "s.toml:7: attack.nodes: '9' names no nodes"},
      {attacked("nodes = \"all\"\nkind = \"alie\"\n"), "s.toml:7: attack.nodes: one node at least"},
      {attacked("nodes = \"1\"\nkind = \"lie\"\n"), "s.toml:8: attack.kind: attack: 'lie' is"},
      {attacked("nodes = \"1\"\n"), "s.toml:6: attack.kind: it is missing; give what they do"},
      {attacked("kind = \"alie\"\n"), "s.toml:6: attack.nodes: it is missing"},
      {attacked(kAttack + "knid = 1\n"), "s.toml:9: attack.knid: there is no such key"},
      {attacked(kAttack, "\"robust\",\n\"dpsgd ring\""),
       "s.toml:3: run: 'dpsgd ring': under [attack] runs begin with robust"},
      {timing_only(attacked(kAttack)), "s.toml:7: attack: nobody lies where there are no models"},
      {timing_only(without_task + task), "s.toml:7: task.byzantine: nobody lies"},
      {timing_only(scenario(kNodes, kNetwork, "", "\"robust byzantine=1 attack=alie\"")),
       "s.toml:3: run: 'robust byzantine=1 attack=alie': attack=alie: nobody lies"},
      {without_task + task + "[attack]\n" + kAttack, "s.toml:6: task.byzantine: [attack] says who"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.text);
    const auto ended = simulate(scratch, one.text);
    CAPTURE(ended.err);
    CHECK(ended.status == 2);
    CHECK(contains(ended.err, one.says));
  }
}

TEST_CASE("a plan against liars names a rule that holds, and the command that has it") {
  const Scratch scratch;
  const std::string file =
      scratch.write("s.toml", attacked(kAttack) + "[target]\naccuracy = 0.3\n").string();
  const auto plan =
      run({"plan", file, "--budget", "2", "--seeds", "1", "--codec", "none", "--json", "-"}).json();
  const auto winner = plan.at("winner").get<std::string>();
  CHECK(winner.starts_with("robust "));
  CHECK_FALSE(contains(winner, "rule=mean"));
  CHECK(plan.at("compress") == false);
  // No advice on compression where none was tried.
  CHECK(plan.at("verdict")[0].get<std::string>().starts_with("robust "));
  CHECK(plan.at("over_allreduce").is_null());
  for (const auto& candidate : plan.at("candidates")) {
    CHECK(candidate.at("name").get<std::string>().starts_with("robust "));
  }
  CHECK(contains(plan.at("command").get<std::string>(), "--byzantine=1,3 --attack=sign-flip"));
  const auto refused = run({"plan", file, "--algorithm", "dcd"});
  CHECK(refused.status == 2);
  CHECK(contains(refused.err, "Byzantine nodes are made for robust"));
}

}  // namespace sotto::test::simulate_attack_test
