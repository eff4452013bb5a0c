// A scenario that leaves what was compared with real runs says so.
#include <string>

#include <doctest/doctest.h>

#include <sotto/study/scenario/validated_range.h>
#include <sotto/study/simulation/scenario_runs.h>

using namespace sotto::study;

namespace {

Scenario with(const std::string& network) {
  return parse_scenario("text",
                        "sotto-scenario = 1\nrun = \"dpsgd ring\"\ntiming-only = true\n[nodes]\n"
                        "count = 4\ngradient = \"1 ms\"\n[network]\n" +
                            network + "\n[task]\nmodel = \"softmax\"\nrounds = 2\n");
}

std::string lines_of(const Scenario& scenario) {
  std::string all;
  for (const std::string& line : outside_validated_range(scenario)) {
    all += line + "\n";
  }
  return all;
}

}  // namespace

TEST_CASE("what was compared with real runs is not warned of") {
  CHECK(lines_of(with("link = \"wan\"")).empty());
  CHECK(lines_of(with("tcp = {}\nlink = { latency = \"150 ms\", loss = 0.02 }")).empty());
  CHECK(lines_of(with("tcp = {}\nlink = { latency = \"900 ms\" }")).empty());
}

TEST_CASE("more loss than was measured, or without TCP, is warned of, wherever it is") {
  const std::string at_two = "tcp = {}\nlink = { latency = \"10 ms\", loss = 0.02 }\n";
  CHECK(lines_of(with("tcp = {}\nlink = { latency = \"10 ms\", loss = 0.05 }"))
            .starts_with("links lose 5.00 % of their packets: times were compared"));
  CHECK(lines_of(with(at_two + "between = [{ from = \"0\", to = \"1\", link = { loss = 0.15 } }]"))
            .starts_with("links lose 15.00 %"));
  CHECK(lines_of(with(at_two + "trunk = [{ name = \"a\", nodes = \"0\", link = { loss = 0.03 } }]"))
            .starts_with("links lose 4.94 %"));
  CHECK(lines_of(with("link = { latency = \"10 ms\", loss = 0.001 }")).find("add tcp = {}") !=
        std::string::npos);
  // What a pair crosses counts together.
  const std::string both = lines_of(with(
      "tcp = {}\nlink = { latency = \"100 ms\", loss = 0.015 }\ntrunk = [{ name = \"a\", nodes = "
      "\"0\", link = { latency = \"100 ms\", loss = 0.015 } }]"));
  CHECK(both.find("links lose 2.98 %") != std::string::npos);
  CHECK(both.find("a round trip of 400 ms") != std::string::npos);
  const Scenario far = with("tcp = {}\nlink = { latency = \"400 ms\", loss = 0.01 }");
  CHECK(lines_of(far).find("a round trip of 800 ms") != std::string::npos);
  // The runs have it, too.
  CHECK(check_runs(far).size() == 1);
  CHECK(simulate_runs(far, {}).front().run->result.warnings == check_runs(far));
}
