// The blocks of code in README.md and docs/*.md: each is of a language that some test holds to what
// is true, or says why it is not. What commands of `sotto` and files for it mean is tests/cli's.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "support/blocks.h"

namespace sotto::test::blocks_test {

namespace fs = std::filesystem;
using sotto::test::all_blocks;
using sotto::test::Block;
using sotto::test::blocks_of;
using sotto::test::commands_of;

namespace {

const fs::path kRoot = SOTTO_SOURCE_DIR;

/// Without the indentation.
std::vector<std::string> trimmed(std::vector<std::string> lines) {
  for (std::string& line : lines) {
    line.erase(0, std::min(line.find_first_not_of(' '), line.size()));
  }
  return lines;
}

std::vector<std::string> lines_of(const fs::path& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
  }
  return trimmed(lines);
}

/// All lines of `block` stand in `file`, in their order.
bool holds(const std::vector<std::string>& file, const std::vector<std::string>& block) {
  auto at = file.begin();
  return std::all_of(block.begin(), block.end(), [&](const std::string& line) {
    at = std::find(at, file.end(), line);
    return at != file.end() && at++ != file.end();
  });
}

/// Whether a file of these shows the block.
bool is_shown(const Block& block, const std::vector<std::vector<std::string>>& files) {
  const auto lines = trimmed(block.lines);
  return std::any_of(files.begin(), files.end(),
                     [&](const auto& file) { return holds(file, lines); });
}

std::vector<std::vector<std::string>> files_in(const std::vector<fs::path>& folders,
                                               const std::string& name_or_extension) {
  std::vector<std::vector<std::string>> files;
  for (const fs::path& folder : folders) {
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      if (entry.path().extension() == name_or_extension ||
          entry.path().filename() == name_or_extension) {
        files.push_back(lines_of(entry.path()));
      }
    }
  }
  REQUIRE_FALSE(files.empty());
  return files;
}

/// The lines of a script, without the mark of those that go on in the next one.
std::vector<std::string> script_lines(const fs::path& path) {
  std::vector<std::string> lines = lines_of(path);
  for (std::string& line : lines) {
    if (line.ends_with(" \\")) {
      line.resize(line.size() - 2);
    }
  }
  return lines;
}

/// A line of a list of peers, as a script writes it that has made the keys.
void with_made_key(std::string& line) {
  const auto first = line.find(',');
  const auto second = line.rfind(',');
  if (line != "name,key,address") {
    line = line.substr(0, first) + ",$(key_of " + line.substr(0, first) + ")" + line.substr(second);
  }
}

/// What a page may call that is not of this project.
const std::set<std::string> kKnownPrograms = {
    "apt-get", "cc",  "cd",          "cmake",  "cpack",  "ctest",   "curl",    "export",
    "kill",    "man", "mkdir",       "git",    "mpirun", "pip",     "source",  "sotto",
    "socat",   "ssh", "tensorboard", "sbatch", "docker", "kubectl", "torchrun"};

/// A file of the project, or what a build makes of one.
bool is_ours(const std::string& word) {
  if (fs::exists(kRoot / word) || word == "build/sotto") {
    return true;
  }
  if (!word.starts_with("build/bench/") && !word.starts_with("build/examples/")) {
    return false;
  }
  const std::string name = fs::path(word).filename();
  const fs::path folder = fs::path(word).parent_path().lexically_relative("build");
  const bool torch = name.starts_with("torch_");
  const std::string source = (torch ? name.substr(6) : name) + ".cc";
  // Programs of bench/ lie in folders, as bench/groups/graph_wire.cc and bench/learning/frontier
  // do.
  return fs::exists(kRoot / folder / source) || fs::is_directory(kRoot / folder / name) ||
         std::ranges::any_of(fs::directory_iterator(kRoot / folder), [&](const auto& entry) {
           return fs::exists(entry.path() / source) || fs::is_directory(entry.path() / name);
         });
}

}  // namespace

