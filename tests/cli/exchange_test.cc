// `sotto bench exchange`: what it reports, not how fast this machine is.
#include <set>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "cli/program.h"

namespace sotto::test::exchange_test {

using nlohmann::json;

namespace {

/// Few bytes, little time.
json measured(const Arguments& more) {
  Arguments all = {"bench", "exchange", "--seconds", "0.01", "--bytes", "20000", "--json", "-"};
  all.insert(all.end(), more.begin(), more.end());
  return run(all).json();
}

void check_network(const json& result, int nodes, std::size_t edges) {
  CHECK(result.at("nodes") == nodes);
  std::set<std::pair<int, int>> seen;
  for (const json& edge : result.at("edges")) {
    CHECK(seen.emplace(edge.at("from").get<int>(), edge.at("to").get<int>()).second);
    CHECK(edge.at("latency_s").get<double>() > 0);
    CHECK(edge.at("bandwidth_bytes_per_s").get<double>() > 0);
    CHECK(edge.at("bytes").get<int>() <= 20'000);
  }
  CHECK(seen.size() == edges);
  CHECK(result.at("hosts").size() == static_cast<std::size_t>(nodes));
  for (const json& host : result.at("hosts")) {
    CHECK(host.at("up_bytes_per_s").get<double>() > 0);
    CHECK(host.at("down_bytes_per_s").get<double>() > 0);
  }
}

}  // namespace

TEST_CASE("bench exchange measures every directed edge once") {
  check_network(measured({"--nodes", "3", "--transport", "inproc"}), 3, 6);
  check_network(measured({"--nodes", "5", "--transport", "inproc", "--topology", "ring"}), 5, 10);
  // One way only: answers still come back.
  check_network(measured({"--nodes", "5", "--transport", "inproc", "--topology", "exponential"}), 5,
                15);
}

TEST_CASE("bench exchange measures between processes") {
  for (const char* transport : {"gloo", "zmq"}) {
    if (has_transport(transport)) {
      CAPTURE(transport);
      check_network(measured({"--nodes", "3", "--transport", transport}), 3, 6);
    }
  }
}

TEST_CASE("what is measured is a scenario that simulate and plan read") {
  const Scratch scratch;
  const std::string path = (scratch.path() / "net.toml").string();
  const auto network = measured({"--nodes", "4", "--transport", "inproc", "--scenario", path,
                                 "--gradient", "lognormal:3 ms,0.2"});
  const auto simulated = run({"simulate", path, "--json", "-"}).json();
  CHECK(simulated.at("runs").size() == 4);
  CHECK(simulated.at("runs")[0].at("nodes") == 4);
  const auto plan = run({"plan", path, "--codec", "none", "--algorithm", "dpsgd", "--algorithm",
                         "dcd", "--topology", "ring", "--json", "-"})
                        .json();
  CHECK(plan.at("ranked_by") == "time_per_epoch");
  CHECK_FALSE(plan.at("winner").is_null());
}

TEST_CASE("a measured scenario is planned for the transport that it was measured over") {
  for (const std::string transport : {"gloo", "zmq"}) {
    if (!has_transport(transport)) {
      continue;
    }
    CAPTURE(transport);
    const Scratch scratch;
    const std::string path = (scratch.path() / "net.toml").string();
    (void)measured({"--nodes", "3", "--transport", transport, "--scenario", path});
    const auto plan = run({"plan", path, "--codec", "none", "--algorithm", "dpsgd", "--topology",
                           "ring", "--budget", "1", "--json", "-"})
                          .json();
    const auto command = plan.at("command").get<std::string>();
    CAPTURE(command);
    CHECK(command.ends_with("--transport=" + transport));
  }
}

TEST_CASE("bench exchange refuses what it cannot measure") {
  CHECK(run({"bench", "exchange", "--nodes", "1"}).status == 2);
  CHECK(run({"bench", "exchange", "--bytes", "1"}).status == 2);
  CHECK(run({"bench", "exchange", "--seconds", "0"}).status == 2);
  CHECK(run({"bench", "exchange", "--transport", "pigeon"}).status == 2);
  const auto soon = run({"bench", "exchange", "--gradient", "soon"});
  CHECK(soon.status == 2);
  CHECK(soon.err.find("--gradient: 'soon'") != std::string::npos);
  CHECK(run({"bench", "exchange", "--topology", "rng"}).status == 2);
}

}  // namespace sotto::test::exchange_test
