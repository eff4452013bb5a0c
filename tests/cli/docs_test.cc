// What README.md and docs/*.md show of the program: every command is taken by the program's own
// options, every file is read by the program's own readers.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <CLI/App.hpp>
#include <nlohmann/json.hpp>

#include <sotto/base/error.h>
#include <sotto/comm/trust/peers_file.h>
#include <sotto/sites/process/trust/trust_plan.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/train/scaling_file.h>
#include <sotto/topology/registry.h>

#include "cli/scenario_text.h"
#include "commands.h"
#include "site/site_config.h"
#include "support/blocks.h"
#include "support/scratch.h"
#include "support/text_of_file.h"

namespace sotto::test::docs_test {

namespace fs = std::filesystem;
using sotto::test::all_blocks;
using sotto::test::Block;
using sotto::test::commands_of;

namespace {

const fs::path kRoot = fs::path(SOTTO_DOCS).parent_path();

bool is_sotto(const std::string& word) { return word == "sotto" || word == "build/sotto"; }

/// What stands behind the program's name, which a launcher may stand in front of; nothing for
/// another program.
std::vector<std::string> arguments_of(const std::vector<std::string>& command) {
  auto at = std::find_if(command.begin(), command.end(),
                         [](const auto& word) { return word.find('=') == std::string::npos; });
  if (at != command.end() && (*at == "mpirun" || *at == "srun")) {
    at = std::find_if(at, command.end(), is_sotto);
  }
  return at != command.end() && is_sotto(*at) ? std::vector(at + 1, command.end())
                                              : std::vector<std::string>();
}

/// What the program says of these arguments before it does anything; empty: they will do.
std::string complaint(std::vector<std::string> arguments) {
  CLI::App program("", "sotto");
  program.require_subcommand(1);
  const auto commands = sotto::cli::add_all_commands(program);
  std::reverse(arguments.begin(), arguments.end());
  try {
    program.parse(arguments);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return {};
}

/// Reads a trace of a link, of clients' capacities or of their times, in a scenario that names it.
void read_in_scenario(const std::string& head, const fs::path& path,
                      const sotto::test::Scratch& scratch) {
  const std::string name = "\"" + path.string() + "\"";
  const bool capacity = head.starts_with("client,computation");
  const std::string pace = capacity ? "capacity = { file = " + name + ", samples = 20 }"
                                    : std::string("gradient = \"20 ms\"");
  const bool link = head.starts_with("time ");
  const std::string whole = sotto::test::scenario(
      "count = 2, " + pace + (link || capacity ? "" : ", availability = " + name),
      link ? "link = { trace = " + name + " }" : sotto::test::kNetwork);
  sotto::study::read_scenario(scratch.write("whole.toml", whole).string());
}

/// Reads a file as what its first line says it is.
void read(const Block& block, const fs::path& path, const sotto::test::Scratch& scratch) {
  const std::string& head = block.lines.front();
  if (block.language == "json") {
    CHECK(nlohmann::json::accept(block.text()));
  } else if (head.starts_with("from,to")) {
    CHECK(sotto::make_topology("file:" + path.string(), 2)->nodes() == 2);
  } else if (head.starts_with("name,address")) {
    CHECK(sotto::parse_trust_plan(path.string(), block.text()).sites.size() > 1);
  } else if (head.starts_with("rank,") || head.starts_with("name,")) {
    const bool ranks = head.starts_with("rank,");
    CHECK_FALSE(sotto::read_peers_file(
                    path.string(), ranks ? sotto::PeerNumbers::ranks : sotto::PeerNumbers::of_names)
                    .empty());
  } else if (head.starts_with("sotto-site")) {
    sotto::cli::read_site_config(path.string());
  } else if (head.starts_with("sotto-scaling")) {
    CHECK_FALSE(sotto::study::read_scaling("scaling", path.string()).columns.empty());
  } else if (head.starts_with("sotto-scenario")) {
    sotto::study::read_scenario(path.string());
  } else if (head.starts_with("time ") || head.starts_with("client,")) {
    read_in_scenario(head, path, scratch);
  } else if (head.starts_with("[")) {
    // A part of a scenario.
    const std::string whole = sotto::test::scenario(
        "count = 8, gradient = \"20 ms\"", sotto::test::kNetwork, block.text(), "\"robust\"");
    sotto::study::read_scenario(scratch.write("whole.toml", whole).string());
  } else {
    FAIL_CHECK(block.place(), ": no reader is known for a file that begins with ", head);
  }
}

}  // namespace

TEST_CASE("every command of the program in the documents is one that it takes") {
  std::size_t seen = 0;
  for (const Block& block : all_blocks(kRoot)) {
    if (block.language != "sh") {
      continue;
    }
    for (const auto& command : commands_of(block)) {
      if (const auto arguments = arguments_of(command); !arguments.empty()) {
        ++seen;
        CHECK_MESSAGE(complaint(arguments).empty(), block.place(), ": ", complaint(arguments));
      }
    }
  }
  CHECK(seen >= 20);
  CHECK_FALSE(complaint({"train", "--no-such-option"}).empty());
  CHECK_FALSE(complaint({"no-such-command"}).empty());
}

TEST_CASE("every file in the documents is one that the program reads") {
  const sotto::test::Scratch scratch;
  for (const char* trace : {"lte.up", "half-line.csv"}) {
    fs::copy(fs::path(SOTTO_SCENARIOS) / trace, scratch.path());
  }
  std::size_t seen = 0;
  for (const Block& block : all_blocks(kRoot)) {
    if (block.language != "csv" && block.language != "toml" && block.language != "json") {
      continue;
    }
    ++seen;
    CAPTURE(block.place());
    const auto path = scratch.write("block." + block.language, block.text());
    CHECK_NOTHROW(read(block, path, scratch));
  }
  CHECK(seen >= 5);
}

TEST_CASE("docs/program.md has every command") {
  CLI::App program;
  const auto commands = sotto::cli::add_all_commands(program);
  const std::string page = text_of_file(std::filesystem::path(SOTTO_DOCS) / "program.md");
  CHECK(commands.size() > 15);
  for (const auto& command : commands) {
    const CLI::App* parent = command.app->get_parent();
    const std::string above = parent == &program ? "" : parent->get_name() + " ";
    const std::string name = "`sotto " + above + command.app->get_name() + "`";
    CHECK_MESSAGE(sotto::test::contains(page, name), name);
  }
}

}  // namespace sotto::test::docs_test
