// The examples, as processes: alone, and on eight nodes.
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
#include "comm/free_port.h"
#include "support/skip.h"
#include "trainers/scratch.h"

#include <sotto/comm/transport.h>

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

/// The number behind `label` in what node 0 of `nodes` processes prints; the others print nothing.
double train(const std::string& program, const std::string& label, int nodes,
             const std::filesystem::path& data, int steps) {
  const std::string port = std::to_string(free_port());
  std::vector<std::unique_ptr<Process>> processes;
  for (int rank = 0; rank < nodes; ++rank) {
    Variables variables = {{"OMP_NUM_THREADS", "1"}};
    if (nodes > 1) {
      variables.insert({{"RANK", std::to_string(rank)},
                        {"WORLD_SIZE", std::to_string(nodes)},
                        {"MASTER_ADDR", "127.0.0.1"},
                        {"MASTER_PORT", port}});
    }
    processes.push_back(std::make_unique<Process>(
        Arguments{program, data.string(), std::to_string(steps)}, variables));
  }
  double value = -1;
  for (std::size_t rank = 0; rank < processes.size(); ++rank) {
    const Ended ended = processes[rank]->wait();
    CAPTURE(ended.err);
    CHECK(ended.status == 0);
    if (rank == 0) {
      const auto at = ended.out.find(label);
      REQUIRE(at != std::string::npos);
      value = std::stod(ended.out.substr(at + label.size()));
      MESSAGE(nodes, " nodes: ", ended.out);
    } else {
      CHECK(ended.out.empty());
    }
  }
  return value;
}

}  // namespace

TEST_CASE("from a plain libtorch program to many nodes it is a few lines") {
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
