// Sites that only dial, and sites whose keys change: what their files say, and what operators see.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli/program.h"
#include "cli/sites.h"
#include "support/skip.h"
#include "support/text_of_file.h"

namespace sotto::test::site_ways_test {

namespace fs = std::filesystem;

namespace {

constexpr const char* kSoon = "found-after = \"200 ms\"\ntimeout = \"1 s\"";

/// Puts a list in place by renaming, as operators do.
void put_list(const Sites& sites, const std::string& name, const std::string& text) {
  const auto fresh = sites.folder(name) / "peers.new";
  std::ofstream(fresh) << text;
  fs::rename(fresh, sites.folder(name) / "peers.csv");
}

/// The line of a site in a list, and the list without the line's address.
std::string line_of(const std::string& list, const std::string& name) {
  const auto begin = list.find("\n" + name + ",") + 1;
  return list.substr(begin, list.find('\n', begin) + 1 - begin);
}
std::string without_address(std::string list, const std::string& name) {
  const std::string line = line_of(list, name);
  const auto begin = line.find("127.0.0.1");
  const std::string shorter = line.substr(0, begin) + line.substr(line.find(',', begin));
  return list.replace(list.find(line), line.size(), shorter);
}

}  // namespace

TEST_CASE("sites of which one only dials train together, and their operators see how") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  Sites sites({"a", "b"});
  sites.write_all("lr = 0.1", kSoon);
  const std::string list = without_address(text_of_file(sites.folder("a") / "peers.csv"), "b");
  put_list(sites, "a", list);
  put_list(sites, "b", list);
  sites.start("a");
  sites.await(
      "a", [](const auto& status) { return Sites::peer(status, "b").at("reason") == "awaited"; });
  sites.start("b");
  for (const auto& [name, other] : {std::pair("a", "b"), {"b", "a"}}) {
    sites.await(name, [&](const auto& status) {
      const auto& peer = Sites::peer(status, other);
      return peer.at("up") == true && peer.at("one_connection") == true &&
             peer.at("parcels_applied") > 2;
    });
  }
  const auto status = nlohmann::json::parse(sites.ask("b", "/status"));
  CHECK(status.at("address") == "");
  CHECK(status.at("strangers_room") == 0);
  CHECK(sites.ask("a", "/metrics").find("sotto_strangers_cut_total 0") != std::string::npos);
  sites["a"].send(SIGTERM);
  sites["b"].send(SIGTERM);
  (void)sites.finish("a");
  (void)sites.finish("b");
}

TEST_CASE("a site listens at two addresses, and dials from one of its choice") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  Sites sites({"a", "b"});
  sites.write_all("lr = 0.1", kSoon);
  std::string file = text_of_file(sites.file("a"));
  file.insert(file.find("[training]"),
              fmt::format("listen = \"127.0.0.1:{0} 127.0.0.2:{0}\"\nsource = \"127.0.0.3\"\n",
                          sites.port("a")));
  std::ofstream(sites.file("a")) << file;
  // b knows only the second one.
  std::string list = text_of_file(sites.folder("b") / "peers.csv");
  const std::string own = line_of(list, "a");
  std::string other = own;
  other.replace(other.find("127.0.0.1"), 9, "127.0.0.2");
  put_list(sites, "b", list.replace(list.find(own), own.size(), other));
  sites.start_all();
  sites.await("b", [&](const auto& status) {
    const auto& peer = Sites::peer(status, "a");
    return peer.at("up") == true && peer.at("parcels_applied") > 2;
  });
  for (const std::string name : {"a", "b"}) {
    sites[name].send(SIGTERM);
    (void)sites.finish(name);
  }
  // An address that this host does not have is refused when it is used, and said.
  file.replace(file.find("127.0.0.3"), 9, "192.0.2.77");
  std::ofstream(sites.file("a")) << file;
  sites.start("a", {"--log", "json"});
  sites.await("a", [&](const auto& status) {
    return !Sites::peer(status, "b").at("trouble").template get<std::string>().empty();
  });
  sites["a"].send(SIGTERM);
  CHECK(sites["a"].wait().status == 0);
}

