// The program under real limits of the system: it ends with a message, and never by a signal.
#include <unistd.h>

#include <string>

#include <doctest/doctest.h>

#include "cli/program.h"
#include "support/skip.h"

using namespace sotto::test;

namespace {

/// `sotto train` on threads under `limit`, in the words of prlimit, as a user without privileges.
Ended train_under(const std::string& limit, int nodes) {
  const std::string drop = "setpriv --reuid=61234 --regid=61234 --clear-groups ";
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
