// The hosts that sites run on: behind a NAT, under systemd, with addresses of IPv6 or names of
// hosts.
#include <filesystem>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

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

}  // namespace

TEST_CASE("three sites, two of them behind NATs, and a forwarder: examples/sites/behind-nat.sh") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Ended ended =
      shell(fmt::format("SOTTO={} {}", SOTTO_PROGRAM, (kSitesFolder / "behind-nat.sh").string()));
  CAPTURE(ended.out);
  CAPTURE(ended.err);
  REQUIRE(ended.status == 0);
  if (ended.out.starts_with("SKIPPED: ")) {
    SOTTO_SKIP(ended.out.substr(9));
  }
  for (const std::string name : {"hospital", "bank", "university"}) {
    CHECK(contains(ended.out, "\n" + name + " "));
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
