// `sotto train --nodes MIN:MAX --seeds URL`: processes that know a store alone come, are killed,
// and go on with one model.
#include <csignal>
#include <filesystem>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/comm/shared_store.h>

#include "cli/epochs_run.h"
#include "cli/program.h"
#include "support/redis_server.h"
#include "support/scratch.h"
#include "support/skip.h"

namespace sotto::test::store_seeds_test {

namespace {

/// Three nodes; one is killed, a newcomer takes its place, and all that are left end with one
/// model.
void play(const std::string& store) {
  EpochsRun run("2:4",
                {"--algorithm", "allreduce", "--gradient-time", "12 ms", "--rounds", "1500"});
  run.meet_in(store);
  for (const std::string name : {"a", "b", "c"}) {
    run.start(name);
  }
  run.await_members("a", 3);
  run["a"].send(SIGKILL);
  run.await_members("b", 2);
  run.start("d");
  run.await_members("d", 3);
  const auto result = run.finish("d");
  CHECK(result.at("round") == 1500);
  for (const std::string name : {"b", "c"}) {
    CHECK(run.finish(name).at("parameters_sha256") == result.at("parameters_sha256"));
  }
  // One that comes when all is over is told so.
  run.start("late");
  const Ended late = run["late"].wait();
  CHECK(late.status != 0);
  CHECK_MESSAGE(contains(late.err, "is over, after step 1500"), late.err);
}

}  // namespace

TEST_CASE("train by a store: three nodes know a folder alone and one is killed and one comes") {
  const Scratch folder;
  play("file:" + (folder.path() / "nodes").string());
}

TEST_CASE("train by a store: the same in Redis") {
  try {
    (void)sotto::make_shared_store("seeds", "redis://127.0.0.1:1");
  } catch (const sotto::Error&) {
    SOTTO_SKIP("built without hiredis");
  }
  if (!has_redis_server()) {
    SOTTO_SKIP("no redis-server");
  }
  const RedisServer server;
  play(fmt::format("redis://127.0.0.1:{}/job/", server.port));
}

TEST_CASE("train by a store: all are killed and those that are started again go on") {
  const Scratch folder;
  EpochsRun run("2:3", {"--algorithm", "allreduce", "--gradient-time", "12 ms", "--rounds",
                        "1000000", "--save-every", "5", "--begin-again-after", "1"});
  run.meet_in("file:" + (folder.path() / "nodes").string());
  const auto start = [&](const std::string& name) {
    run.start(name, {"--state", run.folder(name)});
  };
  start("a");
  start("b");
  const int then = run.await_more("b", 40);
  for (const std::string name : {"a", "b"}) {
    run[name].send(SIGKILL);
    run[name].wait();
  }
  start("b");
  start("a");
  run.await_members("a", 2);
  CHECK(run.await_more("a", 5) > then - 20);
  CHECK(std::filesystem::exists(folder.path() / "nodes" / "key-nodes%runs%2"));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "nodes" / "key-nodes%runs%3"));
}

TEST_CASE("train by a store: what is no such store is refused with what would be one") {
  for (const std::string seeds : {"tcp://127.0.0.1:9000", "memory:", "redis://nowhere",
                                  "file:/tmp,127.0.0.1:9000", "127.0.0.1:9000,file:/tmp"}) {
    const Ended ended = run({"train", "--nodes", "1:2", "--seeds", seeds});
    CHECK(ended.status != 0);
    CHECK_MESSAGE(contains(ended.err, "redis://HOST:PORT/PREFIX"), ended.err);
  }
  const Ended ended = run({"train", "--nodes", "1:2", "--seeds", "file:/proc/nowhere/here"});
  CHECK(ended.status != 0);
  CHECK_MESSAGE(contains(ended.err, "--seeds"), ended.err);
}

}  // namespace sotto::test::store_seeds_test
