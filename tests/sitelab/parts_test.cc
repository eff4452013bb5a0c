// What `sitelab` is made of: relays, the audit of mass, the judge of growth, files and logs.
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/sites/nodes/state/site_folder.h>

#include "bench/sitelab/durable_site.h"
#include "bench/sitelab/growth.h"
#include "bench/sitelab/real_liar.h"
#include "bench/sitelab/relays.h"
#include "bench/sitelab/site_files.h"
#include "bench/sitelab/site_log.h"
#include "bench/sitelab/site_name.h"
#include "bench/support/loopback.h"
#include "support/free_port.h"
#include "support/scratch.h"

namespace sotto::test::parts_test {

using namespace sotto::sitelab;
using sotto::test::loopback;

namespace {

/// Two sites that are plain sockets: 0 has connected to 1 through the relay.
struct Relayed {
  Relayed() : ways(2, {}) {
    auto [listener, port] = bench::hold_port();
    REQUIRE(::listen(listener.get(), 4) == 0);
    ways.lead_to(1, port);
    client = FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    entrance = ways.open(0, 1);
    const sockaddr_in address = loopback(entrance);
    REQUIRE(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) ==
            0);
    server = FileDescriptor(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    REQUIRE(server);
  }

  static void say(const FileDescriptor& from, const std::string& text) {
    REQUIRE(::send(from.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(text.size()));
  }
  /// Reads `bytes` bytes; fewer where the connection ends before.
  static std::string hear(const FileDescriptor& at, std::size_t bytes) {
    std::string text(bytes, '\0');
    const auto got = ::recv(at.get(), text.data(), bytes, MSG_WAITALL);
    text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return text;
  }

  Relays ways;
  int entrance = 0;
  FileDescriptor client;
  FileDescriptor server;
};

DurableSite durable(Rank site, double mass, double given, double taken) {
  DurableSite made = {.site = site, .state = {}, .listed = {1 - site}, .peers = {}};
  made.state.incarnation = 10 + static_cast<sites::Incarnation>(site);
  made.state.mass = mass;
  made.state.minted = 1;
  sites::PeerState& peer = made.peers.emplace_back();
  peer.incarnation = 11 - static_cast<sites::Incarnation>(site);
  peer.given = given;
  peer.taken = taken;
  return made;
}

}  // namespace

TEST_CASE("a relay holds what a closed way is to carry, and carries the other way") {
  Relayed sites;
  Relayed::say(sites.client, "one");
  CHECK(Relayed::hear(sites.server, 3) == "one");
  sites.ways.block(0, 1);
  CHECK_FALSE(sites.ways.open_both_ways(1, 0));
  Relayed::say(sites.client, "two");
  Relayed::say(sites.server, "three");
  CHECK(Relayed::hear(sites.client, 5) == "three");
  char byte = 0;
  CHECK(::recv(sites.server.get(), &byte, 1, MSG_DONTWAIT) < 0);
  sites.ways.unblock(0, 1);
  CHECK(sites.ways.open_both_ways(1, 0));
  CHECK(Relayed::hear(sites.server, 3) == "two");
  // Not even the end of a connection gets across.
  sites.ways.block(0, 1);
  sites.client = FileDescriptor();
  CHECK(::recv(sites.server.get(), &byte, 1, MSG_DONTWAIT) < 0);
  sites.ways.unblock(0, 1);
  CHECK(Relayed::hear(sites.server, 1).empty());
}

TEST_CASE("a site reaches a peer at one port, and another peer or the other way at another") {
  Relayed sites;
  CHECK(sites.ways.open(0, 1) == sites.entrance);
  const int back = sites.ways.open(1, 0);
  CHECK(back != sites.entrance);
  CHECK(sites.ways.open(1, 0) == back);
}

TEST_CASE("the words of a liar say all that makes it") {
  CHECK(
      liar_words({.site = 2, .seed = 7, .folder = "/there", .port = 9201}) ==
      std::vector<std::string>{"--lie", "2", "--seed", "7", "--keep", "/there", "--port", "9201"});
}

TEST_CASE("a relay breaks a connection after so many bytes, in the middle of a message") {
  Relayed sites;
  CHECK_FALSE(sites.ways.reset(1, 1, 0));
  CHECK(sites.ways.reset(1, 0, 5));
  Relayed::say(sites.client, "one two three");
  CHECK(Relayed::hear(sites.server, 13) == "one t");
  CHECK(Relayed::hear(sites.client, 1).empty());
}

TEST_CASE("a slow way is one until it has its old link again, and loses nothing") {
  Relayed sites;
  sites.ways.set_link(0, 1, LinkSpec{.bytes_per_s = 1e6, .latency = 2'000'000});
  CHECK(sites.ways.slowed(0, 1));
  CHECK(sites.ways.slowed(1, 0));
  const std::string text(50'000, 'x');
  Relayed::say(sites.client, text);
  CHECK(Relayed::hear(sites.server, text.size()) == text);
  sites.ways.set_link(0, 1, std::nullopt);
  CHECK_FALSE(sites.ways.slowed(0, 1));
}

TEST_CASE("the audit of durable states finds mass that is gone, doubled, or booked wrongly") {
  // 0 has given 0.75, of which 0.5 has come; 1 has given 0.25, all of which has come.
  const auto zero = durable(0, 0.5, 0.75, 0.25);
  const auto one = durable(1, 1.25, 0.25, 0.5);
  const MassAudit fine = audit_mass({zero, one}, 2);
  CHECK(fine.minted == 2);
  CHECK(fine.held == 1.75);
  CHECK(fine.under_way == 0.25);
  CHECK(fine.lost == 0);
  CHECK(fine.worst_error == 0);
  const MassAudit twice = audit_mass({zero, durable(1, 1.5, 0.25, 0.5)}, 2);
  CHECK(twice.lost == -0.25);
  CHECK(twice.worst_error == 0.25);
  CHECK(audit_mass({durable(0, 0.375, 0.75, 0.25), one}, 2).lost == 0.125);
  // What is under way to an incarnation that is gone is lost.
  auto renewed = durable(1, 1, 0, 0);
  renewed.state.incarnation = 99;
  CHECK(audit_mass({durable(0, 0.25, 0.75, 0), renewed}, 2).lost == 0.75);
}

TEST_CASE("processes that take more and more are found, those that do not are not") {
  const auto judge = [](double growth, double descriptors) {
    Footprints taken;
    for (int second = 0; second < 300; ++second) {
      taken.add(second, 2, {.resident_bytes = 1e9, .descriptors = 1e3});  // too young
      taken.add(second, 60,
                {.resident_bytes = 25e6 + growth * second, .descriptors = descriptors * second});
    }
    return taken.growth(true);
  };
  CHECK(judge(0, 0).flat == true);
  CHECK(judge(20e3, 0).flat == false);
  CHECK(judge(0, 0.1).flat == false);
  CHECK(judge(0, 0).largest.resident_bytes == 25e6);
  Footprints brief;
  for (int k = 0; k < 1000; ++k) {
    brief.add(0.1 * k, 60, {.resident_bytes = 1e6 * k, .descriptors = 1});
  }
  CHECK_FALSE(brief.growth(true).flat);
}

TEST_CASE(
    "a state that is damaged leaves the one before, or nothing, and an older one is put back "
    "whole") {
  const sotto::test::Scratch scratch;
  SiteFiles files((scratch.path() / "site").string(), 0, make_key_pair(), 0);
  std::filesystem::create_directories(files.state());
  const auto write = [&](const std::string& name, std::uint32_t number) {
    const std::string fresh = files.state() + "/fresh";
    const auto bytes = encode_site_state({.life = 7,
                                          .number = number,
                                          .round = number,
                                          .settings = "lr=0.1\n",
                                          .site = std::vector<std::byte>(200),
                                          .run = encode_site_run({.steps = number})});
    std::ofstream(fresh, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    std::filesystem::rename(fresh, files.state() + "/" + name);
    files.keep_state(name);
  };
  CHECK_FALSE(files.corrupt());
  CHECK_FALSE(files.restore(1));
  write("state.a", 1);
  write("state.b", 2);
  REQUIRE(files.corrupt());
  auto found = read_site_state(files.state());
  REQUIRE((found.ok() && found->has_value()));
  CHECK((*found)->state.number == 1);
  CHECK_FALSE((*found)->warning.empty());
  write("state.b", 3);
  REQUIRE(files.restore(1));
  found = read_site_state(files.state());
  REQUIRE((found.ok() && found->has_value()));
  CHECK((*found)->state.number == 2);
  CHECK((*found)->warning.empty());
  REQUIRE(files.corrupt());
  found = read_site_state(files.state());
  REQUIRE(found.ok());
  CHECK_FALSE(found->has_value());
}

TEST_CASE("a log is read without the lines that are no entries, and sites are known by name") {
  CHECK(site_rank(site_name(12)) == 12);
  CHECK(site_rank("hospital") == -1);
  CHECK(site_rank("site-x") == -1);
  const sotto::test::Scratch scratch;
  const auto path = scratch.write(
      "log",
      "{\"time\":\"2026-11-21T12:00:00.250Z\",\"event\":\"peer-down\",\"peer\":\"site-3\"}\n"
      "terminate called\n"
      "{\"time\":\"2026-11-21T12:00:01.000Z\",\"event\":\"ended\",\"text\":\"in good order\"}\n"
      "{\"time\":\"2026-11-21T1");
  const std::vector<LogEntry> log = read_log(path.string());
  REQUIRE(log.size() == 2);
  CHECK(log[0].event == "peer-down");
  CHECK(log[0].peer == 3);
  CHECK(log[1].time - log[0].time == doctest::Approx(0.75));
  CHECK(log[1].peer == -1);
  CHECK(log[1].text == "in good order");
}

}  // namespace sotto::test::parts_test
