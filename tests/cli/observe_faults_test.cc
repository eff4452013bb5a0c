// What a run tells of itself where a file, a port or the run fails.
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/observe/event_record.h>

#include "cli/program.h"
#include "cli/sites.h"
#include "observe/observed.h"
#include "support/free_port.h"
#include "support/skip.h"

namespace sotto::test::observe_faults_test {

using nlohmann::json;

TEST_CASE("a file that fails during a run is told once, and the run goes on") {
  const Scratch scratch;
  const auto told_in = [&](const std::string& words) {
    const auto ended =
        shell(fmt::format("trap '' XFSZ; ulimit -f 16; exec {}{}", SOTTO_PROGRAM, words));
    CAPTURE(ended.err);
    CHECK(ended.status == 0);
    CHECK(ended.out.find(" (in part: a write failed)\n") != std::string::npos);
    return ended.err;
  };
  std::string train;
  for (const std::string& word : small_train({"--rounds", "60", "--eval-every", "1"})) {
    train += " " + word;
  }
  const auto trace = (scratch.path() / "trace.json").string();
  for (const std::string option : {"--log-json", "--mllog", "--trace"}) {
    const auto path = option == "--trace" ? trace : (scratch.path() / "lines").string();
    const std::string err = told_in(fmt::format("{} {} {}", train, option, path));
    CHECK(err == fmt::format("sotto: warning: {}: {}: File too large; the run goes on without\n",
                             option, path));
  }
  check_trace(json::parse(text_of_file(trace)));
}

TEST_CASE("a log goes to standard output, a file as well, beside what else is said there") {
  const Scratch scratch;
  const auto out = (scratch.path() / "out").string();
  std::string train;
  for (const std::string& word : small_train({"--rounds", "4"})) {
    train += " " + word;
  }
  for (const std::string path : {"-", "/dev/stdout"}) {
    const auto ended = shell(fmt::format("echo before > {1}; {0}{2} --log-json {3} >> {1}",
                                         SOTTO_PROGRAM, out, train, path));
    CAPTURE(ended.err);
    CHECK(ended.status == 0);
    std::istringstream said(text_of_file(out));
    std::string line;
    REQUIRE(std::getline(said, line));
    CHECK(line == "before");
    REQUIRE(std::getline(said, line));
    CHECK(json::parse(line).at("event") == "began");
    CHECK(text_of_file(out).find("\n{\"event\":\"ended\"") != std::string::npos);
    CHECK(text_of_file(out).find("time ") != std::string::npos);
  }
}

TEST_CASE("a run that an exception ends has its last lines") {
  const Scratch scratch;
  const int port = free_port();
  const int taken = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  sockaddr_in address = loopback(port);
  REQUIRE(::setsockopt(taken, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
  REQUIRE(::bind(taken, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::listen(taken, 1) == 0);
  for (const std::string transport : {"inproc", "zmq"}) {
    if (!has_transport(transport)) {
      continue;
    }
    CAPTURE(transport);
    const auto log = (scratch.path() / (transport + ".log")).string();
    const auto mllog = (scratch.path() / (transport + ".mllog")).string();
    const auto ended =
        run(small_train({"--rounds", "3", "--transport", transport, "--metrics",
                         std::to_string(port), "--log-json", log, "--mllog", mllog}));
    CHECK(ended.status == 1);
    REQUIRE_FALSE(lines_of(log).empty());
    const json last = lines_of(log).back();
    CHECK(last.at("event") == "ended");
    CHECK(last.at("ok") == false);
    CHECK(contains(last.at("text").get<std::string>(), std::to_string(port)));
    const json stop = lines_of(mllog, ":::MLLOG ").back();
    CHECK(stop.at("key") == "run_stop");
    CHECK(stop.at("metadata").at("status") == "aborted");
  }
  ::close(taken);
}

TEST_CASE("a site's log in JSON says that TensorBoard's file has no room, and nothing else does") {
  if (!sotto::has_event_records()) {
    SOTTO_SKIP("this build has no ISA-L");
  }
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Scratch scratch;
  std::string table = "size,kind\n";
  for (int row = 0; row < 100; ++row) {
    table += fmt::format("{},{}\n", row, row % 2);
  }
  const std::string data = scratch.write("table.csv", table).string();
  Sites sites({"a", "b"});
  sites.write_all("rounds = 200\neval-every = 1");
  for (const std::string name : {"a", "b"}) {
    std::string site = text_of_file(sites.file(name));
    const std::string digits = "digits,train=600,test=200";
    site.replace(site.find(digits), digits.size(), "csv:" + data);
    std::ofstream(sites.file(name)) << site;
  }
  sites.start("b");
  // 16 KiB a file: the state of so small a model has room, 200 evaluations have not.
  const auto ended = shell(
      fmt::format("trap '' XFSZ; ulimit -f 32; exec {} node {} --quiet --log json --tensorboard {}",
                  SOTTO_PROGRAM, sites.file("a"), scratch.path().string()));
  CAPTURE(ended.err);
  CHECK(ended.status == 0);
  std::istringstream said(ended.err);
  int told = 0;
  for (std::string line; std::getline(said, line);) {
    const json event = json::parse(line);
    if (event.at("event") == "tensorboard-failed") {
      ++told;
      CHECK(contains(event.at("text").get<std::string>(), "--tensorboard"));
    }
  }
  CHECK(told == 1);
}

}  // namespace sotto::test::observe_faults_test
