// What a site tells whoever runs it: how peers stand and why, keys that were refused, copied keys,
// mistakes in its file, and its model for other programs.
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli/program.h"
#include "cli/sites.h"
#include "support/free_port.h"
#include "support/skip.h"
#include "support/text_of_file.h"

namespace sotto::test::site_operator_test {

namespace fs = std::filesystem;

namespace {

/// For sites that begin at once, alone if need be.
constexpr const char* kAlone = "found-after = \"100 ms\"\ntimeout = \"1 s\"";

bool can_run() { return has_transport("zmq"); }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  REQUIRE_MESSAGE(at != std::string::npos, from);
  return text.replace(at, from.size(), to);
}

/// Waits until the site's log has this.
void await_log(Sites& sites, const std::string& name, const std::string& text) {
  while (!contains(sites[name].said(), text)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void leave(Sites& sites, const std::string& name) {
  sites[name].send(SIGTERM);
  const Ended ended = sites[name].wait();
  CHECK_MESSAGE(ended.status == 0, ended.err);
}

auto stands(const std::string& peer, const std::string& state, const std::string& reason) {
  return [=](const nlohmann::json& status) {
    const auto& seen = Sites::peer(status, peer);
    return seen.at("state") == state && seen.at("reason") == reason;
  };
}

}  // namespace

TEST_CASE("a key that one side's list does not name is shown at both sides, and why") {
  if (!can_run()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  Sites sites({"a", "b", "c"});
  sites.write_all("", kAlone);
  sites.write_peers("b", {"b", "c"});
  sites.start("a");
  sites.start("b");
  const auto refused = sites.await("a", stands("b", "refused", "not-admitted"));
  CHECK(Sites::peer(refused, "b").at("refused") == true);
  CHECK(contains(Sites::peer(refused, "b").at("trouble").get<std::string>(), "does not admit"));
  std::string metrics = sites.ask("a", "/metrics");
  CHECK(contains(metrics, "sotto_peer_refused{peer=\"b\"} 1\n"));
  CHECK(contains(metrics,
                 "sotto_peer_state{peer=\"b\",state=\"refused\",reason=\"not-admitted\"} 1"));
  CHECK(contains(metrics, "sotto_peer_state{peer=\"c\",state=\"down\",reason=\"unreachable\"} 1"));
  const auto table = run({"status", sites.file("a")}).out;
  CHECK_MESSAGE(contains(table, "refused"), table);
  const auto by_port = run({"status", fmt::to_string(sites.monitor_port("a"))});
  CHECK_MESSAGE(contains(by_port.out, "refused"), by_port.err);
  CHECK(contains(run({"status", "99999"}).err,
                 "there is no such file, and as the address of a monitor '99999' is no whole"));
  // The other side sees a stranger.
  const auto stranger =
      sites.await("b", [](const auto& status) { return status.at("refused_keys").size() == 1; });
  CHECK(stranger.at("refused_keys")[0].at("name") == "");
  CHECK(stranger.at("refused_keys")[0].at("address") == "127.0.0.1");
  CHECK(stranger.at("keys_refused") >= 1);
  metrics = sites.ask("b", "/metrics");
  CHECK_FALSE(contains(metrics, "sotto_keys_refused_total 0\n"));
  CHECK(contains(run({"status", sites.file("b")}).out, "a stranger's"));
  await_log(sites, "b", "key-refused: not let in from 127.0.0.1: the key ");
  // Listed, and then revoked.
  sites.write_peers("b", {"a", "b", "c"});
  sites.await("a", stands("b", "up", ""));
  sites.write_peers("b", {"b", "c"});
  sites.await("a", stands("b", "refused", "not-admitted"));
  sites.await("b", [](const auto& status) {
    return status.at("refused_keys").size() == 1 && status.at("refused_keys")[0].at("name") == "a";
  });
  await_log(sites, "a", "peer-refused b: it does not admit this site's key");
  await_log(sites, "b", "key-refused a: not let in from 127.0.0.1: the key ");
  leave(sites, "a");
  leave(sites, "b");
}

TEST_CASE("lists that allow different directions: both sites say what the other does not do") {
  if (!can_run()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  Sites sites({"a", "b"});
  sites.write_all("", kAlone);
  sites.write_peers("b", {"a", "b"}, {{"a", {false, true}}});
  sites.start_all();
  const auto seen = sites.await("a", stands("b", "up", "one-sided"));
  CHECK(Sites::only_peer(seen).at("trouble") == "its list has may_send = no for this site");
  // What b sends and never gets back pulls its own weight down, which it says after a while.
  const auto taken = sites.await("b", stands("a", "up", "takes"));
  CHECK(
      contains(Sites::only_peer(taken).at("trouble").get<std::string>(), "more than it returned"));
  for (const char* name : {"a", "b"}) {
    leave(sites, name);
  }
}

TEST_CASE("a site's key at a second place: peers warn, and the site itself goes on") {
  if (!can_run()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  Sites sites({"a", "b", "c"});
  sites.write_all("", "found-after = \"100 ms\"\ntimeout = \"2 s\"");
  sites.start("a");
  sites.start("b");
  sites.await("a", stands("b", "up", ""));
  // Everything of b is copied, as from a backup, and starts at another address.
  const fs::path copy = sites.folder("c") / "copy";
  fs::create_directories(copy);
  fs::copy(sites.folder("b") / "site.key", copy);
  const int port = free_port();
  std::string site = text_of_file(sites.file("b"));
  site = replaced(site, "name =", fmt::format("listen = \"127.0.0.1:{}\"\nname =", free_port()));
  std::ofstream(copy / "site.toml")
      << replaced(site, fmt::format("127.0.0.1:{}", sites.monitor_port("b")),
                  fmt::format("127.0.0.1:{}", port));
  fs::copy(sites.folder("b") / "peers.csv", copy);
  Process second(command({"node", (copy / "site.toml").string()}));
  const auto seen = sites.await(
      "a", [](const auto& status) { return Sites::peer(status, "b").at("contested") == true; });
  CHECK(Sites::peer(seen, "b").at("up") == true);
  CHECK(contains(sites.ask("a", "/metrics"), "sotto_peer_contested{peer=\"b\"} 1\n"));
  CHECK(contains(run({"status", sites.file("a")}).out, "TWO PROCESSES HAVE ITS KEY"));
  await_log(sites, "a", "warning peer-contested b: two processes have its key");
  const auto before = seen.at("round").get<std::uint64_t>();
  const auto later =
      sites.await("a", [&](const auto& status) { return status.at("round") > before + 10; });
  CHECK(Sites::peer(later, "b").at("ups") == Sites::peer(seen, "b").at("ups"));
  second.send(SIGTERM);
  (void)second.wait();
  sites.await("a",
              [](const auto& status) { return Sites::peer(status, "b").at("contested") == false; });
  for (const char* name : {"a", "b"}) {
    leave(sites, name);
  }
}

TEST_CASE("metrics tell the phase, and since when a peer's round stands still") {
  if (!can_run()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  Sites sites({"a", "b"});
  // A fast site would have so many messages waiting for the other that the other is given up.
  sites.write_all("gradient-time = \"20 ms\"", "patience = \"200 ms\"\ntimeout = \"1 h\"");
  sites.start_all();
  for (const char* name : {"a", "b"}) {
    sites.await_round(name, 5);
  }
  const std::string metrics = sites.ask("a", "/metrics");
  CHECK(contains(metrics, "sotto_phase{phase=\"joining\"} 0\n"));
  CHECK((contains(metrics, "sotto_phase{phase=\"training\"} 1\n") ||
         contains(metrics, "sotto_phase{phase=\"waiting\"} 1\n")));
  CHECK(contains(metrics, "sotto_peer_round_age_seconds{peer=\"b\"} "));
  // A peer that stands still is behind in no number that would come right again, but in time.
  sites["b"].send(SIGSTOP);
  const auto stuck = sites.await(
      "a", [](const auto& status) { return Sites::only_peer(status).at("round_age_s") > 1.5; });
  CHECK(Sites::only_peer(stuck).at("up") == true);
  sites["b"].send(SIGCONT);
  sites.await("a",
              [](const auto& status) { return Sites::only_peer(status).at("round_age_s") < 0.5; });
  for (const char* name : {"a", "b"}) {
    leave(sites, name);
  }
}

TEST_CASE("with --log json every line is an object, figures are numbers, mistakes too") {
  if (!can_run()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const auto events = [](const std::string& lines) {
    std::vector<nlohmann::json> all;
    std::istringstream in(lines);
    for (std::string line; std::getline(in, line);) {
      all.push_back(nlohmann::json::parse(line));
      CHECK(all.back().contains("event"));
    }
    return all;
  };
  Sites sites({"a", "b"});
  sites.write_all("rounds = 3\nlr = 0.2");
  sites.start("a", {"--log", "json"});
  sites.start("b", {"--log", "json"});
  const Ended ended = sites["a"].wait();
  CHECK(ended.status == 0);
  std::map<std::string, nlohmann::json> last;
  for (const auto& event : events(ended.err)) {
    last[event.at("event")] = event;
  }
  CHECK(last.at("round").at("loss").is_number_float());
  CHECK(last.at("round").at("mass").is_number());
  CHECK(last.at("round").at("peers") == 1);
  CHECK(last.at("round").at("peers_up").is_number_integer());
  CHECK(last.at("peer-up").at("peer_round").is_number_integer());
  CHECK(last.at("joining").at("found_after_s") == 30);
  CHECK(last.at("ended").at("evaluated_round") == 3);
  CHECK(last.at("ended").at("test_accuracy").is_number_float());
  (void)sites["b"].wait();
  // What ends a site before it begins, and what ends it later.
  sites.write("a", "lr = \"0.1\"");
  const auto wrong = run({"node", sites.file("a"), "--log", "json"});
  CHECK(wrong.status == 2);
  REQUIRE(events(wrong.err).size() == 1);
  CHECK(events(wrong.err)[0].at("level") == "error");
  sites.write("a", "lr = 0.3");
  const auto other = run({"node", sites.file("a"), "--log", "json"});
  CHECK(other.status == 2);  // starting it again would not help
  CHECK(events(other.err).back().at("event") == "failed");
}

TEST_CASE("mistakes are told in the words of the site's file, with their line") {
  const Sites sites({"a", "b"});
  const std::string good = text_of_file(sites.file("a"));
  const auto refused = [&](const std::string& setting, const std::string& part) {
    std::ofstream(sites.file("a")) << replaced(good, "part =", setting + "\npart =");
    const auto ended = run({"node", sites.file("a")});
    CAPTURE(setting);
    CHECK(ended.status == 2);
    CHECK_MESSAGE(contains(ended.err, part), ended.err);
    CHECK_MESSAGE(!contains(ended.err, "--"), ended.err);
  };
  refused("lr = -1", "site.toml:10: training.lr: '-1' is refused");
  refused("lr = \"0.1\"", "site.toml:10: 'lr' must be a number, without quotes");
  refused("rounds = \"3\"", "site.toml:10: 'rounds' must be a number, without quotes");
  refused("nesterov = \"true\"", "site.toml:10: 'nesterov' must be true or false");
  refused("lr = true", "site.toml:10: 'lr': 'true' is no number");
  refused("beta1 = 0.5", "site.toml:10: training.beta1: the step rule is sgd");
  refused("momentum = 1.5", "site.toml:10: training.momentum");
  refused("schedule = \"stpe:3\"", "site.toml:10: training.schedule");
  refused("noise-multiplier = 2",
          "site.toml:10: training.noise-multiplier: noise hides only what is bounded: give "
          "training.clip-norm too");
  refused("beta2 = 0.5", "leave it out, or take training.step-rule adam, adamw or lamb");
  refused("clip-norm = 0\nnoise-multiplier = 2", "site.toml:10: training.clip-norm");
  refused("privacy_epsilon = 2\nclip_norm = 1", "site.toml:10: training.privacy-epsilon");
  refused("gradient-time = \"soon\"", "site.toml:10: training.gradient-time");
  refused("compressor = \"topk:7\"", "site.toml:10: training.compressor");
  refused("batch = 0", "site.toml:10: training.batch");
  refused("init = \"none.csv\"", "site.toml:10: training.init");
  refused("dump-parameters = \"no/such/folder\"", "site.toml:10: training.dump-parameters");
  refused("export = \"no/such/folder\"", "site.toml:10: training.export");
  refused("monitor = \"127.0.0.1:1\"", "site.toml:10: 'monitor' is no setting");
  const auto wrong = [&](const std::string& from, const std::string& to, const std::string& part) {
    std::ofstream(sites.file("a")) << replaced(good, from, to);
    const auto ended = run({"node", sites.file("a")});
    CHECK(ended.status == 2);
    CHECK_MESSAGE(contains(ended.err, part), ended.err);
    CHECK_MESSAGE(!contains(ended.err, "--"), ended.err);
  };
  wrong("\"site.key\"", "\"none.key\"", "site.toml:3: key: ");
  wrong("\"peers.csv\"", "\"none.csv\"", "site.toml:4: peers: ");
  wrong("digits,train=600,test=200", "csv:none.csv", "site.toml:8: training.task: ");
  if (can_run()) {
    wrong("name =", "listen = \"nowhere\"\nname =", "site.toml:2: listen: ");
  }
  std::ofstream(sites.file("a")) << replaced(good, "monitor =", "# monitor =");
  CHECK(contains(run({"status", sites.file("a")}).err, "above [training]"));
}

TEST_CASE("who else can change a site's files: everybody is refused, a group warned of") {
  Sites sites({"a", "b"});
  for (const fs::path& file :
       {fs::path(sites.file("a")), fs::path(sites.folder("a") / "peers.csv")}) {
    CAPTURE(file.string());
    fs::permissions(file, fs::perms::others_write, fs::perm_options::add);
    const auto refused = run({"node", sites.file("a")});
    CHECK(refused.status == 2);
    CHECK_MESSAGE(contains(refused.err, "everybody on this host can change it"), refused.err);
    fs::permissions(file, fs::perms::others_write, fs::perm_options::remove);
  }
  // The line of another has this site's own address.
  const std::string list = text_of_file(sites.folder("a") / "peers.csv");
  const auto own = list.find("127.0.0.1:");
  const auto other = list.find("127.0.0.1:", own + 1);
  std::string same = list;
  same.replace(other, list.find(',', other) - other, list.substr(own, list.find(',', own) - own));
  std::ofstream(sites.folder("a") / "peers.csv") << same;
  const auto twice = run({"node", sites.file("a")});
  CHECK(twice.status == 2);
  CHECK_MESSAGE(contains(twice.err, "peers.csv:3: address: "), twice.err);
  CHECK_MESSAGE(contains(twice.err, "that is where a listens"), twice.err);
  std::ofstream(sites.folder("a") / "peers.csv") << list;
  if (!can_run()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  fs::permissions(sites.folder("a") / "peers.csv", fs::perms::group_write, fs::perm_options::add);
  sites.write("a", "rounds = 1", kAlone);
  sites.start("a");
  const Ended ended = sites["a"].wait();
  CHECK(ended.status == 0);
  CHECK_MESSAGE(contains(ended.err, "all of its group can change it"), ended.err);
}

TEST_CASE("no result goes over what a site needs") {
  const Sites sites({"a", "b"});
  const auto refused = [&](const Arguments& more, const std::string& part) {
    Arguments words = {"node", sites.file("a")};
    words.insert(words.end(), more.begin(), more.end());
    const auto ended = run(words);
    CHECK(ended.status == 2);
    CHECK_MESSAGE(contains(ended.err, part), ended.err);
  };
  for (const std::string own : {"site.key", "peers.csv", "site.toml", "state/state.a", "state"}) {
    CAPTURE(own);
    const std::string why = own.starts_with("state") ? "it lies in the folder of this site's state"
                                                     : "that is this site's ";
    for (const char* option : {"export", "dump-parameters"}) {
      sites.write("a", fmt::format("{} = \"{}\"", option, own));
      refused({}, why);
    }
    sites.write("a");
    refused({"--json", (sites.folder("a") / own).string()},
            own == "site.toml" ? "it is SITE.toml's file too" : why);
  }
  CHECK(fs::file_size(sites.folder("a") / "site.key") > 40);
}

TEST_CASE("the state of another site is refused, and a seed on the command line counts") {
  if (!can_run()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  Sites sites({"a", "b"});
  sites.write_all("rounds = 3");
  for (const char* name : {"a", "b"}) {
    sites.start(name, {"--seed", "7"});
  }
  for (const char* name : {"a", "b"}) {
    const auto result = sites.finish(name);
    CHECK(result.at("config").at("seed") == 7);
  }
  fs::remove_all(sites.folder("b") / "state");
  fs::copy(sites.folder("a") / "state", sites.folder("b") / "state");
  const auto refused = run({"node", sites.file("b"), "--seed", "7"});
  CHECK(refused.status == 2);
  CHECK_MESSAGE(contains(refused.err, "site is b here and a there"), refused.err);
  const auto seen = run(
      {"checkpoint", "inspect", (sites.folder("b") / "state" / "state.a").string(), "--json", "-"});
  CHECK(seen.json().at("settings").at("site") == "a");
}

TEST_CASE("a wrong list shows in status and metrics, and one that trusts nobody is warned of") {
  if (!can_run()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  Sites sites({"a", "b"});
  const auto list = sites.folder("a") / "peers.csv";
  const std::string right = text_of_file(list);
  const auto put = [&](const std::string& text) {
    std::ofstream(list.string() + ".new") << text;
    fs::rename(list.string() + ".new", list);
  };
  sites.write("a", "", kAlone);
  sites.start("a");
  const auto trouble = [](const nlohmann::json& status) {
    return status.at("peers_file_trouble").get<std::string>();
  };
  sites.await("a", [&](const auto& now) { return now.at("round") > 0 && trouble(now).empty(); });
  put("name,kee\n");
  const auto seen = sites.await("a", [&](const auto& now) { return !trouble(now).empty(); });
  CHECK_MESSAGE(contains(trouble(seen), "peers.csv:1: 'kee' is no column"), trouble(seen));
  CHECK(contains(sites.ask("a", "/metrics"), "sotto_peers_file_refused 1\n"));
  CHECK(contains(run({"status", sites.file("a")}).out, "THE FILE OF PEERS IS NOT IN FORCE"));
  // As some editors save it, and without trust in anybody.
  const auto b = right.find("b,");
  put("\xEF\xBB\xBF" + right.substr(0, b) + replaced(right.substr(b), "yes,yes", "no,no"));
  sites.await("a", [&](const auto& now) { return trouble(now).empty(); });
  await_log(sites, "a", "the site trains alone");
  CHECK(contains(sites.ask("a", "/metrics"), "sotto_peers_file_refused 0\n"));
  sites["a"].send(SIGTERM);
  const Ended ended = sites["a"].wait();
  CHECK(ended.status == 0);
  CHECK_MESSAGE(contains(ended.err, "was told to stop: ends what it is at, and saves"), ended.err);
}

TEST_CASE("an export that fails in the end is told once, and is the site's status") {
  if (!can_run()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  Sites sites({"a", "b"});
  const auto model = sites.folder("a") / "model";
  sites.write("a", "eval-every = 1\nexport = \"model\"", kAlone);
  sites.start("a");
  sites.await("a", [&](const auto& now) { return now.at("round") > 0 && fs::exists(model); });
  std::error_code code;
  while (!fs::is_directory(model, code)) {  // the site puts its file there again and again
    fs::remove(model, code);
    fs::create_directory(model, code);
  }
  const auto from = sites.await("a", [](const auto&) { return true; }).at("round").get<int>();
  sites.await_round("a", static_cast<std::uint64_t>(from) + 5);
  sites["a"].send(SIGTERM);
  const Ended ended = sites["a"].wait();
  CHECK(ended.status == 128 + SIGTERM);  // that of a run that was stopped and has failed
  const auto told = ended.err.find("is no regular file");
  CHECK_MESSAGE(told != std::string::npos, ended.err);
  CHECK_MESSAGE(ended.err.find("is no regular file", told + 1) == std::string::npos, ended.err);
  std::ifstream result(sites.result("a"));
  CHECK(nlohmann::json::parse(result).at("export_trouble") != "");
}

TEST_CASE("a secret in the list of peers is not repeated") {
  const Sites sites({"a", "b"});
  const auto list = sites.folder("a") / "peers.csv";
  std::ofstream(list) << "name,key,address\nb,secret abcdefghijklmnopqrstuvwxyz0123456789ABCD,\n";
  const auto refused = run({"node", sites.file("a")});
  CHECK(refused.status == 2);
  CHECK_MESSAGE(contains(refused.err, "peers.csv:2: key: its 47 characters are no public key"),
                refused.err);
  CHECK_FALSE(contains(refused.err, "abcdefgh"));
}

TEST_CASE("SIGHUP ends no site, a log may be moved away or truncated, and the audit follows") {
  if (!can_run()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  namespace fs = std::filesystem;
  Sites sites({"a", "b"});
  sites.write_all(
      "rounds = 0\neval-every = 5\nexport = \"model.safetensors\"\n"
      "gradient-time = \"5 ms\"");
  const std::string file = text_of_file(sites.file("a"));
  std::ofstream(sites.file("a")) << replaced(file, "[training]", "audit = \"audit\"\n[training]");
  const fs::path log = sites.folder("a") / "log";
  const fs::path audit = sites.folder("a") / "audit";
  sites.start("a", {"--log", "json", "--log-file", log.string()});
  sites.start("b");
  sites.await_round("a", 10);
  sites["a"].send(SIGHUP);
  sites["a"].send(SIGHUP);
  fs::rename(log, log.string() + ".1");
  fs::rename(audit, audit.string() + ".1");
  const auto status = sites.await("a", [&](const auto&) { return fs::exists(log); });
  CHECK(contains(text_of_file(log.string() + ".1"), "\"event\":\"peer-up\""));
  fs::resize_file(log, 0);
  sites.await("a", [&](const auto&) { return fs::file_size(log) > 0; });
  // A list that loses the peer comes into force.
  sites.write_peers("a", {"a"});
  sites.await("a", [](const auto& now) { return now.at("peers").empty(); });
  const auto last =
      sites.await("a", [&](const auto&) { return contains(text_of_file(audit), "list-in-force"); });
  CHECK(last.at("audit").at("digest").template get<std::string>().size() == 64);
  leave(sites, "a");
  leave(sites, "b");
  CHECK(text_of_file(log).front() == '{');
  for (const fs::path& part : {fs::path(audit.string() + ".1"), audit}) {
    const Ended checked = run({"site", "audit", part.string(), "--json", "-"});
    CHECK(checked.status == 0);
    CHECK(checked.json().at("whole") == true);
    const Ended by_shell =
        Process({SOTTO_FAULT_PLANS "/../sites/check-audit.sh", part.string()}).wait();
    CHECK(by_shell.status == 0);
    CHECK(contains(by_shell.out, checked.json().at("digest").get<std::string>()));
  }
  const std::string before = text_of_file(audit.string() + ".1");
  CHECK(contains(before, "\"event\":\"peer-up\""));
  CHECK(contains(before, "\"event\":\"list-in-force\""));
  CHECK(contains(text_of_file(audit), "\"event\":\"ended\""));
  std::string changed = text_of_file(audit);
  changed[changed.size() / 2] ^= 1;
  std::ofstream(audit) << changed;
  const Ended found = run({"site", "audit", audit.string()});
  CHECK(found.status == 1);
  CHECK(contains(found.out, "NOT WHOLE"));
  CHECK(Process({SOTTO_FAULT_PLANS "/../sites/check-audit.sh", audit.string()}).wait().status == 1);
  CHECK(run({"site", "audit", (sites.folder("a") / "none").string()}).status == 2);
}

TEST_CASE("the exported model says the same elsewhere: docs/operations.md's example") {
  if (!can_run()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  Sites sites({"a", "b"});
  for (const char* name : {"a", "b"}) {
    // One feature is a thousand times the other, and the labels are 3 and 7: without the file's
    // notes nothing would come out right.
    std::ofstream table(sites.folder(name) / "patients.csv");
    table << "pressure,label,\"age, years\"\n";
    for (int i = 0; i < 300; ++i) {
      const int sick = (i * 7 + i / 5) % 2;
      if (name == std::string("b")) {
        table << '"' << i + 1 << "\",";  // as R writes rows: the header has one field less
      }
      table << 90'000 + 20'000 * sick + (i * 37) % 9'000 << ',' << (sick == 0 ? 3 : 7) << ','
            << 40 - 12 * sick + (i * 13) % 11 << '\n';
    }
    std::string file =
        replaced(text_of_file(sites.file(name)), "digits,train=600,test=200", "csv:patients.csv");
    const auto part = file.find("part =");
    file.erase(part, file.find('\n', part) - part);
    std::ofstream(sites.file(name)) << replaced(file, "model = \"softmax\"",
                                                "model = \"mlp:4\"\nlr = 0.2\nrounds = 60\n"
                                                "eval-every = 20\nexport = \"model.safetensors\"");
  }
  sites.start_all();
  const auto result = sites.finish("a");
  (void)sites.finish("b");
  CHECK(result.at("final").at("accuracy") == 1);
  const std::string bytes = text_of_file(sites.folder("a") / "model.safetensors");
  std::uint64_t length = 0;
  REQUIRE(bytes.size() > 8);
  std::memcpy(&length, bytes.data(), sizeof length);
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  CHECK(header.at("layer1.weight").at("shape") == nlohmann::json({4, 2}));
  CHECK(header.at("layer2.bias").at("shape") == nlohmann::json({2}));
  CHECK(header.at("layer2.bias").at("data_offsets")[1] == bytes.size() - 8 - length);
  const auto& notes = header.at("__metadata__");
  CHECK(notes.at("round") == "60");
  CHECK(notes.at("model") == "mlp:4");
  CHECK(notes.at("classes") == "[\"3\",\"7\"]");
  CHECK(notes.at("columns") == "[\"pressure\",\"age, years\"]");
  if (Process({"sh", "-c", "python3 -c pass"}).wait().status != 0) {
    SOTTO_SKIP("no python3");
  }
  for (const char* name : {"a", "b"}) {
    CAPTURE(name);
    const Ended said = Process({"python3", SOTTO_FAULT_PLANS "/../sites/predict.py",
                                (sites.folder(name) / "model.safetensors").string(),
                                (sites.folder(name) / "patients.csv").string()})
                           .wait();
    CHECK_MESSAGE(said.status == 0, said.err);
    std::istringstream rows(text_of_file(sites.folder(name) / "patients.csv"));
    std::istringstream answers(said.out);
    std::string row;
    std::getline(rows, row);
    int right = 0;
    for (std::string answer; std::getline(answers, answer);) {
      REQUIRE(std::getline(rows, row));
      right += row.find("," + answer + ",") != std::string::npos ? 1 : 0;
    }
    CHECK(right == 300);
  }
}

}  // namespace sotto::test::site_operator_test
