// `sotto site init` and `sotto site check`, as an operator uses them.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli/program.h"
#include "support/free_port.h"
#include "support/skip.h"
#include "support/text_of_file.h"

namespace sotto::test::site_init_test {

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

TEST_CASE("site init and check take files without a task, for programs with models of their own") {
  const Scratch folder;
  const auto sites = folder.write("sites.csv", kFive).string();
  const auto shared =
      folder.write("shared.toml", "[training]\nalgorithm = \"choco\"\nlr = 0.1\n").string();
  const auto out = folder.path() / "federation";
  const auto made = run({"site", "init", sites, "--template", shared, "--out", out.string()});
  REQUIRE_MESSAGE(made.status == 0, made.err);
  const auto own = (out / "bank/site.toml").string();
  const Arguments check = {"site", "check", own, out.string(), "--json", "-"};
  const auto well = run(check);
  CHECK_MESSAGE(well.status == 0, well.err);
  CHECK(well.json().at("findings").empty());
  std::string text = text_of_file(own);
  text.replace(text.find("lr = 0.1"), 8, "lr = 0.2");
  std::ofstream(own) << text;
  const auto differs = run(check);
  CHECK(differs.status == 1);
  CHECK_MESSAGE(contains(differs.out, "lr"), differs.out);
  const auto node = run({"node", own});
  CHECK(node.status == 2);
  CHECK_MESSAGE(contains(node.err, "training.task: it is missing: the data to train on"), node.err);
}

TEST_CASE(
    "site init: with public keys alone it makes and sees no secret, and a fault leaves nothing") {
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

TEST_CASE("site init: a site that joins leaves what is there, and says which lists change") {
  const Scratch folder;
  const auto sites = folder.write("sites.csv", kFive);
  const auto shared = folder.write("shared.toml", kShared).string();
  const auto out = (folder.path() / "federation").string();
  REQUIRE(run({"site", "init", sites.string(), "--template", shared, "--out", out}).status == 0);
  std::ofstream(out + "/bank/site.toml", std::ios::app) << "part = \"2/5\"\n";
  std::ofstream(out + "/hospital/site.toml", std::ios::app) << "part = \"1/5\"\nmomentum = 0.5\n";
  std::map<std::string, std::string> before;
  for (const auto& entry : fs::recursive_directory_iterator(out)) {
    if (entry.is_regular_file() && entry.path().filename() != "overview.csv") {
      before[entry.path().string()] = text_of_file(entry.path());
    }
  }
  std::ofstream(sites, std::ios::app) << "archive,127.0.0.1:9006\nmuseum,\n";
  const Arguments init = {"site", "init", sites.string(), "--out", out, "--json", "-"};
  const auto grown = run(init);
  CAPTURE(grown.err);
  const auto made = grown.json();
  CHECK(made.at("sites") == 7);
  CHECK(made.at("added") == nlohmann::json({"archive", "museum"}));
  CHECK(made.at("edges") == 7 * 6 - 5 * 4);
  CHECK(made.at("lists_to_replace").size() == 5);
  CHECK(made.at("lists_to_replace")[0].at("list") == out + "/hospital/peers.csv.new");
  for (const auto& [path, text] : before) {
    CHECK(text_of_file(path) == text);
  }
  const std::string next = text_of_file(out + "/bank/peers.csv.new");
  CHECK(next.starts_with(before.at(out + "/bank/peers.csv")));
  CHECK(contains(next, "archive,"));
  // The new site has the settings of the first, but for what is that one's own.
  const std::string file = text_of_file(out + "/museum/site.toml");
  CHECK(contains(file, "name = \"museum\""));
  CHECK(contains(file, "momentum = 0.5"));
  CHECK_FALSE(contains(file, "part"));
  CHECK(contains(file, "monitor = \"127.0.0.1:9106\""));
  CHECK(contains(text_of_file(out + "/overview.csv"), "hospital,hospital,"));

  // Until lists are replaced, others have no line for it.
  const Arguments check = {"site", "check", out + "/archive/site.toml", out};
  for (const char* name : {"bank", "clinic", "lab", "university"}) {
    std::ofstream(out + "/" + name + "/site.toml", std::ios::app) << "momentum = 0.5\n";
  }
  const auto early = run(check);
  CHECK(early.status == 1);
  CHECK(contains(early.out, "/bank/peers.csv) has no line for archive"));
  // A second run changes nothing, and one more site waits until they are.
  const auto again = run(init);
  CHECK(again.status == 2);
  CHECK(contains(again.err, "there already"));
  std::ofstream(sites, std::ios::app) << "school,127.0.0.1:9008\n";
  const auto early_again = run(init);
  CHECK(early_again.status == 2);
  CHECK(contains(early_again.err, "peers.csv.new"));
  CHECK_FALSE(fs::exists(out + "/school"));
  for (const char* name : {"hospital", "bank", "clinic", "lab", "university"}) {
    fs::rename(out + "/" + name + "/peers.csv.new", out + "/" + name + "/peers.csv");
  }
  const auto well = run(check);
  CAPTURE(well.out);
  CHECK(well.status == 0);
  CHECK(run(init).status == 0);
  // A site that the list has forgotten.
  folder.write("sites.csv", "name,address\nbank,127.0.0.1:9002\nx,127.0.0.1:9007\n");
  const auto lost = run(init);
  CHECK(lost.status == 2);
  CHECK(contains(lost.err, "which the file does not list"));
}

TEST_CASE("site check: says whose file has which value, and whose list lacks what") {
  const Scratch folder;
  const auto sites = folder.write("sites.csv", "name,address\nlab,h:1\nsouth,h:2\n").string();
  const auto shared = folder.write("shared.toml", kShared).string();
  const auto out = (folder.path() / "f").string();
  REQUIRE(run({"site", "init", sites, "--template", shared, "--out", out}).status == 0);
  const Arguments check = {"site", "check", out + "/lab/site.toml", out};
  CHECK(contains(run(check).out, "edges that both ends want: 2 (one for each direction)"));
  std::ofstream(out + "/south/site.toml", std::ios::app) << "momentum = 0.5\n";
  auto found = run(check);
  CHECK_MESSAGE(
      contains(found.out, "momentum is 0 (by default, " + out + "/lab/site.toml) at lab and 0.5 (" +
                              out + "/south/site.toml:11) at south"),
      found.out);
  std::string list = text_of_file(out + "/lab/peers.csv");
  list.replace(list.rfind("yes,yes"), 7, "yes,no");
  std::ofstream(out + "/lab/peers.csv") << list;
  found = run(check);
  CHECK_MESSAGE(contains(found.out, "lab's list (" + out +
                                        "/lab/peers.csv) has send_to = no for "
                                        "south"),
                found.out);
  // Two sites of one host have two monitors.
  CHECK(contains(text_of_file(out + "/lab/site.toml"), "monitor = \"127.0.0.1:9100\""));
  CHECK(contains(text_of_file(out + "/south/site.toml"), "monitor = \"127.0.0.1:9101\""));
}

TEST_CASE("site check: what the loader leaves out is told, and is nothing that does not fit") {
  const Scratch folder;
  const auto sites = folder.write("sites.csv", "name,address\nlab,h:1\nsouth,h:2\n").string();
  const auto shared =
      folder.write("shared.toml", "[training]\ntask = \"csv:patients.csv\"\nlr = 0.1\n").string();
  const auto out = (folder.path() / "f").string();
  REQUIRE(run({"site", "init", sites, "--template", shared, "--out", out}).status == 0);
  std::string table = "age,ill\n";  // R numbers the rows, and gives the numbers no name
  for (int row = 1; row <= 40; ++row) {
    table += std::to_string(row) + "," + std::to_string(30 + 7 * row % 41) + "," +
             (row % 3 == 0 ? "yes" : "no") + "\n";
  }
  std::ofstream(out + "/lab/patients.csv") << table;
  const Ended found = run({"site", "check", out + "/lab/site.toml", out, "--json", "-"});
  CHECK_MESSAGE(found.status == 0, found.out);
  const auto findings = found.json().at("findings");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].at("kind") == "data");
}

TEST_CASE("six sites sum in secret, and one is killed: examples/sites/secure-sum.sh") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Ended ended = shell(fmt::format("SOTTO={} PORT={} {}/../sites/secure-sum.sh", SOTTO_PROGRAM,
                                        free_ports(12), SOTTO_FAULT_PLANS));
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

}  // namespace sotto::test::site_init_test
