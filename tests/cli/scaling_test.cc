// A scaling that sites share, from the sums of each to the model that one uses of another; and ONNX
// files of it.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli/program.h"
#include "cli/sites.h"
#include "support/free_port.h"
#include "support/skip.h"
#include "support/text_of_file.h"

namespace sotto::test::scaling_test {

namespace fs = std::filesystem;

namespace {

/// Patients from an age on; who is older or heavier is ill.
std::string patients(int youngest) {
  std::string text = "age,bmi,ill\n";
  for (int i = 0; i < 400; ++i) {
    const int age = youngest + i * 7 % 30;
    const int bmi = 18 + i * 11 % 20;
    text += fmt::format("{},{},{}\n", age, bmi, age + 2 * bmi > 115 ? "yes" : "no");
  }
  return text;
}

constexpr const char* kBounds = "age=0:120,bmi=10:60";

/// Sums of a table, and what the command said.
Ended sum(const fs::path& table, const fs::path& output, const Arguments& more) {
  Arguments words = {"data",     "scaling",       table.string(), "--bounds", kBounds,
                     "--output", output.string(), "--json",       "-"};
  words.insert(words.end(), more.begin(), more.end());
  return run(words);
}

/// Tables of two hospitals, their sums and the scaling of both.
struct Hospitals {
  explicit Hospitals(const Arguments& noise = {"--without-noise"}) {
    std::vector<std::string> words = {"data",   "scaling", "--output", path("scaling.toml"),
                                      "--json", "-",       "--combine"};
    for (const char* name : {"a", "b"}) {
      folder.write(fmt::format("{}.csv", name), patients(*name == 'a' ? 20 : 50));
      const Ended ended =
          sum(path(fmt::format("{}.csv", name)), path(fmt::format("{}.toml", name)), noise);
      CAPTURE(ended.err);
      REQUIRE(ended.status == 0);
      words.push_back(path(fmt::format("{}.toml", name)));
    }
    combined = run(words).json();
  }
  std::string path(const std::string& name) const { return (folder.path() / name).string(); }

