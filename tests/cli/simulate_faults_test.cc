// `sotto simulate` where nodes end early, links change and nodes are parted.
#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include <sotto/sim/network/platform.h>

#include "cli/scenario_text.h"
#include "support/text_of_file.h"

namespace sotto::test::simulate_faults_test {

using nlohmann::json;

namespace {

std::string event(const std::string& text) { return "[[events]]\n" + text + "\n"; }

/// The first run's virtual seconds.
double time_of(const Scratch& scratch, const std::string& nodes, const std::string& network,
               const std::string& runs, const std::string& more = "") {
  return simulated(scratch, scenario(nodes, network, more, runs))
      .at("runs")[0]
      .at("virtual_s")
      .get<double>();
}

}  // namespace

TEST_CASE("a run that was never evaluated has no standing, and the others keep theirs") {
  const Scratch scratch;
  const std::string crash = event("at = \"1 ms\"\ncrash = \"0\"");
  for (const char* equal : {"time", "bytes"}) {
    const auto result =
        simulated(scratch, scenario(kNodes, kNetwork, crash, "\"allreduce\""), {"--equal", equal});
    CHECK(result.at("runs")[0].at("history").empty());
    CHECK(result.at("runs")[0].at("at_equal").is_null());
  }
}

TEST_CASE("bytes that nodes sent before they ended stay counted") {
  const Scratch scratch;
  const std::string text =
      scenario("count = 24, gradient = \"20 ms\"", kNetwork, event("at = \"0.2 s\"\ncrash = \"0\""),
               "\"dpsgd ring eval-every=1\"");
  const auto result = simulated(scratch, text);
  double before = 0;
  for (const json& point : result.at("runs")[0].at("history")) {
    const auto bytes = point.at("bytes_per_node").get<double>();
    CHECK(bytes >= before);
    before = bytes;
  }
  CHECK(result.at("runs")[0].at("history").size() > 3);
}

TEST_CASE("the cause of an early end is told, not who noticed it") {
  const Scratch scratch;
  const auto ended = simulate(
      scratch,
      scenario(kNodes, kNetwork, event("at = \"100 ms\"\nvanish = \"1\""), "\"dpsgd ring\""),
      {"--json", "-"});
  CHECK(contains(ended.err, "ended early: node 1, round 3: it vanished"));
  const auto result = ended.json();
  const json& faults = result.at("runs")[0].at("faults");
  CHECK(faults[0].at("node") == 1);
  CHECK(faults[0].at("virtual_s") == doctest::Approx(0.1));
  CHECK(std::is_sorted(faults.begin(), faults.end(), [](const json& a, const json& b) {
    return a.at("virtual_s") < b.at("virtual_s");
  }));
}

TEST_CASE("a partition cuts its parts from each other, and nobody else from anybody") {
  const Scratch scratch;
  const std::string nodes = "count = 8, gradient = \"20 ms\"";
  const auto with = [&](const std::string& parts) {
    return time_of(
        scratch, nodes, kNetwork, "\"dpsgd ring\"",
        parts.empty() ? "" : event("at = \"100 ms\"\npartition = " + parts + "\nfor = \"5 s\""));
  };
  CHECK(with("[\"0\", \"2\"]") == with(""));
  CHECK(with("[\"0\", \"1\"]") > with("") + 4);
}

TEST_CASE("what an event does not say of a link stays as it is") {
  const Scratch scratch;
  const std::string nodes = "count = 4, gradient = \"20 ms\"";
  const std::string network = "link = { bandwidth = \"10 Mbit/s\", latency = \"5 ms\" }";
  const auto with = [&](const std::string& link) {
    return time_of(scratch, nodes, network, "\"dpsgd ring\"",
                   event("at = \"100 ms\"\nfrom = \"all\"\nto = \"all\"\nlink = " + link));
  };
  const double plain = time_of(scratch, nodes, network, "\"dpsgd ring\"");
  CHECK(with("{ latency = \"5 ms\" }") == plain);
  CHECK(with("{ bandwidth = \"10 Mbit/s\" }") == plain);
  CHECK(with("{ bandwidth = \"1 Mbit/s\" }") > 2 * plain);
  CHECK(with("{ bandwidth = \"1 Mbit/s\" }") ==
        with("{ bandwidth = \"1 Mbit/s\", latency = \"5 ms\" }"));
}

TEST_CASE("a preset of a node's own connection is shared by all its peers") {
  const Scratch scratch;
  const auto with = [&](const std::string& network) {
    return time_of(scratch, "count = 8, gradient = \"1 ms\"", network, "\"dpsgd complete\"");
  };
  const double dsl = with("link = \"dsl\"");
  CHECK(dsl == with("link = { latency = \"20 ms\", jitter = \"3 ms\" }, hosts = [{ nodes = "
                    "\"all\", up = \"10 Mbit/s\", down = \"10 Mbit/s\" }]"));
  // 12 rounds of 7 frames of 31 kB out of each node.
  CHECK(dsl > 12 * 7 * 31'400 / 1.25e6);
  CHECK(with("link = \"dsl\", hosts = [{ nodes = \"all\", up = \"1 Mbit/s\" }]") > 5 * dsl);
}

TEST_CASE("what cannot happen to a node, or between nodes, is refused") {
  const Scratch scratch;
  struct Case {
    std::string more;
    std::string says;
  };
  const Case cases[] = {
      {event("at = \"1 s\"\nresume = \"1\""),
       "s.toml:8: events[1].resume: resume of node 1 at 1 s: it does not stand still then"},
      {event("at = \"1 s\"\nsuspend = \"1\"") + event("at = \"2 s\"\nsuspend = \"all\""),
       "s.toml:11: events[2].suspend: suspend of node 1 at 2 s: it stands still already"},
      {event("at = \"2 s\"\ncrash = \"1\"") + event("at = \"1 s\"\nleave = \"1\""),
       "s.toml:8: events[1].crash: crash of node 1 at 2 s: it has ended by then"},
      {event("at = \"60 s\"\ncrash = \"1\"") + event("at = \"61 s\"\njoin = \"1\""),
       "crash of node 1 at 60 s: it joins later"},
      {event("at = \"1 s\"\njoin = \"1\"") + event("at = \"2 s\"\njoin = \"1\""),
       "events[2].join: node 1 joins twice"},
      {event("at = \"1 s\"\nfrom = \"3\"\nto = \"3\"\nlink = \"wan\""),
       "events[1].to: it is the same node as from"},
      {event("at = \"1 s\"\ncrash = \"1\"\nfor = \"1 s\""),
       "s.toml:9: events[1].for: it goes with partition"},
      {event("at = 60\ncrash = \"1\""), "s.toml:7: events[1].at: '60' is no duration"},
      {event("at = \"1 s\"\npartition = [\"0-1\", \"1-3\"]"),
       "s.toml:8: events[1].partition: node 1 is in two parts"},
      {event("at = \"1 s\"\npartition = [\"0\", \"1\"]\nfor = \"0 s\""),
       "s.toml:9: events[1].for: it must be longer than 0"},
      {event("at = \"1 s\"\ncrash = \"0\"\nfrom = \"0\""), "events[1].link: it is missing"},
      {event("at = \"1 s\"\nfrom = \"0\"\nto = \"1\"\nlink = { loss = 0.1 }"),
       "s.toml:10: events[1].link.loss: an event changes bandwidth and latency"},
      {event("at = \"1 s\"\nfrom = \"0\"\nto = \"1\"\nlink = {}"), "nothing changes"},
      {event("at = \"1 s\"\nfrom = \"0\"\nto = \"1\"\nlink = { latency = \"0.5 ms\" }"),
       "s.toml:10: events[1].link: from node 0 to node 1 the jitter"},
      {event("at = \"1 s\"\nfrom = \"0\"\nto = \"1\"\nlink = \"dsl\""),
       "this preset is of a node's own connection"},
      {event("at = \"1 s\"\nfrom = \"0\"\nto = \"1-3\"\nlink = { bandwidth = \"9 Mbit/s\" }") +
           event("at = \"1000 ms\"\nfrom = \"2\"\nto = \"0\"\nlink = { bandwidth = \"8 Mbit/s\" }"),
       "events[2].link: at that moment"},
      {event("at = \"2 s\"\nfrom = \"0\"\nto = \"1-3\"\nlink = { latency = \"99 ms\" }") +
           event("at = \"2 s\"\nfrom = \"0\"\nto = \"3\"\none-way = true\nlink = \"wan\""),
       "events[1].link changes the latency of links from node 0 to node 3 too"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.more);
    const auto ended = simulate(scratch, scenario(kNodes, kNetwork, one.more));
    CAPTURE(ended.err);
    CHECK(ended.status == 2);
    CHECK(contains(ended.err, one.says));
  }
}

TEST_CASE("changes of different links at one moment are taken, also where a node has both") {
  const Scratch scratch;
  const std::string two =
      event("at = \"1 s\"\nfrom = \"0-1\"\nto = \"0-1\"\nlink = { bandwidth = \"9 Mbit/s\" }") +
      event("at = \"1 s\"\nfrom = \"1-3\"\nto = \"1-3\"\nlink = { bandwidth = \"8 Mbit/s\" }");
  const auto ended = simulate(scratch, scenario(kNodes, kNetwork, two));
  CAPTURE(ended.err);
  CHECK(ended.status == 0);
}

TEST_CASE("a churn trace says what happens to nodes as events do, and errors name its lines") {
  const Scratch scratch;
  const std::string file = (scratch.path() / "churn.csv").string();
  const auto with = [&](const std::string& trace) {
    (void)scratch.write("churn.csv", trace);
    return "churn = \"" + file + "\"\n" +
           scenario(kNodes + ", groups = { two = \"2\" }", kNetwork, "", "\"dpsgd ring\"");
  };
  const auto traced = simulated(
      scratch, with("at,what,nodes\r\n# late\n\n40 ms,join,1\n0.1 s,suspend,3, two\n300 ms,resume,"
                    "2-3\n"));
  const auto listed = simulated(scratch, scenario(kNodes, kNetwork,
                                                  event("at = \"40 ms\"\njoin = \"1\"") +
                                                      event("at = \"0.1 s\"\nsuspend = \"2-3\"") +
                                                      event("at = \"300 ms\"\nresume = \"2-3\""),
                                                  "\"dpsgd ring\""));
  CHECK(traced.at("runs")[0].at("trace_sha256") == listed.at("runs")[0].at("trace_sha256"));
  CHECK(traced.at("events") == listed.at("events"));
  CHECK(traced.at("events").size() == 3);
  struct Case {
    std::string trace;
    std::string says;
  };
  const Case cases[] = {
      {"", "s.toml:1: churn: '" + file + "' cannot be read, or is empty"},
      {"at,nodes\n", "churn.csv:1: the first line is at,what,nodes"},
      {"at,what,nodes\n1 s,crash\n", "churn.csv:2: it has three fields"},
      {"at,what,nodes\n\nsoon,crash,1\n", "churn.csv:3: 'soon' is no duration"},
      {"at,what,nodes\n1 s,crash,7\n", "churn.csv:2: '7' names no nodes"},
      {"at,what,nodes\n1 s,explode,1\n", "churn.csv:2: 'explode' is none of crash"},
      {"at,what,nodes\n1 s,crash,1\n2 s,leave,1\n",
       "churn.csv:3: leave of node 1 at 2 s: it has ended by then"},
      {"at,what,nodes\n1 s,join,1\n2 s,join,1\n", "churn.csv:3: node 1 joins twice"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.trace);
    const auto ended = simulate(scratch, with(one.trace));
    CAPTURE(ended.err);
    CHECK(ended.status == 2);
    CHECK(contains(ended.err, one.says));
  }
}

TEST_CASE("a key that is mistyped is named before the one that is missing by it") {
  const Scratch scratch;
  const auto says = [&](const std::string& text, const std::string& what) {
    const auto ended = simulate(scratch, text);
    CAPTURE(ended.err);
    CHECK(ended.status == 2);
    CHECK(contains(ended.err, what));
  };
  says(scenario("count = 4, gradeint = \"20 ms\"", kNetwork),
       "s.toml:3: nodes.gradeint: there is no such key; did you mean gradient?");
  says("sotto-scenario = 1\nrun = \"dpsgd\"\nnodes = { " + kNodes + " }\n[netwrok]\n",
       "s.toml:4: netwrok: there is no such key; did you mean network?");
  says(scenario(kNodes, kNetwork + ", hosts = [{ nodes = \"all\", up = 10 }]"),
       "network.hosts[1].up: '10' is no bandwidth; write a positive number and bit/s");
  says(scenario(kNodes, kNetwork + ", hosts = [{ nodes = \"all\" }]"),
       "s.toml:4: network.hosts[1].up: it is missing; give what these nodes' own connections");
  says(scenario(kNodes, kNetwork + ", hosts = [{ nodes = \"all\", upp = \"1 Mbit/s\" }]"),
       "network.hosts[1].upp: there is no such key; did you mean up?");
  says(scenario(kNodes + ", groups = { all = \"1\" }", kNetwork), "nodes.groups.all: a group has");
  says(scenario(kNodes + ", groups = { 7 = \"1\" }", kNetwork), "nodes.groups.7: a group has");
  says(scenario(kNodes, "link = { latency = \"1 ms\", loss = 4 }"), "0.04 for 4 %");
  says(scenario(kNodes, kNetwork, "", "\"dpsgd\", \"dpsgd\""), "'dpsgd' stands there twice");
  says(scenario(kNodes, "link = { latency = \"1 ms\", loss = \"4 %\" }"), "0.04 for 4 %");
  says(scenario(kNodes + ", stragglers = { nodes = \"1\", slower = 0.5 }", kNetwork),
       "nodes.stragglers.slower: it is how many times as long");
  says(scenario(kNodes, kNetwork, "target = { loss = -1 }\n"), "target.loss: it must be positive");
  says(scenario(kNodes, kNetwork, "target = { }\n"), "give accuracy, loss or both");
  const auto missing = run({"simulate"});
  CHECK(missing.status == 2);
  CHECK(contains(missing.err, "SCENARIO: it is missing; write `sotto simulate FILE.toml`"));
  CHECK(contains(run({"node"}).err, "SITE.toml: it is missing; write `sotto node FILE.toml`"));
  CHECK(contains(run({"checkpoint", "inspect"}).err, "write `sotto checkpoint inspect FILE`"));
  CHECK(contains(run({"man", "node"}).out, "\\fIFILE.toml\\fR"));
}

TEST_CASE("a setting of [task] is refused where it stands, one of a run there") {
  const Scratch scratch;
  const auto says = [&](const std::string& run, const std::string& task) {
    const auto ended = simulate(scratch, "sotto-scenario = 1\nrun = [\"" + run + "\"]\nnodes = { " +
                                             kNodes + " }\nnetwork = { " + kNetwork +
                                             " }\n[task]\nmodel = \"softmax\"\n" + task);
    CHECK(ended.status == 2);
    return ended.err;
  };
  CHECK(contains(says("dpsgd", "rounds = 0\n"), "s.toml:7: task.rounds: '0' is refused"));
  CHECK(contains(says("dpsgd", "rounds = 5\nlr = -1\n"), "s.toml:8: task.lr: '-1'"));
  CHECK(contains(says("dpsgd rounds=0", "rounds = 5\n"), "s.toml:2: run: 'dpsgd rounds=0': "));
}

TEST_CASE("groups and numbers are named together") {
  const Scratch scratch;
  const std::string groups = ", groups = { a = \"0\", b = \"1-2\" }, stragglers = { slower = 3, ";
  CHECK(time_of(scratch, kNodes + groups + "nodes = \"b, 0,3\" }", kNetwork, "\"dpsgd\"") ==
        time_of(scratch, kNodes + groups + "nodes = \"all\" }", kNetwork, "\"dpsgd\""));
}

TEST_CASE("report and trace say why a run ended early, and a report shows no empty plots") {
  const Scratch scratch;
  const auto read = [&](const char* name) { return text_of_file(scratch.path() / name); };
  const std::string report = (scratch.path() / "r.html").string();
  const std::string trace = (scratch.path() / "t.json").string();
  const std::string text =
      "timing-only = true\n" +
      scenario(kNodes, kNetwork, event("at = \"100 ms\"\nvanish = \"1\""), "\"dpsgd ring\"");
  const auto ended = simulate(scratch, text, {"--report", report, "--trace", trace});
  const std::string why = "node 1, round 3: it vanished";
  CHECK(contains(ended.out, "dpsgd ring ended early: " + why));
  const std::string page = read("r.html");
  CHECK(contains(page, "dpsgd ring ended early: " + why));
  CHECK(contains(page, "no model was evaluated"));
  CHECK_FALSE(contains(page, "Loss against"));
  CHECK(contains(read("t.json"), "\"cat\":\"fault\",\"name\":\"" + why + "\""));
}

TEST_CASE("time spent in encoding has a column of its own") {
  const Scratch scratch;
  const auto ended =
      simulate(scratch, scenario(kNodes + ", overhead = \"200 ms\"", kNetwork, "", "\"dpsgd\""));
  CHECK(contains(ended.out, "computing  codec  on the wire  idle"));
}

TEST_CASE("a run that outlasts virtual time says so, and what would come later") {
  const Scratch scratch;
  struct Case {
    std::string nodes;
    std::string says;
  };
  const Case cases[] = {
      {"count = 2, gradient = \"800000 h\"", "the gradient of node "},
      {"count = 2, gradient = \"1 s\", codec = \"0.00001 B/s\"", "would encode or decode"}};
  for (const Case& one : cases) {
    const auto run = simulated(scratch, scenario(one.nodes, kNetwork)).at("runs")[0];
    const auto fault = run.at("faults").at(0).at("fault").get<std::string>();
    CAPTURE(fault);
    CHECK(contains(fault, "virtual time ends after 292 years"));
    CHECK(contains(fault, one.says));
    CHECK(run.at("virtual_s").get<double>() >= 0);
  }
}

TEST_CASE("a lossy link that was cut and heals carries on, and a loss near 1 ends a run") {
  const Scratch scratch;
  const auto lossy = [&](const std::string& loss, const std::string& more) {
    return simulated(scratch,
                     "sotto-scenario = 1\nrun = [\"dpsgd ring\"]\ntiming-only = true\n"
                     "nodes = { count = 4, gradient = \"20 ms\" }\n"
                     "network = { tcp = { share = 0.96, window = 14480 }, link = { "
                     "bandwidth = \"10 Mbit/s\", latency = \"10 ms\", loss = " +
                         loss + " } }\ntask = { task = \"digits\", rounds = 40 }\n" + more)
        .at("runs")[0];
  };
  const auto healed =
      lossy("0.001", event("at = \"2 s\"\npartition = [\"0-1\", \"2-3\"]\nfor = \"3 s\""));
  CHECK(healed.at("rounds") == 40);
  CHECK(healed.at("virtual_s") > 5);
  CHECK(healed.at("virtual_s") < 30);
  CHECK(lossy("0.9999999999999", "").at("virtual_s") > 0);
}

}  // namespace sotto::test::simulate_faults_test
