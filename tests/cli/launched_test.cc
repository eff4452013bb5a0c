// One node a process, as launchers start them.
#include <arpa/inet.h>
#include <sys/socket.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/comm/stores.h>

#include "cli/program.h"
#include "support/free_port.h"
#include "support/skip.h"

namespace sotto::test::launched_test {

namespace {

std::string any_network() {
  for (const char* name : {"zmq", "gloo"}) {
    if (has_transport(name)) {
      return name;
    }
  }
  return {};
}

const Arguments kRun = {"--rounds", "5", "--json", "-"};

/// Nodes of one launched job that goes on until it is stopped.
std::vector<std::unique_ptr<Process>> launch_endless(const std::string& folder) {
  const std::string port = std::to_string(free_port());
  std::vector<std::unique_ptr<Process>> job;
  for (int rank = 0; rank < 4; ++rank) {
    Arguments words = {"--rounds",    "1000000000", "--eval-every", "20",
                       "--algorithm", "choco",      "--transport",  "zmq"};
    if (!folder.empty()) {
      words.insert(words.end(), {"--checkpoint", folder, "--checkpoint-every", "0"});
    }
    job.push_back(std::make_unique<Process>(command(small_train(words)),
                                            Variables{{"RANK", std::to_string(rank)},
                                                      {"WORLD_SIZE", "4"},
                                                      {"MASTER_ADDR", "127.0.0.1"},
                                                      {"MASTER_PORT", port}}));
  }
  return job;
}

/// The rounds of the checkpoints in a folder.
std::set<std::string> saved_rounds(const std::filesystem::path& folder) {
  std::set<std::string> rounds;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (const auto at = name.find("round-"); at != std::string::npos) {
      rounds.insert(name.substr(at));
    }
  }
  return rounds;
}

nlohmann::json digests_in_one_process() {
  return run(small_train(kRun)).json().at("parameters_sha256");
}

}  // namespace

TEST_CASE("four processes with RANK and WORLD_SIZE are one run, and node 0 reports") {
  const std::string transport = any_network();
  if (transport.empty()) {
    SOTTO_SKIP("built without Gloo and ZeroMQ");
  }
  const Scratch meeting;
  const bool tcp = has_transport("zmq");
  const std::string port = std::to_string(free_port());
  std::vector<std::unique_ptr<Process>> nodes;
  for (int rank = 0; rank < 4; ++rank) {
    Arguments words = kRun;
    words.insert(words.end(), {"--transport", transport});
    if (rank > 0) {
      words.insert(words.end(), {"--progress", "dashboard"});  // node 0 alone needs the room
    }
    if (!tcp) {
      words.insert(words.end(), {"--rendezvous", "file:" + meeting.path().string()});
    }
    nodes.push_back(std::make_unique<Process>(command(small_train(words)),
                                              Variables{{"RANK", std::to_string(rank)},
                                                        {"WORLD_SIZE", "4"},
                                                        {"MASTER_ADDR", "127.0.0.1"},
                                                        {"MASTER_PORT", port}}));
  }
  CHECK(nodes[0]->wait().json().at("parameters_sha256") == digests_in_one_process());
  for (std::size_t rank = 1; rank < 4; ++rank) {
    const auto ended = nodes[rank]->wait();
    CAPTURE(ended.err);
    CHECK(ended.status == 0);
    CHECK(ended.out.empty());
  }
}

TEST_CASE("launched nodes measure their speeds, and the shares that they say give the same run") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const int nodes = 3;
  const std::size_t batch = 16;
  const auto trained = [&](const std::string& share) {
    const std::string port = std::to_string(free_port());
    std::vector<std::unique_ptr<Process>> job;
    for (int rank = 0; rank < nodes; ++rank) {
      Arguments words = {"train",
                         "--task",
                         "digits,train=200,test=40",
                         "--model",
                         "softmax",
                         "--algorithm",
                         "allreduce",
                         "--rounds",
                         "4",
                         "--batch",
                         "16",
                         "--batch-share",
                         share,
                         "--transport",
                         "zmq",
                         "--json",
                         "-"};
      if (rank == 1) {  // the slow one
        words.insert(words.end(), {"--gradient-time", "300 ms"});
      }
      job.push_back(
          std::make_unique<Process>(command(words), Variables{{"RANK", std::to_string(rank)},
                                                              {"WORLD_SIZE", std::to_string(nodes)},
                                                              {"MASTER_ADDR", "127.0.0.1"},
                                                              {"MASTER_PORT", port}}));
    }
    const nlohmann::json found = job[0]->wait().json();
    for (std::size_t rank = 1; rank < job.size(); ++rank) {
      const auto ended = job[rank]->wait();
      CAPTURE(ended.err);
      CHECK(ended.status == 0);
    }
    return found;
  };
  const nlohmann::json measured = trained("speed");
  const auto batches = measured.at("config").at("batches").get<std::vector<std::size_t>>();
  REQUIRE(batches.size() == static_cast<std::size_t>(nodes));
  CHECK(batches[0] + batches[1] + batches[2] == nodes * batch);
  CHECK(batches[1] < batches[0]);
  CHECK(batches[1] < batches[2]);
  const nlohmann::json given = trained(fmt::format("{},{},{}", batches[0], batches[1], batches[2]));
  CHECK(given.at("parameters_sha256") == measured.at("parameters_sha256"));
}