  Scratch folder;
  nlohmann::json combined;
};

}  // namespace

TEST_CASE("data scaling: sums of two tables become means and deviations of all their rows") {
  const Hospitals both;
  CHECK(both.combined.at("rows") == 800);
  const auto& columns = both.combined.at("columns");
  REQUIRE(columns.size() == 2);
  CHECK(columns[0].at("name") == "age");
  CHECK(columns[0].at("mean").get<double>() == doctest::Approx(49.5).epsilon(0.01));
  CHECK(columns[0].at("deviation").get<double>() == doctest::Approx(17.3).epsilon(0.01));
  CHECK_FALSE(contains(text_of_file(both.path("a.toml")), "privacy"));
  CHECK_FALSE(contains(text_of_file(both.path("a.toml")), "ill"));
  const Arguments check = {"data", "check", both.path("b.csv"), "--scaling",
                           both.path("scaling.toml")};
  CHECK(run(check).status == 0);
  both.folder.write("b.csv", "bmi,age,ill\n20,30,yes\n21,35,no\n22,36,no\n");
  const Ended other = run(check);
  CHECK(other.status == 2);
  CHECK(contains(other.err, "feature 1 is 'age' there, and 'bmi' in the table"));
}

TEST_CASE("data scaling: noise costs what was asked, and the file says so") {
  const Scratch folder;
  const auto table = folder.write("a.csv", patients(20));
  const auto output = folder.path() / "a.toml";
  const Ended made = sum(table, output, {"--privacy-epsilon", "0.5", "--privacy-seed", "3"});
  const auto privacy = made.json().at("privacy");
  CHECK(privacy.at("epsilon").get<double>() <= 0.5);
  CHECK(privacy.at("epsilon").get<double>() > 0.499);
  CHECK(privacy.at("noise").get<double>() ==
        doctest::Approx(privacy.at("noise_multiplier").get<double>() * std::sqrt(5.0)));
  CHECK(contains(text_of_file(output), "noise-multiplier = "));
  CHECK(contains(made.err, "NOTHING IS HIDDEN"));
  const Ended again = sum(table, output, {"--privacy-epsilon", "0.5"});
  CHECK(again.status == 2);
  CHECK(contains(again.err, "costs again"));
  const auto refused = [&](const Arguments& more) {
    const Ended ended = sum(table, folder.path() / "new.toml", more);
    CHECK(ended.status == 2);
    CHECK_FALSE(fs::exists(folder.path() / "new.toml"));
    return ended.err;
  };
  CHECK(contains(refused({}), "--without-noise shows them as they are"));
  CHECK(contains(refused({"--without-noise", "--privacy-epsilon", "1"}), "contradicts"));
  CHECK(
      contains(refused({"--privacy-epsilon", "0.1", "--noise-multiplier", "1"}), "costs epsilon"));
  CHECK(contains(refused({"--privacy-epsilon", "1", "--combine", output.string()}), "--combine"));
  CHECK(contains(run({"data", "scaling", "--combine", output.string(), "--output", "-"}).err,
                 "--output"));
}

TEST_CASE("a run takes a scaling, goes on with it alone, and is exported with it") {
  const Hospitals both;
  const std::string saved = both.path("saved");
  const Arguments train = {"train",
                           "--task",
                           "csv:" + both.path("a.csv"),
                           "--nodes",
                           "2",
                           "--rounds",
                           "30",
                           "--checkpoint",
                           saved,
                           "--json",
                           "-",
                           "--quiet"};
  const auto with = [&](const Arguments& more) {
    Arguments words = train;
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  };
  const std::string scaling = both.path("scaling.toml");
  CHECK(with({"--scaling", scaling}).json().at("config").at("scaling") == scaling);
  const Ended other = with({"--resume"});
  CHECK(other.status != 0);
  CHECK(contains(other.err, "scaling is not given here and "));
  CHECK(contains(with({"--own-sums", both.path("a.toml")}).err, "give --scaling too"));
  CHECK(
      contains(run({"train", "--task", "digits", "--scaling", scaling}).err, "columns of a table"));

  const Arguments exported = {"checkpoint", "export", saved, "--mean", both.path("mean.onnx")};
  const Ended lacking = run(exported);
  CHECK(lacking.status == 2);
  CHECK(contains(lacking.err, "--scaling"));
  CHECK_FALSE(fs::exists(both.path("mean.onnx")));
  Arguments complete = exported;
  complete.insert(complete.end(), {"--scaling", scaling});
  CHECK(run(complete).status == 0);
  const std::string file = text_of_file(both.path("mean.onnx"));
  CHECK(contains(file, "probabilities"));
  CHECK(contains(file, "[\"age\",\"bmi\"]"));
  CHECK(contains(file, "[\"no\",\"yes\"]"));
  // The data may have moved meanwhile, and may not be others.
  fs::rename(both.path("a.csv"), both.path("moved.csv"));
  CHECK(run(complete).status == 2);
  complete.insert(complete.end(), {"--task", "csv:" + both.path("moved.csv")});
  CHECK(run(complete).status == 0);
  complete.back() = "digits";
  CHECK(run(complete).status == 2);
}

TEST_CASE("what a scaling told of a node's data counts as spent") {
  const Hospitals both({"--privacy-epsilon", "1"});
  const Arguments train = {"train",       "--task",    "csv:" + both.path("a.csv"),
                           "--nodes",     "2",         "--rounds",
                           "20",          "--json",    "-",
                           "--quiet",     "--scaling", both.path("scaling.toml"),
                           "--clip-norm", "1"};
  const auto with = [&](const Arguments& more) {
    Arguments words = train;
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  };
  const Arguments noise = {"--noise-multiplier", "4"};
  const double total = with(noise).json().at("privacy").at("epsilon");
  Arguments own = noise;
  own.insert(own.end(), {"--own-sums", both.path("a.toml")});
  CHECK(with(own).json().at("privacy").at("epsilon") == total);
  Arguments alone = train;
  alone.erase(alone.begin() + 10, alone.begin() + 12);
  alone.insert(alone.end(), noise.begin(), noise.end());
  const double training = run(alone).json().at("privacy").at("epsilon");
  CHECK(total > training);
  CHECK(total < training + 1.01);
  const auto chosen = with({"--privacy-epsilon", "2"}).json().at("privacy");
  CHECK(chosen.at("epsilon").get<double>() <= 2);
  CHECK(chosen.at("epsilon").get<double>() > 1.9);
  CHECK(contains(with({"--privacy-epsilon", "0.9"}).err, "leaves nothing to train with"));
  CHECK(contains(with({"--privacy-epsilon", "3", "--privacy-unit", "update"}).err,
                 "hides one row of a table"));
  std::string open = text_of_file(both.path("scaling.toml"));
  const auto at = open.find("noise-multiplier");
  open.replace(at, open.find('\n', at) - at, "noise-multiplier = 0");
  both.folder.write("scaling.toml", open);
  CHECK(contains(with(noise).err,
                 "which no privacy budget covers; if those of this node have "
                 "noise, name their file with --own-sums"));
}

TEST_CASE("sites with another scaling refuse each other, and check names it beforehand") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Hospitals both;
  Sites sites({"a", "b"});
  for (const std::string name : {"a", "b"}) {
    fs::copy(both.path(name + ".csv"), sites.folder(name) / "patients.csv");
    fs::copy(both.path("scaling.toml"), sites.folder(name));
    std::ofstream(sites.file(name)) << fmt::format(
        "sotto-site = 1\nname = \"{}\"\nkey = \"site.key\"\npeers = \"peers.csv\"\n"
        "state = \"state\"\nmonitor = \"127.0.0.1:{}\"\n[data]\nscaling = \"scaling.toml\"\n"
        "[training]\ntask = \"csv:patients.csv\"\nlr = 0.5\nrounds = 0\n",
        name, sites.monitor_port(name));
  }
  const Arguments check = {"site", "check", sites.file("a"), sites.file("b")};
  CHECK(run(check).status == 0);
  // Sums stay with the others: only the own ones are looked for.
  const std::string file = text_of_file(sites.file("b"));
  const auto at = file.find("[training]");
  std::ofstream(sites.file("b")) << file.substr(0, at) << "own-sums = \"b.toml\"\n"
                                 << file.substr(at);
  CHECK(run(check).status == 0);
  CHECK(contains(run({"site", "check", sites.file("b")}).out, "data.own-sums"));
  std::ofstream(sites.file("b")) << file;
  std::ofstream(sites.folder("b") / "scaling.toml")
      << "sotto-scaling = 1\n[[column]]\nname = \"age\"\nmean = 40\ndeviation = 10\n"
         "[[column]]\nname = \"bmi\"\nmean = 25\ndeviation = 5\n";
  const Ended found = run(check);
  CHECK(found.status == 1);
  CHECK(contains(found.out, "scaling is"));
  sites.start_all();
  sites.await("a", [&](const auto& status) {
    return contains(Sites::only_peer(status).dump(), "scaling is");
  });
  for (const std::string name : {"a", "b"}) {
    sites[name].send(SIGTERM);
  }
  fs::remove(sites.folder("b") / "scaling.toml");
  const Ended none = run({"site", "check", sites.file("b")});
  CHECK(none.status == 2);
  CHECK(contains(none.err, "data.scaling: "));
  // Columns in another order are those of another table.
  std::ofstream(sites.folder("b") / "scaling.toml")
      << "sotto-scaling = 1\n[[column]]\nname = \"bmi\"\nmean = 25\ndeviation = 5\n"
         "[[column]]\nname = \"age\"\nmean = 40\ndeviation = 10\n";
  const Ended other = run({"site", "check", sites.file("b")});
  CHECK(other.status == 1);
  CHECK(contains(other.out, "data.scaling"));
  CHECK(contains(other.out, "feature 1 is 'bmi' there"));
}

