// The hosts that sites run on: behind a NAT, under systemd, with addresses of IPv6 or names of
// hosts, and with strangers at the port.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/file_descriptor.h>

#include "cli/program.h"
#include "cli/sites.h"
#include "support/skip.h"
#include "support/text_of_file.h"

namespace sotto::test::site_hosts_test {
namespace {

const std::filesystem::path kSitesFolder = SOTTO_FAULT_PLANS "/../sites";

/// Whether a program of this name is there.
bool has_program(const std::string& name) {
  return shell("PATH=$PATH:/usr/sbin:/sbin command -v " + name).status == 0;
}

/// Two sites train a few rounds with addresses of this host.
void check_that_two_train_at(const std::string& host) {
  Sites sites({"a", "b"}, host);
  sites.write_all("rounds = 8\neval-every = 8");
  sites.start_all();
  for (const std::string name : {"a", "b"}) {
    const auto result = sites.finish(name);
    REQUIRE(result.at("peers").size() == 1);
    CHECK(result.at("peers")[0].at("mass_taken") > 0);
  }
}

/// A connection of one who says nothing.
FileDescriptor idle_connection(int port) {
  FileDescriptor made(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  (void)::connect(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  return made;
}

/// How many files this process may open.
std::size_t most_files() {
  rlimit most{};
  ::getrlimit(RLIMIT_NOFILE, &most);
  return static_cast<std::size_t>(most.rlim_cur);
}

}  // namespace

TEST_CASE("a crowd of strangers at a site's port is told, and its peer stays in touch") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  Sites sites({"a", "b"});
  sites.write_all("lr = 0.1", "found-after = \"200 ms\"");
  const auto log = sites.folder("a") / "log";
  sites.start("a", {"--log", "json", "--log-file", log.string()});
  sites.start("b");
  sites.await_peer("a", "b", true);
  const auto before = nlohmann::json::parse(sites.ask("a", "/status"));
  const auto room = before.at("strangers_room").get<std::size_t>();
  REQUIRE(room > 0);
  if (room + 128 > most_files()) {
    SOTTO_SKIP("a process may not open enough connections");
  }
  std::vector<FileDescriptor> crowd(room + 64);
  const auto crowded = [&](const auto& status) {
    // A connection that was cut, or that the kernel dropped, is made again.
    const auto alive = [](const FileDescriptor& one) {
      std::byte byte{};
      return one && ::recv(one.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
    };
    for (FileDescriptor& one : crowd) {
      one = alive(one) ? std::move(one) : idle_connection(sites.port("a"));
    }
    return status.at("strangers_cut") > 0;
  };
  sites.await("a", crowded);
  CHECK(contains(run({"status", fmt::format("127.0.0.1:{}", sites.monitor_port("a"))}).out,
                 "A CROWD AT THE DOOR"));
  CHECK_FALSE(contains(sites.ask("a", "/metrics"), "sotto_strangers_cut_total 0"));
  const auto round = nlohmann::json::parse(sites.ask("a", "/status")).at("round");
  sites.await("a", [&](const auto& status) {
    return status.at("round") > round && Sites::peer(status, "b").at("up") == true &&
           contains(text_of_file(log), "\"door-crowded\"");
  });
  for (const std::string name : {"a", "b"}) {
    sites[name].send(SIGTERM);
    (void)sites.finish(name);
  }
}

TEST_CASE("three sites, two of them behind NATs, and a forwarder: examples/sites/behind-nat.sh") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  std::string skipped;
  for (const std::string forwarder : {"haproxy", "nginx", "socat", "ssh"}) {
    CAPTURE(forwarder);
    const Ended ended = shell(fmt::format("SOTTO={} FORWARDER={} {}", SOTTO_PROGRAM, forwarder,
                                          (kSitesFolder / "behind-nat.sh").string()));
    CAPTURE(ended.out);
    CAPTURE(ended.err);
    REQUIRE(ended.status == 0);
    if (ended.out.starts_with("SKIPPED: ")) {
      skipped += forwarder + ": " + ended.out.substr(9);
      continue;
    }
    for (const std::string name : {"hospital", "bank", "university"}) {
      CHECK(contains(ended.out, "\n" + name + " "));
    }
  }
  if (!skipped.empty()) {
    SOTTO_SKIP(skipped);
  }
}

TEST_CASE("systemd finds the unit of a site well closed: examples/sites/sotto-site.service") {
  if (!has_program("systemd-analyze")) {
    SOTTO_SKIP("no systemd-analyze");
  }
  // Exposure below 5.0 of 10 is what it calls OK.
  const Ended ended = shell("systemd-analyze security --offline=true --no-pager --threshold=49 " +
                            (kSitesFolder / "sotto-site.service").string() + " 2>&1");
  if (contains(ended.out, "unrecognized option")) {
    SOTTO_SKIP("systemd-analyze is too old to look at a file");
  }
  CHECK_MESSAGE(ended.status == 0, ended.out);
}

TEST_CASE("sites train with addresses of IPv6") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const std::filesystem::path addresses = "/proc/net/if_inet6";
  const std::string loopback = "00000000000000000000000000000001 ";
  if (!std::filesystem::exists(addresses) || !contains(text_of_file(addresses), loopback)) {
    SOTTO_SKIP("no IPv6 here");
  }
  check_that_two_train_at("[::1]");
}

TEST_CASE("sites train with addresses by the host's name") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  check_that_two_train_at("localhost");
}

}  // namespace sotto::test::site_hosts_test
