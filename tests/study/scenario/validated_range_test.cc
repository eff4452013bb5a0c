// A scenario that leaves what was compared with real runs says so.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/sim/network/link_trace.h>
#include <sotto/study/scenario/validated_range.h>
#include <sotto/study/simulation/scenario_runs.h>

namespace sotto::test::validated_range_test {

using namespace sotto::study;

namespace {

Scenario with(const std::string& network, const std::string& more = "") {
  return parse_scenario("text",
                        "sotto-scenario = 1\nrun = \"dpsgd ring\"\ntiming-only = true\n[nodes]\n"
                        "count = 4\ngradient = \"1 ms\"\n[network]\n" +
                            network + "\n" + more + "[task]\nmodel = \"softmax\"\nrounds = 2\n");
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
  CHECK(lines_of(with("tcp = {}\nlink = { latency = \"150 ms\", loss = 0.15 }")).empty());
  CHECK(
      lines_of(with("tcp = {}\ncongestion = \"cubic\"\nlink = { latency = \"150 ms\", loss = 0.1, "
                    "loss-burst = 2 }"))
          .empty());
  CHECK(lines_of(with("tcp = {}\nlink = { latency = \"900 ms\" }")).empty());
}

TEST_CASE("more loss than was measured, or without TCP, is warned of, wherever it is") {
  const std::string at_two = "tcp = {}\nlink = { latency = \"10 ms\", loss = 0.02 }\n";
  CHECK(lines_of(with("tcp = {}\nlink = { latency = \"10 ms\", loss = 0.2 }"))
            .starts_with("links lose 20.00 % of their packets: times with reno were compared"));
  CHECK(lines_of(with("tcp = {}\ncongestion = \"bbr\"\nlink = { latency = \"10 ms\", loss = 0.2 }"))
            .find("with bbr were compared with real ones up to 15.00 %") != std::string::npos);
  const std::string bbr = "tcp = {}\ncongestion = \"bbr\"\n";
  CHECK(lines_of(with(bbr + "link = { latency = \"10 ms\", loss = 0.05 }"))
            .starts_with("times with bbr over links that lose packets differed"));
  CHECK(lines_of(with(bbr + "link = { latency = \"10 ms\" }")).empty());
  CHECK(lines_of(with("tcp = {}\nlink = { latency = \"10 ms\", loss = 0.1, loss-burst = 12 }"))
            .starts_with("links lose 12 packets in a row"));
  CHECK(lines_of(with(at_two + "between = [{ from = \"0\", to = \"1\", link = { loss = 0.16 } }]"))
            .starts_with("links lose 16.00 %"));
  CHECK(lines_of(with(at_two + "trunk = [{ name = \"a\", nodes = \"0\", link = { loss = 0.2 } }]"))
            .starts_with("links lose 21.60 %"));
  CHECK(lines_of(with("link = { latency = \"10 ms\", loss = 0.001 }")).find("add tcp = {}") !=
        std::string::npos);
  // A trunk's bursts count where it loses something, and a link's without loss are none.
  CHECK(lines_of(with("tcp = {}\nlink = { latency = \"10 ms\", loss-burst = 12 }")).empty());
  CHECK(lines_of(with("tcp = {}\nlink = { latency = \"10 ms\" }\ntrunk = [{ name = \"a\", nodes = "
                      "\"0\", link = { loss = 0.02, loss-burst = 6 } }]"))
            .find("6 packets in a row") != std::string::npos);
  // What a pair crosses counts together.
  const std::string both = lines_of(with(
      "tcp = {}\nlink = { latency = \"100 ms\", loss = 0.1 }\ntrunk = [{ name = \"a\", nodes = "
      "\"0\", link = { latency = \"100 ms\", loss = 0.1 } }]"));
  CHECK(both.find("links lose 19.00 %") != std::string::npos);
  CHECK(both.find("a round trip of 400 ms") != std::string::npos);
  const Scenario far = with("tcp = {}\nlink = { latency = \"400 ms\", loss = 0.01 }");
  CHECK(lines_of(far).find("a round trip of 800 ms") != std::string::npos);
  // The runs have it, too.
  CHECK(check_runs(far).size() == 1);
  CHECK(simulate_runs(far, {}).front().run->result.warnings == check_runs(far));
}

TEST_CASE("links that become slower between unequal hosts are warned of") {
  const std::string link = "link = { latency = \"10 ms\", bandwidth = \"8 Mbit/s\" }\n";
  const auto hosts = [](const char* up) {
    return std::string("hosts = [{ nodes = \"all\", up = \"") + up +
           "\", down = \"16 Mbit/s\" }]\n";
  };
  const auto event = [](const char* rate) {
    return std::string(
               "[[events]]\nat = \"2 s\"\nfrom = \"0\"\nto = \"1\"\nlink = { bandwidth = "
               "\"") +
           rate + "\" }\n";
  };
  CHECK(lines_of(with(link + hosts("6 Mbit/s"), event("2 Mbit/s")))
            .starts_with("links become slower in mid-run"));
  CHECK(lines_of(with(link + hosts("6 Mbit/s"), event("7 Mbit/s"))).empty());
  CHECK(lines_of(with(link + hosts("16 Mbit/s"), event("2 Mbit/s"))).empty());
  CHECK(lines_of(with(link + hosts("6 Mbit/s"))).empty());
}

TEST_CASE("a link that becomes slower is warned of wherever it stands, and in whatever way") {
  const std::string hosts =
      "hosts = [{ nodes = \"0-2\", up = \"6 Mbit/s\", down = \"16 Mbit/s\" }, "
      "{ nodes = \"3\", up = \"1 Mbit/s\", down = \"1 Mbit/s\" }]\n";
  const std::string link = "link = { latency = \"10 ms\", bandwidth = \"8 Mbit/s\" }\n";
  const auto warned = [](const Scenario& scenario) {
    return lines_of(scenario).find("links become slower in mid-run") != std::string::npos;
  };
  const auto event = [](const char* from, const char* to) {
    return fmt::format(
        "[[events]]\nat = \"2 s\"\nfrom = \"{}\"\nto = \"{}\"\n"
        "link = {{ bandwidth = \"2 Mbit/s\" }}\n",
        from, to);
  };
  CHECK(warned(with(link + hosts, event("0", "1"))));
  CHECK_FALSE(warned(with(link + hosts, event("0", "3"))));
  CHECK(warned(with(link + hosts, event("0", "1,3"))));  // the last member is slow already
  CHECK(warned(with(link + hosts, event("3,0", "1"))));  // so is the first
  CHECK_FALSE(warned(with(link + hosts, event("3", "0-2"))));

  const std::string trunk =
      "trunk = [{ name = \"ocean\", nodes = \"0-1\", link = { bandwidth = \"7 Mbit/s\" } }]\n";
  const auto ocean = [](const char* rate) {
    return fmt::format(
        "[[events]]\nat = \"2 s\"\ntrunk = \"ocean\"\nlink = {{ bandwidth = \"{}\" }}\n", rate);
  };
  CHECK(warned(with(link + hosts + trunk, ocean("2 Mbit/s"))));
  CHECK_FALSE(warned(with(link + hosts + trunk, ocean("9 Mbit/s"))));
  CHECK_FALSE(warned(with(link + hosts + trunk)));
}

TEST_CASE("a trace of a link between unequal hosts is warned of where it becomes slower") {
  const Scenario plain = with(
      "link = { latency = \"10 ms\" }\nbetween = [{ from = \"0\", to = \"1\", link = { latency = "
      "\"1 ms\" } }]\ntrunk = [{ name = \"a\", nodes = \"0\", link = { latency = \"1 ms\" } }]\n"
      "hosts = [{ nodes = \"all\", up = \"6 Mbit/s\", down = \"16 Mbit/s\" }]\n");
  const auto traced = [](std::vector<double> rates, SimTime period, SimTime start = 0) {
    return std::make_shared<const TracedLink>(
        TracedLink{.trace = std::make_shared<const LinkTrace>(
                       LinkTrace{.steps = {{0, 1000}, period}, .bytes_per_s = std::move(rates)}),
                   .start = start});
  };
  const auto warned = [&](const std::shared_ptr<const TracedLink>& trace) {
    int places = 0;
    for (const auto place : {0, 1, 2}) {
      Scenario scenario = plain;
      LinkSpec& link = place == 0   ? scenario.link
                       : place == 1 ? scenario.between.front().link
                                    : scenario.trunks.front().link;
      link.trace = trace;
      places += lines_of(scenario).empty() ? 0 : 1;
    }
    return places;
  };
  CHECK(lines_of(plain).empty());
  CHECK(warned(traced({9e5, 1e5}, kNever)) == 3);
  CHECK(warned(traced({1e5, 9e5}, kNever)) == 0);
  CHECK(warned(traced({1e5, 9e5}, 5000)) == 3);
  CHECK(warned(traced({9e5, 1e5}, kNever, 1000)) == 0);  // it begins behind the slower step
  CHECK(warned(traced({1e5, 1e5}, 5000)) == 0);
  CHECK(warned(traced({9e7, 8e6}, kNever)) == 0);  // wider than the nodes' connections
}

TEST_CASE("queues are read, warned of, and refused where nothing could fill them") {
  const Scenario read = with(
      "tcp = {}\nlink = { bandwidth = \"10 Mbit/s\", latency = \"10 ms\", queue = \"64 kB\" }\n"
      "hosts = [{ nodes = \"0\", up = \"5 Mbit/s\", up-queue = \"1500 B\" }, "
      "{ nodes = \"1\", down = \"5 Mbit/s\", down-queue = \"9 kB\" }]");
  CHECK(read.link.queue_bytes == 64'000);
  CHECK(read.hosts[0].up_queue_bytes == 1'500);
  CHECK(read.hosts[0].down_queue_bytes == sotto::kUnlimited);
  CHECK(read.hosts[1].down_queue_bytes == 9'000);
  CHECK(lines_of(read).starts_with("queues may overflow"));
  const auto platform = read.platform({{0, 1}});
  CHECK(platform.links()[*platform.egress(0)].queue_bytes == 1'500);
  CHECK(platform.links()[*platform.ingress(1)].queue_bytes == 9'000);
  // A preset of nodes' own connections has the queue there.
  const Scenario own = with("tcp = {}\nlink = { preset = \"dsl\", queue = \"30 kB\" }");
  CHECK(own.link.queue_bytes == sotto::kUnlimited);
  CHECK(own.hosts[1].up_queue_bytes == 30'000);
  CHECK(own.hosts[1].down_queue_bytes == 30'000);
  CHECK_FALSE(with("tcp = {}\nlink = \"wan\"").has_queues());

  const auto refused = [](const std::string& network, const char* why) {
    CAPTURE(network);
    try {
      (void)with(network);
      FAIL("it is read");
    } catch (const sotto::Error& error) {
      CHECK(std::string(error.what()).find(why) != std::string::npos);
    }
  };
  refused("link = { bandwidth = \"9 Mbit/s\", queue = \"64 kB\" }", "add tcp = {}");
  refused("tcp = {}\nlink = { latency = \"1 ms\", queue = \"64 kB\" }",
          "nothing waits for an unlimited link");
  refused(
      "tcp = {}\nlink = \"wan\"\nhosts = [{ nodes = \"0\", up = \"5 Mbit/s\", down-queue = \"9 "
      "kB\" }]",
      "give down, too");
  refused("link = \"wan\"\nhosts = [{ nodes = \"0\", up = \"5 Mbit/s\", up-queue = \"9 kB\" }]",
          "add tcp = {}");
  refused("tcp = {}\nlink = { queue = \"1 kB\" }", "a packet of 1,500 bytes");
  refused("tcp = {}\nlink = { queue = \"soon\" }", "is no size");
}

TEST_CASE("congestion control and bursts of losses are read, and refused where they cannot be") {
  const Scenario read = with(
      "tcp = {}\ncongestion = \"cubic\"\nlink = { latency = \"10 ms\", loss = 0.1, loss-burst = "
      "3.5 "
      "}");
  CHECK(read.network.congestion == sotto::Congestion::cubic);
  CHECK(read.link.loss_burst == 3.5);
  CHECK(simulate_runs(read, {}).front().run->result.congestion == "cubic");
  const Scenario plain = with("link = { latency = \"10 ms\" }");
  CHECK(simulate_runs(plain, {}).front().run->result.congestion.empty());
  const auto refused = [](const std::string& network, const char* why) {
    CAPTURE(network);
    try {
      (void)with(network);
      FAIL("it is read");
    } catch (const sotto::Error& error) {
      CHECK(std::string(error.what()).find(why) != std::string::npos);
    }
  };
  refused("link = \"wan\"\ncongestion = \"reno\"", "without tcp there are no windows");
  refused("tcp = {}\nlink = \"wan\"\ncongestion = \"vegas\"", "none of reno, cubic and bbr");
  refused("link = { latency = \"1 ms\", loss = 0.5, loss-burst = 1.9 }", "make it 2");
}

}  // namespace sotto::test::validated_range_test
