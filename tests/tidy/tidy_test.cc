// The house rules that a machine can check: who may include whom, how long things may get.
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/text_of_file.h"

namespace sotto::test::tidy_test {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostFunctionLines = 70;
constexpr std::size_t kMostFileLines = 800;
constexpr std::size_t kMostColumns = 100;

const fs::path kRoot = SOTTO_SOURCE_DIR;

/// The arrows of ARCHITECTURE.md: a folder, or a room of one, may include itself and what stands
/// here.
const std::map<std::string, std::set<std::string>> kArrows = {
    {"base", {}},
    {"kernels", {"base"}},
    {"compress", {"base", "kernels"}},
    {"topology", {"base"}},
    {"optim", {"base", "kernels", "compress", "topology"}},
    {"groups", {"base", "kernels", "compress", "topology", "optim"}},
    {"comm", {"base"}},
    {"trainers", {"base", "kernels", "compress", "topology", "optim", "groups", "comm"}},
    {"sim", {"base", "kernels", "compress", "topology", "optim"}},
    {"sites/core", {"base", "kernels", "compress", "optim"}},
    {"sites/roster", {"base", "sites/core"}},
    {"sites/epochs", {"base", "kernels", "compress", "optim", "sites/core"}},
    {"sites/nodes", {"base", "comm", "trainers", "sites/core", "sites/roster"}},
    {"sites/process",
     {"base", "kernels", "compress", "optim", "comm", "trainers", "sites/core", "sites/nodes"}},
    {"sites/elastic",
     {"base", "compress", "optim", "comm", "trainers", "sites/roster", "sites/epochs",
      "sites/nodes"}},
    {"sites/torch", {"base", "trainers", "sites/nodes", "sites/process", "sites/elastic"}},
    {"sites/faults", {"base", "compress", "topology", "sim", "sites/core"}},
    {"sites/simulated", {"base", "compress", "topology", "sim", "sites/core", "sites/faults"}},
    {"observe",
     {"base", "optim", "comm", "trainers", "sites/nodes", "sites/process", "sites/elastic"}},
    {"study",
     {"base", "kernels", "compress", "topology", "optim", "groups", "comm", "trainers", "sim",
      "sites/core", "sites/faults", "sites/nodes", "sites/elastic", "sites/process",
      "sites/simulated"}},
    {"console", {"base", "comm"}},
    {"cli",
     {"base", "kernels", "compress", "topology", "optim", "comm", "trainers", "sim", "sites/core",
      "sites/faults", "sites/nodes", "sites/elastic", "sites/process", "sites/simulated", "observe",
      "study", "console"}},
    {"bindings",
     {"base", "kernels", "compress", "topology", "optim", "comm", "trainers", "sites/nodes",
      "sites/elastic", "sites/process", "observe", "study"}},
};

std::vector<std::string> read_lines(const fs::path& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
  }
  return lines;
}