TEST_CASE("a clock that went back is told as the site starts") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  Sites sites({"a", "b"});
  sites.write_all("rounds = 2", kSoon);
  fs::create_directory(sites.folder("a") / "state");
  fs::permissions(sites.folder("a") / "state", fs::perms::owner_all);
  std::ofstream(sites.folder("a") / "state" / "life") << "4000000000\n";
  fs::permissions(sites.folder("a") / "state" / "life",
                  fs::perms::owner_read | fs::perms::owner_write);
  sites.start("a", {"--log", "json"});
  sites.start("b");
  const Ended ended = sites["a"].wait();
  CHECK(ended.status == 0);
  CHECK(contains(ended.out + ended.err, "clock-behind"));
}

TEST_CASE("a site's key changes without a gap: two lines of its name, then one") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  Sites sites({"a", "b"});
  sites.write_all("lr = 0.1", kSoon);
  const std::string list = text_of_file(sites.folder("a") / "peers.csv");
  sites.start_all();
  sites.await_peer("a", "b", true);
  const std::string next =
      run({"keygen", (sites.folder("b") / "next").string(), "--json", "-"}).json().at("public_key");
  const std::string old_line = line_of(list, "b");
  std::string new_line = old_line;
  new_line.replace(2, next.size(), next);
  std::string both = list;
  both.replace(both.find(old_line), old_line.size(), new_line + old_line);
  std::string after = list;
  after.replace(after.find(old_line), old_line.size(), new_line);
  put_list(sites, "a", both);
  put_list(sites, "b", both);
  const std::string former = old_line.substr(2, next.size());
  sites.await("a", [&](const auto& status) {
    const auto& peer = Sites::peer(status, "b");
    return peer.at("up") == true && peer.at("key") == former;
  });
  sites["b"].send(SIGTERM);
  (void)sites.finish("b");
  std::string file = text_of_file(sites.file("b"));
  file.replace(file.find("site.key"), 8, "next.key");
  std::ofstream(sites.file("b")) << file;
  sites.start("b");
  const auto serves = [&](const auto& status) {
    const auto& peer = Sites::peer(status, "b");
    return peer.at("up") == true && peer.at("key") == next;
  };
  const auto met = sites.await("a", serves);
  put_list(sites, "a", after);
  put_list(sites, "b", after);
  sites["b"].send(SIGTERM);
  (void)sites.finish("b");
  const auto last = sites.await(
      "a", [](const auto& status) { return Sites::peer(status, "b").at("up") == false; });
  // One end of the channel, that of the stop; and the streams went on under the new key.
  CHECK(Sites::peer(last, "b").at("ups") == Sites::peer(met, "b").at("ups"));
  CHECK(Sites::peer(last, "b").at("parcels_applied") >=
        Sites::peer(met, "b").at("parcels_applied"));
  CHECK(last.at("resets") == 0);
  sites["a"].send(SIGTERM);
  (void)sites.finish("a");
}

TEST_CASE("mistakes in a site's list: neither side can dial, and lines of a name that differ") {
  const Sites sites({"a", "b"});
  const std::string list = text_of_file(sites.folder("a") / "peers.csv");
  put_list(sites, "a", without_address(without_address(list, "a"), "b"));
  const auto nowhere = run({"node", sites.file("a")});
  CHECK(nowhere.status == 2);
  CHECK_MESSAGE(nowhere.err.find("neither can dial the other") != std::string::npos, nowhere.err);
  const std::string twice = run({"keygen", (sites.folder("a") / "twice").string(), "--json", "-"})
                                .json()
                                .at("public_key");
  put_list(sites, "a", list + fmt::format("b,{},127.0.0.1:1,yes,yes\n", twice));
  const auto differ = run({"node", sites.file("a")});
  CHECK(differ.status == 2);
  CHECK_MESSAGE(differ.err.find("differ in key and until alone") != std::string::npos, differ.err);
}

}  // namespace sotto::test::site_ways_test
