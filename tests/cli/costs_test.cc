// What a scenario's nodes cost, what its runs did not live to see, and targets that were missed.
#include <string>

#include <doctest/doctest.h>

#include "cli/scenario_text.h"
#include "observe/observed.h"

namespace sotto::test::costs_test {

namespace {

constexpr const char* kRuns = "\"dpsgd ring\", \"dcd quant:8 ring\"";

std::string costing(const std::string& costs, const std::string& more = "") {
  return scenario(kNodes, kNetwork, "[costs]\n" + costs + more, kRuns);
}

doctest::Approx about(double value) { return doctest::Approx(value).epsilon(1e-9); }

}  // namespace

TEST_CASE("a bill adds up what nodes send and how long they are there") {
  const Scratch scratch;
  const auto json = simulated(
      scratch, costing("currency = \"EUR\"\nper-GB = 2\nper-node-hour = 3.6\nwatts = 500\n"
                       "kWh-per-GB = 0.5\nper-kWh = 0.25\n"
                       "nodes = [{ nodes = \"1-2\", per-GB = 10 }, { nodes = \"3\", watts = 0 }]\n",
                       "[[events]]\nat = \"50 ms\"\njoin = \"0\"\n"));
  for (const auto& run : json.at("runs")) {
    CAPTURE(run.at("name"));
    const auto& sent = run.at("bytes_sent_per_node");
    double kwh = 0;
    double money = 0;
    for (std::size_t node = 0; node < 4; ++node) {
      const double gb = 1e-9 * sent[node].get<double>();
      kwh += 0.5 * gb;
      money += (node == 1 || node == 2 ? 10 : 2) * gb;
    }
    const auto& bill = run.at("bill");
    const double seconds =
        (bill.at("money").get<double>() - money - 0.25 * bill.at("kwh").get<double>()) /
        (3.6 / 3600);
    // Nodes end within the last round; node 0 came 50 ms after the others.
    const double end = run.at("virtual_s").get<double>();
    CHECK(seconds <= about(4 * end - 0.05));
    CHECK(seconds > 0.9 * (4 * end - 0.05));
    // All but node 3 have a power of 500 W.
    const double hours = (bill.at("kwh").get<double>() - kwh) / 0.5;
    CHECK(hours <= about((3 * end - 0.05) / 3600));
    CHECK(hours > 0.9 * (3 * end - 0.05) / 3600);
    // The history's last bill is of the last round's end.
    const auto& last = run.at("history").back();
    CHECK(last.at("money").get<double>() <= bill.at("money").get<double>());
    CHECK(last.at("money").get<double>() > 0.9 * bill.at("money").get<double>());
  }
}

TEST_CASE("nodes cost nothing while their hours say that they are away") {
  const Scratch scratch;
  const auto kwh = [&](const std::string& hours) {
    const auto json = simulated(
        scratch,
        "sotto-scenario = 1\nrun = [\"dpsgd ring\"]\ntiming-only = true\n[nodes]\ncount = 4\n"
        "gradient = \"10 s\"\n" +
            hours +
            "[network]\nlink = { latency = \"0 ms\" }\n[task]\nmodel = \"softmax\"\n"
            "rounds = 20\ntimeout = 1000000\n[costs]\nwatts = 1000\n");
    const auto& bill = json.at("runs")[0].at("bill");
    CHECK(json.at("runs")[0].at("history").back().at("kwh").get<double>() ==
          doctest::Approx(bill.at("kwh").get<double>()));
    return bill.at("kwh").get<double>();
  };
  // Twenty gradients of 10 s are 200 s, of which 60 are left of the day.
  const double awake = kwh("");
  CHECK(awake == doctest::Approx(4 * 200.0 / 3600).epsilon(1e-3));
  CHECK(kwh("clock = \"17:59\"\nhours = [{ nodes = \"all\", up = \"08:00-18:00\" }]\n") ==
        doctest::Approx(awake).epsilon(1e-3));
}

TEST_CASE("nodes cost nothing while they are suspended") {
  const Scratch scratch;
  struct Found {
    double money = 0;
    double end = 0;
  };
  const auto found = [&](const std::string& nodes, const std::string& events) {
    const auto json =
        simulated(scratch,
                  "sotto-scenario = 1\nrun = [\"dpsgd ring\"]\ntiming-only = true\n[nodes]\n"
                  "count = 4\ngradient = \"10 s\"\n" +
                      nodes +
                      "[network]\nlink = { latency = \"0 ms\" }\n[task]\nmodel = \"softmax\"\n"
                      "rounds = 20\ntimeout = 1000000\n[costs]\nper-node-hour = 3600\n" +
                      events);
    const auto& run = json.at("runs")[0];
    if (run.at("history").size() == 20) {
      CHECK(run.at("history").back().at("money").get<double>() ==
            doctest::Approx(run.at("bill").at("money").get<double>()).epsilon(1e-3));
    }
    return Found{run.at("bill").at("money").get<double>(), run.at("virtual_s").get<double>()};
  };
  // Behind a node that is late its neighbours end a round of 10 s before it, and the fourth two.
  constexpr double kAhead = 2 * 10 + 20;
  const Found awake = found("", "");
  CHECK(awake.money == doctest::Approx(4 * 200.0).epsilon(1e-3));
  // The others wait, and are paid for, while one stands still: twice, for 100 and for 50 s.
  const Found held = found("",
                           "[[events]]\nat = \"25 s\"\nsuspend = \"1\"\n"
                           "[[events]]\nat = \"125 s\"\nresume = \"1\"\n"
                           "[[events]]\nat = \"205 s\"\nsuspend = \"1\"\n"
                           "[[events]]\nat = \"255 s\"\nresume = \"1\"\n");
  CHECK(held.end == doctest::Approx(350).epsilon(1e-3));
  CHECK(held.money == doctest::Approx(4 * 350.0 - 150 - kAhead).epsilon(1e-3));
  // What is away by its hours and suspended at once is left out once: it is away from 60 s on until
  // 14 hours later, and suspended from 30 s until 30 s after that.
  const Found both = found("clock = \"17:59\"\nhours = [{ nodes = \"1\", up = \"08:00-18:00\" }]\n",
                           "[[events]]\nat = \"30 s\"\nsuspend = \"1\"\n"
                           "[[events]]\nat = \"50490 s\"\nresume = \"1\"\n");
  CHECK(both.money == doctest::Approx(4 * both.end - (50490 - 30) - kAhead).epsilon(1e-6));
  // A node that never resumes costs nothing more.
  const Found gone = found("", "[[events]]\nat = \"25 s\"\nsuspend = \"all\"\n");
  CHECK(gone.money == doctest::Approx(4 * 25.0).epsilon(1e-6));
}

TEST_CASE("what it costs to reach the target is the bill of that moment") {
  const Scratch scratch;
  const auto json = simulated(scratch, costing("per-node-hour = 3600\n", "[target]\nloss = 2.0\n"));
  for (const auto& run : json.at("runs")) {
    REQUIRE_FALSE(run.at("time_to_target_s").is_null());
    // Four nodes at one a second each.
    CHECK(run.at("bill_to_target").at("money").get<double>() ==
          about(4 * run.at("time_to_target_s").get<double>()));
  }
  CHECK(simulated(scratch, scenario(kNodes, kNetwork)).at("runs")[0].at("bill").is_null());
}

TEST_CASE("the table has the costs, and says which runs no other beats") {
  const Scratch scratch;
  const std::string slow = "link = { bandwidth = \"1 Mbit/s\", latency = \"1 ms\" }";
  const auto ended = simulate(
      scratch, scenario(kNodes, slow, "[costs]\ncurrency = \"CHF\"\nper-GB = 100\n", kRuns),
      {"--csv", scratch.path() / "h.csv", "--html", scratch.path() / "h.html"});
  REQUIRE(ended.status == 0);
  CHECK(contains(ended.out, " CHF "));
  CHECK(contains(ended.out,
                 "no other run is better in time, bytes and cost at once: dcd quant:8 ring\n"));
  CHECK(contains(text_of_file(scratch.path() / "h.csv"), ",bytes_per_node,money,kwh\n"));
  CHECK(contains(text_of_file(scratch.path() / "h.html"), "CHF, all nodes"));
}

TEST_CASE("costs that make no sense are refused with their place") {
  const Scratch scratch;
  const auto refusal = [&](const std::string& costs) {
    const auto ended = simulate(scratch, costing(costs));
    CHECK(ended.status == 2);
    CHECK(contains(ended.err, "s.toml:"));
    return ended.err;
  };
  CHECK(contains(refusal("per-GB = -1\n"), "0 or more"));
  CHECK(contains(refusal("currency = \"EUR\"\n"), "per-node-hour"));
  CHECK(contains(refusal("per-hour = 1\n"), "per-node-hour"));
  CHECK(contains(refusal("per-GB = 1\nnodes = [{ nodes = \"0\" }]\n"), "per-GB"));
  CHECK(contains(
      refusal("per-GB = 1\nnodes = [{ nodes = \"0-1\", watts = 1 }, { nodes = \"1\", watts "
              "= 2 }]\n"),
      "node 1 has two costs"));
}

TEST_CASE("events after a run's end are named") {
  const Scratch scratch;
  const std::string events =
      "[[events]]\nat = \"60 ms\"\nsuspend = \"1\"\n[[events]]\nat = \"70 ms\"\nresume = \"1\"\n"
      "[[events]]\nat = \"1 h\"\ncrash = \"2\"\n";
  const auto ended = simulate(scratch, scenario(kNodes, kNetwork, events, kRuns));
  CHECK(contains(ended.out, "after the end of all runs: 3600 s: crash 2\n"));
  CHECK_FALSE(contains(ended.out, "suspend"));
  const auto json = simulated(scratch, scenario(kNodes, kNetwork, events, kRuns));
  CHECK(json.at("events").size() == 3);
  for (const auto& run : json.at("runs")) {
    REQUIRE(run.at("events_after_the_end").size() == 1);
    CHECK(run.at("events_after_the_end")[0].at("text") == "crash 2");
  }
}

TEST_CASE("runs of a sweep are compared with those of their own point alone") {
  const Scratch scratch;
  const std::string text = scenario(
      kNodes, "link = { latency = \"1 ms\" }, hosts = [{ nodes = \"all\", up = \"1 Mbit/s\" }]",
      "costs = { per-node-hour = 1 }\nsweep = { \"network.hosts.up\" = [\"1 Mbit/s\", \"50 "
      "Mbit/s\"] }\n",
      "\"dpsgd ring\", \"dpsgd ring batch=33\"");
  const std::string out = simulate(scratch, text).out;
  const std::size_t note = out.find("no other run is better in time, bytes and cost at once: ");
  REQUIRE(note != std::string::npos);
  // The slower line is another network, not a worse run.
  for (const char* point : {" @ up=1 Mbit/s", " @ up=50 Mbit/s"}) {
    CHECK(out.find(point, note) != std::string::npos);
  }
}

TEST_CASE("a target that was missed says by how much") {
  const Scratch scratch;
  const auto text = [&](const std::string& target) {
    return simulate(scratch, scenario(kNodes, kNetwork, "[target]\n" + target, "\"dpsgd ring\""))
        .out;
  };
  CHECK(contains(text("accuracy = 1.0\n"), "dpsgd ring: the target was missed by "));
  CHECK(contains(text("accuracy = 1.0\n"), " points: "));
  CHECK(contains(text("loss = 0.001\n"), "the target was missed by a loss of "));
  CHECK_FALSE(contains(text("accuracy = 0.01\n"), "missed"));
}

}  // namespace sotto::test::costs_test
