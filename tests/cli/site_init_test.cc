// `sotto site init` and `sotto site check`, as an operator uses them.
#include <sys/stat.h>

#include <filesystem>
#include <sstream>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli/program.h"
#include "comm/free_port.h"
#include "support/skip.h"

using namespace sotto::test;
namespace fs = std::filesystem;

namespace {

constexpr const char* kFive =
    "name,address\nhospital,127.0.0.1:9001\nbank,127.0.0.1:9002\nuniversity,127.0.0.1:9003\n"
    "clinic,127.0.0.1:9004\nlab,127.0.0.1:9005\n";
constexpr const char* kShared =
    "name = \"somebody\"\n[training]\ntask = \"digits,train=300,test=100\"\nlr = 0.1\n";

}  // namespace

TEST_CASE("site init: folders of five sites, in which check finds nothing until one is changed") {
  const Scratch folder;
  const auto sites = folder.write("sites.csv", kFive).string();
  const auto shared = folder.write("shared.toml", kShared).string();
  const auto out = (folder.path() / "federation").string();
  const Arguments init = {"site", "init", sites, "--template", shared, "--out", out, "--json", "-"};
  const auto made = run(init).json();
  CHECK(made.at("sites") == 5);
  CHECK(made.at("edges") == 20);
  struct stat state {};
  REQUIRE(::stat((out + "/bank/bank.key").c_str(), &state) == 0);
  CHECK((state.st_mode & 0777U) == 0600U);
  CHECK_FALSE(fs::exists(out + "/bank/hospital.key"));
  const auto again = run(init);
  CHECK(again.status == 2);
  CHECK(contains(again.err, "there already"));

  const Arguments check = {"site", "check", out + "/bank/site.toml", out, "--json", "-"};
  const auto well = run(check);
  CAPTURE(well.out);
  const auto all = well.json();
  CHECK(all.at("sites") == 5);
  CHECK(all.at("edges") == 20);
  CHECK(all.at("findings").empty());
  CHECK(all.at("spectral_gap").get<double>() == doctest::Approx(1));
  CHECK(run({"site", "check", out + "/bank/site.toml"}).status == 0);

  std::ofstream(out + "/lab/site.toml", std::ios::app) << "momentum = 0.5\n";
  const auto differs = run(check);
  CHECK(differs.status == 1);
  CHECK(contains(differs.out, "momentum"));
  // All that sites must share and a file says, not some of it.
  for (const char* other : {"schedule = \"constant,warmup=3\"", "clip-norm = 2",
                            "communication-interval = 7", "beta1 = 0.5", "weight-decay = 0.1"}) {
    CAPTURE(other);
    const auto again_made = (folder.path() / "again").string();
    fs::remove_all(again_made);
    REQUIRE(run({"site", "init", sites, "--template", shared, "--out", again_made}).status == 0);
    std::ofstream(again_made + "/lab/site.toml", std::ios::app)
        << (std::string(other).starts_with("beta1") ? "step-rule = \"adam\"\n" : "") << other
        << '\n';
    const auto found = run({"site", "check", again_made + "/bank/site.toml", again_made});
    CHECK(found.status == 1);
    CHECK(contains(found.out, "settings"));
  }
  fs::permissions(out + "/bank/bank.key", fs::perms::others_read, fs::perm_options::add);
  CHECK(run({"site", "check", out + "/bank/site.toml"}).status == 1);
  CHECK(run({"site", "check", out + "/nowhere/site.toml"}).status == 2);
}

TEST_CASE("site init: with public keys alone it makes and sees no secret; a fault leaves nothing") {
  const Scratch folder;
  const auto sites = folder.write("sites.csv", "name,address\na,127.0.0.1:1\nb,\n").string();
  const auto keys = folder.path().string();
  const auto out = (folder.path() / "made").string();
  const Arguments init = {"site", "init", sites, "--public-keys", keys, "--out", out};
  REQUIRE(run({"keygen", keys + "/a"}).status == 0);
  const auto missing = run(init);
  CHECK(missing.status == 2);
  CHECK(contains(missing.err, "b.pub"));
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    CHECK_FALSE(contains(entry.path().filename().string(), "made"));
  }
  REQUIRE(run({"keygen", keys + "/b"}).status == 0);
  const auto made = run(init);
  CAPTURE(made.err);
  CHECK(made.status == 0);
  CHECK_FALSE(fs::exists(out + "/a/a.key"));
  CHECK(fs::exists(out + "/a/peers.csv"));
}

TEST_CASE("six sites sum in secret, and one is killed: examples/sites/secure-sum.sh") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Ended ended = shell(fmt::format("SOTTO={} PORT={} {}/../sites/secure-sum.sh", SOTTO_PROGRAM,
                                        free_ports(6), SOTTO_FAULT_PLANS));
  CAPTURE(ended.out);
  CAPTURE(ended.err);
  CHECK(ended.status == 0);
  std::istringstream lines(ended.out);
  std::size_t sites = 0;
  for (std::string line; std::getline(lines, line);) {
    double accuracy = 0;
    unsigned made = 0;
    unsigned lost = 0;
    unsigned unequal = 0;
    const auto at = line.find(": accuracy ");
    if (at == std::string::npos) {
      continue;
    }
    REQUIRE(std::sscanf(line.c_str() + at,
                        ": accuracy %lf, rounds with a sum %u, without %u, that did not add up %u",
                        &accuracy, &made, &lost, &unequal) == 4);
    ++sites;
    CHECK(accuracy > 0.6);
    CHECK(made > 4 * lost);
    CHECK(unequal == 0);
  }
  CHECK(sites == 6);
}

TEST_CASE("five sites train from a short list: examples/sites/five-sites.sh") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Ended ended = shell(fmt::format("SOTTO={} PORT={} {}/../sites/five-sites.sh", SOTTO_PROGRAM,
                                        free_ports(10), SOTTO_FAULT_PLANS));
  CAPTURE(ended.out);
  CAPTURE(ended.err);
  CHECK(ended.status == 0);
  CHECK(contains(ended.out, "edges that both ends want: 20"));
  std::istringstream lines(ended.out);
  std::size_t sites = 0;
  for (std::string line; std::getline(lines, line);) {
    if (const auto at = line.find(": accuracy "); at != std::string::npos) {
      ++sites;
      CHECK(std::stod(line.substr(at + 11)) > 0.6);
    }
  }
  CHECK(sites == 5);
}