std::vector<fs::path> sources_in(const fs::path& folder) {
  std::vector<fs::path> found;
  if (!fs::exists(folder)) {
    return found;
  }
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const auto extension = entry.path().extension();
    if (extension == ".h" || extension == ".cc" || extension == ".cu" || extension == ".c") {
      found.push_back(entry.path());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<fs::path> all_sources() {
  std::vector<fs::path> found;
  std::set<std::string> folders = {"tests", "examples", "bench"};
  for (const auto& [folder, allowed] : kArrows) {
    folders.insert(folder);
  }
  for (const auto& folder : folders) {
    const auto more = sources_in(kRoot / folder);
    found.insert(found.end(), more.begin(), more.end());
  }
  return found;
}

std::string shown(const fs::path& path) { return fs::relative(path, kRoot).string(); }

}  // namespace

TEST_CASE("folders include each other along the arrows only") {
  const std::regex include(R"(^\s*#include <sotto/((sites/)?[a-z]+)/.*>)");
  for (const auto& [folder, allowed] : kArrows) {
    for (const auto& path : sources_in(kRoot / folder)) {
      for (const auto& line : read_lines(path)) {
        std::smatch match;
        if (std::regex_search(line, match, include) && match[1] != folder) {
          CHECK_MESSAGE(allowed.contains(match[1]), shown(path), ": ", line);
        }
      }
    }
  }
}

TEST_CASE("what is in internal/ is included by its own folder and that folder's tests only") {
  const std::regex include(R"(^\s*#include [<"](sotto/)?([a-z_0-9/]+)/internal/.*[>"])");
  for (const auto& path : all_sources()) {
    const std::string file = shown(path);
    for (const auto& line : read_lines(path)) {
      std::smatch match;
      if (!std::regex_search(line, match, include)) {
        continue;
      }
      const std::string owner = match[2].str() + "/";
      const bool test = file.starts_with("tests/");
      CHECK_MESSAGE((test || file.starts_with(owner)), file, ": ", line);
    }
  }
}

TEST_CASE("what the program alone has is the program's and its tests'") {
  const std::regex include(R"re(^\s*#include "([^"]+)")re");
  for (const auto* folder : {"bench", "tests", "examples"}) {
    for (const auto& path : sources_in(kRoot / folder)) {
      if (shown(path).starts_with("tests/cli/")) {
        continue;
      }
      for (const auto& line : read_lines(path)) {
        std::smatch match;
        if (std::regex_search(line, match, include)) {
          const fs::path header(match[1].str());
          const bool own = fs::exists(path.parent_path() / header) &&
                           !shown(path.parent_path() / header).starts_with("cli/");
          CHECK_MESSAGE((own || !fs::exists(kRoot / "cli" / header)), shown(path), ": ", line);
        }
      }
    }
  }
}

TEST_CASE("what algorithms are built of knows none of them") {
  for (const auto* part : {"exchange", "frozen_adam", "step_rules", "wrappers"}) {
    const auto sources = sources_in(kRoot / "optim" / part);
    CHECK_FALSE(sources.empty());
    for (const auto& path : sources) {
      for (const auto& line : read_lines(path)) {
        CHECK_MESSAGE(!line.starts_with("#include <sotto/optim/algorithms/"), shown(path), ": ",
                      line);
      }
    }
  }
}

TEST_CASE("algorithms see no socket, clock, thread or file") {
  const std::set<std::string> forbidden = {"<thread>",   "<chrono>",     "<mutex>",
                                           "<fstream>",  "<filesystem>", "<sys/socket.h>",
                                           "<unistd.h>", "<atomic>",     "<condition_variable>",
                                           "<random>",   "<ctime>",      "<cstdio>"};
  for (const auto* folder : {"optim", "groups", "sites/core", "compress", "kernels", "topology"}) {
    for (const auto& path : sources_in(kRoot / folder)) {
      // Graphs may come from files; a device tells any thread what is wrong with it.
      if (path.filename().string().starts_with("graph_file") || path.filename() == "queue.cu") {
        continue;
      }
      for (const auto& line : read_lines(path)) {
        for (const auto& header : forbidden) {
          CHECK_MESSAGE(line != "#include " + header, shown(path), ": ", line);
        }
      }
    }
  }
}

TEST_CASE("nothing that decides a result iterates an unordered container") {
  for (const auto* folder :
       {"kernels", "compress", "topology", "optim", "groups", "sim", "trainers", "sites"}) {
    for (const auto& path : sources_in(kRoot / folder)) {
      for (const auto& line : read_lines(path)) {
        CHECK_MESSAGE(!line.starts_with("#include <unordered_"), shown(path), ": ", line);
      }
    }
  }
}

TEST_CASE("files and lines keep their length, and nothing is left undone") {
  const std::regex undone(
      "\\b(TO"
      "DO|FIX"
      "ME|XX"
      "X)\\b");
  for (const auto& path : all_sources()) {
    const auto lines = read_lines(path);
    CHECK_MESSAGE(lines.size() <= kMostFileLines, shown(path), " has ", lines.size(), " lines");
    for (std::size_t i = 0; i < lines.size(); ++i) {
      // Count characters, not bytes: continuation bytes of UTF-8 are 10xxxxxx.
      const auto columns =
          static_cast<std::size_t>(std::count_if(lines[i].begin(), lines[i].end(), [](char c) {
            return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
          }));
      CHECK_MESSAGE(columns <= kMostColumns, shown(path), ":", i + 1, " has ", columns, " columns");
      CHECK_MESSAGE(!std::regex_search(lines[i], undone), shown(path), ":", i + 1);
    }
  }
}

TEST_CASE("whether a status is a fault is asked by ok()") {
  // With a bare `!` in front of the name, `return status` behind it reads as its opposite.
  constexpr std::string_view kBare =
      "!stat"
      "us";
  for (const auto& path : all_sources()) {
    const auto lines = read_lines(path);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const std::size_t at = lines[i].find(kBare);
      const char next = at == std::string::npos || at + kBare.size() >= lines[i].size()
                            ? ' '
                            : lines[i][at + kBare.size()];
      const bool bare = at != std::string::npos && (next == ')' || next == ' ' || next == ';');
      CHECK_MESSAGE((!bare || path.filename() == "tidy_test.cc"), shown(path), ":", i + 1, ": ",
                    lines[i]);
    }
  }
}

TEST_CASE("no test's name has a semicolon") {
  // doctest_discover_tests makes two of such a test, neither of which runs anything and fails.
  const std::regex name(R"regex(^TEST_CASE\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\))regex",
                        std::regex::multiline);
  std::size_t names = 0;
  for (const auto& path : sources_in(kRoot / "tests")) {
    const std::string text = text_of_file(path);
    for (std::sregex_iterator match(text.begin(), text.end(), name), end; match != end; ++match) {
      CHECK_MESSAGE((*match)[1].str().find(';') == std::string::npos, shown(path), ": ",
                    (*match)[1].str());
      ++names;
    }
  }
  CHECK(names > 2000);
}

TEST_CASE("each test file has the namespace of its name, as files are compiled together") {
  const std::regex test_file(R"(.*/(\w+_test)\.cc)");
  std::size_t files = 0;
  for (const auto& path : sources_in(kRoot / "tests")) {
    std::smatch name;
    const std::string place = path.generic_string();
    // Within sotto, `torch` would be its adapter and not libtorch.
    if (!std::regex_match(place, name, test_file) ||
        place.find("/tests/torch/") != std::string::npos) {
      continue;
    }
    const std::string expected = "\nnamespace sotto::test::" + name[1].str() + " {\n";
    CHECK_MESSAGE(text_of_file(path).find(expected) != std::string::npos, shown(path), " lacks",
                  expected);
    ++files;
  }
  CHECK(files > 400);
}

TEST_CASE("functions keep their length") {
  // In this layout a function at namespace scope opens in column 0 and ends with a lone "}".
  const std::regex opener(R"(^[A-Za-z_].*)");
  const std::regex not_a_function(
      R"(^(namespace|extern|HWY_BEFORE|HWY_AFTER|using|#|public|private).*)");
  for (const auto& path : all_sources()) {
    const auto lines = read_lines(path);
    std::size_t start = 0;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const bool opens = std::regex_match(lines[i], opener) &&
                         !std::regex_match(lines[i], not_a_function) &&
                         (i == 0 || lines[i - 1].empty() || lines[i - 1].starts_with("//") ||
                          lines[i - 1].starts_with("#") || lines[i - 1].starts_with("}"));
      if (opens) {
        start = i;
      } else if (lines[i] == "}") {
        const std::size_t length = i - start + 1;
        CHECK_MESSAGE(length <= kMostFunctionLines, shown(path), ":", start + 1, " spans ", length,
                      " lines: ", lines[start]);
      }
    }
  }
}

TEST_CASE("every header opens with what it is for") {
  for (const auto& [folder, allowed] : kArrows) {
    for (const auto& path : sources_in(kRoot / folder)) {
      if (path.extension() != ".h" || path.filename().string().ends_with("-inl.h")) {
        continue;
      }
      const auto lines = read_lines(path);
      REQUIRE_MESSAGE(!lines.empty(), shown(path));
      CHECK_MESSAGE(lines.front().starts_with("// "), shown(path));
      CHECK_MESSAGE(std::find(lines.begin(), lines.end(), "#pragma once") != lines.end(),
                    shown(path));
    }
  }
}

TEST_CASE("JSON of others is read by base/json_text.h alone") {
  // Elsewhere neither its depth is bounded, nor are keys that stand twice refused. These read what
  // the program wrote itself a moment before.
  const std::set<fs::path> own = {"base/json_text.h", "cli/local_job.cc",
                                  "observe/internal/json.h"};
  const std::regex plain(R"([jJ]son::(parse|accept)\(|\bdump\()");
  for (const auto& [folder, allowed] : kArrows) {
    for (const auto& path : sources_in(kRoot / folder)) {
      if (own.contains(shown(path))) {
        continue;
      }
      for (const auto& line : read_lines(path)) {
        CHECK_MESSAGE(!std::regex_search(line, plain), shown(path), ": ", line);
      }
    }
  }
}

TEST_CASE("comments say what they are of, as they are read alone") {
  const std::regex lost(
      R"(^\s*///?<? (The same|Of|Its|So many|As many|Who|Whose|Whoever|Those)\b)");
  const std::regex comment(R"(^\s*//)");
  std::set<std::string> folders = {"tests", "bench", "examples"};
  for (const auto& [folder, allowed] : kArrows) {
    folders.insert(folder);
  }
  std::size_t read = 0;
  for (const std::string& folder : folders) {
    for (const auto& path : sources_in(kRoot / folder)) {
      const auto lines = read_lines(path);
      for (std::size_t i = 0; i < lines.size(); ++i) {
        const bool opens = i == 0 || !std::regex_search(lines[i - 1], comment);
        ++read;
        CHECK_MESSAGE(!(opens && std::regex_search(lines[i], lost)), shown(path), ":", i + 1, ": ",
                      lines[i]);
      }
    }
  }
  CHECK(read > 100'000);
}

TEST_CASE("links between the documents lead somewhere") {
  const std::regex link(R"(\]\(([^)#: ]+)(#[^)]*)?\))");
  std::vector<fs::path> pages;
  for (const auto& folder : {kRoot, kRoot / "docs", kRoot / "bench", kRoot / "examples"}) {
    if (!fs::exists(folder)) {
      continue;
    }
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == ".md") {
        pages.push_back(entry.path());
      }
    }
  }
  REQUIRE_FALSE(pages.empty());
  for (const auto& page : pages) {
    for (const auto& line : read_lines(page)) {
      for (std::sregex_iterator it(line.begin(), line.end(), link), end; it != end; ++it) {
        const auto target = page.parent_path() / (*it)[1].str();
        CHECK_MESSAGE(fs::exists(target), shown(page), " links to ", (*it)[1].str());
      }
    }
  }
}

