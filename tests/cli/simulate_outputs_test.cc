// The files that `sotto simulate` writes, and what its result tells besides the runs.
#include <cmath>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "cli/scenario_text.h"
#include "support/text_of_file.h"

namespace sotto::test::simulate_outputs_test {

using nlohmann::json;

namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

const std::string kCut =
    "[[events]]\nat = \"50 ms\"\npartition = [\"0-1\", \"2-3\"]\nfor = \"100 ms\"\n"
    "[[events]]\nat = \"20 ms\"\nfrom = \"0\"\nto = \"1, 3\"\nlink = { bandwidth = \"5 Mbit/s\", "
    "latency = \"9 ms\" }\n";

}  // namespace

TEST_CASE("what runs in groups send within them and between them stands apart in the table") {
  const Scratch scratch;
  const std::string runs = "\"qmean quant:8 groups=0-1;2-3\", \"allreduce\"";
  const auto result = simulated(scratch, scenario(kNodes, kNetwork, "", runs));
  const auto& grouped = result.at("runs")[0];
  const double within = grouped.at("bytes_within_groups_per_node").get<double>();
  CHECK(within > 0);
  CHECK(within < grouped.at("bytes_sent_per_node")[0].get<double>());
  CHECK(result.at("runs")[1].at("bytes_within_groups_per_node").is_null());
  const std::string table = simulate(scratch, scenario(kNodes, kNetwork, "", runs)).out;
  CHECK(contains(table, "sent/node  in groups  between groups"));
  const std::string plain = simulate(scratch, scenario(kNodes, kNetwork)).out;
  CHECK_FALSE(contains(plain, "in groups"));
}

TEST_CASE("the history as CSV has a row for each evaluation, and quotes what needs it") {
  const Scratch scratch;
  const auto csv = (scratch.path() / "h.csv").string();
  const auto result =
      simulated(scratch, scenario(kNodes, kNetwork, "", "\"dcd quant:8,chunk=64 ring\", \"dpsgd\""),
                {"--csv", csv});
  std::istringstream lines(text_of_file(csv));
  std::string line;
  REQUIRE(std::getline(lines, line));
  CHECK(line == "run,round,virtual_s,loss,accuracy,consensus_distance,bytes_per_node");
  for (const auto& run : result.at("runs")) {
    CHECK_FALSE(run.at("config").contains("transport"));  // nothing went over one
    const std::string name = run.at("name");
    const std::string start = contains(name, ",") ? '"' + name + '"' : name;
    for (const auto& point : run.at("history")) {
      REQUIRE(std::getline(lines, line));
      CAPTURE(line);
      REQUIRE(line.starts_with(start + ","));
      std::istringstream fields(line.substr(start.size() + 1));
      for (const char* field :
           {"round", "virtual_s", "loss", "accuracy", "consensus_distance", "bytes_per_node"}) {
        std::string value;
        REQUIRE(std::getline(fields, value, ','));
        CHECK(std::stod(value) == point.at(field).get<double>());
      }
    }
  }
  CHECK_FALSE(std::getline(lines, line));
}

TEST_CASE("a timing-only history has empty fields where there is no number") {
  const Scratch scratch;
  const auto csv = (scratch.path() / "h.csv").string();
  (void)simulated(scratch, "timing-only = true\n" + scenario(kNodes, kNetwork, "", "\"dpsgd\""),
                  {"--csv", csv});
  CHECK(contains(text_of_file(csv), ",,"));
  CHECK_FALSE(contains(text_of_file(csv), "nan"));
}

TEST_CASE("a trace has each phase and each message once, with faults and events as instants") {
  const Scratch scratch;
  const auto path = (scratch.path() / "t.json").string();
  const std::string crash = "[[events]]\nat = \"300 ms\"\ncrash = \"3\"\n";
  const auto result = simulated(scratch, scenario(kNodes, kNetwork, crash), {"--trace", path});
  const auto trace = json::parse(text_of_file(path));
  std::map<int, double> computing;  // microseconds by run
  std::map<int, std::set<std::string>> sent;
  std::map<int, std::set<std::string>> delivered;
  std::map<int, std::size_t> faults;
  std::size_t marks = 0;
  std::vector<std::string> names;
  for (const auto& event : trace.at("traceEvents")) {
    const std::string kind = event.at("ph");
    const int run = event.at("pid");
    if (kind == "M" && event.at("name") == "process_name") {
      names.push_back(event.at("args").at("name"));
    } else if (kind == "X" && event.at("name") == "compute") {
      computing[run] += event.at("dur").get<double>();
    } else if (kind == "b") {
      CHECK(sent[run].insert(event.at("id2").at("local").get<std::string>()).second);
    } else if (kind == "e") {
      CHECK(delivered[run].insert(event.at("id2").at("local").get<std::string>()).second);
      CHECK(sent[run].count(event.at("id2").at("local").get<std::string>()) == 1);
    } else if (kind == "i") {
      faults[run] += event.at("cat") == "fault" ? 1U : 0U;
      marks += event.at("cat") == "scenario" ? 1U : 0U;
    }
  }
  REQUIRE(names.size() == 2);
  CHECK(marks == 2);
  for (int run = 1; run <= 2; ++run) {
    CAPTURE(run);
    const auto& one = result.at("runs")[static_cast<std::size_t>(run - 1)];
    CHECK(names[static_cast<std::size_t>(run - 1)] == one.at("name"));
    CHECK(delivered[run].size() == one.at("messages").get<std::size_t>());
    CHECK(faults[run] == one.at("faults").size());
    CHECK(computing[run] > 0);
  }
  for (const auto& run : trace.at("otherData").at("runs")) {
    CHECK(run.at("left_out") == 0);
  }
  // Written or not, the simulation is the same.
  CHECK(simulated(scratch, scenario(kNodes, kNetwork, crash)) == result);
}

