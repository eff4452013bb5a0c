// Scenarios whose links and nodes are as traces of real ones say.
#include <string>

#include <doctest/doctest.h>

#include "cli/scenario_text.h"

namespace sotto::test::traces_test {

namespace {

constexpr int kRounds = 10;

/// Four nodes that all talk to all, with gradients that take no time. Line 7 is the network's.
std::string traced_scenario(const std::string& network, const std::string& more = "") {
  return "sotto-scenario = 1\nrun = [\"dpsgd complete\"]\ntiming-only = true\n"
         "[nodes]\ncount = 4\ngradient = \"1 ns\"\n[network]\n" +
         network + "\n[task]\nmodel = \"softmax\"\nrounds = 10\n" + more;
}

/// A scenario of two nodes without limits on their network.
std::string paced_scenario(const std::string& nodes, const std::string& run = "dpsgd ring",
                           const std::string& task = "") {
  return "sotto-scenario = 1\nrun = [\"" + run +
         "\"]\ntiming-only = true\n"
         "[nodes]\ncount = 2\n" +
         nodes +
         "\n[network]\nlink = { latency = \"0 ms\" }\n[task]\nmodel = \"softmax\"\nrounds = 10\n"
         "timeout = 1000000\n" +
         task;
}

double traced_seconds(const Scratch& scratch, const std::string& text) {
  const auto run = simulated(scratch, text).at("runs")[0];
  CHECK(run.at("faults").empty());
  return run.at("virtual_s").get<double>();
}

doctest::Approx nearly(double value) { return doctest::Approx(value).epsilon(1e-6); }

struct Refusal {
  std::string text;  ///< of the file
  std::string says;
};

}  // namespace

TEST_CASE("a link with a trace takes what the trace's bandwidth takes, wherever it stands") {
  const Scratch scratch;
  // A packet of 1500 bytes each millisecond: 12 Mbit/s, or 1.5 MB/s.
  (void)scratch.write("constant.trace", "# packets\n1\n");
  (void)scratch.write("constant.csv", "time s,rate kB/s,latency ms\n0,1500,0\n");
  const auto pairs = [&](const std::string& figures) {
    return traced_seconds(scratch,
                          traced_scenario("link = { latency = \"5 ms\", " + figures + " }"));
  };
  const double plain = pairs("bandwidth = \"12 Mbit/s\"");
  CHECK(pairs("trace = \"constant.trace\"") == nearly(plain));
  CHECK(pairs("trace = \"constant.csv\"") == nearly(plain));
  CHECK(pairs("trace = { file = \"constant.csv\", start = \"1 h\", repeat = \"5 s\" }") ==
        nearly(plain));
  // The narrower of trace and bandwidth counts.
  CHECK(pairs("trace = \"constant.trace\", bandwidth = \"1 Gbit/s\"") == nearly(plain));
  CHECK(pairs("trace = \"constant.trace\", bandwidth = \"6 Mbit/s\"") ==
        nearly(pairs("bandwidth = \"6 Mbit/s\"")));
  const auto hosts = [&](const std::string& up) {
    return traced_seconds(scratch, traced_scenario("link = { latency = \"5 ms\" }\nhosts = [{ "
                                                   "nodes = \"all\", " +
                                                   up + " }]"));
  };
  CHECK(hosts("up-trace = \"constant.trace\"") == nearly(hosts("up = \"1.5 MB/s\"")));
  CHECK(hosts("down-trace = \"constant.trace\"") == nearly(hosts("down = \"1.5 MB/s\"")));
  const auto trunk = [&](const std::string& figures) {
    return traced_seconds(scratch, traced_scenario("link = { latency = \"5 ms\" }\ntrunk = [{ name "
                                                   "= \"sea\", nodes = \"0-1\", link = { " +
                                                   figures + " } }]"));
  };
  CHECK(trunk("trace = \"constant.trace\"") == nearly(trunk("bandwidth = \"1.5 MB/s\"")));
  CHECK(trunk("trace = \"constant.trace\"") > 1.2 * plain);
  const auto between = [&](const std::string& figures) {
    return traced_seconds(scratch,
                          traced_scenario("link = { latency = \"5 ms\" }\nbetween = [{ from = "
                                          "\"0\", to = \"1-3\", link = { " +
                                          figures + " } }]"));
  };
  CHECK(between("trace = \"constant.trace\"") == nearly(between("bandwidth = \"1.5 MB/s\"")));
}

TEST_CASE("a link that halves in its trace is one that an event halves") {
  const Scratch scratch;
  (void)scratch.write("halves.csv", "time ms,rate Mbit/s,latency us\n1000,8,3000\n1100,4,9000\n");
  const double traced =
      traced_seconds(scratch, traced_scenario("link = { trace = \"halves.csv\" }"));
  const double told = traced_seconds(
      scratch,
      traced_scenario("link = { bandwidth = \"8 Mbit/s\", latency = \"3 ms\" }",
                      "[[events]]\nat = \"100 ms\"\nfrom = \"all\"\nto = \"all\"\nlink = { "
                      "bandwidth = \"4 Mbit/s\", latency = \"9 ms\" }\n"));
  CHECK(traced == nearly(told));
  // Later in the trace, all is at half of the speed.
  const double late = traced_seconds(
      scratch, traced_scenario("link = { trace = { file = \"halves.csv\", start = \"1 s\" } }"));
  CHECK(late ==
        nearly(traced_seconds(scratch, traced_scenario("link = { bandwidth = \"4 Mbit/s\", latency "
                                                       "= \"9 ms\" }"))));
  CHECK(late > traced);
  // Events and cuts fall on the link beside its trace.
  const double cut = traced_seconds(
      scratch, traced_scenario("link = { trace = \"halves.csv\" }",
                               "[[events]]\nat = \"10 ms\"\npartition = [\"0\", \"1-3\"]\nfor = "
                               "\"20 s\"\n"));
  CHECK(cut > traced + 19);
  CHECK(cut < traced + 21);
}

TEST_CASE("packets are counted over bins, and the trace repeats after its last line") {
  const Scratch scratch;
  // Ten packets in the first 10 ms, then none until 100 ms: 110 kB a second on average.
  std::string packets;
  for (int ms = 1; ms <= 10; ++ms) {
    packets += std::to_string(ms) + "\n";
  }
  (void)scratch.write("bursts", packets + "100\n");
  const auto with = [&](const std::string& more) {
    return traced_seconds(scratch,
                          traced_scenario("link = { trace = { file = \"bursts\"" + more + " } }"));
  };
  const double mean =
      traced_seconds(scratch, traced_scenario("link = { bandwidth = \"165 kB/s\" }"));
  CHECK(with("") == nearly(mean));
  CHECK(with(", bin = \"1 s\"") == nearly(mean));
  const double fine = with(", bin = \"1 ms\"");
  CHECK(fine == doctest::Approx(mean).epsilon(0.1));
  CHECK(fine != nearly(mean));
  // Each further node begins later in the trace.
  const auto hosts = [&](const std::string& stagger) {
    return traced_seconds(
        scratch, traced_scenario("link = { latency = \"1 ms\" }\nhosts = [{ nodes = \"all\", "
                                 "up-trace = { file = \"bursts\", bin = \"1 ms\", stagger = \"" +
                                 stagger + "\" } }]"));
  };
  CHECK(hosts("30 ms") != nearly(hosts("0 ms")));
  CHECK(hosts("100 ms") == nearly(hosts("0 ms")));
}

TEST_CASE("what is wrong with a link's trace is said with its file and line") {
  const Scratch scratch;
  const Refusal refusals[] = {
      {"", "s.toml:8: network.link.trace: '"},
      {"# nothing\n", "nothing but comments is in it"},
      {"1\ntwo\n", "net.trace:2: 'two' is no number of milliseconds"},
      {"1\n-2\n", "net.trace:2: '-2' is no number of milliseconds"},
      {"1\n1.5\n", "net.trace:2: '1.5' is no number of milliseconds"},
      {"5\n4\n", "net.trace:2: 4 ms is earlier than the line before, 5 ms"},
      {"0\n", "net.trace:1: the last line must be later than 0 ms"},
      {"1\n99999999999999\n", "net.trace:2: '99999999999999' is no number of milliseconds"},
      {"1\n30000000000\n", "net.trace:2: it has more than 4000000 bins by then"},
      {"seconds,Mbit/s\n0,1\n", "net.trace:1: 'seconds' is not time and its unit"},
      {"time s\n0\n", "net.trace:1: it is no first line of a trace"},
      {"time s,rate Mbit\n0,1\n", "net.trace:1: '1 Mbit' is no bandwidth"},
      {"time s,rate 5Mbit/s\n0,1\n", "net.trace:1: '1 5Mbit/s' is no bandwidth"},
      {"time y,rate Mbit/s\n0,1\n", "net.trace:1: '1 y' is no duration"},
      {"time s,rate Mbit/s\n", "net.trace:1: no line follows"},
      {"time s,rate Mbit/s\n0,1\n# x\n\nsoon,2\n", "net.trace:5: 'soon' is no time"},
      {"time s,rate Mbit/s\n0,fast\n", "net.trace:2: 'fast' is no rate"},
      {"time s,rate Mbit/s\n0,-1\n", "net.trace:2: '-1' is no rate"},
      {"time s,rate Mbit/s\n0,inf\n", "net.trace:2: 'inf' is no rate"},
      {"time s,rate Gbit/s\n0,1e9\n", "net.trace:2: 1e+09 Gbit/s is more than a link carries"},
      {"time s,rate Mbit/s\n0,1,2\n", "net.trace:2: it has 3 fields, and the first line 2"},
      {"time s,rate Mbit/s\n3,1\n3,1\n", "net.trace:3: its time is no later than"},
      {"time s,rate Mbit/s\n0,1\n1e9,1\n", "net.trace:3: it is more than a year after"},
      {"time s,rate Mbit/s\n0,0\n5,0\n", "net.trace:3: nothing ever passes"},
      {"time s,rate Mbit/s,latency h\n0,1,1000\n", "net.trace:2: its latency is longer"},
  };
  for (const Refusal& one : refusals) {
    CAPTURE(one.text);
    (void)scratch.write("net.trace", one.text);
    const auto ended = simulate(scratch, traced_scenario("link = { trace = \"net.trace\" }"));
    CAPTURE(ended.err);
    CHECK(ended.status == 2);
    CHECK(contains(ended.err, one.says));
  }
  (void)scratch.write("net.trace", "1\n2\n");
  (void)scratch.write("net.csv", "time s,rate Mbit/s\n0,1\n10,2\n");
  const Refusal uses[] = {
      {"link = { trace = \"none.csv\" }", "s.toml:8: network.link.trace: '"},
      {"link = { trace = {} }", "s.toml:8: network.link.trace.file: it is missing"},
      {"link = { trace = { file = \"net.trace\", repeat = \"1 s\" } }", "leave repeat out"},
      {"link = { trace = { file = \"net.csv\", bin = \"1 s\" } }", "leave bin out"},
      {"link = { trace = { file = \"net.csv\", repeat = \"10 s\" } }",
       "net.csv:3: it is 10 s after the first line, and the trace is to repeat after 10 s"},
      {"link = { trace = { file = \"net.csv\", stagger = \"1 s\" } }", "stagger is for nodes' own"},
      {"link = { trace = { file = \"net.csv\", begin = \"1 s\" } }", "trace.begin"},
      {"link = \"wan\"\nhosts = [{ nodes = \"0\", up = \"1 MB/s\", up-trace = \"net.csv\" }]",
       "s.toml:9: network.hosts[1].up-trace: up says what they carry, too"},
  };
  for (const Refusal& one : uses) {
    CAPTURE(one.text);
    const auto ended = simulate(scratch, traced_scenario(one.text));
    CAPTURE(ended.err);
    CHECK(ended.status == 2);
    CHECK(contains(ended.err, one.says));
  }
  const auto event = simulate(
      scratch, traced_scenario("link = \"wan\"",
                               "[[events]]\nat = \"1 s\"\nfrom = \"0\"\nto = \"1\"\nlink = { trace "
                               "= \"net.csv\" }\n"));
  CHECK(event.status == 2);
  CHECK(contains(event.err, "trace and queue stay"));
}

TEST_CASE("a byte order mark, blank lines and blanks at ends of lines are passed over") {
  const Scratch scratch;
  const auto end = [&](const std::string& trace) {
    (void)scratch.write("net.trace", trace);
    return simulated(scratch, traced_scenario("link = { trace = \"net.trace\" }"))
        .at("runs")[0]
        .at("virtual_s")
        .get<double>();
  };
  const double plain = end("time s,rate Mbit/s\n0,1\n5,2\n");
  CHECK(end("\xEF\xBB\xBFtime s,rate Mbit/s \r\n   \r\n 0 , 1\r\n\t\n5,2 \n\n") == plain);
  CHECK(end("time s,rate Mbit/s\r0,1\r5,2\r") == plain);
}

TEST_CASE("a bin that is no whole number of milliseconds is refused") {
  const Scratch scratch;
  (void)scratch.write("net.trace", "1\n2\n");
  for (const char* bin : {"0 s", "1.5 ms", "10 us"}) {
    CAPTURE(bin);
    const auto ended =
        simulate(scratch, traced_scenario("link = { trace = { file = \"net.trace\", bin = \"" +
                                          std::string(bin) + "\" } }"));
    CHECK(ended.status == 2);
    CHECK(contains(ended.err, "a whole number of milliseconds"));
  }
}

TEST_CASE("the planner predicts with the means of traces, and upgrades widen them") {
  const Scratch scratch;
  (void)scratch.write("waves.csv", "time s,rate Mbit/s\n0,6\n0.2,2\n");
  const std::string text = traced_scenario(
      "link = { latency = \"1 ms\", trace = { file = \"waves.csv\", repeat = \"0.4 s\" } }");
  const auto plan = run({"plan", scratch.write("s.toml", text).string(), "--budget", "2", "--json",
                         "-", "--codec", "none"});
  CAPTURE(plan.err);
  CHECK(plan.status == 0);
  CHECK(contains(simulate(scratch, text, {"--upgrades"}).out, "its trace twice as wide"));
}

TEST_CASE("clients are as quick as their capacities say") {
  const Scratch scratch;
  (void)scratch.write("capacity.csv",
                      "client,computation ms,communication kbit/s\nanna,100,8000\n# slow\nben,200,"
                      "800\ncarl,50,4000\n");
  const std::string file = "capacity = { file = \"capacity.csv\", samples = 20";
  // The slower of the first two takes 200 ms for each of 20 examples.
  const double both = traced_seconds(scratch, paced_scenario(file + " }"));
  CHECK(both >= kRounds * 4.0);
  CHECK(both < kRounds * 4.2);
  // Nodes have ways out and in of that width: two frames at 100 kB/s are slower than a millisecond.
  const std::string quick = "capacity = { file = \"quick.csv\", samples = 1 }";
  (void)scratch.write("quick.csv",
                      "client,computation ms,communication kbit/s\na,1,8000\nb,1,800\n");
  const auto run = simulated(scratch, paced_scenario(quick)).at("runs")[0];
  const double sent = run.at("bytes_sent_per_node")[1].get<double>();
  CHECK(run.at("virtual_s").get<double>() == doctest::Approx(sent / 100e3).epsilon(0.01));
  const auto drawn = paced_scenario(file + ", draw = \"once\" }");
  CHECK(simulated(scratch, drawn, {"--seed", "4"}) == simulated(scratch, drawn, {"--seed", "4"}));
  const Refusal refusals[] = {
      {"client,ms\n", "capacity.csv:1: the first line is client,computation ms,communication"},
      {"client,computation ms,communication kbit/s\n", "capacity.csv:1: no line follows"},
      {"client,computation ms,communication kbit/s\na,1\n", "capacity.csv:2: it has 2 fields"},
      {"client,computation ms,communication kbit/s\n,1,1\n", "capacity.csv:2: it names no client"},
      {"client,computation ms,communication kbit/s\na,x,1\n", "capacity.csv:2: 'x' is no compu"},
      {"client,computation ms,communication kbit/s\na,1,-1\n", "capacity.csv:2: '-1' is no commu"},
      {"client,computation ms,communication kbit/s\na,1,0\n",
       "capacity.csv:2: a communication of 0"},
      {"client,computation ms,communication kbit/s\na,1,1\na,1,1\n", "client a stands at"},
      {"client,computation ms,communication kbit/s\na,1,1\n", "it has 1 client for 2 nodes"},
  };
  for (const Refusal& one : refusals) {
    CAPTURE(one.text);
    (void)scratch.write("capacity.csv", one.text);
    const auto ended = simulate(scratch, paced_scenario(file + " }"));
    CAPTURE(ended.err);
    CHECK(ended.status == 2);
    CHECK(contains(ended.err, one.says));
  }
  CHECK(contains(simulate(scratch, paced_scenario("gradient = \"1 s\"\n" + file + " }")).err,
                 "give one of the two"));
  CHECK(contains(simulate(scratch, paced_scenario(file + ", draw = \"twice\" }")).err, "\"once\""));
}

TEST_CASE("clients are there when their traces say, and again after the finish") {
  const Scratch scratch;
  (void)scratch.write("times.csv",
                      "client,active s,inactive s,finish s\nx,0,4,10\nx,4,6.5,10\ny,0,1000,\n");
  const std::string nodes = "gradient = \"1 s\"\navailability = \"times.csv\"";
  // Both go on in seconds 0 to 6.5, and from 10 on.
  CHECK(traced_seconds(scratch, paced_scenario(nodes)) == nearly(13.5));
  (void)scratch.write("times.csv", "client,active s,inactive s,finish s\nx,2,5.5,10\ny,0,1000,\n");
  CHECK(traced_seconds(scratch, paced_scenario(nodes)) == nearly(25));
  const std::string header = "client,active s,inactive s,finish s\n";
  const Refusal refusals[] = {
      {"client,active,inactive,finish\n", "times.csv:1: the first line is client,active s"},
      {header + "x,1,y,\n", "times.csv:2: 'y' is no time"},
      {header + "x,4,4,\n", "times.csv:2: the client is inactive no later"},
      {header + "x,4,8,7\n", "times.csv:2: its times end later than they repeat"},
      {header + "x,4,8,9\nx,8,9,10\n", "times.csv:3: the line before of this client"},
      {header + "x,4,8,\nx,6,9,\n", "times.csv:3: it begins before"},
      {header + "x,4,8,\n", "it has 1 client for 2 nodes"},
  };
  for (const Refusal& one : refusals) {
    CAPTURE(one.text);
    (void)scratch.write("times.csv", one.text);
    const auto ended = simulate(scratch, paced_scenario(nodes));
    CAPTURE(ended.err);
    CHECK(ended.status == 2);
    CHECK(contains(ended.err, one.says));
  }
  (void)scratch.write("times.csv", header + "x,0,9,\ny,0,9,\n");
  (void)scratch.write("capacity.csv", "client,computation ms,communication kbit/s\ny,1,1\nz,1,1\n");
  CHECK(contains(simulate(scratch, paced_scenario("capacity = { file = \"capacity.csv\", samples = "
                                                  "1 }\navailability = \"times.csv\""))
                     .err,
                 "it does not have client z, which node 1 is"));
  CHECK(contains(simulate(scratch, paced_scenario(nodes, "dpsgd ring",
                                                  "[[events]]\nat = \"1 s\"\njoin = \"1\"\n"))
                     .err,
                 "node 1 comes and goes"));
}

TEST_CASE("nodes are up between hours of their own day, every day") {
  const Scratch scratch;
  const auto with = [](const std::string& hours, const std::string& clock) {
    return paced_scenario("gradient = \"10 min\"\nclock = \"" + clock + "\"\nhours = [" + hours +
                          "]");
  };
  const std::string office = "{ nodes = \"all\", up = \"08:00-18:00\", zone = \"+1\" }";
  // From half past four in UTC half an hour is left; the other seven gradients begin at seven.
  CHECK(traced_seconds(scratch, with(office, "16:30")) == nearly((14.5 + 7.0 / 6) * 3600));
  CHECK(traced_seconds(scratch, with(office, "08:00")) == nearly(6000));
  // Over midnight: one is up from 22 to 2, the other from 23 to 3: three hours a night together.
  const std::string night =
      "{ nodes = \"0\", up = \"22:00-2:00\" }, { nodes = \"1\", up = \"18:00-22:00\", zone = "
      "\"-05:00\" }";
  CHECK(traced_seconds(scratch, with(night, "22:00")) == nearly(3600 + 6000));
  CHECK(traced_seconds(scratch, with(night, "1:40")) > 21 * 3600.0);
  const Refusal refusals[] = {
      {"{ nodes = \"0\", up = \"8-18\" }", "'8' is no time of day"},
      {"{ nodes = \"0\", up = \"08:00\" }", "is no span of a day"},
      {"{ nodes = \"0\", up = \"08:00-25:00\" }", "'25:00' is no time of day"},
      {"{ nodes = \"0\", up = \"00:00-24:00\" }", "begins when it ends"},
      {"{ nodes = \"0\", up = \"08:00-18:00\", zone = \"CET\" }", "'CET' is no time zone"},
      {"{ nodes = \"0\" }", "hours[1].up: it is missing"},
      {office + ", { nodes = \"1\", up = \"08:00-18:00\" }", "has two spans of hours"},
  };
  for (const Refusal& one : refusals) {
    CAPTURE(one.text);
    const auto ended = simulate(scratch, with(one.text, "0:00"));
    CAPTURE(ended.err);
    CHECK(ended.status == 2);
    CHECK(contains(ended.err, one.says));
  }
  CHECK(contains(simulate(scratch, paced_scenario("gradient = \"1 s\"\nclock = \"8:00\"")).err,
                 "for hours, which are not there"));
}

TEST_CASE("clients may be drawn for each exchange, where all have one model afterwards") {
  const Scratch scratch;
  std::string clients = "client,computation ms,communication kbit/s\n";
  for (int client = 0; client < 1000; ++client) {
    clients += std::to_string(client) + "," + std::to_string(100 + client) + ",8000\n";
  }
  (void)scratch.write("capacity.csv", clients);
  const std::string nodes =
      "capacity = { file = \"capacity.csv\", samples = 10, draw = \"each-exchange\" }";
  const auto seconds = [&](const std::string& more, const std::string& seed) {
    const auto run =
        simulated(scratch, paced_scenario(nodes, "allreduce communication-interval=5" + more),
                  {"--seed", seed})
            .at("runs")[0];
    CHECK(run.at("faults").empty());
    return run.at("virtual_s").get<double>();
  };
  // Two exchanges of five gradients, each 1 to 11 s, mostly of the slower of two.
  CHECK(seconds("", "1") > 10);
  CHECK(seconds("", "1") < 110);
  CHECK(seconds("", "1") != seconds("", "2"));
  CHECK(seconds("", "3") == seconds("", "3"));
  const auto refused = simulate(scratch, paced_scenario(nodes));
  CHECK(refused.status == 2);
  CHECK(contains(refused.err, "s.toml:2: run"));
  CHECK(contains(refused.err, "only allreduce has it"));
  CHECK(contains(
      simulate(scratch, paced_scenario(nodes + "\navailability = \"capacity.csv\"", "allreduce"))
          .err,
      "of clients that are drawn for each exchange, all are there"));
  CHECK(
      run({"plan", scratch.write("s.toml", paced_scenario(nodes, "allreduce")).string()}).status ==
      2);
}

}  // namespace sotto::test::traces_test
