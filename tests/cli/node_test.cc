// `sotto node`, `sotto status` and `sotto checkpoint inspect`: sites as processes on loopback.
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli/program.h"
#include "cli/sites.h"
#include "support/skip.h"
#include "support/text_of_file.h"

namespace sotto::test::node_test {

namespace fs = std::filesystem;

namespace {

/// For sites that are to notice at once that another is silent.
constexpr const char* kSoon = "timeout = \"1 s\"\npatience = \"5 s\"";

bool can_run() { return has_transport("zmq"); }

std::map<std::string, nlohmann::json> stop_all(Sites& sites,
                                               const std::vector<std::string>& names) {
  for (const auto& name : names) {
    sites[name].send(SIGTERM);
  }
  std::map<std::string, nlohmann::json> results;
  for (const auto& name : names) {
    results[name] = sites.finish(name);
    CHECK(results[name].at("stopped") == true);
  }
  return results;
}

/// What a server on loopback says to these bytes until it hangs up.
std::string exchange_text(int port, const std::string& request) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::send(socket, request.data(), request.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(request.size()));
  std::string answer;
  char buffer[4096];
  for (ssize_t got = 1; got > 0;) {
    got = ::recv(socket, buffer, sizeof buffer, 0);
    answer.append(buffer, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  }
  ::close(socket);
  return answer;
}

}  // namespace

TEST_CASE("three sites on loopback learn what none has alone, and lose no mass") {
  if (!can_run()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  Sites sites({"a", "b", "c"});
  // Alone each comes to 0.74. Steps take their time: on a busy machine the processes start up to
  // half a second apart, and who is done before the others have begun has learned alone.
  sites.write_all("rounds = 120\neval-every = 40\nlr = 0.2\ngradient-time = \"25 ms\"");
  sites.start_all();
  std::map<std::string, nlohmann::json> results;
  for (const char* name : {"a", "b", "c"}) {
    auto& result = results[name] = sites.finish(name);
    CHECK(result.at("round") == 120);
    CHECK(result.at("stopped") == false);
    CHECK(result.at("phase") == "done");
    CHECK(result.at("final").at("accuracy") > 0.76);
    CHECK(result.at("history").size() == 3);
    CHECK(result.at("resets") == 0);
    CHECK(result.at("minted") == 1);
    CHECK(result.at("peers").size() == 2);
    for (const auto& peer : result.at("peers")) {
      CHECK(peer.at("offences") == 0);
      CHECK(peer.at("bytes_sent") > 0);
      CHECK(peer.at("bytes_received") > 0);
    }
  }
  CHECK(std::abs(mass_error(results)) < 1e-9);
  // The site's rounds are over: it only tells the result again.
  sites.start("a");
  CHECK(sites.finish("a").at("parameters_sha256") == results["a"].at("parameters_sha256"));
}

TEST_CASE("SIGKILL: the others go on, and a site that is started again takes part again") {
  if (!can_run()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  Sites sites({"a", "b", "c"});
  sites.write_all("", kSoon);
  sites.start_all();
  for (const char* name : {"a", "b", "c"}) {
    sites.await_round(name, 3);
  }
  sites["b"].send(SIGKILL);
  CHECK(sites["b"].wait().status == 128 + SIGKILL);
  const auto seen = sites.await(
      "a", [](const auto& status) { return Sites::peer(status, "b").at("connected") == false; });
  const auto round = seen.at("round").get<std::uint64_t>();
  sites.await_round("a", round + 5);
  sites.await_round("c", round + 5);
  sites.start("b");
  sites.await_peer("a", "b", true);
  const auto back = sites.await("b", [&](const auto& status) {
    return status.at("round") >= round + 5 && Sites::peer(status, "a").at("up") == true &&
           Sites::peer(status, "c").at("up") == true;
  });
  CHECK(back.at("resets") == 0);
  const auto results = stop_all(sites, {"a", "b", "c"});
  CHECK(std::abs(mass_error(results)) < 1e-9);
  for (const auto& [name, result] : results) {
    CHECK(result.at("minted") == 1);
  }
}

TEST_CASE("SIGSTOP, later SIGCONT: a site that hangs is left out, and comes back") {
  if (!can_run()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  Sites sites({"a", "b", "c"});
  sites.write_all("", kSoon);
  sites.start_all();
  for (const char* name : {"a", "b", "c"}) {
    sites.await_round(name, 2);
  }
  sites["c"].send(SIGSTOP);
  sites.await_peer("a", "c", false);
  const auto round = nlohmann::json::parse(sites.ask("a", "/status")).at("round");
  sites.await_round("a", round.get<std::uint64_t>() + 5);
  sites["c"].send(SIGCONT);
  sites.await_peer("a", "c", true);
  sites.await_round("c", round.get<std::uint64_t>() + 6);
  const auto results = stop_all(sites, {"a", "b", "c"});
  CHECK(std::abs(mass_error(results)) < 1e-9);
}

TEST_CASE("an old state that is put back is noticed, given up, and made good by a neighbour") {
  if (!can_run()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  Sites sites({"a", "b", "c"});
  sites.write_all("", kSoon);
  sites.start_all();
  sites.await_round("b", 3);
  sites["b"].send(SIGTERM);
  (void)sites.finish("b");
  const auto state = sites.folder("b") / "state";
  fs::copy(state, sites.folder("b") / "backup", fs::copy_options::recursive);
  sites.start("b");
  const auto round = sites
                         .await("b",
                                [](const auto& status) {
                                  return Sites::peer(status, "a").at("up") == true &&
                                         Sites::peer(status, "c").at("up") == true;
                                })
                         .at("round");
  sites.await_round("b", round.get<std::uint64_t>() + 5);
  sites["b"].send(SIGKILL);
  (void)sites["b"].wait();
  fs::remove_all(state);
  fs::rename(sites.folder("b") / "backup", state);
  sites.start("b");
  const auto back = sites.await("b", [&](const auto& status) {
    return status.at("resets") == 1 && status.at("round") > round &&
           Sites::peer(status, "a").at("up") == true;
  });
  CHECK(back.at("has_model") == true);
  const auto results = stop_all(sites, {"a", "b", "c"});
  CHECK(results.at("b").at("resets") == 1);
}

TEST_CASE("a folder has one process, and a damaged state is never a model") {
  if (!can_run()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  Sites sites({"a", "b"});
  sites.start_all();
  sites.await_round("a", 2);
  const auto second = run({"node", sites.file("a")});
  CHECK(second.status == 2);
  CHECK_MESSAGE(contains(second.err, "is the site running already"), second.err);
  sites["a"].send(SIGINT);
  const auto left = sites.finish("a");
  const auto state = sites.folder("a") / "state";
  struct stat facts {};
  REQUIRE(::stat(state.c_str(), &facts) == 0);
  CHECK((facts.st_mode & 0777U) == 0700U);
  const auto inspect = [&](const char* name) {
    return run({"checkpoint", "inspect", (state / name).string(), "--json", "-"});
  };
  for (const char* name : {"state.a", "state.b"}) {
    const auto seen = inspect(name).json();
    CHECK(seen.at("kind") == "site's state");
    CHECK(seen.at("whole") == true);
    CHECK(seen.at("settings").at("exchange") == "push-sum");
    std::fstream file(state / name, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(-40, std::ios::end);
    file.put('\x55').put('\xAA');
    file.close();
    const auto damaged = inspect(name);
    CHECK(damaged.status == 1);
    CHECK(contains(damaged.out, "\"whole\": false"));
  }
  const auto refused = run({"node", sites.file("a")});
  CHECK(refused.status == 1);
  CHECK_MESSAGE(contains(refused.err, "damaged"), refused.err);
  sites.write("a", "lr = 0.3");
  fs::remove_all(state);
  sites["b"].send(SIGTERM);
  (void)sites.finish("b");
  sites.write("b", "lr = 0.3");
  const auto changed = run({"node", sites.file("b")});
  CHECK(changed.status == 2);
  CHECK_MESSAGE(contains(changed.err, "lr is 0.3 here and 0.1 there"), changed.err);
}

TEST_CASE("status and metrics say how a site stands, to this host and nobody else") {
  if (!can_run()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  Sites sites({"a", "b"});
  CHECK(run({"status", sites.file("a")}).status == 1);
  sites.start_all();
  sites.await_round("a", 2);
  sites.await_peer("a", "b", true);
  const auto table = run({"status", sites.file("a")});
  CHECK(table.status == 0);
  CHECK_MESSAGE(std::regex_search(table.out, std::regex("\nb +up +both ")), table.out);
  CHECK(run({"status", sites.file("a"), "--json", "-"}).json().at("name") == "a");
  CHECK(sites.ask("a", "/healthz") == "ok\n");
  std::istringstream metrics(sites.ask("a", "/metrics"));
  const std::regex sample(
      R"(sotto_[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? (-?[0-9.e+-]+|NaN|\+Inf))");
  const std::regex comment(R"(# (HELP|TYPE) sotto_[a-z_]+ .+)");
  int samples = 0;
  bool peer_up = false;
  for (std::string line; std::getline(metrics, line);) {
    const bool is_sample = std::regex_match(line, sample);
    CHECK_MESSAGE((is_sample || std::regex_match(line, comment)), line);
    samples += is_sample ? 1 : 0;
    peer_up = peer_up || line == "sotto_peer_up{peer=\"b\"} 1";
  }
  CHECK(samples > 15);
  CHECK(peer_up);
  const auto asked = [&](const std::string& request) {
    return exchange_text(sites.monitor_port("a"), request);
  };
  CHECK(contains(asked("GET /status HTTP/1.1\r\nHost: localhost:1\r\n\r\n"), "200 OK"));
  CHECK(contains(asked("GET /status HTTP/1.1\r\nHost: evil.example\r\n\r\n"), "403"));
  CHECK(contains(asked("GET /status HTTP/1.1\r\n\r\n"), "403"));
  CHECK(contains(asked("POST /status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"),
                 "405"));
  CHECK(contains(asked("GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"), "404"));
  CHECK_FALSE(contains(asked("\r\n\r\n"), "200"));
  stop_all(sites, {"a", "b"});
}

TEST_CASE("a list that changes is followed: revocation, and trust that is one-sided") {
  if (!can_run()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  Sites sites({"a", "b", "c"});
  // A ring of trust: each hears one and tells another.
  sites.write_peers("a", {"a", "b", "c"}, {{"b", {true, false}}, {"c", {false, true}}});
  sites.write_peers("b", {"a", "b", "c"}, {{"c", {true, false}}, {"a", {false, true}}});
  sites.write_peers("c", {"a", "b", "c"}, {{"a", {true, false}}, {"b", {false, true}}});
  sites.write_all("", kSoon);
  sites.start_all();
  for (const char* name : {"a", "b", "c"}) {
    sites.await_round(name, 5);
  }
  const auto status = nlohmann::json::parse(sites.ask("a", "/status"));
  CHECK(Sites::peer(status, "b").at("mass_taken") > 0);
  CHECK(Sites::peer(status, "b").at("mass_given") == 0);
  CHECK(Sites::peer(status, "c").at("mass_given") > 0);
  sites.write_peers("a", {"a", "b"}, {{"b", {true, false}}});
  sites.await("a", [](const auto& now) { return now.at("peers").size() == 1; });
  sites.await_peer("c", "a", false);
  sites.write_peers("a", {"a", "b", "c"}, {{"b", {true, false}}, {"c", {false, true}}});
  sites.await("a", [](const auto& now) {
    return now.at("peers").size() == 2 && Sites::peer(now, "c").at("up") == true;
  });
  stop_all(sites, {"a", "b", "c"});
}

TEST_CASE("sites with other settings refuse each other and say so, in text and in JSON") {
  if (!can_run()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  Sites sites({"a", "b"});
  sites.write_all("", "found-after = \"100 ms\"");
  sites.write("b", "lr = 0.5", "found-after = \"100 ms\"");
  sites.start("a", {"--log", "json"});
  sites.start("b");
  for (const auto* name : {"a", "b"}) {
    sites.await(name, [](const auto& status) {
      const std::string trouble = Sites::only_peer(status).at("trouble");
      return trouble.starts_with("other settings: lr is") && status.at("round") > 2;
    });
  }
  for (const char* name : {"a", "b"}) {
    sites[name].send(SIGTERM);
  }
  const auto b = sites["b"].wait();
  CHECK_MESSAGE(contains(b.err, "peer-refused a: "), b.err);
  CHECK_MESSAGE(contains(b.err, "other settings: lr is 0.5 here and 0.1 there"), b.err);
  const auto a = sites["a"].wait();
  std::istringstream lines(a.err);
  bool refused = false;
  for (std::string line; std::getline(lines, line);) {
    const auto event = nlohmann::json::parse(line);
    CHECK(event.contains("time"));
    refused = refused || (event.at("event") == "peer-refused" && event.at("peer") == "b");
  }
  CHECK_MESSAGE(refused, a.err);
}

TEST_CASE("at its privacy budget a site sends no gradient any more, in no life") {
  if (!can_run()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  Sites sites({"a", "b"});
  const std::string noisy =
      "noise-multiplier = 2\nclip-norm = 1\nprivacy-epsilon = 3\nbatch = 100\nlr = 0.1";
  sites.write("a", noisy);
  sites.write("b", "batch = 100\nlr = 0.1");
  sites.start_all();
  const auto spent =
      sites.await("a", [](const auto& status) { return status.at("phase") == "relaying"; });
  CHECK(spent.at("privacy").at("steps_left") == 0);
  CHECK(spent.at("privacy").at("epsilon") <= 3);
  CHECK(spent.at("training_loss").is_null());
  const auto steps = spent.at("privacy").at("steps");
  sites.await_round("a", spent.at("round").get<std::uint64_t>() + 3);
  sites["a"].send(SIGKILL);
  (void)sites["a"].wait();
  sites.start("a");
  const auto again = sites.await("a", [&](const auto& status) {
    return status.at("phase") == "relaying" && Sites::peer(status, "b").at("up") == true;
  });
  CHECK(again.at("privacy").at("steps") == steps);
  sites["a"].send(SIGTERM);
  (void)sites.finish("a");
  // With a larger budget the site trains on, from what is spent.
  sites.write("a", "noise-multiplier = 2\nclip-norm = 1\nprivacy-epsilon = 3.5\nbatch = 100\n");
  sites.start("a");
  const auto more =
      sites.await("a", [](const auto& status) { return status.at("phase") == "relaying"; });
  CHECK(more.at("privacy").at("steps") > steps);
  CHECK(more.at("privacy").at("epsilon") > 3);
  CHECK(more.at("privacy").at("epsilon") <= 3.5);
  sites["a"].send(SIGTERM);
  (void)sites.finish("a");
  fs::remove(sites.folder("a") / "state" / "privacy");
  const auto lost = run({"node", sites.file("a")});
  CHECK(lost.status == 1);
  CHECK_MESSAGE(contains(lost.err, "what is spent"), lost.err);
}

TEST_CASE("mistakes in a site's file are refused with the place, before anything is begun") {
  const Sites sites({"a", "b"});
  const std::string good = [&] { return text_of_file(sites.file("a")); }();
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const auto at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
  };
  const auto refused = [&](const std::string& text, const std::string& part) {
    std::ofstream(sites.file("a")) << text;
    const auto ended = run({"node", sites.file("a")});
    CAPTURE(text);
    CHECK(ended.status == 2);
    CHECK_MESSAGE(contains(ended.err, part), ended.err);
    CHECK_FALSE(fs::exists(sites.folder("a") / "state"));
  };
  refused("", "sotto-site = 1");
  refused(with("sotto-site = 1", "sotto-site = 2"), "site.toml:1: sotto-site: it must be 1");
  refused(with("name = \"a\"", ""), "name: it is missing");
  refused(with("name = \"a\"", "name = 3"), "site.toml:2: name: it must be a string");
  refused(with("name = \"a\"", "name = \"b\""), "calls the site with this key 'a'");
  refused(with("name = \"a\"", "nam = \"a\""), "did you mean name");
  refused(with("state = \"state\"", "state = \"state\"\nstat = 1"), "site.toml:6: stat: there is");
  refused(with("site.key", "none.key"), "none.key");
  refused(with("peers.csv", "none.csv"), "none.csv");
  refused(with("127.0.0.1", "0.0.0.0"), "monitor: '0.0.0.0");
  refused(with("127.0.0.1", "10.0.0.1"), "site.toml:6: monitor");
  refused(with("[training]", "[train]"), "[training]");
  refused(with("part =", "nodes = 3\npart ="), "'nodes' is no setting");
  refused(with("part =", "topology = \"ring\"\npart ="), "'topology' is no setting");
  refused(with("part =", "learning = 3\npart ="), "'learning' is no setting");
  refused(with("part =", "lr = \"fast\"\npart ="), "site.toml:10:");
  refused(with("part = \"1/2\"", "part = \"3/2\""), "part: '3' is no whole number from 1 to 2");
  refused(with("part = \"1/2\"", "part = \"half\""), "write NUMBER/OF");
  refused(with("part =", "algorithm = \"dcd\"\npart ="), "sites exchange by pushsum");
  refused(with("part =", "rule = \"median\"\npart ="),
          "on directed graphs none is proven against Byzantine nodes; leave it out");
  refused(with("part =", "algorithm = \"dpsgd\"\ncompressor = \"topk:0.1\"\npart ="),
          "sends whole models");
  refused(with("part =", "compressor = \"topk:7\"\npart ="), "share of elements");
  refused(with("part =", "schedule = \"cosine\"\npart ="), "it needs an end");
  refused(with("part =", "communication-interval = 0\npart ="), "it must be 1 or more steps");
  refused(with("part =", "momentum = 2\npart ="), "momentum");
  refused(with("part =", "outer-momentum = 2\npart ="), "outer-momentum");
  refused(with("part =", "privacy-epsilon = 2\nclip-norm = 1\npart ="), "give training.rounds, or");
  refused(with("part =", "noise-multiplier = 2\npart ="), "clip-norm");
  refused(with("softmax", "sofmax"), "did you mean softmax");
  refused(with("[network]", "[network]\nwindow = 0"), "network.window");
  refused(with("[network]", "[network]\ntimeout = 5"), "network.timeout: '5' is no duration");
  refused(with("[network]", "[network]\npatience = \"5 parsecs\""), "network.patience");
  refused(with("[network]", "[network]\nfound_after = \"5 s\""), "there is no such key");
  sites.write_peers("a", {"b"});
  refused(good, "no line has this site's key");
  sites.write_peers("a", {"a"});
  refused(good, "it names nobody but this site");
  sites.write_peers("a", {"a", "b"}, {{"b", {true, false}}});
  std::ofstream(sites.file("a")) << with("part =", "algorithm = \"choco\"\npart =");
  const auto one_sided = run({"node", sites.file("a")});
  CHECK(one_sided.status == 2);
  CHECK_MESSAGE(contains(one_sided.err, "both ways"), one_sided.err);
  CHECK(run({"node", (sites.folder("a") / "none.toml").string()}).status == 2);
  CHECK(run({"node", sites.file("a"), "--log", "xml"}).status == 2);
}

TEST_CASE("inspect knows checkpoints of train, and what is no file of sotto's") {
  const Scratch scratch;
  const auto saved = (scratch.path() / "saved").string();
  REQUIRE(run(small_train({"--rounds", "4", "--checkpoint", saved, "--checkpoint-every", "2"}))
              .status == 0);
  const auto seen =
      run({"checkpoint", "inspect", saved + "/node-1.round-4.checkpoint", "--json", "-"}).json();
  CHECK(seen.at("kind") == "checkpoint");
  CHECK(seen.at("rank") == 1);
  CHECK(seen.at("nodes") == 4);
  CHECK(seen.at("round") == 4);
  CHECK(seen.at("settings").at("algorithm") == "dcd");
  const auto table = run({"checkpoint", "inspect", saved + "/node-1.round-4.checkpoint"});
  CHECK(contains(table.out, "optimizer"));
  const auto other = run({"checkpoint", "inspect", SOTTO_PROGRAM});
  CHECK(other.status == 1);
  CHECK(contains(other.err, "it is no checkpoint, and no site's state of sotto's"));
  const auto pipe = scratch.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(contains(run({"checkpoint", "inspect", pipe.string()}).err, "no regular one"));
  CHECK(run({"checkpoint", "inspect", saved + "/none"}).status == 1);
  CHECK(run({"checkpoint"}).status == 2);
}

}  // namespace sotto::test::node_test
