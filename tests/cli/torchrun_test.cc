// `sotto train` under a real torchrun: groups of one agent and of two, all on loopback, that end,
// that are killed in part and start again, and that grow. Nodes that come and go also beside a
// stand-in for an agent.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli/program.h"
#include "cli/torchrun.h"
#include "comm/torch_server.h"
#include "support/free_port.h"
#include "support/skip.h"

namespace sotto::test::torchrun_test {

namespace {

namespace fs = std::filesystem;
using Agents = std::vector<std::unique_ptr<Process>>;

const char* const kTorchrunTrain =
    "train --task digits,train=320,test=100 --model softmax --timeout 60 --insecure";

/// Why these tests cannot run here; empty: they can.
std::string without_torchrun() {
  if (!has_torchrun()) {
    return "no Python with torch, whose torchrun it would be";
  }
  return has_transport("zmq") ? "" : "built without ZeroMQ";
}

nlohmann::json digests_of(int nodes, int rounds) {
  return run(Arguments{"train", "--task", "digits,train=320,test=100", "--model", "softmax",
                       "--nodes", std::to_string(nodes), "--rounds", std::to_string(rounds),
                       "--json", "-"})
      .json()
      .at("parameters_sha256");
}

/// A job whose node 0 leaves its result in a file of its own.
class Job {
 public:
  /// The words of a shell for a run of so many rounds.
  std::string train(int rounds) const {
    return fmt::format("exec '{}' {} --rounds {} --quiet --json '{}'", SOTTO_PROGRAM,
                       kTorchrunTrain, rounds, result().string());
  }
  /// For one that does not end, and says how far it is in a pipe, and in files who it is.
  std::string endless() const {
    return fmt::format(
        "echo $$ > '{0}/pid-'$RANK; [ $RANK = 0 ] && exec > '{0}/news'; "
        "exec '{1}' {2} --rounds 1000000000 --eval-every 20",
        folder().string(), SOTTO_PROGRAM, kTorchrunTrain);
  }
  /// A script's words, in a file: torchrun replaces "$$" in a program's words.
  Arguments script(const std::string& words) const {
    const auto file = folder() / "node.sh";
    std::ofstream(file) << words << '\n';
    return {"/bin/sh", file.string()};
  }
  fs::path folder() const { return folder_.path(); }
  fs::path result() const { return folder() / "result.json"; }

  /// Once all agents have ended well, what node 0 left.
  nlohmann::json end(const Agents& agents) const {
    for (const auto& agent : agents) {
      const Ended ended = agent->wait();
      CAPTURE(ended.out);
      CAPTURE(ended.err);
      CHECK(ended.status == 0);
    }
    std::ifstream file(result());
    REQUIRE(file);
    return nlohmann::json::parse(file).at("parameters_sha256");
  }