TEST_CASE("launched nodes take the compressor that node 0 chose for their budget") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const auto trained = [](const std::string& compressor) {
    const std::string port = std::to_string(free_port());
    std::vector<std::unique_ptr<Process>> job;
    for (int rank = 0; rank < 2; ++rank) {
      const Arguments words = {"train",
                               "--task",
                               "digits,train=200,test=40",
                               "--model",
                               "softmax",
                               "--algorithm",
                               "beer",
                               "--topology",
                               "ring",
                               "--rounds",
                               "4",
                               "--compressor",
                               compressor,
                               "--transport",
                               "zmq",
                               "--json",
                               "-"};
      job.push_back(
          std::make_unique<Process>(command(words), Variables{{"RANK", std::to_string(rank)},
                                                              {"WORLD_SIZE", "2"},
                                                              {"MASTER_ADDR", "127.0.0.1"},
                                                              {"MASTER_PORT", port}}));
    }
    const nlohmann::json found = job[0]->wait().json();
    CHECK(job[1]->wait().status == 0);
    return found;
  };
  const nlohmann::json chosen = trained("auto:5000");
  const auto spec = chosen.at("config").at("compressor").get<std::string>();
  CHECK(spec.find("auto") == std::string::npos);
  CHECK(trained(spec).at("parameters_sha256") == chosen.at("parameters_sha256"));
  // Frames of two encodings, with headers of 64 bytes and a length.
  CHECK(chosen.at("bytes_sent_per_node")[0].get<double>() <= 4 * (5000 + 64 + 8));
}

TEST_CASE("mpirun launches a run") {
  if (std::system("command -v mpirun > /dev/null 2>&1") != 0) {
    SOTTO_SKIP("no mpirun");
  }
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  Arguments words = {"mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "4"};
  const auto train = command(small_train(kRun));
  words.insert(words.end(), train.begin(), train.end());
  const auto ended = Process(words, {{"MASTER_PORT", std::to_string(free_port())}}).wait();
  CHECK(ended.json().at("parameters_sha256") == digests_in_one_process());
}

TEST_CASE("a launched node refuses what contradicts its launcher, and does not wait for ever") {
  const Variables launcher = {{"RANK", "1"}, {"WORLD_SIZE", "3"}};
  const auto refused = [&](const Arguments& words) {
    const auto ended = run(small_train(words), launcher);
    CHECK(ended.status == 2);
    return ended.err;
  };
  CHECK(contains(refused({}), "WORLD_SIZE say that the job has 3 nodes"));
  CHECK(contains(refused({"--transport", "inproc"}), "3 nodes"));
  const Variables four = {{"RANK", "1"}, {"WORLD_SIZE", "4"}};
  const auto threads = run(small_train({"--transport", "inproc"}), four);
  CHECK(threads.status == 2);
  CHECK(contains(threads.err, "--local"));
  CHECK(run(small_train({"--local", "--rounds", "1", "--quiet"}), four).status == 0);
  if (any_network().empty()) {
    return;
  }
  const auto nowhere = run(small_train({}), four);
  CHECK(nowhere.status == 2);
  CHECK(contains(nowhere.err, "MASTER_ADDR"));

  const Scratch meeting;
  const auto alone = run({"train", "--task", "digits,train=320,test=100", "--timeout", "0.2",
                          "--rendezvous", "file:" + meeting.path().string()},
                         four);
  CHECK(alone.status == 1);
  CHECK(contains(alone.err, "waiting for node 0"));
}

TEST_CASE("a launched job of one node is one node") {
  const Variables launcher = {{"RANK", "0"}, {"WORLD_SIZE", "1"}};
  const auto train = [&](const Arguments& more) {
    Arguments words = {"train", "--task", "digits,train=320,test=100", "--rounds", "2", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words, launcher);
  };
  CHECK(train({}).json().at("nodes") == 1);
  CHECK(train({"--nodes", "1", "--rendezvous", "file:/nowhere"}).json().at("nodes") == 1);
  CHECK(train({"--local", "--nodes", "2"}).json().at("nodes") == 2);
  const auto refused = train({"--nodes", "2"});
  CHECK(refused.status == 2);
  CHECK(contains(refused.err, "the job has 1 node; leave --nodes out"));
}

TEST_CASE("compare does not run once for each process of a job") {
  const Arguments words = {"compare",  "--task", "digits,train=320,test=100",
                           "--rounds", "1",      "--run",
                           "dpsgd",    "--quiet"};
  const Variables launcher = {{"RANK", "1"}, {"WORLD_SIZE", "3"}};
  const auto refused = run(words, launcher);
  CHECK(refused.status == 2);
  CHECK(contains(refused.err, "RANK and WORLD_SIZE"));
  Arguments local = words;
  local.push_back("--local");
  CHECK(run(local, launcher).status == 0);
}

TEST_CASE("a signal to one node of a launched job ends all with the same round, saved") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  for (const std::size_t told : {0U, 2U}) {
    for (const int signal : {SIGTERM, SIGINT}) {
      CAPTURE(told);
      CAPTURE(signal);
      const Scratch folder;
      const auto job = launch_endless(folder.path().string());
      REQUIRE(job[0]->wait_for("\n      40 "));
      job[told]->send(signal);
      for (std::size_t rank = 0; rank < 4; ++rank) {
        const auto ended = job[rank]->wait();
        CAPTURE(rank);
        CAPTURE(ended.err);
        CHECK(ended.status == (rank == told ? 128 + signal : 1));
        CHECK(contains(ended.err, "is saved in " + folder.path().string()));
        CHECK((rank == told ||
               contains(ended.err, "node " + std::to_string(told) + " was told to stop; round ")));
      }
      CHECK(saved_rounds(folder.path()).size() == 1);
    }
  }
}

