// The program under real limits of the system: it ends with a message, and never by a signal.
#include <unistd.h>

#include <algorithm>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli/program.h"
#include "support/skip.h"

namespace sotto::test::limits_test {

namespace {

/// `sotto train` on threads under `limit`, in the words of prlimit, as a user without privileges.
/// The user is this test's own: the limit of processes is one of all that a user has.
Ended train_under(const std::string& limit, int nodes) {
  const std::string drop = fmt::format("setpriv --reuid={0} --regid={0} --clear-groups ",
                                       100'000 + ::getpid() % 400'000);
  return shell("cd / && exec prlimit " + limit + " -- " + (::geteuid() == 0 ? drop : "") +
               SOTTO_PROGRAM + " train --task digits,train=64,test=32 --model softmax --rounds 2" +
               " --quiet --timeout 20 --transport inproc --nodes " + std::to_string(nodes));
}

}  // namespace

TEST_CASE("too few threads for the nodes are a message that counts them") {
  const auto plain = train_under("--core=0:0", 2);
  if (plain.status != 0) {
    SOTTO_SKIP("an unprivileged user cannot run the program here: " + plain.err);
  }
  const auto ended = train_under("--nproc=3:3", 24);
  CAPTURE(ended.err);
  if (ended.status == 0) {
    SOTTO_SKIP("the limit of processes does not hold here");
  }
  CHECK(ended.status <= 2);
  CHECK(ended.err.starts_with("sotto: "));
  CHECK(ended.err.find("ulimit -u") != std::string::npos);
}

TEST_CASE("however little memory there is, the program ends with a message") {
  const auto plain = train_under("--core=0:0", 2);
  if (plain.status != 0) {
    SOTTO_SKIP("an unprivileged user cannot run the program here: " + plain.err);
  }
  for (const int mebibytes : {120, 200, 300, 420}) {
    CAPTURE(mebibytes);
    const auto ended = train_under("--as=" + std::to_string(mebibytes * 1024 * 1024), 48);
    CAPTURE(ended.err);
    if (ended.status == 127) {
      continue;  // the program itself could not be loaded
    }
    CHECK(ended.status <= 2);
    CHECK((ended.status == 0 || ended.err.starts_with("sotto: ")));
  }
}

TEST_CASE("however few files may be open, a launched node names the limit and ends") {
  for (const std::string transport : {"gloo", "zmq"}) {
    const auto builds = run({"list", "--json", "-"}).json();
    const auto& transports = builds.at("transports");
    if (std::none_of(transports.begin(), transports.end(), [&](const auto& one) {
          return one.at("name") == transport && one.at("available") == true;
        })) {
      MESSAGE("SKIPPED: this build lacks ", transport);
      continue;
    }
    for (const int files : {5, 6, 8, 10, 12, 14}) {
      CAPTURE(transport);
      CAPTURE(files);
      const auto ended =
          // What this test inherited is open beside the program's own files, and counts.
          shell(
              "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; WORLD_SIZE=2 RANK=1 exec prlimit "
              "--core=0:0 --nofile=" +
              std::to_string(files) + ":" + std::to_string(files) + " -- " + SOTTO_PROGRAM +
              " train --task digits,train=64,test=32 --model softmax --rounds 2" +
              " --quiet --timeout 2 --rendezvous tcp://127.0.0.1:9 --transport " + transport);
      CAPTURE(ended.err);
      CHECK(ended.status <= 2);
      CHECK(ended.status > 0);
      CHECK(ended.err.find("`ulimit -n`") != std::string::npos);
    }
  }
}

}  // namespace sotto::test::limits_test
