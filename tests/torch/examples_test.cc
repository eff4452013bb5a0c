// The examples, as processes: alone, and on eight nodes.
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cli/program.h"
#include "cli/torchrun.h"
#include "support/free_port.h"
#include "support/scratch.h"
#include "support/skip.h"

#include <sotto/comm/transport.h>
#include <sotto/comm/trust/key_file.h>
#include <sotto/comm/trust/keys.h>

using namespace sotto::test;

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = SOTTO_SOURCE_DIR;
const fs::path kExamples = kRoot / "examples" / "torch";

std::string trimmed(const std::string& line) {
  const auto first = line.find_first_not_of(' ');
  return first == std::string::npos ? std::string() : line.substr(first);
}

/// Without their indentation.
std::vector<std::string> lines_of(const fs::path& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    lines.push_back(trimmed(line));
  }
  REQUIRE_FALSE(lines.empty());
  return lines;
}

/// Lines of code in `after` that `before` does not have.
std::size_t added(const std::vector<std::string>& before, const std::vector<std::string>& after) {
  const std::set<std::string> known(before.begin(), before.end());
  return static_cast<std::size_t>(std::count_if(after.begin(), after.end(), [&](const auto& line) {
    return !line.empty() && !line.starts_with("//") && !known.contains(line);
  }));
}

bool has_zmq() {
  for (const auto& transport : sotto::transports()) {
    if (transport.name == "zmq") {
      return transport.available;
    }
  }
  return false;
}

/// What node 0 of `nodes` processes prints; the others print nothing.
std::string launch(const Arguments& words, int nodes) {
  const std::string port = std::to_string(free_ports(2));  // the experts' nodes take the second
  std::vector<std::unique_ptr<Process>> processes;
  for (int rank = 0; rank < nodes; ++rank) {
    Variables variables = {{"OMP_NUM_THREADS", "1"}};
    if (nodes > 1) {
      variables.insert({{"RANK", std::to_string(rank)},
                        {"WORLD_SIZE", std::to_string(nodes)},
                        {"MASTER_ADDR", "127.0.0.1"},
                        {"MASTER_PORT", port}});
    }
    processes.push_back(std::make_unique<Process>(words, variables));
  }
  std::string said;
  for (std::size_t rank = 0; rank < processes.size(); ++rank) {
    const Ended ended = processes[rank]->wait();
    CAPTURE(ended.err);
    CHECK(ended.status == 0);
    if (rank == 0) {
      said = ended.out;
      MESSAGE(nodes, " nodes: ", said);
    } else {
      CHECK(ended.out.empty());
    }
  }
  return said;
}

double number_behind(const std::string& label, const std::string& text) {
  const auto at = text.rfind(label);
  REQUIRE(at != std::string::npos);
  return std::stod(text.substr(at + label.size()));
}

/// The number behind `label` in what node 0 of `nodes` processes prints.
double train(const std::string& program, const std::string& label, int nodes,
             const std::filesystem::path& data, int steps) {
  return number_behind(label, launch({program, data.string(), std::to_string(steps)}, nodes));
}

/// The shell's lines in docs/torch.md that run an example.
std::vector<std::string> example_commands() {
  std::ifstream page(kRoot / "docs" / "torch.md");
  std::vector<std::string> commands;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    for (std::string more; line.ends_with('\\') && std::getline(page, more);) {
      line.back() = ' ';
      line += more;
    }
    if (line.starts_with("```")) {
      inside = line == "```sh";
    } else if (inside && line.find("build/examples/torch/torch_") != std::string::npos &&
               line.find("netlab") == std::string::npos) {
      commands.push_back(line);
    }
  }
  return commands;
}

}  // namespace

TEST_CASE("from a plain libtorch program to many nodes it is a few lines") {
  const auto long_plain = lines_of(kExamples / "train_gpt_plain.cc");
  CHECK(added(lines_of(kExamples / "train_gpt.cc"), long_plain) <= 12);
  for (const std::string name : {"cnn", "gpt"}) {
    const auto plain = lines_of(kExamples / (name + "_plain.cc"));
    const auto ours = lines_of(kExamples / (name + ".cc"));
    CAPTURE(name);
    CHECK(added(plain, ours) <= 6);
    CHECK(added(ours, plain) <= 2);
  }
}