TEST_CASE("phases in a trace are those of the result") {
  const Scratch scratch;
  const auto path = (scratch.path() / "t.json").string();
  const auto result =
      simulated(scratch, scenario(kNodes, kNetwork, "", "\"dcd quant:8 ring\""), {"--trace", path});
  std::map<std::string, double> spent;
  double whole = 0;
  const auto trace = json::parse(text_of_file(path));
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") {
      spent[event.at("name")] += event.at("dur").get<double>();
      whole += event.at("dur").get<double>();
    }
  }
  for (const auto& [phase, share] : result.at("runs")[0].at("fractions").items()) {
    CHECK(spent[phase] / whole == doctest::Approx(share.get<double>()));
  }
}

TEST_CASE("a trace begins where it is told to, and does not grow beyond its limit") {
  const Scratch scratch;
  const auto path = (scratch.path() / "t.json").string();
  const std::string text = scenario(kNodes, kNetwork, "", "\"dpsgd\"");
  (void)simulated(scratch, text, {"--trace", path, "--trace-from", "100ms"});
  for (const json trace = json::parse(text_of_file(path));
       const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") != "M") {
      CHECK(event.at("ts") >= 100'000);
    }
  }
  CHECK(simulate(scratch, text, {"--trace", path, "--trace-from", "soon"}).status == 2);
  const auto many = simulate(scratch,
                             "timing-only = true\n" + scenario("count = 4000, gradient = \"20 ms\"",
                                                               kNetwork, "", "\"dpsgd ring\""),
                             {"--trace", path});
  CHECK(many.status == 0);
  CHECK(contains(many.out, "400000 events at most"));
  const std::string trace = text_of_file(path);
  CHECK(count(trace, "\"ph\":") < 420'000);
  CHECK(trace.size() < 80'000'000);
}

TEST_CASE("a report draws curves, graphs and timelines, and needs no network") {
  const Scratch scratch;
  const auto page = (scratch.path() / "r.html").string();
  const auto ended = simulate(
      scratch, scenario(kNodes, kNetwork, "target = { accuracy = 0.5, loss = 1.25 }\n" + kCut),
      {"--report", page});
  CHECK(ended.status == 0);
  const std::string html = text_of_file(page);
  // Against time, bytes and rounds, of loss and of accuracy.
  CHECK(count(html, ">target 1.25</text>") == 3);
  CHECK(count(html, ">target 0.5</text>") == 3);
  CHECK(contains(html, ">1</text></g>"));  // the first event's number
  CHECK(contains(html, "Loss against virtual seconds"));
  CHECK(count(html, "<svg class='load'") == 2);
  CHECK(count(html, "What the nodes did") == 2);
  CHECK(count(html, "<svg class=\"rows\"") >= 2);
  CHECK(contains(html, "partition 0-1 | 2-3, until 0.15 s"));
  CHECK(contains(html, "between 0 and 1, 3: 5 Mbit/s, 9 ms"));
  CHECK(contains(html, "prefers-color-scheme:dark"));
  CHECK_FALSE(contains(html, "http"));
  CHECK_FALSE(contains(html, "nan"));
  CHECK(count(html, "<svg") == count(html, "</svg>"));
}

TEST_CASE("a report of many nodes says what it does not show, and stays small") {
  const Scratch scratch;
  const auto page = (scratch.path() / "r.html").string();
  const auto text = "timing-only = true\n" +
                    scenario("count = 1000, gradient = \"20 ms\"", kNetwork, "", "\"dpsgd ring\"");
  CHECK(simulate(scratch, text, {"--report", page}).status == 0);
  const std::string html = text_of_file(page);
  CHECK(contains(html, "1000 nodes and 2000 edges would be a blot"));
  CHECK(contains(html, "the first 32 of 1000 nodes"));
  CHECK(html.size() < 1'000'000);
}

TEST_CASE("what the scenario does is in the result, by time") {
  const Scratch scratch;
  const auto events = simulated(scratch, scenario(kNodes, kNetwork, kCut)).at("events");
  REQUIRE(events.size() == 2);
  CHECK(events[0] ==
        json{{"at_s", 0.02}, {"kind", "change"}, {"text", "between 0 and 1, 3: 5 Mbit/s, 9 ms"}});
  CHECK(events[1].at("kind") == "partition");
  CHECK(events[1].at("until_s").get<double>() == doctest::Approx(0.15));
}

TEST_CASE("the nodes' own accuracy lies about that of their average") {
  const Scratch scratch;
  const auto runs = simulated(scratch, scenario(kNodes, kNetwork)).at("runs");
  const auto& same = runs[0].at("final");  // all-reduce: one model everywhere
  CHECK(same.at("accuracy_worst_node") == same.at("accuracy"));
  CHECK(same.at("accuracy_mean_node").get<double>() ==
        doctest::Approx(same.at("accuracy").get<double>()));
  const auto& differ = runs[1].at("final");
  CHECK(differ.at("accuracy_worst_node") <= differ.at("accuracy_mean_node"));
  CHECK(differ.at("nodes_evaluated") == 4);
}

TEST_CASE("a result says how stale gradients were: as in sotto train, and not at all in rounds") {
  const Scratch scratch;
  const std::string text = scenario(kNodes, kNetwork, "", "\"adpsgd ring\", \"dpsgd ring\"");
  const auto runs = simulated(scratch, text).at("runs");
  const auto counted = run(small_train({"--algorithm", "adpsgd", "--topology", "ring", "--rounds",
                                        "12", "--eval-every", "4", "--json", "-"}))
                           .json()
                           .at("counters");
  const auto& stale = runs[0].at("staleness");
  CHECK(stale.at("mean").get<double>() ==
        doctest::Approx(counted.at("staleness").get<double>() / (12 * 4)));
  CHECK(stale.at("mean") > 0);
  CHECK(stale.at("most") == counted.at("most_stale"));
  CHECK(runs[1].at("staleness").at("mean") == 0);
  CHECK(runs[1].at("staleness").at("most") == 0);
  CHECK(contains(simulate(scratch, text).out, "adpsgd ring: gradients were applied "));
  // Stand-ins count nothing, but are ahead of each other as the real nodes are.
  const auto rehearsed = simulated(scratch, "timing-only = true\n" + text).at("runs")[0];
  CHECK(rehearsed.at("staleness").at("mean").is_null());
  CHECK(rehearsed.at("staleness").at("largest_lead") == stale.at("largest_lead"));
}

TEST_CASE("bytes of a node are whole where all nodes send the same") {
  const Scratch scratch;
  const auto result = simulated(
      scratch, scenario("count = 6, gradient = \"20 ms\"", kNetwork, "", "\"dpsgd ring\""));
  for (const auto& point : result.at("runs")[0].at("history")) {
    const auto bytes = point.at("bytes_per_node").get<double>();
    CHECK(bytes == std::round(bytes));
  }
}

TEST_CASE("timing only takes more nodes than there are examples") {
  const Scratch scratch;
  const auto text = [](const std::string& nodes) {
    return scenario("count = " + nodes + ", gradient = \"20 ms\"", kNetwork, "", "\"dpsgd ring\"");
  };
  const auto result = simulated(scratch, "timing-only = true\n" + text("400"));
  CHECK(result.at("runs")[0].at("rounds") == 12);
  const auto refused = simulate(scratch, text("400"));
  CHECK(refused.status == 2);
  CHECK(contains(refused.err, "take fewer nodes or more data, as digits,train=400"));
}

TEST_CASE("a result is written neither over the scenario nor over another result") {
  const Scratch scratch;
  const std::string text = scenario(kNodes, kNetwork, "", "\"dpsgd\"");
  const auto path = scratch.write("s.toml", text).string();
  const auto over_scenario = run({"simulate", path, "--csv", path});
  CHECK(over_scenario.status == 2);
  CHECK(contains(over_scenario.err, "--csv: '" + path + "' is refused: it is SCENARIO's file too"));
  CHECK(text_of_file(path) == text);
  const auto both = (scratch.path() / "both").string();
  const auto again = (scratch.path() / "." / "both").string();
  const auto over_result = run({"simulate", path, "--csv", both, "--report", again});
  CHECK(over_result.status == 2);
  CHECK(contains(over_result.err, "give each its own"));
  CHECK_FALSE(std::filesystem::exists(both));
  CHECK(run({"simulate", path, "--csv", "/dev/null", "--report", "/dev/null"}).status == 0);
  const auto standard = run({"train", "--task", "digits", "--json", "-", "--log-json", "-"});
  CHECK(standard.status == 2);
  CHECK(contains(standard.err, "'-' is refused: it is --"));
}

}  // namespace sotto::test::simulate_outputs_test
