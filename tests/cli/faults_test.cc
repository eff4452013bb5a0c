// Nodes that are killed, and Ctrl-C.
#include <string>

#include <doctest/doctest.h>

#include "cli/program.h"
#include "support/skip.h"

namespace sotto::test::faults_test {

namespace {

/// A run that would go on for ever, and prints a row after every 20 rounds.
Arguments endless(const std::string& transport, const std::string& checkpoints) {
  return command(small_train({"--rounds", "1000000000", "--eval-every", "20", "--checkpoint",
                              checkpoints, "--transport", transport}));
}

bool is_there(pid_t process) { return ::kill(process, 0) == 0; }

bool holds_nothing(const std::filesystem::path& folder) {
  return std::filesystem::directory_iterator(folder) == std::filesystem::directory_iterator();
}

/// Started and past its first checkpoint: the row of round 40 comes after the checkpoint of 20.
bool is_under_way(Process& process) { return process.wait_for("\n      40 "); }

void check_resumable(const std::string& checkpoints) {
  const auto resumed = run(small_train({"--rounds", "1000000000", "--eval-every", "20",
                                        "--checkpoint", checkpoints, "--resume", "--lr", "0.2"}));
  // Refused for its other learning rate, so the checkpoints were found and read.
  CHECK(resumed.status == 2);
  CHECK(contains(resumed.err, "lr is 0.2 here"));
}

}  // namespace

TEST_CASE("when a node is killed the run fails, names it, and leaves nobody behind") {
  for (const std::string transport : {"gloo", "zmq"}) {
    if (!has_transport(transport)) {
      continue;
    }
    CAPTURE(transport);
    const Scratch scratch;
    const Scratch temporary;
    Process process(endless(transport, scratch.path().string()),
                    {{"TMPDIR", temporary.path().string()}});
    REQUIRE(is_under_way(process));
    const auto nodes = process.children();
    if (nodes.empty()) {
      SOTTO_SKIP("the kernel does not list a process's children");
    }
    REQUIRE(nodes.size() == 4);
    ::kill(nodes[2], SIGKILL);
    const auto ended = process.wait();
    CHECK(ended.status == 1);
    CHECK(contains(ended.err, "node 2 was killed by signal 9"));
    for (const pid_t node : nodes) {
      CHECK_FALSE(is_there(node));
    }
    CHECK(holds_nothing(temporary.path()));
    check_resumable(scratch.path().string());
  }
}

TEST_CASE("a node that hangs is found within the deadline, and named") {
  for (const std::string transport : {"gloo", "zmq"}) {
    if (!has_transport(transport)) {
      continue;
    }
    CAPTURE(transport);
    const Scratch scratch;
    auto words = endless(transport, scratch.path().string());
    *(std::find(words.begin(), words.end(), "--timeout") + 1) = "2";
    Process process(words);
    REQUIRE(is_under_way(process));
    const auto nodes = process.children();
    if (nodes.empty()) {
      SOTTO_SKIP("the kernel does not list a process's children");
    }
    ::kill(nodes[1], SIGSTOP);
    const auto ended = process.wait();
    CHECK(ended.status == 1);
    CAPTURE(ended.err);
    CHECK(contains(ended.err, "(silent: node 1)"));
    CHECK_FALSE(is_there(nodes[1]));
  }
}

TEST_CASE("a signal ends all nodes after the round under way, with a checkpoint of all") {
  struct Case {
    std::string transport;
    int signal;
  };
  const Case cases[] = {{"inproc", SIGINT},
                        {"inproc", SIGTERM},
                        {"gloo", SIGTERM},
                        {"gloo", SIGINT},
                        {"zmq", SIGINT}};
  for (const Case& one : cases) {
    if (!has_transport(one.transport)) {
      continue;
    }
    CAPTURE(one.transport);
    CAPTURE(one.signal);
    const Scratch scratch;
    const Scratch temporary;
    // No checkpoint is due before the end: what is saved is saved because of the signal.
    auto words = endless(one.transport, scratch.path().string());
    words.insert(words.end(), {"--checkpoint-every", "0"});
    Process process(words, {{"TMPDIR", temporary.path().string()}});
    REQUIRE(is_under_way(process));
    const auto nodes = process.children();
    process.send(one.signal);
    const auto ended = process.wait();
    CAPTURE(ended.err);
    CHECK(ended.status == 128 + one.signal);
    CHECK(contains(ended.err, "interrupted; round "));
    CHECK(contains(ended.err, "the same command with --resume goes on from there"));
    for (const pid_t node : nodes) {
      CHECK_FALSE(is_there(node));
    }
    CHECK(holds_nothing(temporary.path()));
    check_resumable(scratch.path().string());
  }
}

TEST_CASE("a signal to the whole process group ends a run as one to its parent does") {
  for (const std::string transport : {"gloo", "zmq"}) {
    if (!has_transport(transport)) {
      continue;
    }
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      CAPTURE(transport);
      CAPTURE(signal);
      const Scratch scratch;
      auto words = endless(transport, scratch.path().string());
      words.insert(words.end(), {"--checkpoint-every", "0"});
      Process process(words, {}, Group::own);
      REQUIRE(is_under_way(process));
      const auto nodes = process.children();
      // Every node hears it twice: from the group's sender, and from its parent.
      process.send_to_group(signal);
      const auto ended = process.wait();
      CAPTURE(ended.err);
      CHECK(ended.status == 128 + signal);
      CHECK(contains(ended.err, "the same command with --resume goes on from there"));
      for (const pid_t node : nodes) {
        CHECK_FALSE(is_there(node));
      }
      check_resumable(scratch.path().string());
    }
  }
}

TEST_CASE("a run that is interrupted and goes on ends as one that was not") {
  const Scratch scratch;
  const Arguments length = {"--rounds", "3000", "--eval-every", "20"};
  Arguments saved = length;
  saved.insert(saved.end(), {"--checkpoint", scratch.path().string(), "--checkpoint-every", "0"});
  Process process(command(small_train(saved)));
  REQUIRE(is_under_way(process));
  process.send(SIGINT);
  const auto ended = process.wait();
  if (ended.status == 0) {
    SOTTO_SKIP("the run was over before the signal came");
  }
  CHECK(ended.status == 128 + SIGINT);
  saved.insert(saved.end(), {"--resume", "--json", "-"});
  Arguments whole = length;
  whole.insert(whole.end(), {"--json", "-"});
  CHECK(run(small_train(saved)).json().at("parameters_sha256") ==
        run(small_train(whole)).json().at("parameters_sha256"));
}

TEST_CASE("Ctrl-C promises nothing where no checkpoint was asked for") {
  Process process(command(small_train({"--rounds", "1000000000", "--eval-every", "20"})));
  REQUIRE(is_under_way(process));
  process.send(SIGINT);
  const auto ended = process.wait();
  CHECK(ended.status == 128 + SIGINT);
  CHECK(contains(ended.err, "interrupted"));
  CHECK_FALSE(contains(ended.err, "--resume"));
}

TEST_CASE("when the parent is killed its nodes go with it") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Scratch scratch;
  Process process(endless("zmq", scratch.path().string()), {{"TMPDIR", scratch.path().string()}});
  REQUIRE(is_under_way(process));
  process.send(SIGKILL);
  // The nodes hold the other ends of this pipe; it closes when the last of them has gone.
  CHECK(process.wait().status == 128 + SIGKILL);
}

}  // namespace sotto::test::faults_test
