// The scripts of examples/launch, as they are.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <doctest/doctest.h>

#include "cli/program.h"
#include "support/free_port.h"
#include "support/skip.h"
#include "support/text_of_file.h"

namespace sotto::test::launch_examples_test {

namespace {

namespace fs = std::filesystem;

const fs::path kExamples = SOTTO_LAUNCH_EXAMPLES;
const Arguments kSmall = {"--task", "digits,train=320,test=100", "--model", "softmax"};

bool installed(const std::string& program) {
  return std::system(("command -v " + program + " > /dev/null 2>&1").c_str()) == 0;
}

Arguments script(const std::string& name, const Arguments& more) {
  Arguments words = {(kExamples / name).string()};
  words.insert(words.end(), kSmall.begin(), kSmall.end());
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// What the same run gives with all nodes here, in one process.
nlohmann::json digests(int nodes, const std::string& rounds) {
  Arguments words = {"train",      "--nodes",      std::to_string(nodes),
                     "--rounds",   rounds,         "--algorithm",
                     "dcd",        "--compressor", "quant:8",
                     "--topology", "ring",         "--json",
                     "-"};
  words.insert(words.end(), kSmall.begin(), kSmall.end());
  return run(words).json().at("parameters_sha256");
}

void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

/// The environment of a batch script of Slurm's on the first of two hosts, which are both this one,
/// with stand-ins for its commands.
Variables batch_script(const fs::path& folder) {
  return {{"PATH", std::string(SOTTO_SLURM_STAND_INS) + ":" + std::getenv("PATH")},
          {"SOTTO", SOTTO_PROGRAM},
          {"SLURM_JOB_ID", "4711"},
          {"SLURM_JOB_NODELIST", "localhost,localhost"},
          {"SLURM_SUBMIT_DIR", folder.string()},
          {"SLURM_NTASKS", "4"},
          {"SLURM_NNODES", "2"},
          {"SLURM_PROCID", "0"},
          {"INTERFACE", "lo"},
          {"MASTER_PORT", std::to_string(free_port())}};
}

}  // namespace

TEST_CASE(
    "examples/launch/mpi.sh trains with Open MPI and with MPICH, here and by a list of hosts") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const auto expected = digests(3, "10");
  const Scratch folder;
  bool any = false;
  for (const std::string mpirun : {"mpirun.openmpi", "mpiexec.hydra"}) {
    if (!installed(mpirun)) {
      continue;
    }
    any = true;
    CAPTURE(mpirun);
    Variables variables = {{"SOTTO", SOTTO_PROGRAM},
                           {"MPIRUN", mpirun},
                           {"NODES", "3"},
                           {"MASTER_PORT", std::to_string(free_port())}};
    const Arguments words = script("mpi.sh", {"--rounds", "10", "--json", "-"});
    CHECK(Process(words, variables).wait().json().at("parameters_sha256") == expected);

    write(folder.path() / "hosts", mpirun == "mpirun.openmpi" ? "# the first\nlocalhost slots=3\n"
                                                              : "# the first\nlocalhost:3\n");
    variables["HOSTFILE"] = (folder.path() / "hosts").string();
    CHECK(Process(words, variables).wait().status != 0);  // it asks for the interface
    variables["INTERFACE"] = "lo";
    CHECK(Process(words, variables).wait().json().at("parameters_sha256") == expected);
  }
  if (!any) {
    SOTTO_SKIP("no mpirun");
  }
}

TEST_CASE("examples/launch/slurm.sbatch trains, and goes on when it is put back into the queue") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Scratch folder;
  const auto variables = batch_script(folder.path());
  const auto submit = [&](const std::string& rounds) {
    return Process(script("slurm.sbatch", {"--rounds", rounds, "--json", "-"}), variables).wait();
  };
  CHECK(submit("5").json().at("parameters_sha256") == digests(4, "5"));
  const auto again = submit("10").json();
  CHECK(again.at("parameters_sha256") == digests(4, "10"));
  CHECK(again.at("config").at("resume") == true);

  // A task that fails is the job's failure.
  CHECK(Process(script("slurm.sbatch", {"--rounds", "0"}), variables).wait().status == 2);
}

TEST_CASE("examples/launch/elastic.sbatch trains one model, and goes on with it when put back") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Scratch folder;
  Variables variables = batch_script(folder.path());
  variables["INTERFACE"] = "lo";
  variables["AGAIN"] = "1";
  const fs::path saved = folder.path() / "sotto-4711";
  const auto text_of = [](const fs::path& path) { return text_of_file(path); };
  const auto submit = [&](const std::string& rounds) {
    const Ended ended =
        Process(script("elastic.sbatch", {"--rounds", rounds, "--quiet"}), variables).wait();
    CHECK_MESSAGE(ended.status == 0, ended.err);
  };
  const auto model = [&](const std::string& task) {
    return text_of(saved / ("node-4711-" + task + ".csv"));
  };
  variables["LEAST"] = "4";  // all have the last step then
  submit("30");
  const std::string first = model("0");
  CHECK(!first.empty());
  for (const std::string task : {"1", "2", "3"}) {
    CHECK(model(task) == first);
  }
  // Put back on other hosts.
  variables["SLURM_JOB_NODELIST"] = "127.0.0.1,localhost";
  submit("40");
  CHECK(fs::exists(saved / "nodes" / "key-nodes%runs%2"));
  CHECK(model("0") != first);
  CHECK(model("3") == model("0"));
}

TEST_CASE("the scripts of examples/launch are in order") {
  int found = 0;
  for (const auto& entry : fs::directory_iterator(kExamples)) {
    if (!entry.is_regular_file()) {
      continue;
    }
    ++found;
    CAPTURE(entry.path());
    const auto parsed = Process({"bash", "-n", entry.path().string()}).wait();
    CHECK_MESSAGE(parsed.status == 0, parsed.err);
    if (installed("shellcheck")) {
      const auto checked = Process({"shellcheck", entry.path().string()}).wait();
      CHECK_MESSAGE(checked.status == 0, checked.out);
    }
  }
  CHECK(found == 3);
}

TEST_CASE("the lines for sbatch stand where it reads them") {
  for (const std::string script : {"slurm.sbatch", "elastic.sbatch"}) {
    CAPTURE(script);
    std::ifstream in(kExamples / script);
    bool commands = false;
    int options = 0;
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("#SBATCH")) {
        CHECK_MESSAGE(line.starts_with("#SBATCH --"), line);
        CHECK_MESSAGE(!commands, line, ": sbatch stops reading at the first command");
        ++options;
      }
      commands = commands || (!line.empty() && line.front() != '#');
    }
    CHECK(options > 4);
  }
}

}  // namespace sotto::test::launch_examples_test