TEST_CASE("without checkpoints the others end with the node that was told to stop, and name it") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const auto job = launch_endless("");
  REQUIRE(job[0]->wait_for("\n      40 "));
  job[3]->send(SIGTERM);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const auto ended = job[rank]->wait();
    CAPTURE(rank);
    CAPTURE(ended.err);
    CHECK(ended.status == (rank == 3 ? 128 + SIGTERM : 1));
    CHECK((rank == 3 || contains(ended.err, "node 3 was told to stop")));
  }
}

TEST_CASE(
    "a launched node that waits for others ends with the signal, and says for whom it waited") {
  if (any_network().empty()) {
    SOTTO_SKIP("built without gloo and ZeroMQ");
  }
  for (const std::string command_name : {"train", "bench"}) {
    for (const int signal : {SIGINT, SIGTERM}) {
      CAPTURE(command_name);
      CAPTURE(signal);
      const Scratch scratch;
      const std::string where = "file:" + scratch.path().string();
      const auto start = [&](const std::string& rank) {
        const Variables launcher = {{"RANK", rank}, {"WORLD_SIZE", "3"}};
        const Arguments waits = {"--transport", any_network(), "--rendezvous",
                                 where,         "--timeout",   "900"};
        Arguments words = command_name == "bench" ? Arguments{"bench", "exchange"}
                                                  : Arguments{"train", "--quiet"};
        words.insert(words.end(), waits.begin(), waits.end());
        return std::make_unique<Process>(command(words), launcher);
      };
      const auto store = make_file_store(scratch.path().string());
      const auto node_0 = start("0");
      REQUIRE(store->get("claim/0", Deadline::after(std::chrono::seconds(60))).ok());
      const auto node_1 = start("1");
      REQUIRE(store->get("claim/1", Deadline::after(std::chrono::seconds(60))).ok());
      // Another process of a rank is told at once, and disturbs nobody.
      for (const std::string rank : {"0", "1"}) {
        const Ended second = start(rank)->wait();
        CHECK(second.status == 1);
        CHECK_MESSAGE(
            contains(second.err, fmt::format("another process is node {} already (host ", rank)),
            second.err);
      }
      node_1->send(signal);
      const Ended one = node_1->wait();
      CHECK(one.status == 128 + signal);
      CHECK_MESSAGE(contains(one.err, "interrupted: node 1: stopped while waiting for node 0"),
                    one.err);
      node_0->send(signal);
      const Ended zero = node_0->wait();
      CHECK(zero.status == 128 + signal);
      CHECK_MESSAGE(contains(zero.err, "interrupted: node 0: stopped while waiting for node "),
                    zero.err);
    }
  }
}

}  // namespace sotto::test::launched_test