TEST_CASE("every block of code in the documents is held to something, or says why not") {
  // examples/sites/behind-nat.sh has those of forwarders, and runs them.
  const std::set<std::string> held = {"sh",   "cpp",  "c",    "python",  "cmake", "csv",
                                      "toml", "json", "yaml", "haproxy", "nginx"};
  for (const Block& block : all_blocks(kRoot)) {
    if (block.language == "text") {
      CHECK_MESSAGE(!block.why_not.empty(), block.place(),
                    ": text needs a line `<!-- not run: why -->` above it");
    } else {
      CHECK_MESSAGE(held.contains(block.language), block.place(), ": ```", block.language);
      CHECK_MESSAGE(block.why_not.empty(), block.place(), ": what is held to something is run");
    }
    CHECK_MESSAGE(!block.lines.empty(), block.place());
  }
}

TEST_CASE("every C++ block in the documents stands in a file that is compiled") {
  const auto files = files_in({"examples", "tests"}, ".cc");
  std::size_t seen = 0;
  for (const Block& block : all_blocks(kRoot)) {
    if (block.language == "cpp") {
      ++seen;
      CHECK_MESSAGE(
          is_shown(block, files), block.place(),
          ": no source of examples/ or tests/ has these lines in this order; fragments are "
          "in tests/docs/fragments.cc");
    }
  }
  CHECK(seen >= 10);
}

TEST_CASE("every CMake block in the documents stands in a project that is built") {
  const auto files = files_in({"tests/install"}, "CMakeLists.txt");
  for (const Block& block : all_blocks(kRoot)) {
    if (block.language == "cmake") {
      CHECK_MESSAGE(is_shown(block, files), block.place());
    }
  }
}

TEST_CASE("what a section has its script run stands in that script") {
  const std::string page = "docs/operations.md";
  const auto text = lines_of(kRoot / page);
  const auto line_of = [&](auto from, const std::string& start) {
    return std::find_if(from, text.end(),
                        [&](const std::string& line) { return line.starts_with(start); });
  };
  for (const auto& [section, name] :
       {std::pair{"### For many sites at once", "examples/sites/five-sites.sh"},
        std::pair{"### Both behind NAT", "examples/sites/behind-nat.sh"}}) {
    const auto begin = line_of(text.begin(), section);
    REQUIRE_MESSAGE(begin != text.end(), section);
    const auto first = static_cast<std::size_t>(begin - text.begin());
    const auto last = static_cast<std::size_t>(line_of(begin, "## ") - text.begin());
    const auto script = script_lines(kRoot / name);
    std::size_t seen = 0;
    for (Block block : blocks_of(kRoot, page)) {
      // The sites of a script have files of other names.
      const bool names_files = block.lines.front().starts_with("sotto node") ||
                               block.lines.front().starts_with("sotto site check");
      if (block.line < first || block.line > last || names_files) {
        continue;
      }
      ++seen;
      if (block.lines.front() == "name,key,address") {
        std::ranges::for_each(block.lines, with_made_key);
      }
      CHECK_MESSAGE(is_shown(block, {script}), block.place(), ": not so in ", name);
    }
    CHECK(seen >= 2);
  }
}

TEST_CASE("C and Python blocks stand where a test runs them") {
  // tests/bindings/blocks.cmake compiles and runs all of this page.
  for (const Block& block : all_blocks(kRoot)) {
    if (block.language == "c" || block.language == "python") {
      CHECK_MESSAGE(block.page == "docs/bindings.md", block.place());
    }
  }
}

TEST_CASE("the commands in the documents call what there is") {
  for (const Block& block : all_blocks(kRoot)) {
    if (block.language != "sh") {
      continue;
    }
    for (const auto& command : commands_of(block)) {
      const auto program = std::find_if(command.begin(), command.end(), [](const auto& word) {
        return word.find('=') == std::string::npos;
      });
      REQUIRE_MESSAGE(program != command.end(), block.place());
      CHECK_MESSAGE((kKnownPrograms.contains(*program) || is_ours(*program)), block.place(), ": ",
                    *program, " is no file of the project and no known program");
    }
  }
}

TEST_CASE("blocks are read as they are written") {
  const Block block = {
      .page = "x",
      .line = 1,
      .language = "sh",
      .why_not = {},
      .lines = {"A=1 b --c \\", "  \"d e\" 'f|g'   # h | i", "", "j <(k l) | m && n & o"}};
  const std::vector<std::vector<std::string>> commands = {
      {"A=1", "b", "--c", "d e", "f|g"}, {"j"}, {"k", "l"}, {"m"}, {"n"}, {"o"}};
  CHECK(commands_of(block) == commands);
}

}  // namespace sotto::test::blocks_test