TEST_CASE("eight processes train a CNN on MNIST, as one does") {
  const auto folder = real_data();
  if (!folder) {
    SOTTO_SKIP("SOTTO_DATA is not set");
  }
  if (!has_zmq()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const auto mnist = *folder / "mnist";
  CHECK(train(SOTTO_TORCH_CNN_PLAIN, "accuracy ", 1, mnist, 60) > 70);
  CHECK(train(SOTTO_TORCH_CNN, "accuracy ", 8, mnist, 60) > 75);
}

TEST_CASE("two processes train the two parts of a network on MNIST") {
  const auto folder = real_data();
  if (!folder) {
    SOTTO_SKIP("SOTTO_DATA is not set");
  }
  if (!has_zmq()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const std::string said = launch({SOTTO_TORCH_TWO_PARTS, (*folder / "mnist").string(), "120"}, 2);
  CHECK(said.starts_with("4096 rows in full and 3584 as differences"));
  CHECK(number_behind("loss ", said) < 0.6);
}

TEST_CASE("four processes train a network whose experts lie at them on MNIST") {
  const auto folder = real_data();
  if (!folder) {
    SOTTO_SKIP("SOTTO_DATA is not set");
  }
  if (!has_zmq()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const std::string said = launch({SOTTO_TORCH_EXPERTS, (*folder / "mnist").string(), "150"}, 4);
  CHECK(said.starts_with("150 steps, "));
  CHECK(number_behind("loss ", said) < 0.6);
}

TEST_CASE("eight processes train a GPT on Shakespeare, as one does") {
  const auto folder = real_data();
  if (!folder) {
    SOTTO_SKIP("SOTTO_DATA is not set");
  }
  if (!has_zmq()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const auto text = *folder / "shakespeare" / "input.txt";
  // An alphabet of 65 characters taken at random has the loss ln 65 = 4.17.
  CHECK(train(SOTTO_TORCH_GPT_PLAIN, "loss ", 1, text, 25) < 3.2);
  CHECK(train(SOTTO_TORCH_GPT, "loss ", 8, text, 25) < 3.2);
}

#ifdef SOTTO_TORCH_TRAIN_GPT
TEST_CASE(
    "a GPT is trained as people train one, and goes on from a checkpoint with the same bits") {
  const auto folder = real_data();
  if (!folder) {
    SOTTO_SKIP("SOTTO_DATA is not set");
  }
  if (!has_zmq()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const std::string text = (*folder / "shakespeare" / "input.txt").string();
  const auto words = [&](const char* program, const Arguments& more) {
    Arguments all = {program,  text,   "--width",   "32", "--layers", "1", "--batch", "4",
                     "--rate", "0.01", "--warm-up", "4",  "--every",  "8", "--steps", "24"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const double plain = number_behind("loss ", launch(words(SOTTO_TORCH_TRAIN_GPT_PLAIN, {}), 1));
  CHECK(plain < 3.9);
  const Scratch scratch;
  const Arguments saving = {"--checkpoints", scratch.path().string(), "--compressor", "quant:4"};
  const std::string whole = launch(words(SOTTO_TORCH_TRAIN_GPT, saving), 3);
  CHECK(number_behind("loss ", whole) < 3.9);
  Arguments resuming = saving;
  resuming.insert(resuming.end(), {"--resume", "16"});
  const std::string rest = launch(words(SOTTO_TORCH_TRAIN_GPT, resuming), 3);
  CHECK(rest.starts_with("step 24"));
  CHECK(whole.ends_with(rest));
  CHECK(fs::exists(scratch.path() / "24.model.pt"));
  CHECK(fs::exists(scratch.path() / "24.node-2.pt"));
  const Arguments half = {"--bfloat16", "--algorithm", "allreduce"};
  CHECK(number_behind("loss ", launch(words(SOTTO_TORCH_TRAIN_GPT, half), 2)) < 3.9);
  // It ends where it is good enough, on all nodes.
  const std::string early = launch(words(SOTTO_TORCH_TRAIN_GPT, {"--until", "9"}), 2);
  CHECK(number_behind("step ", early) == 8);
  const Ended wrong = Process({SOTTO_TORCH_TRAIN_GPT, text, "--rate", "fast"}, {}).wait();
  CHECK(wrong.status == 2);
  CHECK(wrong.err.find("--rate fast") != std::string::npos);
}
#endif

TEST_CASE("the steps of docs/torch.md run as they stand") {
  const auto folder = real_data();
  if (!folder) {
    SOTTO_SKIP("SOTTO_DATA is not set");
  }
  if (!has_zmq()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  if (Process({"sh", "-c", "command -v mpirun"}, {}).wait().status != 0) {
    SOTTO_SKIP("there is no mpirun");
  }
  const auto commands = example_commands();
  REQUIRE(commands.size() >= 3);
  const Scratch scratch;
  fs::create_directories(scratch.path() / "build" / "examples");
  fs::create_directory_symlink(fs::path(SOTTO_TORCH_CNN).parent_path(),
                               scratch.path() / "build" / "examples" / "torch");
  fs::create_directory_symlink(*folder / "mnist", scratch.path() / "mnist");
  fs::create_symlink(*folder / "shakespeare" / "input.txt", scratch.path() / "input.txt");
  for (std::string command : commands) {
    CAPTURE(command);
    if (command.starts_with("torchrun")) {
      continue;  // below, as an agent of PyTorch 1.13 needs it
    }
    // Fewer steps, of a smaller model: those of the page are for people who wait.
    if (const auto steps = command.find(" 300"); steps != std::string::npos) {
      command.replace(steps, 4, " 8");
    }
    if (command.find("train_gpt") != std::string::npos) {
      command += " --width 16 --layers 1 --batch 2 --steps 4 --every 2";
    }
    const Ended ended = Process({"bash", "-c", "cd " + scratch.path().string() + " && " + command},
                                {{"OMP_NUM_THREADS", "1"},
                                 {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                 {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}})
                            .wait();
    CAPTURE(ended.err);
    CHECK(ended.status == 0);
    CHECK_FALSE(ended.out.empty());
  }
}

TEST_CASE("torchrun starts a libtorch program, and again when it fails in its first life") {
  const auto folder = real_data();
  if (!folder) {
    SOTTO_SKIP("SOTTO_DATA is not set");
  }
  if (!has_torchrun()) {
    SOTTO_SKIP("no Python with torch, whose torchrun it would be");
  }
  if (!has_zmq()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Scratch scratch;
  const auto script = scratch.path() / "node.sh";
  // In its first life node 1 trains, and is then taken for failed.
  std::ofstream(script) << "'" << SOTTO_TORCH_CNN << "' '" << (*folder / "mnist").string()
                        << "' 20 && [ $RANK$TORCHELASTIC_RESTART_COUNT != 10 ]\n";
  Arguments options = static_group(1, 0, free_port());
  options.insert(options.end(), {"--max_restarts", "1"});
  const Ended ended = start_agent(options, 3, {"/bin/sh", script.string()})->wait();
  CAPTURE(ended.out);
  CAPTURE(ended.err);
  CHECK(ended.status == 0);
  CHECK(contains(ended.out, "accuracy "));
}

#ifdef SOTTO_TORCH_EPOCHS_CNN
TEST_CASE("nodes that come and go train a network of libtorch's by all-reduce, and one is killed") {
  if (!has_zmq()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const auto data = real_data();
  if (!data) {
    SOTTO_SKIP("SOTTO_DATA is not set");
  }
  const std::string seed = "127.0.0.1:" + std::to_string(free_ports(1));
  const auto start = [&](const std::string& name) {
    return std::make_unique<Process>(
        Arguments{SOTTO_TORCH_EPOCHS_CNN, (*data / "mnist").string(), "160", "3:4", seed, name},
        Variables{{"OMP_NUM_THREADS", "1"}});
  };
  std::vector<std::unique_ptr<Process>> nodes;
  nodes.push_back(start("a"));
  nodes.push_back(start("b"));
  nodes.push_back(start("c"));
  REQUIRE(nodes[1]->wait_for("step 20"));
  nodes[1]->send(SIGKILL);
  CHECK(nodes[1]->wait().status == 128 + SIGKILL);
  nodes[1] = start("d");  // until it is there the others wait, as they are fewer than MIN
  std::set<double> found;
  for (const auto& node : nodes) {
    const Ended ended = node->wait();
    CAPTURE(ended.err);
    CHECK(ended.status == 0);
    MESSAGE(ended.out);
    found.insert(number_behind("accuracy ", ended.out));
  }
  CHECK(found.size() == 1);  // one model
  CHECK(*found.begin() > 80);
}
#endif

#ifdef SOTTO_TORCH_SITE_CNN
namespace {

/// Folders of the sites a, b and c, each with key, list of peers and file.
void make_sites(const fs::path& folder, const std::string& step, int rounds) {
  const int port = free_ports(3);
  const std::string names = "abc";
  std::string list = "name,key,address\n";
  for (std::size_t k = 0; k < names.size(); ++k) {
    const sotto::KeyPair keys = sotto::make_key_pair();
    const std::string name(1, names[k]);
    fs::create_directories(folder / name);
    sotto::write_key_file((folder / name / "site.key").string(), name, keys);
    list += name + "," + keys.public_key.text() +
            ",127.0.0.1:" + std::to_string(port + static_cast<int>(k)) + "\n";
    std::ofstream(folder / name / "site.toml")
        << "sotto-site = 1\nname = \"" << name
        << "\"\nkey = \"site.key\"\npeers = \"../peers.csv\"\nstate = \"state\"\n"
           "[training]\nalgorithm = \"choco\"\ncompressor = \"quant:8\"\n"
        << step << "communication-interval = 2\nrounds = " << rounds
        << "\n[network]\nfound-after = \"20 s\"\n";
  }
  std::ofstream(folder / "peers.csv") << list;
}

/// Three sites of this program; one is killed, and comes back. What each printed in the end.
std::vector<std::string> train_at_sites(const std::string& program, const fs::path& data,
                                        const std::string& step, int rounds) {
  const Scratch scratch;
  make_sites(scratch.path(), step, rounds);
  const auto start = [&](int number) {
    const std::string name(1, static_cast<char>('a' + number - 1));
    return std::make_unique<Process>(
        Arguments{program, data.string(), (scratch.path() / name / "site.toml").string(),
                  std::to_string(number), "3"},
        Variables{{"OMP_NUM_THREADS", "1"}});
  };
  std::vector<std::unique_ptr<Process>> sites;
  sites.reserve(3);
  for (int number = 1; number <= 3; ++number) {
    sites.push_back(start(number));
  }
  REQUIRE(sites[1]->wait_for("round 20"));
  sites[1]->send(SIGKILL);
  CHECK(sites[1]->wait().status == 128 + SIGKILL);
  REQUIRE(sites[0]->wait_for("round 40"));  // its step has not failed
  sites[1] = start(2);
  std::vector<std::string> said;
  said.reserve(sites.size());
  for (const auto& site : sites) {
    const Ended ended = site->wait();
    CAPTURE(ended.err);
    CHECK(ended.status == 0);
    said.push_back(ended.out);
  }
  return said;
}

}  // namespace

TEST_CASE("three sites train a network of libtorch's, and one is killed, and comes back") {
  if (!has_zmq()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const auto data = real_data();
  if (!data) {
    SOTTO_SKIP("SOTTO_DATA is not set");
  }
  for (const std::string& said :
       train_at_sites(SOTTO_TORCH_SITE_CNN, *data / "mnist", "lr = 0.05\nmomentum = 0.9\n", 120)) {
    MESSAGE(said);
    CHECK(number_behind("accuracy ", said) > 80);
  }
}

TEST_CASE("three sites train a GPT by AdamW of libtorch's, and one is killed, and comes back") {
  if (!has_zmq()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const auto data = real_data();
  if (!data) {
    SOTTO_SKIP("SOTTO_DATA is not set");
  }
  for (const std::string& said :
       train_at_sites(SOTTO_TORCH_SITE_GPT, *data / "shakespeare" / "input.txt", "", 60)) {
    MESSAGE(said);
    CHECK(number_behind("test loss ", said) < 2.9);
  }
}
#endif
