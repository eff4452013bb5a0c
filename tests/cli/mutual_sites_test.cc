// Sites that trust each other both ways, as processes on loopback: gossip, plain and robust; models
// that are written and started from; addresses that are not those of the list; long steps.
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli/program.h"
#include "cli/sites.h"
#include "support/free_port.h"
#include "support/skip.h"
#include "support/text_of_file.h"

namespace sotto::test::mutual_sites_test {

namespace {

/// A row of parameters.
std::vector<double> model(const std::filesystem::path& path) {
  std::vector<double> values;
  std::istringstream in(text_of_file(path));
  for (std::string value; std::getline(in, value, ',');) {
    values.push_back(std::stod(value));
  }
  return values;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    sum += (a[k] - b[k]) * (a[k] - b[k]);
  }
  return std::sqrt(sum);
}

void replace(std::string& text, const std::string& from, const std::string& to) {
  const auto place = text.find(from);
  REQUIRE(place != std::string::npos);
  text.replace(place, from.size(), to);
}

}  // namespace

TEST_CASE("sites of mutual trust gossip, plainly, compressed and by a robust rule") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  for (const std::string way :
       {"algorithm = \"dpsgd\"", "algorithm = \"choco\"\ncompressor = \"quant:8\"",
        "algorithm = \"robust\"", "algorithm = \"robust\"\nrule = \"trimmed-mean:1\""}) {
    CAPTURE(way);
    Sites sites({"a", "b", "c", "d"});
    sites.write_all(way + "\nrounds = 60\nlr = 0.2\ndump-parameters = \"model.csv\"");
    sites.start_all();
    std::map<std::string, std::vector<double>> models;
    for (const char* name : {"a", "b", "c", "d"}) {
      const auto result = sites.finish(name);
      CHECK(result.at("round") == 60);
      CHECK(result.at("final").at("accuracy") > 0.7);
      CHECK(result.at("mass") == 1);
      for (const auto& peer : result.at("peers")) {
        CHECK(peer.at("offences") == 0);
        CHECK(peer.at("parcels_applied") > 30);
      }
      models[name] = model(sites.folder(name) / "model.csv");
    }
    // Alone each would go to the optimum of its own data, much farther from the others.
    const std::vector<double> none(models["a"].size());
    CHECK(distance(models["a"], models["b"]) < 0.35 * distance(models["a"], none));
    CHECK(distance(models["c"], models["d"]) < 0.35 * distance(models["c"], none));
  }
}

TEST_CASE("init starts from a model that dump-parameters wrote") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  Sites first({"a", "b"});
  first.write_all("rounds = 25\nlr = 0.2\ndump-parameters = \"model.csv\"");
  first.start_all();
  const auto trained = first.finish("a");
  (void)first.finish("b");
  const auto written = first.folder("a") / "model.csv";

  Sites second({"a", "b"});
  const std::string training = fmt::format(
      "rounds = 1\nlr = 1e-9\ninit = \"{}\"\ndump-parameters = \"again.csv\"", written.string());
  second.write_all(training);
  second.start_all();
  for (const char* name : {"a", "b"}) {
    const auto result = second.finish(name);
    CHECK(result.at("final").at("accuracy") == trained.at("final").at("accuracy"));
    CHECK(distance(model(second.folder(name) / "again.csv"), model(written)) < 1e-4);
  }
  // A model of another size is no start.
  std::ofstream(second.folder("a") / "short.csv") << "1,2,3\n";
  second.write("a", "init = \"short.csv\"");
  const auto refused = run({"node", second.file("a")});
  CHECK(refused.status == 2);
  CHECK_MESSAGE(contains(refused.err, "short.csv"), refused.err);
}

TEST_CASE("listen says where a site listens whose own line has the address that others see") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  Sites sites({"a", "b"});
  // In a's own list stands an address at which nobody listens, as behind a translated one.
  const auto list = sites.folder("a") / "peers.csv";
  std::string lines = text_of_file(list);
  const auto own = lines.find("a,");
  const auto begin = lines.find("127.0.0.1:", own);
  const std::string inside = lines.substr(begin, lines.find(',', begin) - begin);
  replace(lines, inside, fmt::format("127.0.0.1:{}", free_port()));
  std::ofstream(list) << lines;
  std::string file = text_of_file(sites.file("a"));
  replace(file, "monitor =", fmt::format("listen = \"{}\"\nmonitor =", inside));
  std::ofstream(sites.file("a")) << file;
  sites.start_all();
  sites.await_peer("a", "b", true);
  sites.await_peer("b", "a", true);
  CHECK(nlohmann::json::parse(sites.ask("a", "/status")).at("address") == inside);
  for (const char* name : {"a", "b"}) {
    sites[name].send(SIGTERM);
    CHECK(sites.finish(name).at("stopped") == true);
  }
}

TEST_CASE("a site in the middle of a long step talks with its peers, and leaves soon") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  Sites sites({"a", "b"});
  sites.write("a", "gradient-time = \"20 min\"", "found-after = \"100 ms\"");
  sites.write("b", "gradient-time = \"10 ms\"", "patience = \"100 ms\"");
  sites.start("a");
  sites.await("a", [](const auto& status) { return status.at("phase") == "training"; });
  // The peer comes later, and the two meet all the same.
  sites.start("b");
  sites.await_peer("b", "a", true);
  sites.await_peer("a", "b", true);
  sites.await_round("b", 5);
  sites["a"].send(SIGTERM);
  const auto left = sites["a"].wait();
  CHECK_MESSAGE(contains(left.err, "in the middle of a long step"), left.err);
  CHECK(left.status == 1);  // the result that --json asked for is not there
  sites.await_peer("b", "a", false);
  sites["b"].send(SIGTERM);
  // No evaluation on the way: told to stop, it does not begin one.
  const auto result = sites.finish("b");
  CHECK(result.at("stopped") == true);
  // What it had written lets it go on.
  sites.write("a", "gradient-time = \"10 ms\"", "found-after = \"100 ms\"");
  sites.start("a");
  sites.await_round("a", 3);
  sites["a"].send(SIGTERM);
  CHECK(sites.finish("a").at("round") >= 3);
}

}  // namespace sotto::test::mutual_sites_test