TEST_CASE(
    "three hospitals, scaling, training, a model for another: examples/sites/three-hospitals.sh") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Ended ended = shell(fmt::format(
      "SOTTO={} PORT={} PYTHON=\"$({}/../../scripts/python-tools onnx || echo /usr)/bin/python3\" "
      "{}/../sites/three-hospitals.sh",
      SOTTO_PROGRAM, free_ports(6), SOTTO_FAULT_PLANS, SOTTO_FAULT_PLANS));
  CAPTURE(ended.out);
  CAPTURE(ended.err);
  CHECK(ended.status == 0);
  CHECK(contains(ended.out, "nothing is found that does not fit together"));
  CHECK(contains(ended.out, "cost epsilon 1 at delta 1e-05 before the first step"));
  for (const std::string name : {"north", "south", "west"}) {
    const std::string words = name + ": spent epsilon ";
    const auto at = ended.out.find(words);
    REQUIRE(at != std::string::npos);
    const double spent = std::stod(ended.out.substr(at + words.size()));
    CHECK(spent <= 4);
    CHECK(spent > 3.9);
  }
  std::string not_run;
  for (const std::string words : {"north's model at west: ", "west's ONNX file at north: "}) {
    const auto at = ended.out.find(words);
    if (at == std::string::npos) {
      not_run += words;
      continue;
    }
    CHECK(std::stod(ended.out.substr(at + words.size())) > 90);
  }
  if (!not_run.empty()) {
    SOTTO_SKIP("all but this, for want of Python or onnxruntime: " << not_run);
  }
}

TEST_CASE("predict.py takes a regression's model and says its targets") {
  if (!has_transport("zmq") || shell("python3 -c pass").status != 0) {
    SOTTO_SKIP("no python3, or built without ZeroMQ");
  }
  Sites sites({"a", "b"});
  for (const std::string name : {"a", "b"}) {
    std::ofstream table(sites.folder(name) / "t.csv");
    table << "rooms,garden,price\n";
    for (int i = 0; i < 300; ++i) {
      table << i % 7 << ',' << (i % 3 == 0 ? "true" : "false") << ','
            << 100'000 + 20'000 * (i % 7) + (i % 3 == 0 ? 5'000 : 0) << '\n';
    }
    std::ofstream(sites.file(name)) << fmt::format(
        "sotto-site = 1\nname = \"{}\"\nkey = \"site.key\"\npeers = \"peers.csv\"\n"
        "state = \"state\"\n[training]\ntask = \"csv:t.csv,regression\"\nlr = 0.3\n"
        "rounds = 200\nexport = \"m.safetensors\"\n",
        name);
  }
  sites.start_all();
  CHECK(sites.finish("a").at("final").at("r2").get<double>() > 0.99);
  (void)sites.finish("b");
  const Ended said = Process({"python3", SOTTO_FAULT_PLANS "/../sites/predict.py",
                              (sites.folder("a") / "m.safetensors").string(),
                              (sites.folder("a") / "t.csv").string()})
                         .wait();
  CAPTURE(said.err);
  REQUIRE(said.status == 0);
  CHECK(std::stod(said.out) == doctest::Approx(105'000).epsilon(0.02));
}

}  // namespace sotto::test::scaling_test
