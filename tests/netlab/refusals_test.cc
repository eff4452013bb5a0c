// What netlab and the programs beside `sotto` refuse before anything runs, and with which status
// they end. Needs no root.
#include <algorithm>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/console/usage.h>
#include <sotto/study/units.h>
#include <sotto/trainers/launch/private_directory.h>

#include "bench/netlab/command_options.h"
#include "bench/netlab/commands/commands.h"
#include "bench/support/command_line.h"

namespace sotto::test::refusals_test {

using namespace sotto::netlab;

namespace {

struct Ending {
  int status = 0;
  std::string refusal;
};

Ending run_netlab(std::vector<std::string> words) {
  CLI::App program("", "netlab");
  program.require_subcommand(1);
  const std::vector<console::Command> commands = {
      add_calibrate_command(program, SOTTO_PROGRAM), add_heldout_command(program, SOTTO_PROGRAM),
      add_loss_command(program, SOTTO_PROGRAM),      add_links_command(program, SOTTO_PROGRAM),
      add_corners_command(program, SOTTO_PROGRAM),   add_overhead_command(program, SOTTO_PROGRAM),
      add_race_command(program, SOTTO_PROGRAM),      add_finish_command(program, SOTTO_PROGRAM)};
  std::ranges::reverse(words);  // as CLI11 takes them
  try {
    program.parse(words);
    const auto chosen = std::ranges::find_if(
        commands, [](const console::Command& command) { return command.app->parsed(); });
    return {chosen->run(), {}};
  } catch (const CLI::ParseError& error) {
    return {console::kWrongRequest, console::explain(program, error)};
  } catch (const Error& error) {
    return {console::kWrongRequest, error.what()};
  }
}

void check_refused(const std::vector<std::string>& words, const std::string& what) {
  const Ending end = run_netlab(words);
  CAPTURE(what);
  CAPTURE(end.refusal);
  CHECK(end.status == console::kWrongRequest);
  CHECK(end.refusal.find(what) != std::string::npos);
}

}  // namespace

TEST_CASE("commands of netlab that run sotto refuse a program that is none") {
  for (const char* command : {"calibrate", "heldout", "loss", "links", "corners", "overhead"}) {
    CAPTURE(command);
    check_refused({command, "--program", "/nowhere/sotto"},
                  "--program: '/nowhere/sotto' is refused");
    check_refused({command, "--program", "/"}, "--program: '/' is refused");
  }
}

TEST_CASE("netlab finish refuses a folder without MNIST's files") {
  const PrivateDirectory empty;
  check_refused({"finish", "--mnist", "/nowhere"}, "--mnist: /nowhere: there is no such folder");
  check_refused({"finish", "--mnist", empty.path()}, "none of its files is there");
}

TEST_CASE("netlab finish refuses what has no accuracy, and no task at all") {
  check_refused({"finish"}, "give --mnist, a folder of MNIST's IDX files, or --task and --model");
  const PrivateDirectory folder;
  const std::string table = folder.path() + "/table.csv";
  {
    std::ofstream rows(table);
    rows << "a,y\n";
    for (int row = 0; row < 40; ++row) {
      rows << row << ',' << 0.5 * row << '\n';
    }
  }
  check_refused({"finish", "--task", "csv:" + table + ",target=y,regression"},
                "is refused: nothing in it is right or wrong");
  check_refused({"finish", "--task", "text:/nowhere", "--model", "transformer"}, "/nowhere");
  check_refused({"finish", "--task", "digits", "--mnist", "/nowhere"}, "excludes");
  check_refused({"finish", "--task", "digits", "--model", "softmax", "--hidden", "4"}, "excludes");
}

TEST_CASE("what netlab refuses has the option's name, and what would do") {
  check_refused({"race", "--rounds", "0"}, "--rounds: '0' is refused: at least one is needed");
  check_refused({"race", "--repeats", "0"}, "--repeats: '0' is refused: at least one is needed");
  check_refused({"race", "--hosts", "1"}, "--hosts: '1' is refused: it must be 2 to ");
  check_refused({"race", "--bandwidth", "5 Mbits"}, "--bandwidth: '5 Mbits' is no bandwidth");
  check_refused({"race", "--bandwidth", "10 Gbit/s"}, "--bandwidth: the link from node 0");
  check_refused({"race", "--latency", "5"}, "--latency: '5' is no duration");
  check_refused({"race", "--only", "quic"}, "--only: 'quic' is refused: no contender's name");
  check_refused({"race", "--only", "gloo rign"}, "; did you mean gloo ring? there are sotto ");
  check_refused({"finish", "--mnist", "/nowhere", "--hidden", "0"}, "--hidden: '0' is refused");
  check_refused({"corners", "--seconds", "601"}, "--seconds: '601' is refused: it must be above 0");
  check_refused({"overhead", "--nodes", "65"}, "--nodes: '65' is refused: it must be 2 to 64");
}

TEST_CASE("loopback has no bandwidth and no latency to choose") {
  const std::string both = ": give one of the two";
  check_refused({"race", "--loopback", "--bandwidth", "5 Mbit/s"},
                "--bandwidth excludes --loopback" + both);
  check_refused({"finish", "--mnist", "/nowhere", "--loopback", "--latency", "1 ms"},
                "--latency excludes --loopback" + both);
}

TEST_CASE("a race in which no contender runs has failed") {
  const Ending end = run_netlab(
      {"race", "--loopback", "--hosts", "2", "--quiet", "--only", "ddp", "--python", "/nowhere"});
  CAPTURE(end.refusal);
  CHECK(end.status == console::kFailed);
}

TEST_CASE("the programs beside sotto end with its statuses: 0, 1 a failure, 2 a wrong request") {
  const auto status = [](const std::vector<const char*>& words, const std::function<void()>& work) {
    std::string rate;
    CLI::App app("", "study");
    app.add_option("--rate", rate, "")->check(bench::readable_by(study::parse_bandwidth));
    return bench::run_main(app, static_cast<int>(words.size()), words.data(), [&] {
      work();
      return console::kDone;
    });
  };
  const auto nothing = [] {};
  CHECK(status({"study", "--rate", "5 Mbit/s"}, nothing) == console::kDone);
  CHECK(status({"study", "--help"}, nothing) == console::kDone);
  CHECK(status({"study", "--rate", "5 Mbits"}, nothing) == console::kWrongRequest);
  CHECK(status({"study", "--rats", "5 Mbit/s"}, nothing) == console::kWrongRequest);
  CHECK(status({"study"}, [] { throw Error("refused"); }) == console::kWrongRequest);
  CHECK(status({"study"}, [] { throw std::runtime_error("failed"); }) == console::kFailed);
}

}  // namespace sotto::test::refusals_test