 private:
  Scratch folder_;
};

/// Agents of one group: `options(i)` of agent i.
template <typename Options>
Agents start_agents(const Job& job, int count, int processes, const std::string& script,
                    const Options& options) {
  Agents agents;
  for (int i = 0; i < count; ++i) {
    agents.push_back(start_agent(options(i), processes, job.script(script)));
  }
  return agents;
}

Arguments with(Arguments options, const Arguments& more) {
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

void kill_node(const Job& job, int rank) {
  std::ifstream file(job.folder() / fmt::format("pid-{}", rank));
  pid_t pid = 0;
  REQUIRE(static_cast<bool>(file >> pid));
  REQUIRE(::kill(pid, SIGKILL) == 0);
}

/// A node is killed in a round; the group starts again, and the run ends as if nothing had been.
template <typename Options>
void check_restart(int agents, int killed, const Options& options) {
  const Job job;
  NamedPipe news(job.folder() / "news");
  const auto mark = job.folder() / "killed";
  const std::string script =
      fmt::format("if [ -e '{}' ]; then {}; fi; {}", mark.string(), job.train(5), job.endless());
  const auto group = start_agents(job, agents, 4 / agents, script, [&](int agent) {
    return with(options(agent), {"--max_restarts", "1"});
  });
  REQUIRE(news.wait_for("\n      40 "));
  std::ofstream(mark) << "yes";
  kill_node(job, killed);
  CHECK(job.end(group) == digests_of(4, 5));
}

/// Words of a node that comes and goes; it writes its result into a file of this name.
Arguments elastic_words(const std::string& result) {
  return {"train",   "--task",      "digits,train=320,test=100",
          "--model", "softmax",     "--nodes",
          "2:4",     "--algorithm", "allreduce",
          "--lr",    "0.5",         "--rounds",
          "20",      "--quiet",     "--timeout",
          "60",      "--json",      result};
}

nlohmann::json result_in(const fs::path& path) {
  std::ifstream file(path);
  REQUIRE(file);
  return nlohmann::json::parse(file);
}

}  // namespace

TEST_CASE("nodes that come and go find each other by the store of torchrun's agent") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  FakeTorchStore agent(TorchServer::since_2_2_libuv);
  const Scratch folder;
  std::vector<std::unique_ptr<Process>> nodes;
  const auto path = [&](int k) { return folder.path() / fmt::format("{}.json", k); };
  for (int k = 0; k < 2; ++k) {
    nodes.push_back(
        std::make_unique<Process>(command(elastic_words(path(k).string())),
                                  Variables{{"RANK", std::to_string(k)},
                                            {"WORLD_SIZE", "2"},
                                            {"LOCAL_RANK", std::to_string(k)},
                                            {"LOCAL_WORLD_SIZE", "2"},
                                            {"MASTER_ADDR", "localhost"},
                                            {"MASTER_PORT", std::to_string(agent.port())},
                                            {"TORCHELASTIC_RUN_ID", "job"},
                                            {"TORCHELASTIC_RESTART_COUNT", "0"},
                                            {"TORCHELASTIC_MAX_RESTARTS", "0"},
                                            {"TORCHELASTIC_USE_AGENT_STORE", "True"}}));
  }
  for (int k = 0; k < 2; ++k) {
    const Ended ended = nodes[static_cast<std::size_t>(k)]->wait();
    CAPTURE(ended.err);
    REQUIRE(ended.status == 0);
    const auto result = result_in(path(k));
    CHECK(result.at("round") == 20);
    CHECK(result.at("parameters_sha256") == result_in(path(0)).at("parameters_sha256"));
    CHECK(contains(result.at("config").at("name").get<std::string>(), fmt::format("-w{}.0-", k)));
    CHECK(result.at("config").at("seeds") == fmt::format("torch://127.0.0.1:{}/job", agent.port()));
  }
}

TEST_CASE("torchrun starts nodes that come and go with no word of where they meet") {
  if (const auto why = without_torchrun(); !why.empty()) {
    SOTTO_SKIP(why);
  }
  const int port = free_port();
  for (const Arguments& options : {static_group(1, 0, port), c10d_group("1:2", free_port())}) {
    CAPTURE(options.back());
    const Job job;
    std::string words = fmt::format("exec '{}'", SOTTO_PROGRAM);
    for (const std::string& word : elastic_words("")) {
      words += word.empty() ? fmt::format(" '{}/'$LOCAL_RANK", job.folder().string()) : " " + word;
    }
    for (const auto& agent : start_agents(job, 1, 2, words, [&](int) { return options; })) {
      const Ended ended = agent->wait();
      CAPTURE(ended.out);
      CAPTURE(ended.err);
      REQUIRE(ended.status == 0);
    }
    const auto first = result_in(job.folder() / "0");
    CHECK(first.at("round") == 20);
    CHECK(first.at("parameters_sha256") == result_in(job.folder() / "1").at("parameters_sha256"));
  }
}

TEST_CASE("torchrun starts runs, one after the other, however it is told where its agents meet") {
  if (const auto why = without_torchrun(); !why.empty()) {
    SOTTO_SKIP(why);
  }
  const auto expected = digests_of(4, 5);
  const int port = free_port();
  for (const Arguments& options : {Arguments{"--standalone"}, static_group(1, 0, port),
                                   static_group(1, 0, port), c10d_group("1", free_port())}) {
    CAPTURE(options.back());
    const Job job;
    CHECK(job.end(start_agents(job, 1, 4, job.train(5), [&](int) { return options; })) == expected);
  }
}

TEST_CASE("two agents of torchrun's are one run") {
  if (const auto why = without_torchrun(); !why.empty()) {
    SOTTO_SKIP(why);
  }
  const auto expected = digests_of(4, 5);
  const int port = free_port();
  const Job fixed;
  CHECK(fixed.end(start_agents(fixed, 2, 2, fixed.train(5), [&](int agent) {
    return static_group(2, agent, port);
  })) == expected);
  const int other = free_port();
  const Job found;
  CHECK(found.end(start_agents(found, 2, 2, found.train(5),
                               [&](int) { return c10d_group("2", other); })) == expected);
}

TEST_CASE("two torchruns on one host at a time are two runs, also under one name") {
  if (const auto why = without_torchrun(); !why.empty()) {
    SOTTO_SKIP(why);
  }
  const Job first;
  const Job second;
  const int first_port = free_port();
  const int second_port = free_port();
  for (const bool fixed : {false, true}) {
    const auto group = [&](const Job& job, int rounds, int port) {
      return start_agents(job, 1, 2, job.train(rounds), [&](int) {
        return fixed ? static_group(1, 0, port) : c10d_group("1", port);
      });
    };
    const auto one = group(first, 5, first_port);
    const auto two = group(second, 8, second_port);
    CHECK(first.end(one) == digests_of(2, 5));
    CHECK(second.end(two) == digests_of(2, 8));
  }
}

TEST_CASE("a node that is killed under torchrun starts the group again, and the run ends") {
  if (const auto why = without_torchrun(); !why.empty()) {
    SOTTO_SKIP(why);
  }
  for (const int killed : {0, 3}) {
    const int port = free_port();
    check_restart(1, killed, [&](int) { return static_group(1, 0, port); });
  }
  const int port = free_port();
  check_restart(1, 2, [&](int) { return c10d_group("1", port); });
}

TEST_CASE("a node that is killed under one of two agents starts both again") {
  if (const auto why = without_torchrun(); !why.empty()) {
    SOTTO_SKIP(why);
  }
  for (const int killed : {0, 3}) {
    const int port = free_port();
    check_restart(2, killed, [&](int agent) { return static_group(2, agent, port); });
    const int other = free_port();
    check_restart(2, killed, [&](int) { return c10d_group("2", other); });
  }
}

TEST_CASE("a run that torchrun starts again goes on from its checkpoints") {
  if (const auto why = without_torchrun(); !why.empty()) {
    SOTTO_SKIP(why);
  }
  const Job job;
  const std::string saved = "--checkpoint '" + (job.folder() / "saved").string() + "'";
  // Node 1 fails once, after 20 rounds.
  const std::string script = fmt::format(
      "if [ $TORCHELASTIC_RESTART_COUNT = 1 ]; then {0} {1} --resume; fi; "
      "'{2}' {3} --rounds 20 --quiet {1} && [ $RANK != 1 ]",
      job.train(40), saved, SOTTO_PROGRAM, kTorchrunTrain);
  const int port = free_port();
  CHECK(job.end(start_agents(job, 1, 4, script, [&](int) {
    return with(static_group(1, 0, port), {"--max_restarts", "1"});
  })) == digests_of(4, 40));
}

TEST_CASE("a group of one or two agents runs with the one that is there, and again with both") {
  if (const auto why = without_torchrun(); !why.empty()) {
    SOTTO_SKIP(why);
  }
  const auto elastic = [](int port) { return [port](int) { return c10d_group("1:2", port); }; };
  const Job alone;
  CHECK(alone.end(start_agents(alone, 1, 2, alone.train(5), elastic(free_port()))) ==
        digests_of(2, 5));

  const Job job;
  NamedPipe news(job.folder() / "news");
  const std::string script =
      fmt::format("if [ $WORLD_SIZE = 4 ]; then {}; fi; {}", job.train(5), job.endless());
  const auto group = c10d_group("1:2", free_port());
  // Later agents of PyTorch's that share a store wait for each other when one joins a running
  // group.
  const Variables apart = {{"TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1"}};
  Agents agents;
  agents.push_back(start_agent(group, 2, job.script(script), apart));
  REQUIRE(news.wait_for("\n      40 "));
  agents.push_back(start_agent(group, 2, job.script(script), apart));
  CHECK(job.end(agents) == digests_of(4, 5));
}

TEST_CASE("a process of torchrun's whose agent serves nothing says what answers, and what to do") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const int port = free_port();  // where nobody listens
  const auto ended = run(small_train({"--quiet"}), {{"RANK", "1"},
                                                    {"WORLD_SIZE", "4"},
                                                    {"MASTER_ADDR", "127.0.0.1"},
                                                    {"MASTER_PORT", std::to_string(port)},
                                                    {"TORCHELASTIC_RUN_ID", "none"},
                                                    {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  CHECK(ended.status == 1);
  CHECK_MESSAGE(contains(ended.err, fmt::format("PyTorch's store at 127.0.0.1:{}", port)),
                ended.err);
  CHECK_MESSAGE(contains(ended.err, "unset that"), ended.err);
}

}  // namespace sotto::test::torchrun_test
