// Real sites beside one that only takes, or declares that it only takes: what the others exchange,
// and what they tell their operators.
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <doctest/doctest.h>

#include "cli/program.h"
#include "cli/sites.h"
#include "support/skip.h"
#include "support/text_of_file.h"

namespace sotto::test::third_party_sites_test {

namespace {

/// a and b trust each other and send to c, which sends to nobody.
void let_c_only_listen(const Sites& sites) {
  sites.write_peers("a", {"a", "b", "c"}, {{"c", {false, true}}});
  sites.write_peers("b", {"a", "b", "c"}, {{"c", {false, true}}});
  sites.write_peers("c", {"a", "b", "c"}, {{"a", {true, false}}, {"b", {true, false}}});
}

}  // namespace

TEST_CASE("real sites beside one that only takes go on to exchange, and name it") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  Sites sites({"a", "b", "c"});
  let_c_only_listen(sites);
  sites.write_all("lr = 0.1", "timeout = \"2 s\"\npatience = \"10 s\"");
  sites.start("a", {"--log", "json"});
  sites.start("b");
  sites.start("c");
  const auto status = sites.await("a", [](const auto& now) {
    return now.at("drained") == true && Sites::peer(now, "c").at("reason") == "takes";
  });
  const auto applied = Sites::peer(status, "b").at("parcels_applied").get<std::uint64_t>();
  sites.await("a", [&](const auto& now) {
    return Sites::peer(now, "b").at("parcels_applied") >= applied + 20;
  });
  CHECK(status.at("mass") >= 0.05);
  CHECK(contains(sites.ask("a", "/metrics"), "sotto_drained 1"));
  CHECK(contains(sites.ask("a", "/metrics"),
                 "sotto_peer_state{peer=\"c\",state=\"up\",reason=\"takes\"} 1"));
  CHECK(contains(run({"status", sites.file("a")}).out, "AT THE FLOOR OF ITS MASS"));
  for (const char* name : {"a", "b", "c"}) {
    sites[name].send(SIGTERM);
  }
  const Ended ended = sites["a"].wait();
  CHECK(ended.status == 0);
  CHECK(contains(ended.err, "\"event\":\"send-only\""));
  CHECK(contains(ended.err, "\"event\":\"peer-takes\""));
  sites.finish("b");
  sites.finish("c");
}

TEST_CASE("a real site that observes costs the others nothing, and follows them") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  Sites sites({"a", "b", "c"});
  let_c_only_listen(sites);
  sites.write_all("lr = 0.2");
  std::string text = text_of_file(sites.file("c"));
  text.replace(0, std::string("sotto-site = 1").size(), "sotto-site = 1\nobserver = true");
  std::ofstream(sites.file("c")) << text;
  sites.start_all();
  for (const char* name : {"a", "b", "c"}) {
    sites.await_round(name, 60);
  }
  const auto status = nlohmann::json::parse(sites.ask("a", "/status"));
  CHECK(Sites::peer(status, "c").at("reason") == "observer");
  CHECK(Sites::peer(status, "c").at("mass_given") == 0);
  CHECK(status.at("drained") == false);
  const auto own = nlohmann::json::parse(sites.ask("c", "/status"));
  CHECK(own.at("phase") == "relaying");
  CHECK(own.at("observer") == true);
  CHECK(own.at("evaluation").at("accuracy") > 0.3);
  for (const char* name : {"a", "b", "c"}) {
    sites[name].send(SIGTERM);
    sites.finish(name);
  }
}

TEST_CASE("settings of mass and pulls that cannot be are refused with their line") {
  const Sites sites({"a", "b"});
  const auto refused = [&](const std::string& network, const std::string& part) {
    sites.write("a", "", network);
    const Ended ended = run({"node", sites.file("a")});
    CAPTURE(network);
    CHECK(ended.status == 2);
    CHECK_MESSAGE(contains(ended.err, "site.toml:"), ended.err);
    CHECK_MESSAGE(contains(ended.err, part), ended.err);
    CHECK_FALSE(std::filesystem::exists(sites.folder("a") / "state"));
  };
  refused("mass-return = 1.5", "network.mass-return: '1.5' is refused");
  refused("mass-return = -0.1", "network.mass-return: '-0.1' is refused");
  refused("parcel-mass = 0", "network.parcel-mass: '0' is refused");
  refused("parcel-mass = nan", "network.parcel-mass");
  refused("pull-most = inf", "network.pull-most");
  refused("pull-memory = 0.5", "network.pull-memory: '0.5' is refused");
  refused("pull-most = \"much\"", "network.pull-most: it must be a number");
}

}  // namespace sotto::test::third_party_sites_test
