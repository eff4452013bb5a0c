// `sotto site init` and `sotto site check`, as an operator uses them.
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include "cli/program.h"

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