TEST_CASE("the README leads to every page") {
  const std::string readme = text_of_file(kRoot / "README.md");
  std::size_t pages = 0;
  for (const auto& entry : fs::directory_iterator(kRoot / "docs")) {
    if (entry.path().extension() == ".md") {
      const std::string page = "docs/" + entry.path().filename().string();
      CHECK_MESSAGE(readme.find("(" + page + ")") != std::string::npos, "README.md lacks ", page);
      ++pages;
    }
  }
  CHECK(pages > 20);
}

TEST_CASE("the README's first sh block runs the demonstration and its second one the tests") {
  // CI runs the second.
  std::vector<std::vector<std::string>> blocks;
  bool inside = false;
  for (const std::string& line : read_lines(kRoot / "README.md")) {
    if (line == "```sh") {
      blocks.emplace_back();
      inside = true;
    } else if (line == "```") {
      inside = false;
    } else if (inside) {
      blocks.back().push_back(line);
    }
  }
  REQUIRE(blocks.size() >= 2);
  CHECK(blocks[0] == std::vector<std::string>{"scripts/demo"});
  CHECK(blocks[1] == std::vector<std::string>{"scripts/test"});
}

/// The folders of the libraries, which know nothing of the program.
constexpr auto kLibraries = std::to_array<const char*>(
    {"base", "kernels", "compress", "topology", "optim", "groups", "comm", "trainers", "sim",
     "sites", "observe", "study", "bindings"});

TEST_CASE("an error names its setting as its field, in snake case") {
  // A field that begins the text instead is one that no caller can spell as its own settings are.
  const std::regex dashed(
      "[^.](refuse|Error|Shortage|check_writable|write_result_file|time_limit)"
      "\\(\\s*\"-*[a-z]*-[a-z-]*\",");
  const std::regex in_text("\\bError\\(\\s*(fmt::format\\(\\s*)?\"[a-z_-]+: ");
  std::vector<const char*> folders(kLibraries.begin(), kLibraries.end());
  folders.push_back("cli");
  for (const char* folder : folders) {
    for (const auto& path : sources_in(kRoot / folder)) {
      const std::string text = text_of_file(path);
      for (const std::regex* wrong : {&dashed, &in_text}) {
        std::smatch found;
        CHECK_MESSAGE(!std::regex_search(text, found, *wrong), path.string(), ": ", found.str());
      }
    }
  }
}

TEST_CASE("libraries name settings as data, and no flags of the program") {
  // What stands in backquotes is a command to type.
  const std::regex flag("(^|[^a-z0-9-])--[a-z]");
  const std::regex command("`[^`]*`");
  for (const char* folder : kLibraries) {
    for (const auto& path : sources_in(kRoot / folder)) {
      for (const std::string& line : read_lines(path)) {
        std::istringstream pieces(std::regex_replace(line, command, ""));
        bool quoted = false;
        for (std::string piece; std::getline(pieces, piece, '"'); quoted = !quoted) {
          if (!quoted && piece.find("//") != std::string::npos) {
            break;  // the rest is a comment
          }
          CHECK_MESSAGE(!(quoted && std::regex_search(piece, flag)), path.string(), ": ", line);
        }
      }
    }
  }
}

}  // namespace sotto::test::tidy_test
